package host_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport/mem"
)

// The model is told of skills with their servers, loads one with consent and reads its
// files; nothing is read ahead, and what it gets says where it comes from.
func TestSkillFlow(t *testing.T) {
	srv := skillsOf(t, pdfSkill())
	h := skillHost(t, &host.Options{Attended: true}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI), readFile("docs", pdfURI, "references/FORMS.md")}}
	s := begin(t, h, m)
	who := attend(t, s, approve)
	end := ask(t, s)
	if end.Calls != 2 || end.Failed != 0 {
		t.Errorf("the run ended as %+v", end)
	}
	first := m.requests()[0]
	i := slices.IndexFunc(first.Tools, func(spec host.ToolSpec) bool { return spec.Name == "load_skill" })
	if i < 0 || !strings.Contains(first.Tools[i].Description, `server "docs", uri "skill://pdf/SKILL.md", pdf: What pdf is for.`) {
		t.Errorf("the model was told %+v", first.Tools)
	}
	q := who.one(t)
	if q.Kind != host.QuestionSkill || q.Server != "docs" || q.Name != pdfURI || q.Skill == nil || len(q.Skill.Files) != 3 || q.Skill.AllowedTools != `"Bash(*)"` {
		t.Errorf("asked %+v", q)
	}
	want := []string{"skills/get " + pdfURI, "resources/read " + pdfURI, "resources/read skill://pdf/references/FORMS.md"}
	if diff := cmp.Diff(want, srv.requests()); diff != "" {
		t.Errorf("what the server was asked (-want +got):\n%s", diff)
	}
	if got := m.results(); len(got) != 1 || !strings.Contains(got[0], `the file skill://pdf/references/FORMS.md of the skill "pdf" of server "docs"`) || !strings.Contains(got[0], "the forms") {
		t.Errorf("the model got %q", got)
	}
	body := resultText(t, s, 0)
	for _, part := range []string{`the skill "pdf" of server "docs"`, "counts for no more than any other text", "no skill of this machine", "# pdf"} {
		if !strings.Contains(body, part) {
			t.Errorf("the text of the skill has no %q:\n%s", part, body)
		}
	}
	if labels := s.Snapshot().Labels; !slices.Equal(labels, []policy.Label{policy.LabelUntrusted}) {
		t.Errorf("labels %v", labels)
	}
}

// resultText is the text of a result of the session.
func resultText(t *testing.T, s *host.Session, n int) string {
	t.Helper()
	list := bodies[*host.ResultRecord](s)
	if n >= len(list) || len(list[n].Content) == 0 {
		t.Fatalf("there is no result %d among %d", n, len(list))
	}
	return host.ContentText(list[n].Content[0])
}

// A grant for a skill is of its files as they are: another set ends it, and the person
// sees what has changed, whatever rules say.
func TestSkillGrantEnds(t *testing.T) {
	srv := skillsOf(t, pdfSkill())
	store := new(host.Memory)
	h := skillHost(t, &host.Options{Attended: true, Store: store}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI)}}
	s := begin(t, h, m)
	who := attend(t, s, answering(1))
	ask(t, s)
	grants, err := h.Grants(t.Context())
	if err != nil || len(grants) != 1 || grants[0].Rule.Kind != policy.KindSkill || grants[0].Rule.Name != pdfURI || grants[0].Digest == "" || grants[0].Entry == "" {
		t.Fatalf("grants %+v, %v", grants, err)
	}
	m.then(load("docs", pdfURI))
	ask(t, s)
	who.one(t) // the second loading was granted
	srv.change(t, map[string]string{"pdf/references/FORMS.md": "", "pdf/references/NEW.md": "new", "pdf/SKILL.md": skillDoc("pdf", "license: MIT\n")})
	m.then(load("docs", pdfURI))
	ask(t, s)
	list := who.questions()
	if len(list) != 2 {
		t.Fatalf("asked %d times", len(list))
	}
	var got []string
	for _, c := range list[1].Changes {
		got = append(got, c.Path+" "+string(c.Kind))
	}
	want := []string{
		`frontmatter "allowed-tools" removed`, `frontmatter "license" added`, `file "skill://pdf/SKILL.md" changed`,
		`file "skill://pdf/references/FORMS.md" removed`, `file "skill://pdf/references/NEW.md" added`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	// A rule does not answer it for a run without a person.
	unattended := skillHost(t, &host.Options{Store: store, Policy: allowSkills(t, "docs")}, map[string]*skillServer{"docs": srv})
	srv.change(t, map[string]string{"pdf/references/NEW.md": "newer"})
	m2 := &scripted{turns: []turn{load("docs", pdfURI)}}
	_, _, err = begin(t, unattended, m2).Ask(t.Context(), "please")
	var refused *host.ConsentError
	if !errors.As(err, &refused) || refused.Kind != policy.KindSkill || !refused.Changed || refused.Refused {
		t.Errorf("the error is %v", err)
	}
}

// Without a person, a rule decides; without one nothing is loaded.
func TestSkillUnattended(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		srv := skillsOf(t, pdfSkill())
		o := &host.Options{}
		if allowed {
			o.Policy = allowSkills(t, "docs")
		}
		h := skillHost(t, o, map[string]*skillServer{"docs": srv})
		_, _, err := begin(t, h, &scripted{turns: []turn{load("docs", pdfURI)}}).Ask(t.Context(), "please")
		read := slices.Contains(srv.requests(), "resources/read "+pdfURI)
		if errors.Is(err, host.ErrConsent) == allowed || read != allowed {
			t.Errorf("allowed %t: read %t, %v", allowed, read, err)
		}
	}
}

// A rule that denies hides a skill from the model, and refuses the person too.
func TestSkillDenied(t *testing.T) {
	srv := skillsOf(t, pdfSkill())
	h := skillHost(t, &host.Options{Attended: true, Policy: policyFrom(t, `{"effect":"deny","kind":"skill","name":"skill://pdf/SKILL.md"}`)}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI)}}
	s := begin(t, h, m)
	if end := ask(t, s); end.Refused != 1 {
		t.Errorf("the run ended as %+v", end)
	}
	if spec := m.toolSpec("load_skill"); strings.Contains(spec, pdfURI) || !strings.Contains(spec, "skill://pdf/parts/SKILL.md") {
		t.Errorf("the model was told %q", spec)
	}
	err := s.Send(t.Context(), host.Input{Skill: &host.SkillInput{Server: "docs", URI: pdfURI}})
	if !errors.Is(err, host.ErrConsent) || len(srv.requests()) != 0 {
		t.Errorf("the person's loading: %v, %v", err, srv.requests())
	}
}

// A nested skill is a skill of its own: the consent for the outer one is none for it, and
// its SKILL.md that is read as a file makes it none that the model acts on.
func TestSkillNested(t *testing.T) {
	srv := skillsOf(t, pdfSkill())
	h := skillHost(t, &host.Options{Attended: true}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{
		load("docs", pdfURI), readFile("docs", pdfURI, "parts/SKILL.md"),
		readFile("docs", "skill://pdf/parts/SKILL.md", "SKILL.md"), load("docs", "skill://pdf/parts/SKILL.md"),
	}}
	s := begin(t, h, m)
	who := attend(t, s, answering(1))
	ask(t, s)
	if n := len(who.questions()); n != 2 || who.questions()[1].Name != "skill://pdf/parts/SKILL.md" {
		t.Errorf("asked %d times", n)
	}
	if got := resultText(t, s, 2); !strings.Contains(got, "not loaded") {
		t.Errorf("a file of a skill that is not loaded: %q", got)
	}
	if acting := bodies[*host.SkillRecord](s); len(acting) != 2 || acting[1].URI != "skill://pdf/parts/SKILL.md" {
		t.Errorf("acts on %+v", acting)
	}
}

// Skills of two servers with one URI are two skills: they are told apart to the model and
// to the person, and a grant for one is none for the other.
func TestSkillTwoServers(t *testing.T) {
	one, two := skillsOf(t, pdfSkill()), skillsOf(t, pdfSkill())
	h := skillHost(t, &host.Options{Attended: true}, map[string]*skillServer{"one": one, "two": two})
	m := &scripted{turns: []turn{load("one", pdfURI), load("two", pdfURI), readFile("two", pdfURI, "references/FORMS.md")}}
	s := begin(t, h, m)
	who := attend(t, s, answering(1))
	ask(t, s)
	spec := m.toolSpec("load_skill")
	if !strings.Contains(spec, `server "one", uri "skill://pdf/SKILL.md"`) || !strings.Contains(spec, `server "two", uri "skill://pdf/SKILL.md"`) {
		t.Errorf("the model was told %q", spec)
	}
	list := who.questions()
	if len(list) != 2 || list[0].Server != "one" || list[1].Server != "two" {
		t.Fatalf("asked %+v", list)
	}
	if !slices.ContainsFunc(list[0].Warnings, func(w string) bool { return strings.Contains(w, `"two" has a skill "pdf" too`) }) {
		t.Errorf("warnings %q", list[0].Warnings)
	}
	if slices.Contains(one.requests(), "resources/read skill://pdf/references/FORMS.md") || !slices.Contains(two.requests(), "resources/read skill://pdf/references/FORMS.md") {
		t.Errorf("the file was read from the wrong server: %q, %q", one.requests(), two.requests())
	}
	if acting := s.Snapshot().Skills; len(acting) != 2 || acting[0].Server == acting[1].Server {
		t.Errorf("acts on %+v", acting)
	}
}

// Two skills of one name in one list are both shown.
func TestSkillSameName(t *testing.T) {
	srv := skillsOf(t, map[string]string{"a/refunds/SKILL.md": skillDoc("refunds", ""), "b/refunds/SKILL.md": skillDoc("refunds", "")})
	h := skillHost(t, &host.Options{}, map[string]*skillServer{"docs": srv})
	catalog := h.Settle(t.Context(), time.Minute)
	found := catalog.FindSkills("docs", "refunds")
	if len(found) != 2 || found[0].URI == found[1].URI {
		t.Errorf("found %+v", found)
	}
	if len(catalog.FindSkills("other", "refunds")) != 0 {
		t.Error("a name is looked up beyond its server")
	}
}

// A skill that is not listed can be loaded by its URI: the model asks first, since the
// words of the URI go to the server, and the person may just do it.
func TestSkillUnlisted(t *testing.T) {
	srv := skillsOf(t, pdfSkill())
	empty := madeUp{list: func(func(mcp.RawValue, error) bool) {}}
	h := skillHost(t, &host.Options{Attended: true, Skills: empty}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI)}}
	s := begin(t, h, m)
	var before []string
	who := attend(t, s, func(q *host.Question) host.Answer {
		if q.Kind == host.QuestionUse {
			before = srv.requests()
		}
		return host.Answer{Action: host.Approve}
	})
	ask(t, s)
	list := who.questions()
	if len(list) != 2 || list[0].Kind != host.QuestionUse || list[1].Kind != host.QuestionSkill || len(before) != 0 {
		t.Fatalf("asked %d times, after the requests %q", len(list), before)
	}
	if !strings.Contains(resultText(t, s, 0), "# pdf") || m.requests()[0].Tools[0].Name != "load_skill" {
		t.Errorf("the skill was not loaded: %q", resultText(t, s, 0))
	}
	if err := s.Send(t.Context(), host.Input{Skill: &host.SkillInput{Server: "docs", URI: pdfURI}, Text: "use it"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(who.questions()); n != 2 {
		t.Errorf("asked %d times; the person's wish is the consent", n)
	}
}

// What is read as an ordinary resource is no loaded skill.
func TestSkillReadIsNoLoad(t *testing.T) {
	srv, store := skillsOf(t, pdfSkill()), new(host.Memory)
	h := skillHost(t, &host.Options{Attended: true, Store: store}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{readFile("docs", pdfURI, "references/FORMS.md")}}
	s := begin(t, h, m)
	err := s.Send(t.Context(), host.Input{Text: "look", Resources: []host.ResourceInput{{Server: "docs", URI: pdfURI}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := resultText(t, s, 0); !strings.Contains(got, "not loaded") || len(s.Snapshot().Skills) != 0 || len(bodies[*host.SkillRecord](s)) != 0 {
		t.Errorf("got %q, acts on %+v", got, s.Snapshot().Skills)
	}
	if pins, err := store.Pins(t.Context(), ""); err != nil || len(pins) != 0 {
		t.Errorf("what was agreed to: %+v, %v", pins, err)
	}
}

// Of a dynamic skill no consent is kept: each loading by the model asks, also with a rule.
func TestSkillDynamic(t *testing.T) {
	srv := dynamicSkill(t)
	h := skillHost(t, &host.Options{Attended: true, Policy: allowSkills(t, "docs")}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI), load("docs", pdfURI), readFile("docs", pdfURI, "references/FORMS.md")}}
	s := begin(t, h, m)
	who := attend(t, s, approve)
	ask(t, s)
	list := who.questions()
	if len(list) != 2 || len(list[0].Offers)+len(list[1].Offers) != 0 || !list[0].Skill.Dynamic {
		t.Fatalf("asked %d times: %+v", len(list), list)
	}
	if got := m.results(); len(got) != 1 || !strings.Contains(got[0], "the forms") {
		t.Errorf("got %q", got)
	}
}

// Reads of paths that the entry does not have are refused, and nothing is sent.
func TestSkillPaths(t *testing.T) {
	srv := skillsOf(t, pdfSkill())
	h := skillHost(t, &host.Options{Policy: allowSkills(t, "docs")}, map[string]*skillServer{"docs": srv})
	paths := []string{"../other/SKILL.md", "skill://pdf/references/FORMS.md", "/etc/passwd", "references/NONE.md", ""}
	turns := []turn{load("docs", pdfURI)}
	for _, p := range paths {
		turns = append(turns, readFile("docs", pdfURI, p))
	}
	s := begin(t, h, &scripted{turns: turns})
	end := ask(t, s)
	if end.Failed != len(paths) {
		t.Errorf("the run ended as %+v", end)
	}
	for _, r := range srv.requests() {
		if strings.HasPrefix(r, "resources/read") && r != "resources/read "+pdfURI {
			t.Errorf("asked for %s", r)
		}
	}
	if s.Snapshot().Skills[0].Changed {
		t.Error("a wrong path counts as a changed skill")
	}
}

// The skills of a server are listed again when it says that its resources have changed.
func TestSkillListedAgain(t *testing.T) {
	srv := skillsOf(t, pdfSkill())
	h := skillHost(t, &host.Options{}, map[string]*skillServer{"docs": srv})
	catalog := h.Settle(t.Context(), time.Minute)
	if len(catalog.Skills) != 2 || catalog.Servers[0].Skills != 2 || !catalog.Servers[0].OffersSkills {
		t.Fatalf("skills %+v, %+v", catalog.Skills, catalog.Servers)
	}
	srv.change(t, map[string]string{"new/SKILL.md": skillDoc("new", "")})
	for len(catalog.Skills) != 3 {
		var err error
		if catalog, err = h.WatchServers(t.Context(), catalog.Generation); err != nil {
			t.Fatal(err)
		}
	}
}

// A list that fails, or has no end, costs no tools.
func TestSkillListFails(t *testing.T) {
	ran := 0
	lists := map[string]func(yield func(mcp.RawValue, error) bool){
		"fails": func(yield func(mcp.RawValue, error) bool) { yield(nil, errors.New("broken")) },
		"10,000 entries": func(yield func(mcp.RawValue, error) bool) {
			for i := range 10_000 {
				if !yield(entryOf(fmt.Sprintf("s%d", i), "many"), nil) {
					return
				}
			}
		},
		"endless": func(yield func(mcp.RawValue, error) bool) {
			for yield(entryOf("same", strings.Repeat("long ", 200)), nil) {
			}
		},
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			srv := skillsOf(t, pdfSkill(), echo("say", &ran))
			h := skillHost(t, &host.Options{Policy: allowing(t, "*"), Skills: madeUp{list: list}}, map[string]*skillServer{"docs": srv})
			catalog := h.Settle(t.Context(), time.Minute)
			if len(catalog.Tools) != 1 || len(catalog.Down) != 0 || catalog.Servers[0].SkillsErr == nil || len(catalog.Skills) > 2_000 {
				t.Errorf("%d tools, %d skills, down %v, %v", len(catalog.Tools), len(catalog.Skills), catalog.Down, catalog.Servers[0].SkillsErr)
			}
			m := &scripted{turns: []turn{use("find_skills", `{"query":"many"}`), use("docs__say", `{"text":"x"}`)}}
			ask(t, begin(t, h, m))
			if spec := m.toolSpec("load_skill"); spec == "" || len(spec) > 20_000 {
				t.Errorf("the description has %d bytes", len(spec))
			}
			if got := m.results(); len(got) != 1 || got[0] != "say:x" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// entryOf is an entry that is valid.
func entryOf(name, description string) mcp.RawValue {
	uri := "skill://" + name + "/SKILL.md"
	quoted, err := strictjson.Marshal(description)
	if err != nil {
		panic(err)
	}
	return mcp.RawValue(fmt.Sprintf(`{"uri":%q,"frontmatter":{"name":%q,"description":%s},"resources":[{"uri":%q,"digest":"sha256:%s","size":1}]}`,
		uri, name, quoted, uri, strings.Repeat("0", 64)))
}

// What cannot be loaded is shown to the person alone, with the reason, and hidden
// characters reach neither the list of the model nor a question unseen.
func TestSkillHostileEntries(t *testing.T) {
	srv := skillsOf(t, pdfSkill())
	long := `{"uri":"skill://long/SKILL.md","frontmatter":{"name":"long","description":"` + strings.Repeat("x", 2<<20) + `"},"resources":"dynamic"}`
	big := `{"uri":"skill://big/SKILL.md","frontmatter":{"name":"big","description":"d"},"resources":[{"uri":"skill://big/SKILL.md","digest":"sha256:` +
		strings.Repeat("0", 64) + `","size":16777217}]}`
	list := []mcp.RawValue{
		entryOf("bidi", "safe\u202e\u200bevil\nnext line\x1b[2J\U000e0041"), mcp.RawValue(`{"uri":"skill://bad/SKILL.md"}`),
		mcp.RawValue(long), mcp.RawValue(big), mcp.RawValue(`{"uri":7}`),
	}
	made := madeUp{list: func(yield func(mcp.RawValue, error) bool) {
		for _, raw := range list {
			if !yield(raw, nil) {
				return
			}
		}
	}}
	h := skillHost(t, &host.Options{Attended: true, Skills: made}, map[string]*skillServer{"docs": srv})
	m := &scripted{}
	ask(t, begin(t, h, m))
	spec := m.toolSpec("load_skill")
	for _, none := range []string{"skill://bad/", "skill://long/", "skill://big/", "\u202e", "\u200b", "\x1b", "evil\n", "\U000e0041"} {
		if strings.Contains(spec, none) {
			t.Errorf("the model is shown %q", none)
		}
	}
	if !strings.Contains(spec, "skill://bidi/SKILL.md") {
		t.Errorf("the model was told %q", spec)
	}
	flawed := 0
	for _, k := range h.Catalog().Skills {
		if k.Err != nil {
			flawed++
		}
	}
	if flawed != 4 {
		t.Errorf("%d entries have a reason, want 4", flawed)
	}
}

// A server that has not declared the extension is not asked for skills, and the model is
// told of no tools for them.
func TestSkillNotOffered(t *testing.T) {
	ran := 0
	srv := &skillServer{Server: serverOf(t, echo("say", &ran))}
	h := skillHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI)}}
	end := ask(t, begin(t, h, m))
	if m.toolSpec("load_skill") != "" || end.Calls != 0 || end.Failed != 1 {
		t.Errorf("the run ended as %+v, told %+v", end, m.requests()[0].Tools)
	}
	if len(srv.requests()) != 0 {
		t.Errorf("asked for %q", srv.requests())
	}
}

// A skill at the bounds of the extension is loaded, and its last file read.
func TestSkillLimits(t *testing.T) {
	files := map[string]string{"pdf/SKILL.md": skillDoc("pdf", "")}
	for i := range 510 {
		files[fmt.Sprintf("pdf/f%d.txt", i)] = "x"
	}
	files["pdf/last.txt"] = strings.Repeat("y", 16<<20-len(files["pdf/SKILL.md"])-510)
	srv := skillsOf(t, files)
	h := skillHost(t, &host.Options{Policy: allowSkills(t, "docs")}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI), readFile("docs", pdfURI, "last.txt")}}
	s := begin(t, h, m)
	if end := ask(t, s); end.Failed != 0 {
		t.Errorf("the run ended as %+v: %s", end, resultText(t, s, 0))
	}
	list := bodies[*host.ResultRecord](s)
	if len(list) != 2 || list[1].Size < 16<<20-64<<10 || list[1].Whole == "" || len(s.Snapshot().Skills) != 1 {
		t.Errorf("the last file: %d results, acts on %d skills", len(list), len(s.Snapshot().Skills))
	}
}

// What a skill asks for as allowed-tools is shown, and has no effect.
func TestSkillAllowedTools(t *testing.T) {
	ran := 0
	srv := skillsOf(t, map[string]string{"pdf/SKILL.md": skillDoc("pdf", "allowed-tools: docs__say\n")}, echo("say", &ran))
	h := skillHost(t, &host.Options{Attended: true}, map[string]*skillServer{"docs": srv})
	m := &scripted{turns: []turn{load("docs", pdfURI), use("docs__say", `{"text":"x"}`)}}
	s := begin(t, h, m)
	who := attend(t, s, func(q *host.Question) host.Answer {
		if q.Kind == host.QuestionSkill {
			return host.Answer{Action: host.Approve}
		}
		return host.Answer{}
	})
	ask(t, s)
	if list := who.questions(); len(list) != 2 || list[0].Skill.AllowedTools != `"docs__say"` || list[1].Kind != host.QuestionCall || ran != 0 {
		t.Errorf("ran %d times, asked %+v", ran, list)
	}
}

// A skill's URI that the model makes up is not sent when it could carry private data out,
// whatever rules allow.
func TestSkillURISendsNothing(t *testing.T) {
	srv := skillsOf(t, pdfSkill(), give("mail", "text"))
	h := skillHost(t, &host.Options{Attended: true, Policy: policyFrom(t, `{"effect":"allow"}`, `{"effect":"allow","kind":"skill"}`)}, nil)
	labels := []policy.Label{policy.LabelPrivate, policy.LabelUntrusted, policy.LabelSends}
	if err := h.Add(host.Server{Name: "docs", Dialer: mem.New(srv.Server, nil), Labels: labels}); err != nil {
		t.Fatal(err)
	}
	m := &scripted{turns: []turn{use("docs__mail", "{}"), load("docs", "skill://secret-of-ada/SKILL.md")}}
	s := begin(t, h, m)
	who := attend(t, s, func(*host.Question) host.Answer { return host.Answer{} })
	ask(t, s)
	if q := who.one(t); q.Kind != host.QuestionUse || !strings.Contains(q.Why, "the call can send data out") || len(srv.requests()) != 0 {
		t.Errorf("asked %+v; the server was asked for %q", q, srv.requests())
	}
}
