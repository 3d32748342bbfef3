package server_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A side effect that ends after its call was cancelled, after the server began to end,
// or after the handler's own deadline, is recorded: it does not happen twice.
func TestRecordAfterEnd(t *testing.T) {
	for name, end := range map[string]func(s *server.Server, w *worker){
		"shutdown": func(s *server.Server, _ *worker) { _ = s.Shutdown(context.Background()) },
		"cancel":   func(_ *server.Server, w *worker) { w.cancel(nil) },
		"deadline": func(*server.Server, *worker) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				paid := 0
				tool := server.Tool("pay", "", func(ctx context.Context, _ none) (string, error) {
					short, cancel := context.WithTimeout(ctx, time.Second/2)
					defer cancel()
					n, err := server.Once(short, "pay", func() (int, error) {
						time.Sleep(time.Second) // a payment that cannot be stopped
						paid++
						return paid, nil
					})
					if err == nil {
						err = ctx.Err()
					}
					return fmt.Sprint("payment ", n), err
				})
				s, w := withWorker(nil, tool)
				w.recording = func(ctx context.Context, _ server.Record) error {
					if at, ok := ctx.Deadline(); !ok || time.Until(at) != 30*time.Second {
						t.Errorf("the context of Record ends at %v, %t", at, ok)
					}
					if server.CallFrom(ctx) == nil {
						t.Error("the context of Record has not the values of the call")
					}
					return ctx.Err()
				}
				join(t, s, v2607).tool("pay", emptyBody)
				synctest.Wait()
				end(s, w)
				time.Sleep(2 * time.Second)
				s, again := withWorker(nil, tool)
				saved, records := w.take(t)
				if _, _, err := s.Resume(workID, saved, records, again.options()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if paid != 1 || !strings.Contains(again.now().result, "payment 1") {
					t.Errorf("paid %d times, recorded %v; got %s", paid, records, again.now().result)
				}
			})
		})
	}
}

// A store that hangs does not hold Shutdown for ever.
func TestRecordHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := withWorker(nil, server.Tool("keeps", "", func(ctx context.Context, _ none) (string, error) {
			return "kept", server.Keep(ctx, "a", 1)
		}))
		w.recording = func(ctx context.Context, _ server.Record) error {
			<-ctx.Done()
			return ctx.Err()
		}
		join(t, s, v2607).tool("keeps", emptyBody)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A call that ended before it was begun, by its age, a cancel or a server that ends,
// does not run, in any process.
func TestDetachedEndedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		tool := server.Tool("counts", "", func(context.Context, none) (string, error) {
			runs++
			return "", errors.New("imagine that the process ends here")
		})
		s, w := withWorker(nil, tool)
		join(t, s, v2607).tool("counts", emptyBody)
		synctest.Wait()
		saved, _ := w.take(t)
		cause := errors.New("not wanted any more")
		_, cancel, err := s.Resume(workID, saved, nil, w.options())
		if err != nil {
			t.Fatal(err)
		}
		cancel(cause) // it may have started
		synctest.Wait()
		if ended := w.now().fault != nil; ended != (runs == 1) || ended && !errors.Is(w.now().cause, cause) {
			t.Errorf("cancelled at once it ran %d times: %v, %v", runs, w.now().fault, w.now().cause)
		}
		runs = 0
		time.Sleep(48 * time.Hour)
		for range 3 {
			if _, _, err := s.Resume(workID, saved, nil, w.options()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if runs != 0 || !errors.Is(w.now().cause, server.ErrTimeout) || w.now().fault == nil || w.now().fault.Code != mcp.CodeTimeout {
				t.Errorf("after its time it ran %d times: %v, %v", runs, w.now().fault, w.now().cause)
			}
		}
	})
}

// What is saved while a record is kept has that record, so that a store may replace
// the log by it.
func TestSaveInRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := withWorker(nil, server.Tool("two", "", func(ctx context.Context, _ none) (string, error) {
			for _, key := range []string{"first", "second"} {
				if _, err := server.Once(ctx, key, func() (string, error) { return key, nil }); err != nil {
					return "", err
				}
			}
			if _, err := server.Elicit[sure](ctx, "Sure?", &server.AskOptions{Key: "q"}); err != nil {
				return "", err
			}
			return "", server.Keep(ctx, "third", 3)
		}))
		w.answers["Sure?"] = mcp.RawValue(accepted)
		w.recording = func(ctx context.Context, r server.Record) error {
			saved, err := server.CallFrom(ctx).Save(workID)
			if text := fmt.Sprintf(`{"kind":%q,"key":%q`, r.Kind, r.Key); !strings.Contains(string(saved), text) {
				t.Errorf("saved %s, without %s", saved, text)
			}
			return err
		}
		join(t, s, v2607).tool("two", emptyBody)
		synctest.Wait()
		if got := len(w.now().records); got != 5 {
			t.Errorf("%d records; %s", got, w.now().result)
		}
	})
}

// The newest value of a key is the same in memory and in the records.
func TestKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(worker)
		tool := server.Tool("keeps", "", func(ctx context.Context, _ none) (string, error) {
			for i := range 500 {
				done := make(chan error)
				go func() { done <- server.Keep(ctx, "k", -i) }()
				if err := errors.Join(server.Keep(ctx, "k", i), <-done); err != nil {
					return "", err
				}
				v, _, err := server.Kept[int](ctx, "k")
				records := w.now().records
				if want := fmt.Sprintf(`"value":%d}`, v); err != nil || !strings.HasSuffix(records[len(records)-1], want) {
					return "", mcp.Errorf("time %d: %d in memory, %s kept; %v", i, v, records[len(records)-1], err)
				}
			}
			return "the same", nil
		})
		s, own := withWorker(nil, tool)
		w = own
		join(t, s, v2607).tool("keeps", emptyBody)
		synctest.Wait()
		if !strings.Contains(w.now().result, "the same") {
			t.Errorf("got %s, %v", w.now().result, w.now().fault)
		}
	})
}

// A record that could not be kept is tried again without what it is of: a side effect
// is not repeated, a person not asked again. Keep leaves what was there.
func TestRecordRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paid, tries := 0, 0
		again := func(f func() error) (err error) {
			for range 3 {
				if err = f(); err == nil {
					return nil
				}
			}
			return err
		}
		s, w := withWorker(nil, server.Tool("tries", "", func(ctx context.Context, _ none) (string, error) {
			err := again(func() error {
				_, err := server.Once(ctx, "pay", func() (int, error) {
					paid++
					return paid, nil
				})
				return err
			})
			if err != nil {
				return "", err
			}
			err = again(func() error {
				a, err := server.Elicit[sure](ctx, "Sure?", &server.AskOptions{Key: "q"})
				if err == nil && !a.Value.Sure {
					err = errors.New("not sure")
				}
				return err
			})
			if err != nil {
				return "", err
			}
			for i := range 3 {
				before, had, _ := server.Kept[int](ctx, "k")
				if err := server.Keep(ctx, "k", i); err == nil {
					continue
				}
				if now, has, err := server.Kept[int](ctx, "k"); now != before || has != had || err != nil {
					return "", mcp.Errorf("kept %d, %t, %v, was %d, %t", now, has, err, before, had)
				}
			}
			return fmt.Sprint("payment ", paid), nil
		}))
		w.answers["Sure?"] = mcp.RawValue(accepted)
		w.recording = func(context.Context, server.Record) error {
			if tries++; tries%2 == 1 {
				return errors.New("busy")
			}
			return nil
		}
		join(t, s, v2607).tool("tries", emptyBody)
		synctest.Wait()
		if paid != 1 || !strings.Contains(w.now().result, "payment 1") || len(w.now().asked) != 1 {
			t.Errorf("paid %d times, asked %v; got %s, %v", paid, w.now().asked, w.now().result, w.now().fault)
		}
		want := []string{`{"kind":"once","key":"pay","value":1}`, `{"kind":"question","key":"q","question":`, `{"kind":"answer","key":"q","question":`, `{"kind":"once","key":"k","value":1}`}
		for i, r := range w.now().records {
			if len(w.now().records) != len(want) || !strings.HasPrefix(r, want[i]) {
				t.Errorf("record %d is %s of %d", i, r, len(w.now().records))
			}
		}
	})
}

// A handler that asks something else when it runs anew is stopped.
func TestResumeAsksOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		question := "First?"
		s, w := withWorker(nil, server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
			if _, err := server.Elicit[sure](ctx, question, &server.AskOptions{Key: "k"}); err != nil {
				return "", err
			}
			_, err := server.Elicit[sure](ctx, "Then?")
			return "", err
		}))
		w.answers["First?"] = mcp.RawValue(accepted)
		join(t, s, v2607).tool("asks", emptyBody)
		synctest.Wait()
		w.cancel(nil)
		synctest.Wait()
		question = "Other?"
		saved, records := w.take(t)
		if _, _, err := s.Resume(workID, saved, records, w.options()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.now().fault == nil || !strings.Contains(w.now().fault.Message, "not deterministic") || slices.Contains(slices.Collect(maps.Keys(w.answers)), "Other?") {
			t.Errorf("got %s, %v", w.now().result, w.now().fault)
		}
	})
}

// A question that is open is saved and recorded: the answer to it is not taken for
// one to another question under its key.
func TestResumeOpenQuestion(t *testing.T) {
	for _, from := range []string{"records", "saved"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				question := "Delete A?"
				s, w := withWorker(nil, server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
					_, err := server.Elicit[sure](ctx, question, &server.AskOptions{Key: "k"})
					return "", err
				}))
				join(t, s, v2607).tool("asks", emptyBody)
				synctest.Wait()
				saved, records := w.take(t)
				if from == "saved" {
					var err error
					if saved, err = w.call.Save(workID); err != nil {
						t.Fatal(err)
					}
					records = nil
				}
				w.cancel(nil)
				synctest.Wait()
				w.answers["Delete A?"] = mcp.RawValue(accepted)
				if _, _, err := s.Resume(workID, saved, records, w.options()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if len(w.now().asked) != 2 || w.now().fault != nil {
					t.Errorf("the same question: asked %v, %v", w.now().asked, w.now().fault)
				}
				question = "Delete B?"
				if _, _, err := s.Resume(workID, saved, records, w.options()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if len(w.now().asked) != 2 || w.now().fault == nil || !strings.Contains(w.now().fault.Message, "not deterministic") {
					t.Errorf("another question: asked %v, %v", w.now().asked, w.now().fault)
				}
			})
		})
	}
}

// Nothing is recorded after the result.
func TestRecordAfterDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late error
		s, w := withWorker(nil, server.Tool("leaves", "", func(ctx context.Context, _ none) (string, error) {
			go func() {
				_, late = server.Once(ctx, "late", func() (int, error) {
					time.Sleep(time.Minute)
					return 1, nil
				})
			}()
			time.Sleep(time.Second)
			return "done", nil
		}))
		join(t, s, v2607).tool("leaves", emptyBody)
		time.Sleep(time.Hour)
		synctest.Wait()
		if late == nil || !strings.Contains(late.Error(), "the detached call has ended") || len(w.now().records) != 0 {
			t.Errorf("got %v, recorded %v", late, w.now().records)
		}
	})
}

// Shutdown ends the calls that another process can take up at once, and gives
// the others the time that requests have.
func TestShutdownDetached(t *testing.T) {
	for name, test := range map[string]struct {
		durable bool
		grace   time.Duration
		took    time.Duration
		done    bool
	}{
		"can be taken up":        {durable: true, grace: time.Minute},
		"would be lost":          {grace: time.Minute, took: time.Second, done: true},
		"would be lost, no time": {grace: time.Second / 2, took: time.Second / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, w := newServer(unlimited(), server.Tool("works", "", func(ctx context.Context, _ none) (string, error) {
					select {
					case <-time.After(time.Second):
						return "done", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				})), new(worker)
				s.Extend(server.Extension{ID: workID, Wrap: func(next server.Func) server.Func {
					return func(c *server.Call) (server.Result, error) {
						if c.Method() != mcp.MethodToolsCall {
							return next(c)
						}
						o := w.options()
						if !test.durable {
							o.Record = nil
						}
						_, _, err := c.Detach(next, o)
						return &mcp.CallToolResult{}, err
					}
				}})
				join(t, s, v2607).tool("works", emptyBody)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), test.grace)
				defer cancel()
				began := time.Now()
				err := s.Shutdown(ctx)
				if took := time.Since(began); took != test.took || (err != nil) != (test.grace == test.took) {
					t.Errorf("it took %v: %v", took, err)
				}
				if got := w.now(); strings.Contains(got.result, "done") != test.done || errors.Is(got.cause, server.ErrShutdown) == test.done || (got.fault == nil) != test.done {
					t.Errorf("got %s, %v, %v", got.result, got.fault, got.cause)
				}
			})
		})
	}
}

// Requests that need their connection cannot be detached.
func TestDetachRefuses(t *testing.T) {
	each(t, bothEras, func(t *testing.T, version string) {
		faults := make(map[string]error)
		s := newServer(unlimited(), echo(), server.Text("test:a", "a", ""))
		s.Extend(server.Extension{ID: workID, Wrap: func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				_, cancel, err := c.Detach(next, nil)
				if faults[c.Method()] = err; err == nil {
					cancel(nil)
				}
				return next(c)
			}
		}})
		l := join(t, s, version)
		l.result(l.call(mcp.MethodToolsList, emptyBody))
		l.text(l.tool("echo", `{"text":"x"}`))
		for method, err := range faults {
			if (err == nil) != (method == mcp.MethodToolsCall) {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}

// However a detached call ends or fails to start, its place is free again.
func TestDetachReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := unlimited()
		o.Limits.MaxAllDetached = 1
		s := newServer(o, server.Tool("ends", "", func(ctx context.Context, in struct {
			How string `json:"how"`
		},
		) (string, error) {
			switch in.How {
			case "panic":
				panic("x")
			case "goexit":
				runtime.Goexit()
			case "wait":
				<-ctx.Done()
			}
			return "x", nil
		}))
		options, fault := (*server.DetachOptions)(nil), error(nil)
		var first context.Context
		s.Extend(server.Extension{ID: workID, Wrap: func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() != mcp.MethodToolsCall {
					return next(c)
				}
				_, cancel, err := c.Detach(next, options)
				if fault = err; err == nil {
					context.AfterFunc(c, func() { cancel(nil) })
				}
				return &mcp.CallToolResult{}, err
			}
		}})
		l := join(t, s, v2607)
		for name, own := range map[string]*server.DetachOptions{
			"none": nil,
			"Values panics": {Values: func(ctx context.Context, _ *server.Call) context.Context {
				first = ctx
				panic("v")
			}},
			"Values is nil": {Values: func(ctx context.Context, _ *server.Call) context.Context {
				first = ctx
				return nil
			}},
			"Done panics": {Done: func(*server.Call, mcp.RawValue, *jsonrpc.Error) { panic("d") }},
			"Done exits":  {Done: func(*server.Call, mcp.RawValue, *jsonrpc.Error) { runtime.Goexit() }},
		} {
			for _, how := range []string{"", "panic", "goexit", "wait"} {
				options, fault, first = own, nil, nil
				l.tool("ends", `{"how":"`+how+`"}`)
				synctest.Wait()
				if fault != nil {
					t.Errorf("%s, %s: %v", name, how, fault)
				}
				if first != nil && first.Err() == nil {
					t.Errorf("%s: the context and its timer are left", name)
				}
			}
		}
	})
}
