package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/bridge"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// unlimited are limits without rates: tests are quicker than people.
var unlimited = server.Limits{
	ToolRate: server.Unlimited, ListRate: server.Unlimited, CompletionRate: server.Unlimited, PingRate: server.Unlimited,
}

// person is an authenticated caller.
func person(name string) *principal.Principal {
	return &principal.Principal{Issuer: "https://as.example", Subject: name}
}

// A farm makes servers, one for each connection, as a dialer of commands makes processes.
type farm struct {
	dials, open, asking, hanging atomic.Int64
	broken                       atomic.Bool
}

func (f *farm) Key() string { return "" }

// Dial starts a server, which ends with the link.
func (f *farm) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if f.broken.Load() {
		return nil, errors.Join(transport.ErrClosed, errors.New("no such host"))
	}
	n := f.dials.Add(1)
	link, err := mem.New(f.server(n), nil).Dial(ctx, in)
	if err != nil {
		return nil, err
	}
	f.open.Add(1)
	return &counted{Link: link, f: f}, nil
}

// A counted is a link that is counted while it is open.
type counted struct {
	transport.Link
	f *farm
}

func (c *counted) Close(ctx context.Context) error {
	defer c.f.open.Add(-1)
	return c.Link.Close(ctx)
}

type confirm struct {
	Sure bool `json:"sure"`
}

// server is the one of a connection, which has a number.
func (f *farm) server(n int64) *server.Server {
	s := server.New("farm", "1", &server.Options{Logger: quiet, Limits: unlimited})
	s.Add(
		server.Tool("which", "Tells the connection.", func(context.Context, mcp.None) (int64, error) { return n, nil }),
		server.Tool("flood", "Says more and more.", func(ctx context.Context, _ mcp.None) (string, error) {
			f.asking.Add(1)
			defer f.asking.Add(-1)
			text := strings.Repeat("x", 16<<10)
			for n := 1.0; ctx.Err() == nil; n++ {
				_ = server.Progress(ctx, n, 0, text) // lost, when nobody hears it any more
				time.Sleep(10 * time.Millisecond)    // of fake time
			}
			return "", ctx.Err()
		}),
		server.Tool("form", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
			f.asking.Add(1)
			defer f.asking.Add(-1)
			a, err := server.Elicit[confirm](ctx, "Sure?")
			return string(a.Action), err
		}),
		server.Tool("hang", "Takes until it is cancelled.", func(ctx context.Context, _ mcp.None) (string, error) {
			f.hanging.Add(1)
			defer f.hanging.Add(-1)
			<-ctx.Done()
			return "", context.Cause(ctx)
		}),
	)
	return s
}

// begin starts a bridge, which is ended by the test or with it.
func begin(t *testing.T, f *farm, version string, o bridge.Options) *bridge.Bridge {
	t.Helper()
	o.Proxy.Client.Versions = []string{version}
	o.Proxy.Server.Limits = unlimited
	o.Logger = quiet
	b := bridge.New(f, &o)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, b) })
	return b
}

// end ends a bridge, at once.
func end(t *testing.T, b *bridge.Bridge) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}
}

// An alone dials a handler as HTTP without sessions does: each request is by itself.
type alone struct {
	h   transport.Handler
	who *principal.Principal
}

func (a alone) Key() string { return "" }

func (a alone) Dial(_ context.Context, in transport.Inbox) (transport.Link, error) {
	return &aloneLink{alone: a, in: in}, nil
}

type aloneLink struct {
	alone
	in transport.Inbox
}

// Do serves a request.
func (l *aloneLink) Do(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) (*jsonrpc.Incoming, error) {
	in, err := crossed(m)
	if err != nil {
		return nil, err
	}
	r.Carried = false
	x := &answered{in: l.in}
	l.h.Serve(ctx, &transport.Exchange{In: in, Principal: l.who, Out: x, Route: r})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case x.answer == nil:
		return nil, transport.ErrInterrupted
	}
	return x.answer, nil
}

func (l *aloneLink) Post(context.Context, *jsonrpc.Outgoing, transport.Route) error { return nil }
func (l *aloneLink) Establish(context.Context, transport.Established) error         { return nil }
func (l *aloneLink) Traits() transport.Traits                                       { return transport.Traits{Abandons: true, Routes: true} }
func (l *aloneLink) Close(context.Context) error                                    { return nil }

// An answered takes what a handler sends for one request.
type answered struct {
	in     transport.Inbox
	answer *jsonrpc.Incoming
}

func (a *answered) Send(_ context.Context, m *jsonrpc.Outgoing) error {
	in, err := crossed(m)
	if err == nil {
		a.in.Receive(in)
	}
	return err
}

func (a *answered) Answer(_ context.Context, m *jsonrpc.Outgoing) (err error) {
	a.answer, err = crossed(m)
	return err
}

// crossed is a message as the other side reads it.
func crossed(m *jsonrpc.Outgoing) (*jsonrpc.Incoming, error) {
	raw, err := m.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	return jsonrpc.Parse(raw, jsonrpc.Limits{})
}

// join connects a client of the newest revision without session.
func join(t *testing.T, h transport.Handler, who *principal.Principal) *client.Client {
	t.Helper()
	return dial(t, alone{h, who}, modern)
}

// open connects a client with a session.
func open(t *testing.T, h transport.Handler, who *principal.Principal) *client.Client {
	t.Helper()
	return dial(t, mem.New(h, &mem.Options{Principal: who}), legacy)
}

func dial(t *testing.T, d transport.Dialer, version string) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), d, &client.Options{Versions: []string{version}, Retries: -1, OnElicit: accept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func accept(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
	return client.Accept(confirm{true})
}

// which tells the number of the connection that a client's calls go to.
func which(t *testing.T, c *client.Client) int64 {
	t.Helper()
	n, err := client.Call[int64](t.Context(), c, "which", nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ask sends one round of a call of form by hand: what is asked, or the result.
func ask(ctx context.Context, c *client.Client, answers mcp.InputResponses, state *string) (*mcp.InputRequiredResult, string, error) {
	var raw mcp.RawValue
	params := &mcp.CallToolParams{Name: "form"}
	params.InputResponses, params.RequestState = answers, state
	err := c.Request(ctx, mcp.MethodToolsCall, params, &raw, &client.CallOptions{ResultTypes: []string{mcp.ResultInputRequired}})
	if err != nil {
		return nil, "", err
	}
	if !strings.Contains(string(raw), `"input_required"`) {
		return nil, string(raw), nil
	}
	asked := new(mcp.InputRequiredResult)
	return asked, "", json.Unmarshal(raw, asked)
}

// yes accepts all that is asked.
func yes(asked *mcp.InputRequiredResult) mcp.InputResponses {
	out := make(mcp.InputResponses)
	for key := range asked.InputRequests {
		out[key] = mcp.RawValue(`{"action":"accept","content":{"sure":true}}`)
	}
	return out
}

// wantCode checks the code and the text of an error.
func wantCode(t *testing.T, err error, code int64, part string) {
	t.Helper()
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Message, part) {
		t.Errorf("got %v, want code %d and %q", err, code, part)
	}
}
