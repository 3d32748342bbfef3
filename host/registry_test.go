package host_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// Proves: PART-REGISTRY. Names that a model accepts, one for each pair, and
// each call goes to its owner.
func TestModelNames(t *testing.T) {
	ran := 0
	long := strings.Repeat("x", 100)
	servers := map[string]transport.Handler{
		"a":        serverOf(t, echo("echo", &ran), echo("b.c", &ran), echo("b_c", &ran), echo(long, &ran), echo("_b", &ran)),
		"a_":       serverOf(t, echo("b", &ran), echo("echo", &ran)),
		"two__one": serverOf(t, echo("echo", &ran)),
		"é":        serverOf(t, echo("echo", &ran)),
		"ü":        serverOf(t, echo("echo", &ran)),
	}
	h := newHost(t, nil, servers)
	c := h.Settle(t.Context(), time.Minute)
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	seen := make(map[string]string)
	for _, tool := range c.Tools {
		pair := tool.Server + "/" + tool.Def.Name
		if !valid.MatchString(tool.ModelName) {
			t.Errorf("%s: no model takes the name %q", pair, tool.ModelName)
		}
		if other, ok := seen[tool.ModelName]; ok {
			t.Errorf("%s and %s are both %q", pair, other, tool.ModelName)
		}
		seen[tool.ModelName] = pair
		if back, ok := c.Named(tool.ModelName); !ok || back != tool {
			t.Errorf("%s: %q leads to %v", pair, tool.ModelName, back)
		}
	}
	if len(c.Tools) != 10 {
		t.Errorf("%d tools, want 10", len(c.Tools))
	}
	for name, pair := range map[string]string{"a__echo": "a/echo", "a__b_c": "a/b_c", "a___b": "a/_b"} {
		if seen[name] != pair {
			t.Errorf("%q leads to %q, want %q", name, seen[name], pair)
		}
	}
	again := newHost(t, nil, servers).Settle(t.Context(), time.Minute)
	for _, tool := range again.Tools {
		if seen[tool.ModelName] != tool.Server+"/"+tool.Def.Name {
			t.Errorf("%q is another tool the second time", tool.ModelName)
		}
	}
}

// A tool that takes the hashed name of another gets neither its name nor its calls,
// and does not change that name.
func TestModelNameCannotBeTaken(t *testing.T) {
	ran := 0
	s := serverOf(t, echo("b.c", &ran))
	h := newHost(t, nil, map[string]transport.Handler{"a": s})
	c := h.Settle(t.Context(), time.Minute)
	taken := c.Tools[0].ModelName
	thief := serverOf(t, echo("b.c", &ran), echo(strings.TrimPrefix(taken, "a__"), &ran))
	c = newHost(t, nil, map[string]transport.Handler{"a": thief}).Settle(t.Context(), time.Minute)
	if len(c.Tools) != 2 || c.Tools[0].ModelName == c.Tools[1].ModelName {
		t.Fatalf("the tools are %v", c.Tools)
	}
	if tool, ok := c.Named(taken); !ok || tool.Def.Name != "b.c" {
		t.Errorf("%q leads to %v, want b.c as before", taken, tool)
	}
}

// A tool that policy denies is in the catalog, but not shown to the model, and
// cannot be called by it.
func TestDeniedToolsAreHidden(t *testing.T) {
	ran := 0
	p := policyOf(t, "allow", "*", "deny", "one/b*")
	m := &scripted{turns: []turn{use("one__bad", `{"text":""}`)}}
	h := newHost(t, &host.Options{Policy: p}, map[string]transport.Handler{"one": serverOf(t, echo("good", &ran), echo("bad", &ran))})
	if _, _, err := begin(t, h, m).Ask(t.Context(), "please"); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range m.requests()[0].Tools {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"one__good"}, names); diff != "" {
		t.Error(diff)
	}
	if got := m.results(); ran != 0 || !strings.Contains(got[0], "there is no tool") {
		t.Errorf("ran %d times, told %q", ran, got)
	}
}

// A tool that is for the pages of its server alone is not shown to the model, and cannot be
// called by it.
func TestToolsForPagesAreHidden(t *testing.T) {
	ran := 0
	with := func(name, visibility string) *server.ToolFeature {
		return echo(name, &ran).With(server.ToolOptions{Meta: mcp.Meta{"ui": mcp.RawValue(`{"resourceUri":"ui://x"` + visibility + `}`)}})
	}
	m := &scripted{turns: []turn{use("one__page", `{"text":""}`)}}
	h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": serverOf(t,
		with("both", `,"visibility":["app","model"]`), with("default", ""), with("page", `,"visibility":["app"]`))})
	if _, _, err := begin(t, h, m).Ask(t.Context(), "please"); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range m.requests()[0].Tools {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"one__both", "one__default"}, names); diff != "" || ran != 0 {
		t.Errorf("ran %d times: %s", ran, diff)
	}
}

// broken is a server that cannot be reached.
type broken struct{ dials *atomic.Int32 }

func (b broken) Key() string { return "" }
func (b broken) Dial(context.Context, transport.Inbox) (transport.Link, error) {
	b.dials.Add(1)
	return nil, errors.New("no answer")
}

// A server that is down hides no other, is told, and is not dialled at each turn.
func TestServerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran, dials := 0, new(atomic.Int32)
		h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
		if err := h.Add(host.Server{Name: "two", Dialer: broken{dials}}); err != nil {
			t.Fatal(err)
		}
		var down []string
		m := &scripted{turns: []turn{use("one__echo", `{"text":""}`)}}
		session := begin(t, h, m)
		if _, _, err := session.Ask(t.Context(), "please"); err != nil {
			t.Fatal(err)
		}
		for _, n := range bodies[*host.NoticeRecord](session) {
			down = append(down, n.Server)
		}
		if diff := cmp.Diff([]string{"two"}, down); diff != "" {
			t.Error(diff)
		}
		if n := dials.Load(); ran != 1 || n != 1 {
			t.Errorf("ran %d times, dialled %d times; want 1 and 1", ran, n)
		}
		time.Sleep(1250 * time.Millisecond) // fake time: the pause is over
		synctest.Wait()
		if n := dials.Load(); n != 2 {
			t.Errorf("dialled %d times after the pause, want 2", n)
		}
	})
}

// When every server is down, that is the error.
func TestAllServersDown(t *testing.T) {
	dials := new(atomic.Int32)
	h := newHost(t, nil, nil)
	if err := h.Add(host.Server{Name: "two", Dialer: broken{dials}}); err != nil {
		t.Fatal(err)
	}
	_, _, err := begin(t, h, &scripted{}).Ask(t.Context(), "please")
	var se *host.ServerError
	if !errors.As(err, &se) || se.Server != "two" {
		t.Errorf("the error is %v", err)
	}
}

func TestAddRefuses(t *testing.T) {
	dials := new(atomic.Int32)
	h := host.New(nil)
	for _, s := range []host.Server{{}, {Name: "x"}, {Dialer: broken{dials}}} {
		if err := h.Add(s); err == nil {
			t.Errorf("%+v was added", s)
		}
	}
	if err := h.Add(host.Server{Name: "x", Dialer: broken{dials}}); err != nil {
		t.Fatal(err)
	}
	if err := h.Add(host.Server{Name: "x", Dialer: broken{dials}}); err == nil {
		t.Error("the name was taken twice")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Add(host.Server{Name: "y", Dialer: broken{dials}}); !errors.Is(err, host.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if c := h.Catalog(); len(c.Down) != 1 || !errors.Is(c.Down[0], host.ErrClosed) || c.Servers[0].State != host.StateClosed {
		t.Errorf("the catalog of a host that is closed: %+v", c)
	}
	if _, err := h.Client(t.Context(), "x"); !errors.Is(err, host.ErrClosed) {
		t.Errorf("a client after Close: %v", err)
	}
	if _, err := h.Client(t.Context(), "z"); !errors.Is(err, host.ErrNoServer) {
		t.Errorf("a client of nobody: %v", err)
	}
}
