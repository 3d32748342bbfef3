package odd_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/odd"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
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

// A user does with a client what a case expects.
type user struct {
	c      *odd.Case
	cl     *client.Client
	sorted bool                // lists are in order of name
	failed *mcp.CallToolResult // a result that says so
}

// use returns the first error.
func (u *user) use(ctx context.Context, t *testing.T) error {
	t.Helper()
	e, cl := &u.c.Expect, u.cl
	everything := e.Error != "" && e.Tools == nil && e.Prompts == nil && e.Resources == nil && e.Templates == nil &&
		e.Call == nil && e.Read == nil && e.Prompt == nil
	for _, list := range []struct {
		want []string
		name string
		read func() ([]string, error)
	}{
		{e.Tools, "tools", func() ([]string, error) { return names(cl.Tools(ctx), func(x *mcp.Tool) string { return x.Name }) }},
		{e.Prompts, "prompts", func() ([]string, error) {
			return names(cl.Prompts(ctx), func(x *mcp.Prompt) string { return x.Name })
		}},
		{e.Resources, "resources", func() ([]string, error) {
			return names(cl.Resources(ctx), func(x *mcp.Resource) string { return x.URI })
		}},
		{e.Templates, "templates", func() ([]string, error) {
			return names(cl.ResourceTemplates(ctx), func(x *mcp.ResourceTemplate) string { return x.URITemplate })
		}},
	} {
		if list.want == nil && !everything {
			continue
		}
		got, err := list.read()
		if errors.Is(err, client.ErrNotCapable) {
			got, err = []string{}, nil
		}
		if err != nil {
			return err
		}
		if want := slices.Clone(list.want); !everything {
			if u.sorted {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %q, want %q", list.name, got, want)
			}
		}
	}
	if e.Call != nil {
		r, err := cl.CallTool(ctx, e.Call.Tool, nil, nil)
		if err != nil {
			return err
		}
		expectText(t, "the call", fmt.Sprint(texts(r.Content...), string(r.StructuredContent)), e.Call.Text)
		if r.IsError {
			u.failed = r
		}
		if r.IsError != e.Call.IsError && e.Error == "" {
			t.Errorf("isError is %t", r.IsError)
		}
	}
	if e.Read != nil {
		r, err := cl.ReadResource(ctx, e.Read.URI, nil)
		if err != nil {
			return err
		}
		var got []string
		for _, x := range r.Contents {
			got = append(got, x.Text, string(x.Blob))
		}
		expectText(t, "the resource", strings.Join(got, "\n"), e.Read.Text)
	}
	if e.Prompt != nil {
		r, err := cl.GetPrompt(ctx, e.Prompt.Name, nil, nil)
		if err != nil {
			return err
		}
		var got []string
		for _, m := range r.Messages {
			got = append(got, texts(m.Content))
		}
		expectText(t, "the prompt", strings.Join(got, "\n"), e.Prompt.Text)
	}
	return nil
}

func names[T any](list iter.Seq2[*T, error], name func(*T) string) (got []string, err error) {
	got = []string{}
	for x, err := range list {
		if err != nil {
			return nil, err
		}
		got = append(got, name(x))
	}
	return got, nil
}

// texts is what is in blocks.
func texts(blocks ...mcp.Content) string {
	var list []string
	for _, b := range blocks {
		switch b := b.(type) {
		case *mcp.TextContent:
			list = append(list, b.Text)
		case *mcp.ImageContent:
			list = append(list, b.MIMEType, string(b.Data))
		case *mcp.AudioContent:
			list = append(list, b.MIMEType, string(b.Data))
		case *mcp.ResourceLink:
			list = append(list, b.URI)
		case *mcp.EmbeddedResource:
			list = append(list, b.Resource.URI, b.Resource.Text, string(b.Resource.Blob))
		}
	}
	return strings.Join(list, "\n")
}

func expectText(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s gave %.300q, want %q", what, got, want)
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
			err = (&user{c: c, cl: cl}).use(t.Context(), t)
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
			expectFailure(t, c, err, nil)
			return
		}
		defer x.Close()
		cl, err := client.Connect(t.Context(), mem.New(x.Server(), nil), &client.Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		u := &user{c: c, cl: cl, sorted: true}
		expectFailure(t, c, u.use(t.Context(), t), u.failed)
		for _, problem := range cl.Problems() {
			// Schemas and structured content pass as they are.
			if !strings.HasSuffix(problem.Place, "/inputSchema") && problem.Place != "/structuredContent" {
				t.Errorf("the proxy sends what is wrong: %v", &problem)
			}
		}
	})
}

// expectFailure compares whether the use of a server failed with what a case expects. A tool can fail, too.
func expectFailure(t *testing.T, c *odd.Case, err error, failed *mcp.CallToolResult) {
	t.Helper()
	if (err != nil || failed != nil && failed.IsError) != (c.Expect.Error != "" || c.Expect.Call != nil && c.Expect.Call.IsError) {
		t.Errorf("error %v, result %+v, want error %q", err, failed, c.Expect.Error)
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
