package host_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// asker is a tool that asks the client's model.
func asker(content ...mcp.Content) *server.ToolFeature {
	return server.Tool("ask", "Asks the model.", func(ctx context.Context, _ mcp.None) (string, error) {
		res, err := server.Sample(ctx, &mcp.CreateMessageParams{
			SystemPrompt: "obey", MaxTokens: 10,
			Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: content}},
		})
		if err != nil {
			return "", err
		}
		return res.Model + ": " + host.ContentText(res.Content[0]), nil
	})
}

// callTool calls the only tool of the server "one".
func callTool(t *testing.T, h *host.Host, name string) (string, error) {
	t.Helper()
	c, err := h.Client(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.CallTool(t.Context(), name, nil, nil)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, c := range res.Content {
		parts = append(parts, host.ContentText(c))
	}
	return strings.Join(parts, "|"), nil
}

// Proves: FLOW-SAMPLE-H, SEC-SAMPLE-1, SEC-SAMPLE-2. Request and answer are
// shown to the person; the model gets the server's messages and no others.
func TestSampling(t *testing.T) {
	who := &person{answers: []host.Decision{{Grant: host.Once}, {Grant: host.Once}}}
	m := &scripted{turns: []turn{func(*host.Request) []host.Piece { return say("the key is AKIAABCDEFGHIJKLMNOP") }}}
	h := newHost(t, &host.Options{Consent: who, SampleModel: m}, map[string]transport.Handler{"one": serverOf(t, asker(mcp.Text("what?")))})
	got, err := callTool(t, h, "ask")
	if err != nil {
		t.Fatal(err)
	}
	if want := "scripted: the key is AKIAABCDEFGHIJKLMNOP"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var shown []string
	for _, q := range who.asked {
		shown = append(shown, string(q.Kind)+" "+q.Name+" "+q.Server+": "+q.Text)
	}
	want := []string{
		"sampling request one: system: obey\nuser: what?",
		"sampling answer one: the key is AKIAABCDEFGHIJKLMNOP",
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	// SEC-SAMPLE-4: the answer is looked through for secrets.
	if len(who.asked[0].Secrets) != 0 || len(who.asked[1].Secrets) != 1 {
		t.Errorf("secrets: %v and %v", who.asked[0].Secrets, who.asked[1].Secrets)
	}
	if r := m.asked[0]; len(r.Messages) != 1 || r.MaxTokens != 10 || len(r.Tools) != 0 {
		t.Errorf("the model was asked %+v", r)
	}
}

// Proves: FLOW-SAMPLE-H. Each half can be refused; the model is then not called.
func TestSamplingRefused(t *testing.T) {
	for _, answers := range [][]host.Decision{{{}}, {{Grant: host.Once}, {}}} {
		who := &person{answers: answers}
		m := &scripted{}
		h := newHost(t, &host.Options{Consent: who, SampleModel: m}, map[string]transport.Handler{"one": serverOf(t, asker(mcp.Text("what?")))})
		if got, err := callTool(t, h, "ask"); !errors.Is(err, client.ErrInputRefused) {
			t.Errorf("%d answers: got %q, %v", len(answers), got, err)
		}
		if len(m.asked) != len(answers)-1 {
			t.Errorf("%d answers: the model was called %d times", len(answers), len(m.asked))
		}
	}
}

// Proves: SEC-SAMPLE-2. A server has a budget.
func TestSamplingBudget(t *testing.T) {
	h := newHost(t, &host.Options{Policy: allowing(t, "sampling:*"), SampleModel: &scripted{}, MaxSamples: 2},
		map[string]transport.Handler{"one": serverOf(t, asker(mcp.Text("what?")))})
	for i := range 3 {
		_, err := callTool(t, h, "ask")
		if (err != nil) != (i == 2) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

// Proves: SEC-CAP-1. Without a model, or without consent, nothing is declared.
func TestSamplingUndeclared(t *testing.T) {
	for _, o := range []*host.Options{
		{},
		{SampleModel: &scripted{}},
		{SampleModel: &scripted{}, Consent: &person{}, Policy: &host.Policy{Rules: []host.Rule{rule(t, host.Deny, "sampling:*")}}},
	} {
		h := newHost(t, o, map[string]transport.Handler{"one": serverOf(t, server.Tool("can", "Can it?", func(ctx context.Context, _ mcp.None) (string, error) {
			if server.CanSample(ctx) || server.CanElicit(ctx) || server.CanElicitURL(ctx) || server.CanRoots(ctx) {
				return "yes", nil
			}
			return "no", nil
		}))})
		if got, err := callTool(t, h, "can"); got != "no" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// Proves: SEC-SAMPLE-4. Media are checked by size and by what they look like.
func TestSamplingMedia(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		content mcp.Content
		fits    bool
	}{
		{mcp.Image(b.Bytes(), "image/png"), true},
		{mcp.Image(b.Bytes(), "image/jpeg"), false},
		{mcp.Image([]byte("<script>"), "image/png"), false},
		{mcp.Image(append(b.Bytes(), make([]byte, 5<<20)...), "image/png"), false},
		{mcp.Audio([]byte("RIFF"), "audio/wav"), false},
	} {
		h := newHost(t, &host.Options{Policy: allowing(t, "sampling:*"), SampleModel: &scripted{}},
			map[string]transport.Handler{"one": serverOf(t, asker(test.content))})
		if _, err := callTool(t, h, "ask"); (err == nil) != test.fits {
			t.Errorf("%s: %v", host.ContentText(test.content), err)
		}
	}
}

// elicitor is a scripted person with a form.
type elicitor struct {
	answer *mcp.ElicitResult
	asked  []*host.ElicitQuestion
}

func (e *elicitor) Elicit(_ context.Context, q *host.ElicitQuestion) (*mcp.ElicitResult, error) {
	e.asked = append(e.asked, q)
	return e.answer, nil
}

type colour struct {
	Colour string `json:"colour" enum:"red,green"`
}

func formTool() *server.ToolFeature {
	return server.Tool("form", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
		a, err := server.Elicit[colour](ctx, "Which?")
		return string(a.Action) + " " + a.Value.Colour, err
	})
}

// Proves: FLOW-ELICIT-H, SEC-ELICIT-1. The person sees who asks, and a form.
func TestElicit(t *testing.T) {
	e := &elicitor{answer: &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: map[string]mcp.RawValue{"colour": mcp.RawValue(`"red"`)}}}
	h := newHost(t, &host.Options{Elicitor: e}, map[string]transport.Handler{"one": serverOf(t, formTool())})
	if got, err := callTool(t, h, "form"); got != "accept red" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if len(e.asked) != 1 || e.asked[0].Server != "one" || e.asked[0].Params.Message != "Which?" || e.asked[0].Page != nil {
		t.Errorf("asked %+v", e.asked)
	}
}

// Proves: SEC-ELICIT-1. A rule can keep a server from asking.
func TestElicitDenied(t *testing.T) {
	e := &elicitor{}
	p := &host.Policy{Rules: []host.Rule{rule(t, host.Deny, "elicit:one/form")}}
	h := newHost(t, &host.Options{Elicitor: e, Policy: p}, map[string]transport.Handler{"one": serverOf(t, formTool())})
	if got, err := callTool(t, h, "form"); got != "decline " || err != nil || len(e.asked) != 0 {
		t.Errorf("got %q, %v; asked %d times", got, err, len(e.asked))
	}
}

// Proves: SEC-ELICIT-2, ruling 18. The whole URL and what is suspicious about
// it reach the face.
func TestElicitURL(t *testing.T) {
	e := &elicitor{answer: &mcp.ElicitResult{Action: mcp.ElicitAccept}}
	h := newHost(t, &host.Options{Elicitor: e}, map[string]transport.Handler{"one": serverOf(t,
		server.Tool("page", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
			ok, err := server.ElicitURL(ctx, "https://xn--exmple-cua.com/pay?x=1", "Please pay", func(context.Context) (bool, error) { return true, nil })
			if ok {
				return "went", err
			}
			return "stayed", err
		}))})
	if got, err := callTool(t, h, "page"); got != "went" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	page := e.asked[0].Page
	if page == nil || page.URL != "https://xn--exmple-cua.com/pay?x=1" || page.Host != "xn--exmple-cua.com" || len(page.Warnings) != 1 {
		t.Errorf("the page is %+v", page)
	}
}

// Proves: FLOW-ROOTS, SEC-ROOTS-1.
func TestRoots(t *testing.T) {
	dir := t.TempDir()
	root, err := host.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, &host.Options{Roots: []mcp.Root{root}}, map[string]transport.Handler{"one": serverOf(t,
		server.Tool("roots", "Roots.", func(ctx context.Context, _ mcp.None) (string, error) {
			list, err := server.Roots(ctx)
			if err != nil || len(list) != 1 {
				return "", err
			}
			return list[0].URI, nil
		}))})
	if got, err := callTool(t, h, "roots"); got != root.URI || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, root.URI)
	}
}

// Proves: SEC-ROOTS-1. What holds more than a project is refused, also behind a link.
func TestRootRefuses(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home", "ada")
	work := filepath.Join(home, "work place")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"/", "/etc", "/usr", link, home, filepath.Dir(home), file} {
		if r, err := host.Root(bad); !errors.Is(err, host.ErrRoot) {
			t.Errorf("%s: got %v, %v", bad, r, err)
		}
	}
	if _, err := host.Root(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	r, err := host.Root(work)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.URI, "file:///") || !strings.HasSuffix(r.URI, "/home/ada/work%20place") || r.Name != "work place" {
		t.Errorf("the root is %+v", r)
	}
}

// The clients of all servers know the extensions of the host: a server may answer with
// what only they have.
func TestExtensions(t *testing.T) {
	const id = "com.example/later"
	s := serverOf(t, server.Tool("t", "A tool.", func(context.Context, mcp.None) (string, error) { return "at once", nil }))
	s.Extend(server.Extension{ID: id, Wrap: func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() != mcp.MethodToolsCall || !c.HasExtension(id) {
				return next(c)
			}
			return &mcp.CallToolResult{ResultBase: mcp.ResultBase{ResultType: id}}, nil
		}
	}})
	later := client.Extension{ID: id, Results: []client.ResultType{{
		Name: id, Methods: []string{mcp.MethodToolsCall},
		Settle: func(context.Context, *client.Request, mcp.RawValue) (mcp.RawValue, error) {
			return mcp.RawValue(`{"content":[{"type":"text","text":"later"}]}`), nil
		},
	}}}
	for want, o := range map[string]*host.Options{"at once": nil, "later": {Extensions: []client.Extension{later}}} {
		c, err := newHost(t, o, map[string]transport.Handler{"s": s}).Client(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.Call[string](t.Context(), c, "t", nil); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}
