package host_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// eras runs a test with a revision of each era.
func eras(t *testing.T, f func(t *testing.T, version string)) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) { f(t, version) })
	}
}

// oneServer makes a host with the server "one" of a revision.
func oneServer(t *testing.T, o *host.Options, version string, features ...server.Feature) *host.Host {
	t.Helper()
	h := newHost(t, o, nil)
	spec := host.Server{Name: "one", Origin: "test", Dialer: mem.New(serverOf(t, features...), nil)}
	if version != "" {
		spec.Versions = []string{version}
	}
	if err := h.Add(spec); err != nil {
		t.Fatal(err)
	}
	return h
}

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

// callTool calls a tool of the server "one" outside a run, for a session.
func callTool(t *testing.T, h *host.Host, s *host.Session, name string) (string, error) {
	t.Helper()
	c, err := h.Client(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.CallTool(s.Context(t.Context()), name, nil, nil)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, c := range res.Content {
		parts = append(parts, host.ContentText(c))
	}
	return strings.Join(parts, "|"), nil
}

// Proves: FLOW-SAMPLE-H, SEC-SAMPLE-1, SEC-SAMPLE-2, SEC-SAMPLE-3. Request and answer are
// shown to the person, who may change both and choose the model; it gets the server's
// messages and no others.
func TestSampling(t *testing.T) {
	eras(t, func(t *testing.T, version string) {
		secret := "the key is AKIAABCDEFGHIJKLMNOP"
		first := &scripted{}
		second := &scripted{info: host.ModelInfo{Name: "second"}, turns: []turn{say2(secret)}}
		h := oneServer(t, &host.Options{Attended: true, SampleModels: []host.Model{first, second}}, version, asker(mcp.Text("what?")))
		s := begin(t, h, &scripted{})
		who := attend(t, s, func(q *host.Question) host.Answer {
			a := host.Answer{Action: host.Approve}
			if q.Kind == host.QuestionSample {
				a.Model = "second"
				a.Edited = mcp.RawValue(`{"messages":[{"role":"user","content":{"type":"text","text":"edited"}}],"maxTokens":5}`)
			} else {
				a.Edited = mcp.RawValue(`{"role":"assistant","content":{"type":"text","text":"no key"},"model":"second"}`)
			}
			return a
		})
		got, err := callTool(t, h, s, "ask")
		if err != nil || got != "second: no key" {
			t.Fatalf("got %q, %v", got, err)
		}
		asked := who.questions()
		if len(asked) != 2 || asked[0].Sample.SystemPrompt != "obey" || asked[1].Sampled.Model != "second" {
			t.Fatalf("asked %+v", asked)
		}
		if diff := cmp.Diff([]string{"scripted", "second"}, asked[0].Models); diff != "" {
			t.Error(diff)
		}
		// SEC-SAMPLE-4: the answer is looked through for secrets.
		if len(asked[0].Secrets) != 0 || len(asked[1].Secrets) != 1 {
			t.Errorf("secrets: %v and %v", asked[0].Secrets, asked[1].Secrets)
		}
		if len(first.requests()) != 0 || len(second.requests()) != 1 {
			t.Fatal("the chosen model was not asked, or another one was")
		}
		r := second.requests()[0]
		if len(r.Messages) != 1 || r.MaxTokens != 5 || len(r.Tools) != 0 || r.System != "" || host.ContentText(r.Messages[0].Blocks[0].Content) != "edited" {
			t.Errorf("the model was asked %+v", r)
		}
	})
}

// Proves: FLOW-SAMPLE-H. Each half can be refused; if the first is, the model is not called.
func TestSamplingRefused(t *testing.T) {
	for _, refused := range []host.QuestionKind{host.QuestionSample, host.QuestionSampled} {
		m := &scripted{}
		h := oneServer(t, &host.Options{Attended: true, SampleModels: []host.Model{m}}, "", asker(mcp.Text("what?")))
		s := begin(t, h, &scripted{})
		attend(t, s, func(q *host.Question) host.Answer {
			if q.Kind == refused {
				return host.Answer{}
			}
			return host.Answer{Action: host.Approve}
		})
		if got, err := callTool(t, h, s, "ask"); !errors.Is(err, client.ErrInputRefused) {
			t.Errorf("%s: got %q, %v", refused, got, err)
		}
		if called := len(m.requests()) == 1; called != (refused == host.QuestionSampled) {
			t.Errorf("%s: the model was called %v", refused, called)
		}
	}
}

// Proves: SEC-SAMPLE-2. A server has a budget.
func TestSamplingBudget(t *testing.T) {
	h := oneServer(t, &host.Options{Policy: allowing(t, "sampling:*"), SampleModels: []host.Model{&scripted{}}, MaxSamples: 2}, "", asker(mcp.Text("what?")))
	s := begin(t, h, &scripted{})
	for i := range 3 {
		_, err := callTool(t, h, s, "ask")
		if (err != nil) != (i == 2) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

// A rule that allows sampling does not let an answer out that looks like a secret.
func TestSamplingSecretAsks(t *testing.T) {
	m := &scripted{turns: []turn{say2("the key is AKIAABCDEFGHIJKLMNOP")}}
	h := oneServer(t, &host.Options{Attended: true, Policy: allowing(t, "sampling:*"), SampleModels: []host.Model{m}}, "", asker(mcp.Text("what?")))
	s := begin(t, h, &scripted{})
	who := attend(t, s, func(*host.Question) host.Answer { return host.Answer{} })
	if got, err := callTool(t, h, s, "ask"); !errors.Is(err, client.ErrInputRefused) {
		t.Errorf("got %q, %v", got, err)
	}
	if q := who.one(t); q.Kind != host.QuestionSampled || !strings.Contains(q.Why, "secret") || len(q.Offers) != 0 {
		t.Errorf("asked %+v", q)
	}
}

// Proves: SEC-SAMPLE-3. Preferences of a server sort the models.
func TestSamplingPreferences(t *testing.T) {
	fast := &scripted{info: host.ModelInfo{Name: "fast-1", Speed: 1, InputPrice: 1}}
	smart := &scripted{info: host.ModelInfo{Name: "smart-1", Intelligence: 1, InputPrice: 10}}
	one := 1.0
	for want, prefs := range map[string]*mcp.ModelPreferences{
		"plain-1": nil,
		"fast-1":  {SpeedPriority: &one},
		"smart-1": {IntelligencePriority: &one, CostPriority: new(0.1)},
		"smart":   {Hints: []mcp.ModelHint{{Name: "unknown"}, {Name: "SMART"}}, SpeedPriority: &one},
	} {
		models := []host.Model{&scripted{info: host.ModelInfo{Name: "plain-1"}}, fast, smart}
		h := oneServer(t, &host.Options{Policy: allowing(t, "sampling:*"), SampleModels: models}, "",
			server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
				res, err := server.Sample(ctx, &mcp.CreateMessageParams{
					MaxTokens: 10, ModelPreferences: prefs,
					Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("x")}}},
				})
				if err != nil {
					return "", err
				}
				return res.Model, nil
			}))
		if got, err := callTool(t, h, begin(t, h, &scripted{}), "ask"); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("the model is %q (%v), want %s", got, err, want)
		}
	}
}

// Proves: SEC-CAP-1. Without a model, or without anybody who could consent, nothing is declared.
func TestAsksUndeclared(t *testing.T) {
	for _, o := range []*host.Options{
		{},
		{SampleModels: []host.Model{&scripted{}}},
		{SampleModels: []host.Model{&scripted{}}, Policy: policyOf(t, "deny", "sampling:*")},
	} {
		h := oneServer(t, o, "", server.Tool("can", "Can it?", func(ctx context.Context, _ mcp.None) (string, error) {
			if server.CanSample(ctx) || server.CanElicit(ctx) || server.CanElicitURL(ctx) || server.CanRoots(ctx) {
				return "yes", nil
			}
			return "no", nil
		}))
		if got, err := callTool(t, h, begin(t, h, &scripted{}), "can"); got != "no" || err != nil {
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
		h := oneServer(t, &host.Options{Policy: allowing(t, "sampling:*"), SampleModels: []host.Model{&scripted{}}}, "", asker(test.content))
		if _, err := callTool(t, h, begin(t, h, &scripted{}), "ask"); (err == nil) != test.fits {
			t.Errorf("%s: %v", host.ContentText(test.content), err)
		}
	}
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

// Proves: FLOW-ELICIT-H, SEC-ELICIT-1. The person sees who asks, and a form, in a run and
// beside it; what does not fit is not sent; decline and cancel are there.
func TestElicit(t *testing.T) {
	eras(t, func(t *testing.T, version string) {
		for want, answer := range map[string]host.Answer{
			"accept red": {Action: host.Approve, Values: map[string]mcp.RawValue{"colour": mcp.RawValue(`"red"`)}},
			"decline ":   {Action: host.Refuse},
			"cancel ":    {Action: host.Dismiss},
		} {
			h := oneServer(t, &host.Options{Attended: true, Policy: allowing(t, "*")}, version, formTool())
			m := &scripted{turns: []turn{use("one__form", "{}")}}
			s := begin(t, h, m)
			who := attend(t, s, func(q *host.Question) host.Answer {
				bad := host.Answer{Action: host.Approve, Values: map[string]mcp.RawValue{"colour": mcp.RawValue(`"blue"`)}}
				if err := s.Answer(t.Context(), q.ID, bad); err == nil {
					t.Error("blue is taken")
				}
				return answer
			})
			if _, _, err := s.Ask(t.Context(), "please"); err != nil {
				t.Fatal(err)
			}
			if got := m.results(); len(got) != 1 || got[0] != want {
				t.Errorf("the tool got %q, want %q", got, want)
			}
			q := who.one(t)
			call := bodies[*host.CallRecord](s)[0].ID
			if q.Kind != host.QuestionForm || q.Server != "one" || q.Form.Message != "Which?" || q.Page != nil {
				t.Errorf("asked %+v", q)
			}
			if q.Call != call {
				t.Errorf("the question belongs to call %q, want %q", q.Call, call)
			}
		}
	})
}

// Proves: SEC-ELICIT-1. A rule can keep a server from asking.
func TestElicitDenied(t *testing.T) {
	h := oneServer(t, &host.Options{Attended: true, Policy: policyOf(t, "deny", "elicitation:one/form")}, "", formTool())
	s := begin(t, h, &scripted{})
	if got, err := callTool(t, h, s, "form"); got != "decline " || err != nil || len(bodies[*host.QuestionRecord](s)) != 0 {
		t.Errorf("got %q, %v; the log is %s", got, err, kinds(s))
	}
}

// Proves: SEC-ELICIT-2, ruling 18. The whole URL and what is suspicious about
// it reach the face.
func TestElicitURL(t *testing.T) {
	h := oneServer(t, &host.Options{Attended: true}, "",
		server.Tool("page", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
			ok, err := server.ElicitURL(ctx, "https://xn--exmple-cua.com/pay?x=1", "Please pay", func(context.Context) (bool, error) { return true, nil })
			if ok {
				return "went", err
			}
			return "stayed", err
		}))
	s := begin(t, h, &scripted{})
	who := attend(t, s, approve)
	if got, err := callTool(t, h, s, "page"); got != "went" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	q := who.one(t)
	if q.Kind != host.QuestionPage || q.Page == nil || q.Page.URL != "https://xn--exmple-cua.com/pay?x=1" || q.Page.Host != "xn--exmple-cua.com" || len(q.Page.Warnings) != 1 {
		t.Errorf("asked %+v", q)
	}
}

// Proves: SEC-DOS-1. A server cannot ask the person for ever.
func TestQuestionBudget(t *testing.T) {
	h := oneServer(t, &host.Options{Attended: true, MaxQuestions: 2}, "", formTool())
	s := begin(t, h, &scripted{})
	attend(t, s, func(*host.Question) host.Answer { return host.Answer{} })
	for i := range 3 {
		_, err := callTool(t, h, s, "form")
		if (err != nil) != (i == 2) || i == 2 && !errors.Is(err, client.ErrInputRefused) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

// Proves: FLOW-ROOTS-H, SEC-ROOTS-1. The person picks the directories, once for a
// session; rules allow and deny single ones; a grant lasts.
func TestRoots(t *testing.T) {
	eras(t, func(t *testing.T, version string) {
		var roots []mcp.Root
		for range 3 {
			r, err := host.Root(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			roots = append(roots, r)
		}
		tool := server.Tool("roots", "Roots.", func(ctx context.Context, _ mcp.None) (string, error) {
			list, err := server.Roots(ctx)
			var uris []string
			for _, r := range list {
				uris = append(uris, r.URI)
			}
			return strings.Join(uris, " "), err
		})
		p := policyFrom(t, `{"effect":"deny","kind":"roots","where":{"/uri":{"equals":["`+roots[2].URI+`"]}}}`)
		h := oneServer(t, &host.Options{Attended: true, Policy: p, Roots: roots}, version, tool)
		s := begin(t, h, &scripted{})
		who := attend(t, s, func(q *host.Question) host.Answer {
			return host.Answer{Action: host.Approve, Offer: 1, Roots: []string{q.Roots[1].URI}}
		})
		for range 2 {
			if got, err := callTool(t, h, s, "roots"); got != roots[1].URI || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, roots[1].URI)
			}
		}
		if q := who.one(t); q.Kind != host.QuestionRoots || len(q.Roots) != 2 {
			t.Errorf("asked %+v", q)
		}
		grants, err := h.Grants(t.Context())
		if err != nil || len(grants) != 1 || grants[0].Rule.Kind != policy.KindRoots {
			t.Errorf("grants %+v, %v", grants, err)
		}
	})
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

// A server of the handshake era asks beside a request that was made with Session.Context:
// the question is for that session, however many are open.
func TestWhoseQuestion(t *testing.T) {
	eras(t, func(t *testing.T, version string) {
		h := oneServer(t, &host.Options{Attended: true}, version, formTool())
		red := func(*host.Question) host.Answer {
			return host.Answer{Action: host.Approve, Values: map[string]mcp.RawValue{"colour": mcp.RawValue(`"red"`)}}
		}
		s, other := begin(t, h, &scripted{}), begin(t, h, &scripted{})
		who, nobody := attend(t, s, red), attend(t, other, red)
		if got, err := callTool(t, h, s, "form"); got != "accept red" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if who.one(t).Server != "one" || len(nobody.questions()) != 0 {
			t.Errorf("the other session was asked %d times", len(nobody.questions()))
		}
	})
}

// Proves: SEC-SAMPLE-4. The images of a request are counted, those in results of tools too;
// a model that takes none is told that there was one.
func TestSamplingImages(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	picture := mcp.Image(b.Bytes(), "image/png")
	ask := func(t *testing.T, m *scripted, content ...mcp.Content) error {
		t.Helper()
		h := oneServer(t, &host.Options{Policy: allowing(t, "sampling:*"), SampleModels: []host.Model{m}}, "", asker(content...))
		_, err := callTool(t, h, begin(t, h, &scripted{}), "ask")
		return err
	}
	for name, test := range map[string]struct {
		maxImage int
		want     string
	}{"blind": {0, "[image, image/png, "}, "small": {b.Len() - 1, "[image, image/png, "}, "sees": {b.Len(), ""}} {
		m := &scripted{info: host.ModelInfo{MaxImage: test.maxImage}}
		if err := ask(t, m, picture); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, isText := m.requests()[0].Messages[0].Blocks[0].Content.(*mcp.TextContent)
		if isText != (test.want != "") || isText && !strings.HasPrefix(text.Text, test.want) {
			t.Errorf("%s: the model was given %#v", name, m.requests()[0].Messages[0].Blocks[0].Content)
		}
	}
	if err := ask(t, &scripted{}, slices.Repeat([]mcp.Content{picture}, 17)...); err == nil {
		t.Error("17 images are taken")
	}
}

// Tools that a server names in its request are told to the model by names that every provider
// takes, and the server gets its own names back.
func TestSamplingTools(t *testing.T) {
	const own = "admin.tools/list"
	object := mcp.RawValue(`{"type":"object"}`)
	m := &scripted{turns: []turn{func(r *host.Request) []host.Piece {
		return use(r.Tools[0].Name, `{"a":1}`, r.Tools[1].Name, `{}`, "invented", `{}`)(r)
	}}}
	var got []string
	asks := server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
		res, err := server.Sample(ctx, &mcp.CreateMessageParams{
			MaxTokens: 10, Tools: []mcp.Tool{{Name: own, InputSchema: object}, {Name: "plain", InputSchema: object}},
			Messages: []mcp.SamplingMessage{
				{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("x")}},
				{Role: mcp.RoleAssistant, Content: mcp.Contents{&mcp.ToolUseContent{ID: "1", Name: own, Input: mcp.RawValue(`{}`)}}},
				{Role: mcp.RoleUser, Content: mcp.Contents{&mcp.ToolResultContent{ToolUseID: "1", Content: mcp.Contents{mcp.Text("done")}}}},
			},
		})
		if err != nil {
			return "", err
		}
		for _, c := range res.Content {
			if call, ok := c.(*mcp.ToolUseContent); ok {
				got = append(got, call.Name+string(call.Input))
			}
		}
		return "asked", nil
	})
	h := oneServer(t, &host.Options{Policy: allowing(t, "sampling:*"), SampleModels: []host.Model{m}}, "", asks)
	if text, err := callTool(t, h, begin(t, h, &scripted{}), "ask"); err != nil || text != "asked" {
		t.Fatalf("%q, %v", text, err)
	}
	if want := []string{own + `{"a":1}`, "plain{}", "invented{}"}; !slices.Equal(got, want) {
		t.Errorf("the server gets %q, want %q", got, want)
	}
	asked := m.asked[0]
	told := asked.Tools[0].Name
	earlier := asked.Messages[1].Blocks[0].Content.(*mcp.ToolUseContent).Name
	if strings.ContainsAny(told, "./") || !strings.HasPrefix(told, "admin_tools_list_") || earlier != told || asked.Tools[1].Name != "plain" {
		t.Errorf("the model is told %q and %q, and that it called %q", told, asked.Tools[1].Name, earlier)
	}
}
