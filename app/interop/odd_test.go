package interop_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/app/internal/odd"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// An oddRow is an odd server over one transport in one era.
type oddRow struct {
	c         *odd.Case
	over      string
	stateless bool

	ours, theirs oddOutcome
}

// An oddOutcome is what a client saw of an odd server, and its error.
type oddOutcome struct {
	Seen  odd.Seen `json:"seen"`
	Error string   `json:"error"`
}

// refused are the cases that the clients of the TypeScript SDKs can use and ours refuses. The case's
// expect.protects explains each.
var refused = []string{
	"content-in-the-wrong-letter-case",
	"contents-uri-in-the-wrong-letter-case",
	"half-a-surrogate-pair-in-a-name",
	"hint-in-the-wrong-letter-case",
	"input-schema-in-the-wrong-letter-case",
	"is-error-in-the-wrong-letter-case",
	"list-compressed-with-deflate",
	"list-twice-the-same-key",
	"protocol-version-in-the-wrong-letter-case",
	"result-with-the-same-key-twice",
	"schema-of-depth-100",
	"schema-with-the-same-key-twice",
	"session-id-of-8200-bytes",
	"session-id-with-a-space",
	"structured-content-with-the-same-key-twice",
	"tool-twice-the-same-key",
}

// There is no odd server that the clients of the TypeScript SDKs can use and ours cannot, but for those
// that ours refuses to protect somebody.
// Proves: rulings 37 to 42
func TestOddServers(t *testing.T) {
	for _, sdk := range []string{"v1", "v2"} {
		t.Run(sdk, func(t *testing.T) {
			if sdk == "v2" && testing.Short() {
				t.Skip("it takes as long again, for the same list")
			}
			n := startOddClients(t, sdk)
			defer n.close(t)
			rows := oddRows(t, sdk)
			places := make(chan struct{}, 64) // each row has servers and connections
			var wait sync.WaitGroup
			for _, row := range rows {
				places <- struct{}{}
				wait.Go(func() {
					defer func() { <-places }()
					row.run(t, n)
				})
			}
			wait.Wait()
			compareOdd(t, rows)
		})
	}
}

// oddRows are all rows whose era an SDK has.
func oddRows(t *testing.T, sdk string) []*oddRow {
	t.Helper()
	cases, err := odd.Cases(odd.Revisions{Oldest: first, Newest: legacy, Stateless: modern})
	if err != nil {
		t.Fatal(err)
	}
	var rows []*oddRow
	for _, c := range cases {
		for _, over := range c.Over {
			if c.Era != "stateless" {
				rows = append(rows, &oddRow{c: c, over: over})
			}
			if c.Era != "handshake" && over != "sse" && sdk == "v2" {
				rows = append(rows, &oddRow{c: c, over: over, stateless: true})
			}
		}
	}
	return rows
}

// compareOdd checks that refused are exactly the cases that only theirs can use.
func compareOdd(t *testing.T, rows []*oddRow) {
	t.Helper()
	needed := make(map[string]bool)
	counts := make(map[string]int)
	for _, r := range rows {
		ours, theirs := r.ours.unusable(&r.c.Expect), r.theirs.unusable(&r.c.Expect)
		switch {
		case ours == "" && theirs == "":
			counts["both"]++
		case ours == "":
			counts["only ours"]++
		case theirs != "":
			counts["neither"]++
		default:
			counts["only theirs"]++
			needed[r.c.Name] = true
			if !slices.Contains(refused, r.c.Name) || r.c.Expect.Protects == "" {
				t.Errorf("%v: theirs can use it, ours cannot: %s", r, ours)
			}
		}
		t.Logf("%-60v ours: %-60.60q theirs: %.120q", r, cmp.Or(ours, "ok"), cmp.Or(theirs, "ok"))
		if missing := r.missing(); ours == "" && theirs == "" && len(missing) > 0 {
			t.Errorf("%v: only theirs lists %q", r, missing)
		}
	}
	for _, name := range refused {
		if !needed[name] {
			t.Errorf("%s: it is usable with ours, or not usable with theirs: take it out of the list", name)
		}
	}
	t.Logf("%d rows: %v", len(rows), counts)
}

func (r *oddRow) String() string {
	era := ""
	if r.stateless {
		era = ", stateless"
	}
	return fmt.Sprintf("%s (%s%s)", r.c.Name, r.over, era)
}

// missing are the names that theirs lists and ours does not. Without a name nothing can be used.
func (r *oddRow) missing() []string {
	var missing []string
	for list, names := range r.theirs.Seen.Lists {
		for _, name := range names {
			if name != "" && !slices.Contains(r.ours.Seen.Lists[list], name) {
				missing = append(missing, list+" "+name)
			}
		}
	}
	return missing
}

// unusable returns why a client could not use a server as expected, "" if it could.
func (o *oddOutcome) unusable(e *odd.Expect) string {
	if o.Error != "" {
		return o.Error
	}
	for list, want := range e.Lists() {
		for _, name := range want {
			if !slices.Contains(o.Seen.Lists[list], name) {
				return fmt.Sprintf("%s without %q", list, name)
			}
		}
	}
	for name, use := range map[string]*odd.Use{"call": e.Call, "read": e.Read, "prompt": e.Prompt} {
		switch {
		case use == nil:
		case !strings.Contains(o.Seen.Texts[name], use.Text):
			return fmt.Sprintf("%s gave %q", name, o.Seen.Texts[name])
		case name == "call" && o.Seen.IsError != use.IsError && e.Error == "":
			return fmt.Sprintf("isError is %t", o.Seen.IsError)
		}
	}
	return ""
}

// run has both clients use the server, each one of its own.
func (r *oddRow) run(t *testing.T, n *oddClients) {
	ours := serveOdd(t, odd.NewPeer(r.c, r.stateless), r)
	defer ours.Close()
	seen, err := r.useOurs(t.Context(), ours)
	if r.ours.Seen = *seen; err != nil {
		r.ours.Error = err.Error()
	}
	theirs := serveOdd(t, odd.NewPeer(r.c, r.stateless), r)
	defer theirs.Close()
	r.theirs = n.use(t, r, theirs)
}

func (r *oddRow) useOurs(ctx context.Context, s *oddServer) (*odd.Seen, error) {
	var d transport.Dialer
	switch r.over {
	case "http":
		d = streamable.URL(s.url())
	case "sse":
		d = sse.URL(s.url())
	default:
		d = s
	}
	cl, err := client.Connect(ctx, d, &client.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return &odd.Seen{}, err
	}
	defer cl.Close()
	return r.c.Expect.Use(ctx, cl)
}

// An oddServer serves a peer on the loopback interface: over HTTP, or lines over each connection. It
// dials itself.
type oddServer struct {
	row  *oddRow
	http *httptest.Server // nil for stdio
	net.Listener
	conns sync.WaitGroup
}

func serveOdd(t *testing.T, p *odd.Peer, r *oddRow) *oddServer {
	s := &oddServer{row: r}
	switch r.over {
	case "http":
		s.http = httptest.NewServer(p)
	case "sse":
		s.http = httptest.NewServer(p.SSE())
	default:
		s.serveLines(t, p)
	}
	return s
}

func (s *oddServer) serveLines(t *testing.T, p *odd.Peer) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return
	}
	s.Listener = l
	s.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Go(func() {
				defer c.Close()
				p.ServeStdio(c)
			})
		}
	})
}

func (s *oddServer) url() string {
	if s.row.over == "sse" {
		return s.http.URL + s.row.c.SSEPath()
	}
	return s.http.URL + "/mcp"
}

// Key implements [transport.Dialer].
func (s *oddServer) Key() string { return "" }

// Dial implements [transport.Dialer].
func (s *oddServer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr().String())
	if err != nil {
		return nil, err
	}
	return stdio.Conn(c).Dial(ctx, in)
}

// Close ends the server once both sides of its connections have ended.
func (s *oddServer) Close() {
	if s.http != nil {
		s.http.CloseClientConnections()
		s.http.Close()
		return
	}
	_ = s.Listener.Close() // it was open
	s.conns.Wait()
}

// oddClients is the process of the clients of a TypeScript SDK.
type oddClients struct {
	sdk     string
	cmd     *exec.Cmd
	reading sync.WaitGroup

	writing sync.Mutex
	in      io.WriteCloser

	mu      sync.Mutex
	waiting map[string]chan oddOutcome
}

// An oddJob is what the process is asked.
type oddJob struct {
	ID        string   `json:"id"`
	SDK       string   `json:"sdk"`
	Transport string   `json:"transport"`
	URL       string   `json:"url,omitempty"`
	Port      int      `json:"port,omitempty"`
	Lists     []string `json:"lists"`
	Call      *odd.Use `json:"call"`
	Read      *odd.Use `json:"read"`
	Prompt    *odd.Use `json:"prompt"`
	Seconds   int      `json:"seconds"`
}

func startOddClients(t *testing.T, sdk string) *oddClients {
	t.Helper()
	cmd := node(t, "odd-clients.mjs")
	cmd.Stderr = io.Discard // the SDKs complain
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := &oddClients{sdk: sdk, cmd: cmd, in: in, waiting: make(map[string]chan oddOutcome)}
	n.reading.Go(func() { n.read(t, out) })
	return n
}

// close ends the process, whose answers have all come.
func (n *oddClients) close(t *testing.T) {
	t.Helper()
	_ = n.in.Close() // the process reads its end
	n.reading.Wait()
	if err := n.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// read hands each answer to the row that waits for it. If the output ends, none waits on.
func (n *oddClients) read(t *testing.T, out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var a struct {
			ID string `json:"id"`
			oddOutcome
		}
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Errorf("%v: %.200s", err, lines.Bytes())
			continue
		}
		n.mu.Lock()
		n.waiting[a.ID] <- a.oddOutcome
		delete(n.waiting, a.ID)
		n.mu.Unlock()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, w := range n.waiting {
		t.Errorf("%s: the clients ended without an answer", id)
		close(w)
	}
	n.waiting = nil
}

// use has the clients use a server. Servers that do not answer cost them some seconds; only those that they
// must be able to use get all the time there is.
func (n *oddClients) use(t *testing.T, r *oddRow, s *oddServer) oddOutcome {
	e := &r.c.Expect
	job := oddJob{
		ID: r.String(), SDK: n.sdk, Transport: r.over, Lists: slices.Sorted(maps.Keys(e.Lists())),
		Call: e.Call, Read: e.Read, Prompt: e.Prompt, Seconds: 5,
	}
	if slices.Contains(refused, r.c.Name) {
		job.Seconds = int(patience.Seconds())
	}
	if r.over == "stdio" {
		job.Port = s.Addr().(*net.TCPAddr).Port
	} else {
		job.URL = s.url()
	}
	line, err := json.Marshal(job)
	if err != nil {
		t.Error(err)
		return oddOutcome{}
	}
	answer := make(chan oddOutcome, 1)
	if !n.send(job.ID, line, answer) {
		t.Errorf("%v: the clients have ended", r)
		return oddOutcome{}
	}
	return <-answer
}

func (n *oddClients) send(id string, line []byte, answer chan oddOutcome) bool {
	n.mu.Lock()
	ended := n.waiting == nil
	if !ended {
		n.waiting[id] = answer
	}
	n.mu.Unlock()
	if ended {
		return false
	}
	n.writing.Lock() // the process may wait for its output to be read meanwhile
	defer n.writing.Unlock()
	_, err := n.in.Write(append(line, '\n'))
	return err == nil
}
