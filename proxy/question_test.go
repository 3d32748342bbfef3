package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
)

// askingServer is a server whose tools ask in every way. What came back to the tool is
// its result, or in the record if the call ended before.
func askingServer() (*server.Server, *logtest.List) {
	s := server.New("asking", "1", &server.Options{Logger: quiet, Limits: unlimited})
	seen := new(logtest.List)
	say := func(v any, err error) (string, error) {
		if err == nil {
			return fmt.Sprint(v), nil
		}
		if !errors.Is(err, server.ErrInputPending) {
			seen.Add(err.Error())
		}
		return "", err
	}
	s.Add(
		server.Tool("form", "", func(ctx context.Context, _ mcp.None) (string, error) {
			a, err := server.Elicit[confirm](ctx, "Sure?")
			return say(a.Action, err)
		}),
		server.Tool("both", "Asks two things at once.", func(ctx context.Context, _ mcp.None) (string, error) {
			var wg sync.WaitGroup
			var a, b server.Answer[confirm]
			var errA, errB error
			wg.Go(func() { a, errA = server.Elicit[confirm](ctx, "A?") })
			wg.Go(func() { b, errB = server.Elicit[confirm](ctx, "B?") })
			wg.Wait()
			return say(a.Action+" "+b.Action, errors.Join(errA, errB))
		}),
		server.Tool("url", "", func(ctx context.Context, _ mcp.None) (string, error) {
			tries := 0
			ok, err := server.ElicitURL(ctx, "https://example.com/pay", "Pay", func(context.Context) (bool, error) {
				tries++
				return tries > 1, nil
			})
			return say(ok, err)
		}),
		server.Tool("sample", "", func(ctx context.Context, _ mcp.None) (string, error) {
			p := &mcp.CreateMessageParams{MaxTokens: 10, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("hi")}}}}
			r, err := server.Sample(ctx, p)
			if err != nil {
				return say("", err)
			}
			return r.Content[0].(*mcp.TextContent).Text + " by " + r.Model, nil
		}),
		server.Tool("roots", "", func(ctx context.Context, _ mcp.None) (string, error) {
			r, err := server.Roots(ctx)
			return say(r, err)
		}),
		server.Prompt("form", "", func(ctx context.Context, _ mcp.None) (string, error) {
			a, err := server.Elicit[confirm](ctx, "Sure?")
			return say(a.Action, err)
		}),
		server.Resource("form:///", "form", func(ctx context.Context) (string, error) {
			a, err := server.Elicit[confirm](ctx, "Sure?")
			return say(a.Action, err)
		}),
	)
	return s, seen
}

// answers answers everything.
func answers() *client.Options {
	return &client.Options{
		OnElicit:    accept,
		OnElicitURL: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Accept(nil) },
		OnSample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			text := p.Messages[0].Content[0].(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m1", Content: mcp.Contents{mcp.Text(text + " there")}}, nil
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///r"}}, nil },
	}
}

// All kinds of questions come to the caller and their answers back, in all
// combinations of eras and from tools, prompts and resources.
func TestQuestions(t *testing.T) {
	up, _ := askingServer()
	eachEra(t, up, answers(), func(t *testing.T, version string, era mcptest.Era, c *client.Client) {
		want := map[string]string{"sample": "hi there by m1", "roots": "[{file:///r  map[]}]"}
		if era.Version >= v2506 {
			want["form"], want["both"] = "accept", "accept accept"
		}
		for tool, want := range want {
			r, err := c.CallTool(t.Context(), "up_"+tool, nil, nil)
			if got := text(t, r, err); got != want {
				t.Errorf("%s: %s", tool, got)
			}
		}
		if era.Version < v2506 {
			return
		}
		m, err := c.GetPrompt(t.Context(), "up_form", nil, nil)
		if err != nil || m.Messages[0].Content.(*mcp.TextContent).Text != "accept" {
			t.Errorf("prompt: %+v, %v", m, err)
		}
		r, err := c.ReadResource(t.Context(), "up+form:///", nil)
		if err != nil || r.Contents[0].Text != "accept" {
			t.Errorf("resource: %+v, %v", r, err)
		}
	})
}

// Declining and cancelling are answers; what a person refuses altogether reaches
// an upstream server with a handshake, and ends the call at a stateless one.
func TestRefusals(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up, seen := askingServer()
		p := connect(t, up, version, nil)
		var answer func() (*mcp.ElicitResult, error)
		o := answers()
		o.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return answer() }
		o.OnSample = func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return nil, client.ErrRefused
		}
		c := join(t, p.Server(), caller, o)
		for want, f := range map[string]func() (*mcp.ElicitResult, error){"decline": client.Decline, "cancel": client.CancelElicit} {
			answer = f
			r, err := c.CallTool(t.Context(), "form", nil, nil)
			if got := text(t, r, err); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		r, err := c.CallTool(t.Context(), "sample", nil, nil)
		if caller == v2607 { // its client ends the call itself
			if !errors.Is(err, client.ErrInputRefused) {
				t.Errorf("refused sampling: %+v, %v", r, err)
			}
			return
		}
		if got := text(t, r, err); !r.IsError || !strings.Contains(got, "refused by the user") {
			t.Errorf("refused sampling: %s", got)
		}
		if got := seen.Take(); (len(got) == 1) != (version == v2511) {
			t.Errorf("upstream was told %q", got)
		}
	})
}

// A caller that cannot answer is not asked: the upstream server is refused as by a
// client without the capability, and the caller told what is missing if the call
// ends by it.
func TestIncapableCaller(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up, seen := askingServer()
		p := connect(t, up, version, nil)
		c := join(t, p.Server(), caller, nil)
		for _, tool := range []string{"form", "url", "sample", "roots", "both"} {
			r, err := c.CallTool(t.Context(), tool, nil, nil)
			e, coded := errors.AsType[*jsonrpc.Error](err)
			switch {
			case caller == v2607:
				if !coded || e.Code != mcp.CodeMissingClientCapability || !strings.Contains(string(e.Data), "requiredCapabilities") {
					t.Errorf("%s: %+v, %v", tool, r, err)
				}
			case err != nil || !r.IsError:
				t.Errorf("%s: %+v, %v", tool, r, err)
			}
		}
		for _, told := range seen.Take() {
			if !strings.Contains(told, "cannot answer") && !strings.Contains(told, "did not declare") {
				t.Errorf("upstream was told %q", told)
			}
		}
	})
}

// Opening a URL is consent alone: the call goes on when the upstream server knows
// that the matter is settled, and then the caller is told, if its revision knows
// of it, under the id that it was given.
func TestURL(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up, _ := askingServer()
		p := connect(t, up, version, nil)
		var ids logtest.List
		o := answers()
		o.OnElicitURL = func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Page.URL != "https://example.com/pay" {
				t.Errorf("page %q", r.Page.URL)
			}
			ids.Add(r.Params.ElicitationID)
			return client.Accept(nil)
		}
		o.OnElicitationComplete = func(_ context.Context, id string) { ids.Add(id) }
		c := join(t, p.Server(), caller, o)
		r, err := c.CallTool(t.Context(), "url", nil, nil)
		if got := text(t, r, err); got != "true" {
			t.Errorf("got %s", got)
		}
		if err := c.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		got := ids.Take()
		if version == v2511 && caller == v2511 && (len(got) != 2 || got[0] == "" || got[0] != got[1]) {
			t.Errorf("ids %q", got)
		}
		if caller == v2607 && (len(got) != 1 || got[0] != "") {
			t.Errorf("ids %q", got)
		}
	})
}

// A URL that takes minutes does not run into time limits: the caller's time stands
// still, or rounds without a question follow one another.
func TestSlowURL(t *testing.T) {
	modes(t, func(t *testing.T, version, caller string) {
		up := server.New("upstream", "1", &server.Options{Logger: quiet})
		end := time.Now().Add(3 * time.Minute)
		var asked atomic.Int64
		up.Add(server.Tool("url", "", func(ctx context.Context, _ mcp.None) (string, error) {
			ok, err := server.ElicitURL(ctx, "https://example.com/pay", "Pay", func(context.Context) (bool, error) { return time.Now().After(end), nil })
			return fmt.Sprint(ok), err
		}))
		p := connect(t, up, version, &proxy.Options{Server: server.Options{Limits: server.Limits{CallTimeout: time.Minute}}})
		o := answers()
		o.CallTimeout = 10 * time.Minute
		o.OnElicitURL = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked.Add(1)
			return client.Accept(nil)
		}
		c := join(t, p.Server(), caller, o)
		r, err := c.CallTool(t.Context(), "url", nil, nil)
		if got := text(t, r, err); got != "true" || asked.Load() != 1 {
			t.Errorf("got %s after %d questions", got, asked.Load())
		}
	})
}

// The same over every transport to the upstream server, with callers who ask for
// everything at the same time.
func TestUpstreamTransports(t *testing.T) {
	up, _ := askingServer()
	for _, transportName := range []string{"stdio", "streamable", "websocket", "sse"} {
		for _, version := range upstreams {
			if transportName == "sse" {
				version = v2506 // the newest that may still be met there
			}
			for _, caller := range upstreams {
				t.Run(transportName+" "+version+", caller "+caller, func(t *testing.T) {
					mcptest.NoLeaks(t)
					p := connectBy(t, up, version, transportName, nil)
					c := join(t, p.Server(), caller, answers())
					var wg sync.WaitGroup
					for tool, want := range map[string]string{"form": "accept", "both": "accept accept", "sample": "hi there by m1", "roots": "[{file:///r  map[]}]"} {
						for range 5 {
							wg.Go(func() {
								r, err := c.CallTool(t.Context(), tool, nil, nil)
								if err != nil {
									t.Error(tool, err)
									return
								}
								if got := text(t, r, err); got != want {
									t.Errorf("%s: %s", tool, got)
								}
							})
						}
					}
					wg.Wait()
				})
			}
		}
	}
}
