package client_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A trickle is what a server sends in parts, one after each pause.
type trickle struct {
	first string // at once
	part  string
	parts int // -1: for ever
	pause time.Duration
	last  string
}

// send gives the parts to out until that fails or stop is closed.
func (k trickle) send(out io.Writer, stop <-chan struct{}) {
	_, err := io.WriteString(out, k.first)
	for n := 0; n != k.parts && err == nil; n++ {
		select {
		case <-time.After(k.pause):
			_, err = io.WriteString(out, k.part)
		case <-stop:
			return
		}
	}
	if err == nil {
		_, _ = io.WriteString(out, k.last) // a client that has gone needs none
	}
}

// body is a response that arrives so.
func (k trickle) body(r *http.Request) io.ReadCloser {
	in, out := io.Pipe()
	go func() {
		defer out.Close()
		k.send(out, r.Context().Done())
	}()
	return in
}

// aliveAnswer is what comes before and after the text of a result of a tool with an id.
const (
	aliveHead = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`
	aliveTail = `"}],"resultType":"complete"}}`
)

// aliveByHTTP answers calls with a trickle over Streamable HTTP.
func aliveByHTTP(kind string, of func(id string) trickle) func(t *testing.T) transport.Dialer {
	return func(*testing.T) transport.Dialer {
		s := &site{on: map[string]func(*http.Request, string) *http.Response{
			mcp.MethodToolsCall: func(r *http.Request, id string) *http.Response {
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: of(id).body(r), ContentLength: -1}
			},
		}}
		return &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: s}}
	}
}

// aliveBySSE answers calls with a trickle over HTTP+SSE.
func aliveBySSE(of func(id string) trickle) func(t *testing.T) transport.Dialer {
	return func(*testing.T) transport.Dialer {
		in, out := io.Pipe()
		over := make(chan struct{})
		return &sse.Dialer{URL: "http://far.example/sse", Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				go func() { _, _ = io.WriteString(out, "event: endpoint\ndata: /post\n\n") }() // it ends with the reader
				context.AfterFunc(r.Context(), func() {
					close(over)
					in.CloseWithError(net.ErrClosed)
				})
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: in, ContentLength: -1, Request: r}, nil
			}
			data, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			go aliveOn(data, eventWriter{out}, out, over, of)
			return &http.Response{StatusCode: 202, Body: http.NoBody, Request: r}, nil
		})}}
	}
}

// A roundTrip is a transport that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An eventWriter writes each line as an event.
type eventWriter struct{ io.Writer }

func (w eventWriter) Write(line []byte) (int, error) {
	return fmt.Fprintf(w.Writer, "data: %s\n\n", strings.TrimSpace(string(line)))
}

// aliveByLine answers calls with a trickle on a pipe.
func aliveByLine(of func(id string) trickle) func(t *testing.T) transport.Dialer {
	return func(*testing.T) transport.Dialer {
		ours, theirs := net.Pipe()
		go func() {
			over := make(chan struct{})
			defer close(over)
			defer theirs.Close()
			for in := bufio.NewScanner(theirs); in.Scan(); {
				go aliveOn(bytes.Clone(in.Bytes()), theirs, theirs, over, of)
			}
		}()
		return stdio.Conn(ours)
	}
}

// aliveOn answers a message with whole lines, and calls with a trickle until over is closed.
func aliveOn(message []byte, lines, out io.Writer, over <-chan struct{}, of func(id string) trickle) {
	in, err := jsonrpc.Parse(message, jsonrpc.Limits{})
	if err != nil || in.ID.IsZero() {
		return
	}
	switch in.Method {
	case mcp.MethodToolsCall:
		of(in.ID.String()).send(out, over)
	case mcp.MethodDiscover:
		_, _ = fmt.Fprintf(lines, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["%s"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`+"\n", in.ID, modern)
	}
}

// Bytes of an answer that is arriving keep a call alive, up to MaxCallTime; comments, pings and
// messages of other kinds do not.
//
// Proves: ruling 41 (anthropics/claude-code#93143).
func TestSignsOfLife(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":"p","method":"ping"}`
	long := func(parts int, before, after string) func(id string) trickle {
		return func(id string) trickle {
			return trickle{before + fmt.Sprintf(aliveHead, id), strings.Repeat("x", 100), parts, 20 * time.Second, aliveTail + after}
		}
	}
	always := func(part string) func(string) trickle {
		return func(string) trickle { return trickle{part: part, parts: -1, pause: 20 * time.Second} }
	}
	const (
		healthy = 15 // parts: five minutes
		asJSON  = "application/json"
		asSSE   = "text/event-stream"
		silence = time.Minute
		most    = 10 * time.Minute
	)
	for name, test := range map[string]struct {
		dialer func(t *testing.T) transport.Dialer
		want   time.Duration // until the timeout; 0: the answer comes
	}{
		"JSON":  {aliveByHTTP(asJSON, long(healthy, "", "")), 0},
		"event": {aliveByHTTP(asSSE, long(healthy, "data: ", "\n\n")), 0},
		"lines of an event": {aliveByHTTP(asSSE, func(id string) trickle {
			return trickle{fmt.Sprintf("data: {\"id\":%s,\n", id), "data:\n", healthy, 20 * time.Second, `data: "jsonrpc":"2.0","result":` + done + "}\n\n"}
		}), 0},
		"HTTP+SSE": {aliveBySSE(long(healthy, "data: ", "\n\n")), 0},
		"line":     {aliveByLine(long(healthy, "", "\n")), 0},

		"JSON for ever":     {aliveByHTTP(asJSON, long(-1, "", "")), most},
		"event for ever":    {aliveByHTTP(asSSE, long(-1, "data: ", "\n\n")), most},
		"HTTP+SSE for ever": {aliveBySSE(long(-1, "data: ", "\n\n")), most},
		"line for ever":     {aliveByLine(long(-1, "", "\n")), most},

		"comments":            {aliveByHTTP(asSSE, always(": alive\n\n")), silence},
		"parts of comments":   {aliveByHTTP(asSSE, func(string) trickle { return trickle{":", "x", -1, 20 * time.Second, ""} }), silence},
		"pings":               {aliveByHTTP(asSSE, always("data: "+ping+"\n\n")), silence},
		"events of no kind":   {aliveByHTTP(asSSE, always("event: ping\ndata: {}\n\n")), silence},
		"comments, HTTP+SSE":  {aliveBySSE(always(": alive\n\n")), silence},
		"pings, HTTP+SSE":     {aliveBySSE(always("data: " + ping + "\n\n")), silence},
		"pings, line":         {aliveByLine(always(ping + "\n")), silence},
		"blank lines":         {aliveByLine(always("\n")), silence},
		"comment in an event": {aliveByHTTP(asSSE, func(id string) trickle { return trickle{"data: {", "\n: alive", -1, 20 * time.Second, ""} }), silence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dial(t, test.dialer(t), &client.Options{Eras: client.NewEraMemory()})
				start := time.Now()
				_, err := c.CallTool(t.Context(), "t", nil, nil)
				took := time.Since(start)
				switch {
				case test.want == 0 && (err != nil || took < 4*time.Minute):
					t.Errorf("the answer came after %v: %v", took, err)
				case test.want > 0 && (!errors.Is(err, client.ErrTimeout) || took != test.want):
					t.Errorf("ended after %v, want %v: %v", took, test.want, err)
				}
			})
		})
	}
}

// A long answer on a pipe keeps alive the calls whose answers wait behind it.
//
// Proves: ruling 41.
func TestSignsOfLifeForThoseBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan string, 2)
		c := dial(t, aliveByLine(func(id string) trickle {
			asked <- id
			if len(asked) == 1 {
				return trickle{}
			}
			first := <-asked
			answer := func(id string) string { return fmt.Sprintf(aliveHead, id) + aliveTail + "\n" }
			return trickle{fmt.Sprintf(aliveHead, id), "x", 300, time.Second, aliveTail + "\n" + answer(first)}
		})(t), &client.Options{Eras: client.NewEraMemory()})
		ended := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := c.CallTool(t.Context(), "t", nil, nil)
				ended <- err
			}()
			synctest.Wait()
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// A server that refuses params with _meta is called without a progress token, and asked with one
// no more.
//
// Proves: ruling 41. The words are those of affaan-m/ECC#2670, of serde, of zod and of ajv.
func TestTokenRefused(t *testing.T) {
	for _, test := range []struct {
		words   string
		code    int64
		listed  bool // the server has listed the tool
		refused bool
	}{
		{"Unknown or missing memory tool.", mcp.CodeInvalidParams, true, true},
		{"Unknown or missing memory tool.", mcp.CodeInvalidParams, false, false}, // it may be so
		{"unknown field `_meta`, expected `name` or `arguments`", mcp.CodeInvalidParams, false, true},
		{"Unrecognized key(s) in object: '_meta'", mcp.CodeInvalidParams, false, true},
		{"data must NOT have additional properties", mcp.CodeInvalidParams, false, true},
		{"progressToken is not supported", mcp.CodeInvalidRequest, false, true},
		{"the argument a is missing", mcp.CodeInvalidParams, true, false},
		{"unknown field `status` in row 2", mcp.CodeInvalidParams, true, false}, // row 1 was written
		{"Unrecognized key(s) in object: 'status'", mcp.CodeInvalidParams, false, false},
		{"f() got an unexpected keyword argument \"status\"", mcp.CodeInvalidParams, false, false},
		{"unknown field", mcp.CodeInternalError, true, false}, // it may have run
		{strings.Repeat("x", 1000) + " _meta", mcp.CodeInvalidParams, true, false},
	} {
		t.Run(fmt.Sprintf("%s/%t", test.words, test.listed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{versions: []string{newest}, on: tool(func(r *req) (any, error) {
					if meta(r.in, mcp.MetaProgressToken) != "" {
						return nil, jsonrpc.NewError(test.code, "%s", test.words)
					}
					return raw(done), nil
				})}
				s.on[mcp.MethodToolsList] = func(*req) (any, error) {
					return raw(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`), nil
				}
				c := connect(t, s, nil)
				if test.listed {
					if _, err := c.Tool(t.Context(), "t"); err != nil {
						t.Fatal(err)
					}
				}
				want := []bool{true} // whether a request has a token
				if test.refused {
					want = []bool{true, false, false}
				}
				for range (len(want) + 1) / 2 {
					if _, err := c.CallTool(t.Context(), "t", nil, nil); test.refused != (err == nil) {
						t.Error(err)
					}
				}
				var got []bool
				for _, m := range s.got(mcp.MethodToolsCall) {
					got = append(got, meta(m, mcp.MetaProgressToken) != "")
				}
				if !slices.Equal(got, want) {
					t.Errorf("requests with a token: %v, want %v", got, want)
				}
			})
		})
	}
}

// What may be carried out twice is sent again without a token whatever the code of the refusal is, which
// many servers choose badly.
//
// Proves: ruling 41. The words are those of zod and of encoding/json.
func TestTokenRefusedInAList(t *testing.T) {
	for _, test := range []struct {
		words string
		code  int64
		fails bool
	}{
		{`[{"code":"unrecognized_keys","keys":["_meta"],"path":["params"],"message":"Unrecognized key: \"_meta\""}]`, mcp.CodeInternalError, false},
		{`json: unknown field "_meta"`, -32000, false},
		{"the database is down", mcp.CodeInternalError, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: []string{newest}, on: map[string]func(*req) (any, error){mcp.MethodToolsList: func(r *req) (any, error) {
				if meta(r.in, mcp.MetaProgressToken) != "" {
					return nil, jsonrpc.NewError(test.code, "%s", test.words)
				}
				return raw(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`), nil
			}}}
			c := connect(t, s, nil)
			if tools, err := collected(c.Tools(t.Context())); (err != nil) != test.fails || !test.fails && len(tools) != 1 {
				t.Errorf("%s: %v, %v", test.words, tools, err)
			}
			if n := len(s.got(mcp.MethodToolsList)); test.fails && n != 1 {
				t.Errorf("%s: asked %d times", test.words, n)
			}
		})
	}
}

// A server that refuses a request because of its progress token, and tells of progress all the same, gets
// along with the client.
//
// Proves: ruling 41.
func TestProgressOfARefusedToken(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		for in := bufio.NewScanner(theirs); in.Scan(); {
			m, err := jsonrpc.Parse(bytes.Clone(in.Bytes()), jsonrpc.Limits{})
			if err != nil || m.ID.IsZero() {
				continue
			}
			answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown field _meta"}}`, m.ID)
			if m.Method == mcp.MethodInitialize {
				answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},`+
					`"serverInfo":{"name":"a","version":"1"}}}`, m.ID, newest)
			}
			progress := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
			_, _ = fmt.Fprintln(theirs, answer+strings.Repeat("\n"+progress, 200))
		}
	}()
	c := dial(t, stdio.Conn(ours), &client.Options{Versions: []string{newest}, Eras: client.NewEraMemory()})
	for range 100 { // for the race detector
		var refusal *jsonrpc.Error
		if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.As(err, &refusal) {
			t.Fatal(err)
		}
	}
}
