package odd_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/odd"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// all are all cases.
func all() ([]*odd.Case, error) {
	return odd.Cases(odd.Revisions{Oldest: "2024-11-05", Newest: "2025-11-25", Stateless: "2026-07-28"})
}

// transports are all transports of cases.
var transports = []string{"stdio", "http", "sse"}

// each runs a test for each case, over those of its transports that are listed, in each of its eras.
func each(t *testing.T, transports []string, test func(t *testing.T, c *odd.Case, p *odd.Peer, dialer transport.Dialer)) {
	t.Helper()
	cases, err := all()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for _, stateless := range []bool{false, true} {
			if c.Era == "handshake" && stateless || c.Era == "stateless" && !stateless {
				continue
			}
			for _, over := range c.Over {
				if !slices.Contains(transports, over) || over == "sse" && stateless {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s,stateless=%t", c.Name, over, stateless), func(t *testing.T) {
					t.Parallel()
					p := odd.NewPeer(c, stateless)
					test(t, c, p, dial(t, c, p, over))
				})
			}
		}
	}
}

// dial returns a dialer to a peer.
func dial(t *testing.T, c *odd.Case, p *odd.Peer, over string) transport.Dialer {
	t.Helper()
	if over == "stdio" {
		return &pipes{t, p}
	}
	var handler http.Handler = p
	if over == "sse" {
		handler = p.SSE()
	}
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	if over == "sse" {
		return sse.URL(s.URL + c.SSEPath())
	}
	return streamable.URL(s.URL + "/mcp")
}

// pipes dials a peer over a new pipe each time.
type pipes struct {
	t *testing.T
	p *odd.Peer
}

func (d *pipes) Key() string { return "" }

func (d *pipes) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.p.ServeStdio(theirs)
		_ = theirs.Close()
	}()
	d.t.Cleanup(func() {
		_ = ours.Close()
		<-done
	})
	return stdio.Conn(ours).Dial(ctx, in)
}

// expectSeen compares what a client saw with what a case expects. Sorted says that lists are in
// order of name.
func expectSeen(t *testing.T, c *odd.Case, seen *odd.Seen, sorted bool) {
	t.Helper()
	expected := c.Expect.Lists()
	for name, got := range seen.Lists {
		want := slices.Clone(expected[name])
		if sorted {
			slices.Sort(got)
			slices.Sort(want)
		}
		if expected[name] != nil && !slices.Equal(got, want) {
			t.Errorf("%s %q, want %q", name, got, want)
		}
	}
	for name, use := range map[string]*odd.Use{"call": c.Expect.Call, "read": c.Expect.Read, "prompt": c.Expect.Prompt} {
		if got, ok := seen.Texts[name]; ok && !strings.Contains(got, use.Text) {
			t.Errorf("%s gave %.300q, want %q", name, got, use.Text)
		}
	}
	if _, called := seen.Texts["call"]; called && seen.IsError != c.Expect.Call.IsError && c.Expect.Error == "" {
		t.Errorf("isError is %t", seen.IsError)
	}
}

var quiet = slog.New(slog.DiscardHandler)

// The library uses what it can of each server, and reports the rest.
// Proves: rulings 36 to 42
func TestLibrary(t *testing.T) {
	each(t, transports, func(t *testing.T, c *odd.Case, p *odd.Peer, dialer transport.Dialer) {
		cl, err := client.Connect(t.Context(), dialer, &client.Options{Logger: quiet})
		if err == nil {
			defer cl.Close()
			var seen *odd.Seen
			seen, err = c.Expect.Use(t.Context(), cl)
			expectSeen(t, c, seen, false)
		}
		expectError(t, c, err)
		if err != nil && cl == nil {
			return
		}
		var told []string
		for _, p := range cl.Problems() {
			told = append(told, p.String())
		}
		expectTold(t, c, told)
		cl.Close()
		for method, n := range c.Expect.Sent {
			if got := p.Asked(method); got != n {
				t.Errorf("%s was sent %d times, want %d", method, got, n)
			}
		}
		for method, n := range c.Expect.AtMost {
			if got := p.Asked(method); got > n {
				t.Errorf("%s was sent %d times, want at most %d", method, got, n)
			}
		}
	})
}

// expectTold checks that each expected part is in a problem, and that each problem has an expected part.
func expectTold(t *testing.T, c *odd.Case, told []string) {
	t.Helper()
	has := func(text, piece string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(piece)) }
	for _, want := range c.Expect.Told {
		if !slices.ContainsFunc(told, func(text string) bool { return has(text, want) }) {
			t.Errorf("%q is not reported: %q", want, told)
		}
	}
	for _, text := range told {
		if !slices.ContainsFunc(c.Expect.Told, func(want string) bool { return has(text, want) }) {
			t.Errorf("reported: %s", text)
		}
	}
}

// expectError compares how the use of a server ended with what a case expects.
func expectError(t *testing.T, c *odd.Case, err error) {
	t.Helper()
	switch {
	case c.Expect.Error == "" && err != nil:
		t.Errorf("it failed: %v", err)
	case c.Expect.Error != "" && (err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.Expect.Error))):
		t.Errorf("error %v, want %q", err, c.Expect.Error)
	}
}

// What the library can use, callers of a proxy can use.
// Proves: rulings 37 to 39
func TestProxy(t *testing.T) {
	each(t, transports, func(t *testing.T, c *odd.Case, _ *odd.Peer, dialer transport.Dialer) {
		if c.Expect.Proxy != "" {
			t.Skip(c.Expect.Proxy)
		}
		x, err := proxy.Connect(t.Context(), dialer, &proxy.Options{Logger: quiet, Client: client.Options{Logger: quiet}, Refresh: -1})
		if err != nil {
			expectFailure(t, c, err, false)
			return
		}
		defer x.Close()
		cl, err := client.Connect(t.Context(), mem.New(x.Server(), nil), &client.Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		seen, err := c.Expect.Use(t.Context(), cl)
		expectSeen(t, c, seen, true)
		expectFailure(t, c, err, seen.IsError)
		for _, problem := range cl.Problems() {
			// Schemas and structured content pass as they are.
			if !strings.HasSuffix(problem.Place, "/inputSchema") && problem.Place != "/structuredContent" {
				t.Errorf("the proxy sends what is wrong: %v", &problem)
			}
		}
	})
}

// expectFailure compares whether the use of a server failed with what a case expects. A tool can fail, too.
func expectFailure(t *testing.T, c *odd.Case, err error, failed bool) {
	t.Helper()
	if (err != nil || failed) != (c.Expect.Error != "" || c.Expect.Call != nil && c.Expect.Call.IsError) {
		t.Errorf("error %v, isError %t, want error %q", err, failed, c.Expect.Error)
	}
}

// The cases are well formed.
func TestCases(t *testing.T) {
	cases, err := all()
	if err != nil {
		t.Fatal(err)
	}
	areas := []string{
		"lists", "schemas", "results", "prompts", "resources", "handshake", "ids", "framing", "http", "sessions", "sse", "cursors", "errors",
		"notifications",
	}
	for _, c := range cases {
		e := &c.Expect
		switch {
		case c.About == "" || !slices.Contains(areas, c.Area):
			t.Errorf("%s: about %q, area %q", c.Name, c.About, c.Area)
		case (e.Error == "") != (e.Protects == ""):
			t.Errorf("%s: an error needs the reason why it protects", c.Name)
		case e.Tools == nil && e.Prompts == nil && e.Resources == nil && e.Templates == nil && e.Call == nil && e.Read == nil && e.Prompt == nil && e.Error == "":
			t.Errorf("%s: it expects nothing", c.Name)
		}
		for _, report := range c.Reports {
			if !strings.HasPrefix(report, "https://") {
				t.Errorf("%s: report %q", c.Name, report)
			}
		}
	}
	if len(cases) < 250 {
		t.Errorf("%d cases", len(cases))
	}
}
