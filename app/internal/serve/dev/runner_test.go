package dev_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/dev"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A connected client is told that lists have changed, and sees what the new process offers.
func TestRestart(t *testing.T) {
	eras(t, nil, func(t *testing.T, b *workbench) {
		for _, more := range []string{"two", "three", "four"} {
			if got := b.tools(); slices.Contains(got, more) {
				t.Errorf("before: %q", got)
			}
			b.offers(tool("one"), tool(more), server.Prompt("p", "A prompt.", func(context.Context, mcp.None) (string, error) { return more, nil }))
			b.restart()
			for want := slices.Sorted(slices.Values([]string{"one", more})); !slices.Equal(b.tools(), want); {
				<-b.notices // there may be one for what is new and one for what is gone
			}
			if text, err := b.call(more); err != nil || text != more {
				t.Errorf("the new tool: %q, %v", text, err)
			}
			for prompt, err := range b.client.Prompts(t.Context()) {
				if err != nil || prompt.Name != "p" {
					t.Errorf("prompts: %v, %v", prompt, err)
				}
			}
		}
	})
}

// A call under way finishes at its process; new ones go to the new process meanwhile.
func TestCallUnderWay(t *testing.T) {
	eras(t, nil, func(t *testing.T, b *workbench) {
		slow := newStuck()
		b.offers(slow.tool("slow", "old"), says("who", "old"))
		b.restart()
		synctest.Wait()
		answer := make(chan string, 1)
		go func() {
			text, err := b.call("slow")
			answer <- text + errorText(err)
		}()
		<-slow.began
		b.offers(says("slow", "new"), says("who", "new"))
		b.restart()
		if text, err := b.call("who"); err != nil || text != "new" {
			t.Errorf("a new call: %q, %v", text, err)
		}
		close(slow.let)
		if text := <-answer; text != "old" {
			t.Errorf("the call under way: %q", text)
		}
	})
}

// A call that does not end in time fails, and the error says that it may have run. What is only read
// is asked of the new process.
func TestDrainIsOver(t *testing.T) {
	eras(t, nil, func(t *testing.T, b *workbench) {
		slow := newStuck()
		read := func(text string) server.Feature {
			return server.Resource("words:///all", "all", func(ctx context.Context) (string, error) {
				if text == "new" {
					return text, nil
				}
				return slow.wait(ctx, text)
			})
		}
		b.offers(slow.tool("slow", "old"), read("old"))
		b.restart()
		synctest.Wait()
		start := time.Now()
		errs := make(chan error, 1)
		go func() {
			_, err := b.call("slow")
			errs <- err
		}()
		<-slow.began
		texts := make(chan string, 1)
		go func() {
			result, err := b.client.ReadResource(t.Context(), "words:///all", nil)
			if err != nil {
				texts <- err.Error()
				return
			}
			texts <- result.Contents[0].Text
		}()
		if b.version == stateless { // one of the handshake era has its calls one after the other
			<-slow.began
		}
		b.offers(tool("one"), read("new"))
		b.restart()
		err := <-errs
		if failed, ok := errors.AsType[*jsonrpc.Error](err); !ok || failed.Code != mcp.CodeShuttingDown || !strings.Contains(err.Error(), "it may have run") {
			t.Errorf("the call under way: %v", err)
		}
		if text := <-texts; text != "new" {
			t.Errorf("the resource: %q", text)
		}
		if took := time.Since(start); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A process that does not start changes nothing.
func TestNotStarted(t *testing.T) {
	eras(t, nil, func(t *testing.T, b *workbench) {
		b.breaks()
		if err := b.runner.Restart(t.Context()); !errors.Is(err, dev.ErrNotStarted) || !errors.Is(err, errBuild) {
			t.Errorf("%v", err)
		}
		if text, err := b.call("one"); err != nil || text != "one" {
			t.Errorf("the process before: %q, %v", text, err)
		}
		if last := b.reported[len(b.reported)-1]; !strings.Contains(last, "expected 'package'") || !strings.Contains(last, "the process before goes on serving") {
			t.Errorf("reported: %q", last)
		}
	})
}

// Clients can connect although the first process does not start, and see what comes later.
func TestFirstNotStarted(t *testing.T) {
	eras(t, nil, func(t *testing.T, b *workbench) {
		broken := &workbench{t: t, version: b.version, notices: make(chan string, 100)}
		broken.runner = dev.NewRunner(b.dialer(broken), &dev.Options{Name: "words", Report: broken.report})
		defer func() { _ = broken.runner.Close() }()
		broken.connect(b.client.Version(), nil)
		if got := broken.tools(); len(got) > 0 {
			t.Errorf("tools: %q", got)
		}
		if last := broken.reported[len(broken.reported)-1]; !strings.Contains(last, "started again when a file changes") {
			t.Errorf("reported: %q", last)
		}
		broken.offers(tool("one"))
		broken.restart()
		<-broken.notices
		if got := broken.tools(); !slices.Equal(got, []string{"one"}) {
			t.Errorf("tools: %q", got)
		}
		if said := broken.client.Server(); said == nil || said.Name != "words" {
			t.Errorf("the server calls itself %+v", said)
		}
	})
}

// Requests wait while a process is starting, and then go to it; after a time they go to the one before.
func TestRequestsWait(t *testing.T) {
	eras(t, nil, func(t *testing.T, b *workbench) {
		b.offers(says("one", "new"))
		hold := make(chan struct{})
		b.hold = hold
		restarted := make(chan error, 1)
		go func() { restarted <- b.runner.Restart(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		if text, err := b.call("one"); err != nil || text != "one" {
			t.Errorf("after the time: %q, %v", text, err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("waited for %v", took)
		}
		answer := make(chan string, 1)
		go func() {
			text, err := b.call("one")
			answer <- text + errorText(err)
		}()
		synctest.Wait()
		close(hold)
		if text := <-answer; text != "new" {
			t.Errorf("a call that waited: %q", text)
		}
		if err := <-restarted; err != nil {
			t.Error(err)
		}
	})
}

// A call that asked a person goes on at the process that asked.
func TestQuestionUnderWay(t *testing.T) {
	type form struct {
		Name string `json:"name"`
	}
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	o := &client.Options{OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- struct{}{}
		select {
		case <-answer:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		return client.Accept(form{Name: "Ada"})
	}}
	greets := func(words string) server.Feature {
		return server.Tool("greet", "Greets.", func(ctx context.Context, _ mcp.None) (string, error) {
			who, err := server.Elicit[form](ctx, "Who are you?")
			return words + " " + who.Value.Name, err
		})
	}
	for _, late := range []bool{false, true} {
		t.Run(map[bool]string{false: "in time", true: "too late"}[late], func(t *testing.T) {
			eras(t, o, func(t *testing.T, b *workbench) {
				asked, answer = make(chan struct{}, 10), make(chan struct{})
				b.offers(greets("Old"))
				b.restart()
				synctest.Wait()
				got := make(chan string, 1)
				go func() {
					text, err := b.call("greet")
					got <- text + errorText(err)
				}()
				<-asked
				b.offers(greets("New"))
				b.restart()
				if late {
					time.Sleep(time.Minute) // of the test's own clock
				}
				close(answer)
				text := <-got
				if late && !strings.Contains(text, "may have run") || !late && text != "Old Ada" {
					t.Errorf("the call: %q", text)
				}
			})
		})
	}
}

// Who watches a resource is told that it may have changed.
func TestSubscription(t *testing.T) {
	eras(t, nil, func(t *testing.T, b *workbench) {
		all := server.Text("words:///all", "all", "text")
		b.offers(all)
		b.restart()
		<-b.notices
		if _, err := b.client.Subscribe(t.Context(), "words:///all"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Second) // of the test's own clock: the proxies subscribe too
		b.offers(all)
		b.restart()
		for notice := range b.notices {
			if notice == "words:///all" {
				break
			}
		}
	})
}

// Close ends what is under way, also a start.
func TestClose(t *testing.T) {
	eras(t, nil, func(t *testing.T, b *workbench) {
		errs := b.callsSlow()
		b.offers(tool("one"))
		b.restart()
		if err := b.runner.Close(); err != nil {
			t.Error(err)
		}
		if err := <-errs; err == nil {
			t.Error("the call succeeded")
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return "error: " + err.Error()
}
