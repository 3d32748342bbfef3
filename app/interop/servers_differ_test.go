package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A differential makes the same generated calls of two servers and compares what they give.
type differential struct {
	// ours and theirs are the two servers.
	ours, theirs transport.Dialer
	// calls is how many calls there are, 500 if 0; seed makes them the same each time.
	calls int
	seed  uint64
	// next makes a call; i counts from 0.
	next func(r *rand.Rand, i int) toolCall
	// normalize makes answers comparable that are equivalent; nil changes nothing. It is called with
	// each answer of both servers.
	normalize func(in toolCall, a *toolReply)
	// allowed are the differences that the guide page of the server lists. Each must occur.
	allowed []knownDifference
	// compare is called with both answers after that, if it is not nil, to settle what follows from
	// earlier calls.
	compare func(in toolCall, ours, theirs *toolReply)
	// each is called after each pair of calls, if it is not nil, such as to compare files.
	each func(t *testing.T, in toolCall)
}

// A toolCall is one generated call of a tool.
type toolCall struct {
	tool string
	args map[string]any
}

// A knownDifference is one between the servers that is meant; it has the name that the table of the guide
// page gives it.
type knownDifference struct {
	name string
	is   func(in toolCall, ours, theirs *toolReply) bool
}

// A toolReply is what a server gave for a call.
type toolReply struct {
	// Content and Structured are what the result has, decoded.
	Content    []any
	Structured any
	// Refused says that there is no good result: the tool failed, or the server refused the call
	// with an error of the protocol. Message is what it said.
	Refused bool
	Message string
}

// run makes the calls and reports every difference that is not allowed.
func (d *differential) run(t *testing.T) {
	t.Helper()
	ours, theirs := d.connect(t, d.ours), d.connect(t, d.theirs)
	if d.calls == 0 {
		d.calls = 500
	}
	r := rand.New(rand.NewPCG(d.seed, 17))
	occurred := make(map[string]int)
	same, refused := 0, 0
	for i := range d.calls {
		in := d.next(r, i)
		a, b := ask(t, ours, in), ask(t, theirs, in)
		if d.normalize != nil {
			d.normalize(in, a)
			d.normalize(in, b)
		}
		if d.compare != nil {
			d.compare(in, a, b)
		}
		name := d.difference(in, a, b)
		if name != "" {
			occurred[name]++
		} else if a.Refused && b.Refused {
			refused++ // the words are each server's own
		} else if diff := cmp.Diff(b, a); diff != "" {
			arguments, _ := json.Marshal(in.args) // for the message alone
			t.Errorf("call %d, %s %.2000s: -theirs +ours\n%.4000s", i, in.tool, arguments, diff)
		} else {
			same++
		}
		if d.each != nil {
			d.each(t, in)
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d calls: %d with the same result, %d refused by both, allowed differences %v", d.calls, same, refused, occurred)
	for _, allowed := range d.allowed {
		if occurred[allowed.name] == 0 && !t.Failed() {
			t.Errorf("the difference %q did not occur: take it out of the table, or have a call show it", allowed.name)
		}
	}
	if same < d.calls/10 && !t.Failed() {
		t.Errorf("only %d of %d calls had a result: they prove too little", same, d.calls)
	}
}

// difference is the name of the allowed difference of two answers, or nothing.
func (d *differential) difference(in toolCall, ours, theirs *toolReply) string {
	for _, allowed := range d.allowed {
		if allowed.is(in, ours, theirs) {
			return allowed.name
		}
	}
	return ""
}

// connect is a client of one of the servers, in the handshake era, which both speak.
func (*differential) connect(t *testing.T, dialer transport.Dialer) *client.Client {
	t.Helper()
	c, err := client.Connect(bounded(t), dialer, &client.Options{Eras: client.NewEraMemory(), Versions: []string{legacy}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask makes one call. It fails the test if the connection does.
func ask(t *testing.T, c *client.Client, in toolCall) *toolReply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := c.CallTool(ctx, in.tool, in.args, nil)
	if refusal, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &toolReply{Refused: true, Message: refusal.Message}
	}
	if err != nil {
		t.Fatalf("%s: %v", in.tool, err)
	}
	a := &toolReply{Refused: result.IsError}
	text, err := json.Marshal(result.Content)
	if err == nil {
		err = json.Unmarshal(text, &a.Content)
	}
	if err == nil && len(result.StructuredContent) > 0 {
		err = json.Unmarshal(result.StructuredContent, &a.Structured)
	}
	if err != nil {
		t.Fatalf("%s: the result: %v", in.tool, err)
	}
	if a.Refused && len(result.Content) > 0 {
		if said, ok := result.Content[0].(*mcp.TextContent); ok {
			a.Message = said.Text
		}
	}
	return a
}

// builtinDialer starts 'parley serve' with the arguments, for each connection anew. env is added to
// the environment.
func builtinDialer(t *testing.T, env []string, args ...string) transport.Dialer {
	t.Helper()
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	s := useCase{args: args, env: env}
	d := stdio.Command(parley, s.command()...)
	d.Env, d.Stderr = s.environment(t), t.Output()
	return d
}

// originalDialer starts a server of npm by the path of its script below peers. env is added to the
// environment.
func originalDialer(t *testing.T, env []string, args ...string) transport.Dialer {
	t.Helper()
	d := peer(t, args...)
	d.ExtraEnv = env
	return d
}
