package frame_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// Proves: FLOW-BATCH. Ruling 10.
func TestBatch(t *testing.T) {
	mcptest.NoLeaks(t)
	const (
		call  = `{"jsonrpc":"2.0","id":1,"method":"a"}`
		other = `{"jsonrpc":"2.0","id":"two","method":"b"}`
		quiet = `{"jsonrpc":"2.0","id":3,"method":"abandon"}`
		note  = `{"jsonrpc":"2.0","method":"n"}`
		reply = `{"jsonrpc":"2.0","id":7,"result":{}}`
		wrong = `{"jsonrpc":"2.0","id":4,"method":5}`
	)
	const one1, two = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"two","result":{}}`
	for _, test := range []struct {
		name     string
		in       string
		parts    []string // all in one array, in any order
		single   string   // or one message that contains this
		accepted int
	}{
		{name: "calls", in: "[" + call + "," + other + "]", parts: []string{one1, two}},
		{name: "one", in: " [ " + call + " ] ", parts: []string{one1}},
		{name: "with notification", in: "[" + note + "," + call + "," + note + "]", parts: []string{one1}, accepted: 2},
		{name: "only notifications", in: "[" + note + "," + note + "]", accepted: 2},
		{name: "only responses", in: "[" + reply + "]", accepted: 1},
		{name: "abandoned", in: "[" + quiet + "," + call + "]", parts: []string{one1}},
		{name: "all abandoned", in: "[" + quiet + "]"},
		{name: "malformed element", in: "[" + wrong + "," + call + ",7]", parts: []string{one1, `{"jsonrpc":"2.0","id":4,"error":{"code":-32600`, `{"jsonrpc":"2.0","error":{"code":-32600`}},
		{name: "mixed", in: "[" + call + "," + reply + "]", single: `"code":-32600`},
		{name: "empty", in: "[]", single: `"code":-32600`},
		{name: "cut off", in: "[" + call, single: `"code":-32700`},
		{name: "too many", in: "[" + strings.Repeat(note+",", 10) + note + "]", single: `"code":-32600`},
	} {
		t.Run(test.name, func(t *testing.T) {
			accepted := 0
			p := &peer{rules: transport.Rules{Batch: true, MaxBatch: 10}, accept: func(*jsonrpc.Incoming) { accepted++ }}
			p.handle = func(ctx context.Context, x *transport.Exchange) {
				if x.In.Method != "abandon" {
					_ = x.Out.Answer(ctx, result(x, `{}`))
				}
			}
			checkBatch(t, serve(t, p, nil, test.in), test.parts, test.single)
			if accepted != test.accepted {
				t.Errorf("%d notifications and responses were accepted, want %d", accepted, test.accepted)
			}
		})
	}
}

func checkBatch(t *testing.T, got, parts []string, single string) {
	t.Helper()
	switch {
	case len(parts) == 0 && single == "":
		if len(got) > 0 {
			t.Errorf("answered %q, want nothing", got)
		}
		return
	case len(got) != 1:
		t.Errorf("answered %q, want one message", got)
		return
	case single != "":
		if !strings.HasPrefix(got[0], "{") || !strings.Contains(got[0], single) {
			t.Errorf("answered %q, want one error with %s", got, single)
		}
		return
	}
	items, err := jsonrpc.ParseBatch([]byte(got[0]), jsonrpc.Limits{}, 0)
	if err != nil || len(items) != len(parts) {
		t.Fatalf("answered %q (%v), want an array of %d", got, err, len(parts))
	}
	for _, part := range parts {
		if !strings.Contains(got[0], part) {
			t.Errorf("answered %q, want %q in it", got, part)
		}
	}
}

// What a request of a batch sends before its answer leaves at once.
func TestBatchNotifies(t *testing.T) {
	p := &peer{rules: transport.Rules{Batch: true}, handle: func(ctx context.Context, x *transport.Exchange) {
		if err := x.Out.Send(ctx, &jsonrpc.Outgoing{Method: "progress"}); err != nil {
			t.Errorf("sending: %v", err)
		}
		_ = x.Out.Answer(ctx, result(x, `{}`))
		if err := x.Out.Answer(ctx, result(x, `{}`)); err == nil {
			t.Error("a second answer was taken")
		}
	}}
	got := one(serve(t, p, &frame.Options{Linger: time.Hour}, "["+ping+"]"))
	if want := `{"jsonrpc":"2.0","method":"progress"}` + "\n[" + pong + "]"; got != want {
		t.Errorf("written %q, want %q", got, want)
	}
}
