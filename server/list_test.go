package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

type listPage struct {
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Resources []struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
	} `json:"resources"`
	NextCursor *string `json:"nextCursor"`
}

// numbered are tools t00, t01, ...
func numbered(n int) []server.Feature {
	var out []server.Feature
	for i := range n {
		out = append(out, give(fmt.Sprintf("t%02d", n-1-i), "x")) // not in order
	}
	return out
}

func cursorParams(cursor string) string { return fmt.Sprintf(`{"cursor":%q}`, cursor) }

// pages pages through the tools from the first page on.
func (l *line) pages() (names, cursors []string) {
	l.t.Helper()
	params := emptyBody
	for {
		p := decode[listPage](l.t, l.result(l.call("tools/list", params)))
		for _, tool := range p.Tools {
			names = append(names, tool.Name)
		}
		if p.NextCursor == nil {
			return names, cursors
		}
		cursors = append(cursors, *p.NextCursor)
		params = cursorParams(*p.NextCursor)
	}
}

func paged(n int) *server.Options {
	o := unlimited()
	o.Limits.PageSize = n
	return o
}

// Pages hold every item once, in a stated order, in every revision.
// Proves: FLOW-TOOL. Ruling 23.
func TestPages(t *testing.T) {
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprintf("t%02d", i))
	}
	for size, pages := range map[int]int{1: 25, 10: 3, 24: 2, 25: 1, 100: 1, server.Unlimited: 1} {
		s := newServer(paged(size), numbered(25)...)
		for _, v := range versions {
			l := join(t, s, v)
			names, cursors := l.pages()
			if d := cmp.Diff(want, names); d != "" || len(cursors) != pages-1 {
				t.Errorf("%s, pages of %d: %d cursors, %s", v, size, len(cursors), d)
			}
		}
	}
}

// Many resources with one name are all reachable (M4).
func TestPagesOfOneName(t *testing.T) {
	s := newServer(paged(2))
	for i := range 5 {
		s.Add(server.Text(fmt.Sprintf("test:%d", i), "same", "x"))
	}
	l := join(t, s, v2607)
	var uris []string
	params := emptyBody
	for {
		p := decode[listPage](t, l.result(l.call("resources/list", params)))
		for _, r := range p.Resources {
			uris = append(uris, r.URI)
		}
		if p.NextCursor == nil {
			break
		}
		params = cursorParams(*p.NextCursor)
	}
	if d := cmp.Diff([]string{"test:0", "test:1", "test:2", "test:3", "test:4"}, uris); d != "" {
		t.Error(d)
	}
}

// Cursors are sealed: what a peer makes or changes is refused (G13), "" is a
// cursor and no valid one, and a cursor is good for its own list alone.
// Proves: SEC-PAGE-1. Ruling 21.
func TestCursorForged(t *testing.T) {
	s := newServer(paged(1), append(numbered(3), server.Text("test:a", "a", ""), server.Text("test:b", "b", ""))...)
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, s, v)
		_, cursors := l.pages()
		good := cursors[0]
		raw, err := base64.RawURLEncoding.DecodeString(good)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "t00") {
			t.Error("the cursor shows its position")
		}
		bad := []string{"", "x", "dDAw", good + "A", good[1:], strings.ToUpper(good), "\u0000", strings.Repeat("A", 100_000)}
		for i := range raw {
			forged := slices.Clone(raw)
			forged[i] ^= 1
			bad = append(bad, base64.RawURLEncoding.EncodeToString(forged))
		}
		for _, c := range bad {
			if c == good {
				continue
			}
			m := l.call("tools/list", fmt.Sprintf(`{"cursor":%s}`, mustJSON(t, c)))
			l.fails(m, mcp.CodeInvalidParams)
		}
		l.fails(l.call("resources/list", cursorParams(good)), mcp.CodeInvalidParams)
		l.fails(l.call("tools/list", `{"cursor":5}`), mcp.CodeInvalidParams)
		l.result(l.call("tools/list", cursorParams(good))) // and can be used again
	})
}

// A cursor ends with the state of the list that it was made for, outlives the
// ttl of its page, and is good on any connection of the same server or of its
// replica. Ruling 21.
func TestCursorLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := paged(1)
		o.Cache = server.Cache{TTL: time.Second}
		o.StateKeys = [][]byte{[]byte("0123456789abcdef")}
		s, replica := newServer(o, numbered(3)...), newServer(o, numbered(3)...)
		l := join(t, s, v2607)
		_, cursors := l.pages()
		time.Sleep(24 * time.Hour)
		for _, other := range []*server.Server{s, replica} {
			l := join(t, other, v2607)
			p := decode[listPage](t, l.result(l.call("tools/list", cursorParams(cursors[0]))))
			if p.Tools[0].Name != "t01" {
				t.Errorf("got %+v", p)
			}
		}
		s.Add(give("new", ""))
		l.fails(l.call("tools/list", cursorParams(cursors[0])), mcp.CodeInvalidParams)
	})
}

// Where lists depend on the caller a cursor is the caller's alone, and ends
// when what the caller sees changes; where they do not, it is everybody's.
// Proves: SEC-PAGE-1, SEC-RES-2. Ruling 21.
func TestCursorOfCaller(t *testing.T) {
	shared := newServer(paged(1), numbered(3)...)
	_, cursors := joinAs(t, shared, v2607, ada).pages()
	b := joinAs(t, shared, v2607, bob)
	b.result(b.call("tools/list", cursorParams(cursors[0])))

	hidden := ""
	own := newServer(paged(1), numbered(4)...)
	own.Visible(func(_ context.Context, it server.Item) bool { return it.Name != hidden })
	a := joinAs(t, own, v2607, ada)
	_, cursors = a.pages()
	b = joinAs(t, own, v2607, bob)
	b.fails(b.call("tools/list", cursorParams(cursors[0])), mcp.CodeInvalidParams)
	a.result(a.call("tools/list", cursorParams(cursors[0])))
	hidden = "t03"
	a.fails(a.call("tools/list", cursorParams(cursors[0])), mcp.CodeInvalidParams)
}

// Our client pages by itself, whatever changes meanwhile. Proves: FLOW-TOOL.
func TestPagesEachEra(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		o.Limits.PageSize = 4
		s := server.New("eras", "1", o)
		s.Add(numbered(10)...)
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		n := 0
		for tool, err := range c.Tools(t.Context()) {
			if err != nil || tool.Name != fmt.Sprintf("t%02d", n) {
				t.Fatalf("tool %d: %v, %v", n, tool, err)
			}
			n++
		}
		if n != 10 {
			t.Errorf("%d tools", n)
		}
	})
}
