package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

const (
	oneWrite = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"a","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	nextCall = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a","arguments":{}}}`
)

// A client that writes its handshake and its first requests at once gets the
// answer to initialize, then those of the requests. Proves: FLOW-INIT.
func TestHandshakeInOneWrite(t *testing.T) {
	s := newServer(unlimited(), server.Tool("a", "", func(context.Context, none) (string, error) { return "hi", nil }))
	for _, v := range []string{v2024, v2503, v2506, v2511} {
		t.Run(v, func(t *testing.T) {
			for i := range 200 {
				l := dial(t, s, v, nil)
				text := fmt.Sprintf(oneWrite, v)
				if v == v2503 { // the revision that has batches
					text += "[" + fmt.Sprintf(nextCall, 2) + "]\n"
				} else {
					text += fmt.Sprintf(nextCall, 2) + "\n"
				}
				l.WriteLine(strings.TrimSuffix(text, "\n"))
				if first := l.next(); !strings.Contains(first.raw, `"id":1,"result":{"protocolVersion":"`+v) {
					t.Fatalf("%d: the first answer is %s", i, first.raw)
				}
				if second := l.next(); !strings.Contains(second.raw, `"id":2,"result"`) || !strings.Contains(second.raw, `"text":"hi"`) {
					t.Fatalf("%d: the second answer is %s", i, second.raw)
				}
				l.Close()
				<-l.Served
			}
		})
	}
}

// While initialize is being answered ping is answered and requests wait, of
// which one can be cancelled. They are refused if the handshake is.
// Proves: FLOW-INIT, FLOW-CANCEL.
func TestRequestsWaitForHandshake(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused %v", refused), func(t *testing.T) {
			begun, open := make(chan struct{}), make(chan struct{})
			ran := 0
			s := newServer(unlimited(), server.Tool("a", "", func(context.Context, none) (string, error) { ran++; return "hi", nil }))
			s.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					if c.Method() == mcp.MethodInitialize {
						close(begun)
						<-open
						if refused {
							return nil, errors.New("no")
						}
					}
					return next(c)
				}
			})
			l := dial(t, s, v2506, nil)
			l.WriteLine(strings.TrimSuffix(fmt.Sprintf(oneWrite, v2506), "\n"))
			<-begun
			for id := 2; id < 4; id++ {
				l.WriteLine(fmt.Sprintf(nextCall, id))
			}
			l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
			l.WriteLine(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
			if m := l.next(); !strings.Contains(m.raw, `"id":9,"result"`) {
				t.Fatalf("ping: %s", m.raw)
			}
			close(open)
			if m := l.next(); !strings.Contains(m.raw, `"id":1,`) {
				t.Fatalf("initialize: %s", m.raw)
			}
			m := l.next()
			if refused && (m.Error == nil || !strings.Contains(m.raw, "before initialize")) || !refused && !strings.Contains(m.raw, `"id":3,"result"`) {
				t.Errorf("the call: %s", m.raw)
			}
			l.WriteLine(`{"jsonrpc":"2.0","id":10,"method":"ping"}`)
			if m := l.next(); !strings.Contains(m.raw, `"id":10,"result"`) {
				t.Errorf("after all: %s", m.raw)
			}
			if want := 1; !refused && ran != want || refused && ran != 0 {
				t.Errorf("%d calls ran", ran)
			}
		})
	}
}

// A connection that closes while requests wait for the handshake leaves nothing.
func TestCloseDuringHandshake(t *testing.T) {
	begun, open := make(chan struct{}), make(chan struct{})
	s := newServer(unlimited(), server.Tool("a", "", func(context.Context, none) (string, error) { return "hi", nil }))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() == mcp.MethodInitialize {
				close(begun)
				<-open
			}
			return next(c)
		}
	})
	l := dial(t, s, v2506, nil)
	l.WriteLine(fmt.Sprintf(oneWrite, v2506) + fmt.Sprintf(nextCall, 2))
	<-begun
	l.Close()
	close(open)
	<-l.Served
}
