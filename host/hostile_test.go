package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// silentMethod makes a server that never answers a method.
func silentMethod(t *testing.T, method string, asked chan<- struct{}) *server.Server {
	t.Helper()
	s := serverOf(t, echo("say", nil))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() == method {
				asked <- struct{}{}
				<-c.Done()
				return nil, c.Err()
			}
			return next(c)
		}
	})
	return s
}

// Close does not wait for a server that does not answer.
func TestCloseWhileServerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{}, 1)
		h := host.New(nil)
		if err := h.Add(host.Server{Name: "one", Dialer: mem.New(silentMethod(t, mcp.MethodToolsList, asked), nil)}); err != nil {
			t.Fatal(err)
		}
		down := make(chan error, 1)
		go func() {
			c, err := h.Catalog(context.Background())
			if err == nil && len(c.Down) == 1 {
				err = c.Down[0]
			}
			down <- err
		}()
		<-asked
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		select {
		case <-closed:
		default:
			t.Error("Close waits for the server")
		}
		if err := <-down; !errors.Is(err, host.ErrClosed) {
			t.Errorf("the catalog: %v", err)
		}
		<-closed
	})
}

// What a server says in an error is bounded like what it says in a result.
func TestErrorForModelIsCut(t *testing.T) {
	huge := server.Tool("huge", "Fails at length.", func(context.Context, mcp.None) (string, error) {
		return "", jsonrpc.NewError(-32000, "%s", strings.Repeat("x", 100_000))
	})
	picture := server.Tool("picture", "Gives a picture of a strange type.", func(context.Context, mcp.None) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{&mcp.ImageContent{Data: []byte("x"), MIMEType: strings.Repeat("y", 100_000)}}}, nil
	})
	many := server.Tool("many", "Gives many blocks.", func(context.Context, mcp.None) (*mcp.CallToolResult, error) {
		r := &mcp.CallToolResult{}
		for range 10_000 {
			r.Content = append(r.Content, mcp.Text(""))
		}
		return r, nil
	})
	m := &scripted{turns: []turn{use("one__huge", "{}", "one__picture", "{}", "one__many", "{}")}}
	h := newHost(t, &host.Options{Policy: allowing(t, "*"), MaxResultBytes: 1000},
		map[string]transport.Handler{"one": serverOf(t, huge, picture, many)})
	if _, err := h.Conversation(m).Ask(t.Context(), "go", nil); err != nil {
		t.Fatal(err)
	}
	messages := m.asked[len(m.asked)-1].Messages
	for i, c := range messages[len(messages)-1].Content {
		size := 0
		for _, c := range c.(*mcp.ToolResultContent).Content {
			size += 16 + len(host.ContentText(c))
		}
		if size > 10_000 {
			t.Errorf("result %d: the model gets %d bytes", i, size)
		}
	}
}

// What fits exactly is not marked, and what does not fit at all is.
func TestResultAtTheLimit(t *testing.T) {
	two := server.Tool("two", "Gives two blocks.", func(context.Context, mcp.None) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(strings.Repeat("x", 1000)), mcp.Text("and this")}}, nil
	})
	one := server.Tool("one", "Gives one block.", func(context.Context, mcp.None) (string, error) { return strings.Repeat("x", 1000), nil })
	m := &scripted{turns: []turn{use("one__one", "{}", "one__two", "{}")}}
	h := newHost(t, &host.Options{Policy: allowing(t, "*"), MaxResultBytes: 1000}, map[string]transport.Handler{"one": serverOf(t, one, two)})
	if _, err := h.Conversation(m).Ask(t.Context(), "go", nil); err != nil {
		t.Fatal(err)
	}
	got := m.results()
	if strings.Contains(got[0], "cut off") || !strings.Contains(got[1], "cut off") {
		t.Errorf("the model gets %d and %d bytes, ending in %q and %q", len(got[0]), len(got[1]), got[0][len(got[0])-20:], got[1][len(got[1])-20:])
	}
}

// Proves: SEC-DOS-1. A server cannot ask the person for ever.
func TestQuestionBudget(t *testing.T) {
	e := &elicitor{answer: &mcp.ElicitResult{Action: mcp.ElicitDecline}}
	h := newHost(t, &host.Options{Elicitor: e, MaxQuestions: 2}, map[string]transport.Handler{"one": serverOf(t, formTool())})
	for i := range 3 {
		_, err := callTool(t, h, "form")
		if (err != nil) != (i == 2) {
			t.Errorf("call %d: %v", i+1, err)
		}
		if i == 2 && !errors.Is(err, client.ErrInputRefused) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

// Proves: SEC-TOOL-3. What has no shape of its own does not hide in a text.
func TestEscapeInvisible(t *testing.T) {
	for _, r := range []rune{
		0x00ad, 0x061c, 0x115f, 0x17b4, 0x180b, 0x180e, 0x180f, 0x200b, 0x202e, 0x2065, 0x2066, 0x2800, 0x3164,
		0xfe00, 0xfe0d, 0xfeff, 0xfff0, 0xfff9, 0x1d159, 0x1d173, 0xe0000, 0xe0020, 0xe0061, 0xe0080, 0xe0100, 0xe01ef, 0xe0fff, 0xf0000,
	} {
		if got := host.Escape("a" + string(r) + "b"); strings.ContainsRune(got, r) {
			t.Errorf("%U is shown as it is", r)
		}
	}
	for _, s := range []string{"naïve 文字 ✓", "❤\ufe0f", "क्षि"} {
		if got := host.Escape(s); got != s {
			t.Errorf("%q is shown as %q", s, got)
		}
	}
}
