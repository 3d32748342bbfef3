package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/bridge"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// Callers without session have one connection for each principal; anonymous ones share one.
// Sessions have one each where the server has sessions as well.
func TestConnections(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(farm)
				b := begin(t, f, version, bridge.Options{})
				if b.Modern() != (version == modern) {
					t.Errorf("modern: %v", b.Modern())
				}
				ada, again, bob := join(t, b, person("ada")), join(t, b, person("ada")), join(t, b, person("bob"))
				nobody, other := join(t, b, nil), join(t, b, nil)
				if which(t, ada) != 1 || which(t, again) != 1 {
					t.Error("two clients of one principal have two connections, or not the first one")
				}
				if which(t, bob) == which(t, ada) || which(t, nobody) == which(t, ada) || which(t, nobody) == which(t, bob) {
					t.Error("two principals share a connection")
				}
				if which(t, nobody) != which(t, other) {
					t.Error("anonymous callers have several connections")
				}
				first, second := open(t, b, person("ada")), open(t, b, person("ada"))
				own := which(t, first) != which(t, second) && which(t, first) != which(t, ada)
				if own != (version == legacy) {
					t.Errorf("sessions have connections of their own: %v", own)
				}
				before := f.open.Load()
				_ = first.Close()
				time.Sleep(time.Second) // of fake time
				if ended := before-f.open.Load() == 1; ended != (version == legacy) {
					t.Errorf("the end of a session ended its connection: %v", ended)
				}
			})
		})
	}
}

// The question of one principal can be answered by nobody else, whatever they send.
func TestQuestionOfAnother(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(farm)
				b := begin(t, f, version, bridge.Options{})
				ada, eve, nobody := join(t, b, person("ada")), join(t, b, person("eve")), join(t, b, nil)
				asked, _, err := ask(t.Context(), ada, nil, nil)
				if err != nil || asked == nil {
					t.Fatal(asked, err)
				}
				for who, c := range map[string]*client.Client{"eve": eve, "nobody": nobody, "a session of eve": dial(t, mem.New(b, &mem.Options{Principal: person("eve")}), modern)} {
					_, result, err := ask(t.Context(), c, yes(asked), asked.RequestState)
					if err == nil {
						t.Errorf("%s answered the question of ada: %s", who, result)
						continue
					}
					wantCode(t, err, mcp.CodeInvalidParams, "requestState")
				}
				if _, result, err := ask(t.Context(), ada, yes(asked), asked.RequestState); err != nil || !strings.Contains(result, "accept") {
					t.Errorf("ada's own answer: %s, %v", result, err)
				}
			})
		})
	}
}

// One principal too many takes the place of one that is idle, and is refused while none is.
func TestMaxCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(farm)
		b := begin(t, f, legacy, bridge.Options{MaxCallers: 2})
		which(t, join(t, b, person("ada")))
		time.Sleep(time.Minute) // of fake time
		which(t, join(t, b, person("bob")))
		_, err := client.Connect(t.Context(), alone{b, person("eve")}, &client.Options{Versions: []string{modern}, Retries: -1})
		wantCode(t, err, mcp.CodeTooManyInFlight, "MaxCallers")
		time.Sleep(2 * time.Minute) // of fake time: Proxy.KeptTime is over for ada, and bob's nearly
		which(t, join(t, b, person("eve")))
		time.Sleep(time.Second) // of fake time
		if n := f.open.Load(); n > 2 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// Sessions have a bound of their own: those of requests one, and those that are a connection of
// their caller another.
func TestMaxSessions(t *testing.T) {
	for name, test := range map[string]struct {
		by   func(h transport.Handler) transport.Handler
		most int
	}{
		"requests":    {func(h transport.Handler) transport.Handler { return unshared{h} }, 4},
		"connections": {func(h transport.Handler) transport.Handler { return h }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(farm)
				b := begin(t, f, legacy, bridge.Options{MaxSessions: 2})
				var all []*client.Client
				for range test.most {
					all = append(all, open(t, test.by(b), nil))
				}
				_, err := client.Connect(t.Context(), mem.New(test.by(b), nil), &client.Options{Versions: []string{legacy}, Retries: -1})
				if err == nil {
					t.Errorf("session %d while two may be open", test.most+1)
				}
				_ = all[0].Close()
				time.Sleep(time.Second) // of fake time
				which(t, open(t, test.by(b), nil))
				if n := f.open.Load(); n != int64(test.most) {
					t.Errorf("%d connections are open, want %d", n, test.most)
				}
			})
		})
	}
}

// An unshared handler is told that each request of a session has a stream of its own, as over HTTP.
type unshared struct{ transport.Handler }

func (u unshared) Open(c transport.Conn) (transport.Session, error) {
	return u.Handler.Open(unsharedConn{c})
}

type unsharedConn struct{ transport.Conn }

func (unsharedConn) Shared() bool { return false }

// Connections that nobody uses end, but not while a question may be open.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(farm)
		b := begin(t, f, legacy, bridge.Options{Idle: time.Second, Proxy: proxy.Options{KeptTime: 5 * time.Minute}})
		ada := join(t, b, person("ada"))
		asked, _, err := ask(t.Context(), ada, nil, nil)
		if err != nil || asked == nil {
			t.Fatal(asked, err)
		}
		time.Sleep(4 * time.Minute) // of fake time
		if _, result, err := ask(t.Context(), ada, yes(asked), asked.RequestState); err != nil || !strings.Contains(result, "accept") {
			t.Errorf("a late answer: %s, %v", result, err)
		}
		time.Sleep(6 * time.Minute) // of fake time
		if n := f.open.Load(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
		if which(t, ada) != 2 {
			t.Error("no new connection")
		}
	})
}

// A server that cannot be reached is told at the start; later it is tried again after growing
// pauses, and callers are told meanwhile.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(farm)
		f.broken.Store(true)
		dead := bridge.New(f, &bridge.Options{Logger: quiet})
		if err := dead.Start(t.Context()); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("start: %v", err)
		}
		end(t, dead)
		f.broken.Store(false)
		b := begin(t, f, legacy, bridge.Options{})
		ada, bob := join(t, b, person("ada")), alone{b, person("bob")}
		f.broken.Store(true)
		which(t, ada) // the first connection is there
		waited := false
		for range 10 {
			_, err := client.Connect(t.Context(), bob, &client.Options{Versions: []string{modern}, Retries: -1})
			waited = waited || strings.Contains(fmt.Sprint(err), "the next attempt is in ")
			wantCode(t, err, mcp.CodeInternalError, "be reached")
		}
		if !waited {
			t.Error("no caller is told of a pause")
		}
		f.broken.Store(false)
		time.Sleep(time.Minute) // of fake time
		if which(t, join(t, b, person("bob"))) != 2 {
			t.Error("no new connection")
		}
	})
}

// A thousand callers who never answer leave no connection, no call and no goroutine, and the
// bridge holds no more of them at once than its limits say.
func TestAbandonedQuestions(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		for _, caller := range []string{legacy, modern} {
			t.Run("server "+version+", client "+caller, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := new(farm)
					b := begin(t, f, version, bridge.Options{MaxCallers: 8, MaxSessions: 4})
					for i := range 1000 {
						abandon(t, b, caller, i)
						if n := f.open.Load(); n > 9 {
							t.Fatalf("%d connections are open", n)
						}
					}
					time.Sleep(time.Hour) // of fake time
					synctest.Wait()
					if f.asking.Load() != 0 || f.open.Load() != 0 {
						t.Errorf("%d calls and %d connections are left", f.asking.Load(), f.open.Load())
					}
				})
			})
		}
	}
}

// abandon asks a question that is never answered. Callers with sessions end theirs.
func abandon(t *testing.T, b *bridge.Bridge, version string, i int) {
	t.Helper()
	who := person(fmt.Sprint("caller ", i%8))
	if version == modern {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, err := client.Connect(ctx, alone{b, who}, &client.Options{Versions: []string{modern}, Retries: -1, OnElicit: accept})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		asked, result, err := ask(ctx, c, nil, nil)
		if err == nil && asked == nil {
			t.Fatalf("call %d: no question, but %s", i, result)
		}
		return
	}
	asked := make(chan struct{})
	silent := func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c, err := client.Connect(t.Context(), mem.New(b, &mem.Options{Principal: who}), &client.Options{Versions: []string{legacy}, Retries: -1, OnElicit: silent})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.CallTool(t.Context(), "form", nil, nil) })
	<-asked
	_ = c.Close()
	wg.Wait()
	time.Sleep(time.Second) // of fake time
}

// Cancel ends the calls under way at the server, and callers get an answer at once, also those that
// wait for an answer of their own to a question; Shutdown has nothing to wait for then.
func TestCancel(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(farm)
				b := begin(t, f, version, bridge.Options{})
				alone, session := join(t, b, person("ada")), open(t, b, person("bob"))
				errs := make(chan error, 2)
				for _, c := range []*client.Client{alone, session} {
					go func() {
						_, err := c.CallTool(t.Context(), "hang", nil, nil)
						errs <- err
					}()
				}
				synctest.Wait()
				if n := f.hanging.Load(); n != 2 {
					t.Fatalf("%d calls are under way", n)
				}
				start := time.Now() // of fake time
				b.Cancel()
				for range 2 {
					wantCode(t, <-errs, mcp.CodeShuttingDown, "shutting down")
				}
				_, err := alone.CallTool(t.Context(), "which", nil, nil)
				wantCode(t, err, mcp.CodeShuttingDown, "shutting down")
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if err := b.Shutdown(ctx); err != nil {
					t.Errorf("shutdown: %v", err)
				}
				if n, took := f.hanging.Load(), time.Since(start); n != 0 || took >= time.Second {
					t.Errorf("%d calls are under way at the server; the end took %v", n, took)
				}
			})
		})
	}
}

// What was abandoned takes no memory, and no goroutine is left after Shutdown.
func TestAbandonedMemory(t *testing.T) {
	mcptest.NoLeaks(t)
	f := new(farm)
	b := begin(t, f, legacy, bridge.Options{Proxy: proxy.Options{KeptTime: time.Millisecond}})
	round := func() uint64 {
		for i := range 500 {
			abandonNow(t, b, i)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := round()
	if after := round(); after > before+16<<20 {
		t.Errorf("%d bytes after 500 abandoned questions, %d after 1,000", before, after)
	}
	end(t, b)
	if f.open.Load() != 0 || f.asking.Load() != 0 {
		t.Errorf("%d connections and %d calls are left", f.open.Load(), f.asking.Load())
	}
}

// abandonNow asks once as one of a few principals.
func abandonNow(t *testing.T, b *bridge.Bridge, i int) {
	t.Helper()
	c, err := client.Connect(t.Context(), alone{b, person(fmt.Sprint("caller ", i%4))}, &client.Options{Versions: []string{modern}, Retries: -1, OnElicit: accept})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _, _ = ask(t.Context(), c, nil, nil) // a question, or that it took too long already
}
