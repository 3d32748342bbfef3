package host_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A stubborn server asks in each call, and withdraws nothing when the call is cancelled.
type stubborn struct {
	t      *testing.T
	method string // of its question
	params string
}

func (s *stubborn) Key() string { return "" }

func (s *stubborn) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	near, far := net.Pipe()
	go s.serve(far)
	return stdio.Conn(near).Dial(ctx, in)
}

func (s *stubborn) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // the client has gone
	say := func(format string, args ...any) {
		if _, err := fmt.Fprintf(conn, format+"\n", args...); err != nil {
			s.t.Error(err)
		}
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		m, err := jsonrpc.Parse(bytes.Clone(lines.Bytes()), jsonrpc.Limits{})
		switch {
		case err != nil:
			s.t.Error(err)
		case m.ID.IsZero() || m.Method == "":
		case m.Method == mcp.MethodInitialize:
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"one","version":"1"}}}`, m.ID)
		case m.Method == mcp.MethodToolsList:
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}}`, m.ID)
		case m.Method == mcp.MethodToolsCall:
			say(`{"jsonrpc":"2.0","id":"q","method":%q,"params":%s}`, s.method, s.params)
		default:
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
		}
	}
}

// What a server asks in a call is withdrawn with the call, also if the server goes on asking.
//
// Proves: FLOW-CANCEL.
func TestQuestionOfCancelledCall(t *testing.T) {
	root, err := host.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for method, params := range map[string]string{
		mcp.MethodElicit:    `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`,
		mcp.MethodRootsList: `{}`,
	} {
		for name, cancel := range map[string]func(s *host.Session, call string, end func()){
			"the call":    func(s *host.Session, call string, _ func()) { s.CancelCall(call) },
			"the run":     func(s *host.Session, _ string, _ func()) { s.Cancel() },
			"the context": func(_ *host.Session, _ string, end func()) { end() },
		} {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, &host.Options{Attended: true, Policy: allowing(t, "*"), Roots: []mcp.Root{root}}, nil)
				if err := h.Add(host.Server{Name: "one", Dialer: &stubborn{t, method, params}, Versions: []string{"2025-11-25"}}); err != nil {
					t.Fatal(err)
				}
				s := begin(t, h, &scripted{turns: []turn{use("one__ask", "{}")}})
				ctx, end := context.WithCancel(t.Context())
				defer end()
				ended := make(chan error, 1)
				go func() {
					_, _, err := s.Ask(ctx, "please")
					ended <- err
				}()
				synctest.Wait()
				questions := bodies[*host.QuestionRecord](s)
				if len(questions) != 1 {
					t.Fatalf("%s: %d questions", method, len(questions))
				}
				cancel(s, questions[0].Call, end)
				if err := <-ended; (err == nil) != (name == "the call") {
					t.Errorf("%s, cancelled %s: %v", method, name, err)
				}
				synctest.Wait()
				if answers := bodies[*host.AnswerRecord](s); len(answers) != 1 || answers[0].Withdrawn == "" {
					t.Errorf("%s, cancelled %s: the question is open: %+v", method, name, answers)
				}
			})
		}
	}
}
