package skills_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// counting makes a server that declares the extension with these settings, and counts the
// requests of a method.
func counting(settings any, method, result string) (*server.Server, *atomic.Int32) {
	asked := new(atomic.Int32)
	s := server.New("counting", "1.0.0", nil)
	answer := func(*server.Call, mcp.RawValue) (mcp.RawValue, error) {
		asked.Add(1)
		return mcp.RawValue(result), nil
	}
	s.Extend(server.Extension{
		ID: skills.ID, Settings: settings, Resources: true,
		Methods: []*server.ExtensionMethod{server.Method(method, answer).With(server.MethodOptions{Anyone: true})},
	})
	return s, asked
}

// "Clients MUST NOT call resources/directory/read against a server that has not declared
// directoryRead: true", even one that would answer.
func TestDirectoryUndeclared(t *testing.T) {
	for name, settings := range map[string]any{
		"":              map[string]any{"directoryRead": true},
		"nothing":       nil,
		"an empty one":  map[string]any{},
		"false":         map[string]any{"directoryRead": false},
		"a text":        map[string]any{"directoryRead": "true"},
		"a number":      map[string]any{"directoryRead": 1},
		"another name":  map[string]any{"directoryread": true},
		"null as value": map[string]any{"directoryRead": nil},
	} {
		s, asked := counting(settings, "resources/directory/read", `{"resources":[]}`)
		c := mcptest.Client(t, s, with())
		var last error
		for _, err := range skills.Directory(t.Context(), c, "skill://pdf") {
			last = err
		}
		if name == "" && (last != nil || asked.Load() != 1) {
			t.Errorf("declared: %d requests, %v", asked.Load(), last)
		}
		if name != "" && (!errors.Is(last, skills.ErrNoDirectories) || asked.Load() != 0) {
			t.Errorf("%s: %d requests, %v", name, asked.Load(), last)
		}
	}
}

// "params.uri MUST be the URI of a skill's SKILL.md": no other is sent.
func TestGetOther(t *testing.T) {
	s, asked := counting(nil, "skills/get", `{"skill":`+pdfEntry(doc("pdf"))+`}`)
	c := mcptest.Client(t, s, with())
	for _, uri := range []string{
		"", "pdf", "skill://pdf", "skill://pdf/", "skill://pdf/references/FORMS.md", "skill://pdf/skill.md",
		"skill://SKILL.md", "skill://pdf/SKILL.md/", "skill://pdf/SKILL.md?x", "skill://pdf/x/../SKILL.md",
	} {
		if got, err := skills.Get(t.Context(), c, uri); err == nil || asked.Load() != 0 {
			t.Errorf("%q: %+v, %d requests", uri, got, asked.Load())
		}
	}
	if got, err := skills.Get(t.Context(), c, pdf); err != nil || got.URI != pdf || asked.Load() != 1 {
		t.Errorf("%+v, %v, %d requests", got, err, asked.Load())
	}
}

// "The final segment, being the skill name, MUST satisfy the Agent Skills specification's
// naming rules": a server refuses others, and so does a client.
func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "1": true, "a-b-1": true, strings.Repeat("a", 64): true,
		"-a": false, "a-": false, "a--b": false, "A": false, "a_b": false, "a.b": false, "é": false,
		"a b": false, strings.Repeat("a", 65): false,
	} {
		text := "---\nname: " + `"` + name + `"` + "\ndescription: What it is for.\n---\n"
		source := skills.FS(files(map[string]string{name + "/SKILL.md": text}))
		_, err := skills.Enable(server.New("skills", "1.0.0", nil), source, &skills.Options{Logger: quiet})
		if (err == nil) != ok {
			t.Errorf("a server with %q: %v", name, err)
		}
		uri := "skill://" + strings.ReplaceAll(name, " ", "%20") + "/SKILL.md"
		entry := `{"uri":"` + uri + `","frontmatter":{"name":"` + name + `","description":"d"},"resources":[` + listedFile(uri, text) + `]}`
		var s skills.Skill
		if err := s.UnmarshalJSON([]byte(entry)); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); (err == nil) != ok {
			t.Errorf("an entry with %q: %v", name, err)
		}
	}
}

// "clients MUST NOT attempt DNS or network resolution" of the authority: of none, whatever
// the scheme.
func TestAuthority(t *testing.T) {
	var connected, lookedUp atomic.Int32
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ConnState = func(net.Conn, http.ConnState) { connected.Add(1) }
	web.Start()
	t.Cleanup(web.Close)
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		lookedUp.Add(1)
		return nil, errors.New("a name was looked up")
	}}
	for _, prefix := range []string{
		web.URL + "/", "skill://" + strings.TrimPrefix(web.URL, "http://") + "/", "https://skills.invalid/", "skill://skills.invalid/",
	} {
		c := connect(t, skills.FS(some()), &skills.Options{Logger: quiet, Prefix: prefix})
		all := listed(t, c)
		s := get(t, c, prefix+"pdf/SKILL.md")
		_, loaded := skills.Load(t.Context(), c, s)
		_, read := skills.Read(t.Context(), c, s, prefix+"pdf/references/FORMS.md")
		if len(all) != 3 || loaded != nil || read != nil {
			t.Errorf("%s: %d skills, %v, %v", prefix, len(all), loaded, read)
		}
		for _, err := range skills.Directory(t.Context(), c, prefix+"pdf") {
			if err != nil {
				t.Errorf("%s: %v", prefix, err)
			}
		}
	}
	if connected.Load() != 0 || lookedUp.Load() != 0 {
		t.Errorf("%d connections, %d names looked up", connected.Load(), lookedUp.Load())
	}
}

// "A host MUST NOT conclude that a resource is a skill merely because its URI carries a
// particular scheme": neither List nor Get has such a one.
func TestSchemeAlone(t *testing.T) {
	s, _ := enable(t, skills.FS(some()), nil, nil)
	const fake = "skill://fake/SKILL.md"
	s.Add(server.Resource(fake, "fake", func(context.Context) (string, error) { return doc("fake"), nil }))
	c := mcptest.Client(t, s, with())
	if _, err := c.ReadResource(t.Context(), fake, nil); err != nil {
		t.Error(err)
	}
	if all := listed(t, c); len(all) != 3 || all[fake] != nil {
		t.Errorf("listed: %v", all)
	}
	if got, err := skills.Get(t.Context(), c, fake); code(err) != mcp.CodeInvalidParams {
		t.Errorf("%+v, %v", got, err)
	}
}

// "A nested SKILL.md read this way is ordinary markdown": Read returns its bytes, whatever
// its frontmatter is, and loading the outer skill does not depend on it.
func TestNestedFile(t *testing.T) {
	const inner = "skill://pdf/inner/SKILL.md"
	for _, text := range []string{"---\nname: [\n---\n", "# no frontmatter", "---\nname: other\ndescription: d\nallowed-tools: Bash\n---\n"} {
		entry := strings.Replace(pdfEntry(doc("pdf")), listedFile(forms, "forms"), listedFile(inner, text), 1)
		h := &hostile{entries: []string{entry}, files: map[string]string{pdf: doc("pdf"), inner: text}}
		c := h.connect(t)
		s := one(t, c)
		if got, err := skills.Read(t.Context(), c, s, inner); err != nil || string(got.Data) != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if d, err := skills.Load(t.Context(), c, s); err != nil || d.Text != doc("pdf") || s.Name() != "pdf" {
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	}
}

// "Hosts MUST NOT assume name uniqueness": skills with the same name are all listed, and
// each is loaded from its own URI.
func TestSameNames(t *testing.T) {
	texts := map[string]string{
		"acme/billing/refunds/SKILL.md": doc("refunds") + "of bills\n",
		"acme/support/refunds/SKILL.md": doc("refunds") + "of tickets\n",
	}
	for _, size := range []int{1, 2} { // on two pages, and on one
		s, _ := enable(t, skills.FS(files(texts)), nil, &server.Options{Limits: server.Limits{PageSize: size}})
		loadBoth(t, mcptest.Client(t, s, with()), texts)
	}
}

func loadBoth(t *testing.T, c *client.Client, texts map[string]string) {
	t.Helper()
	all := listed(t, c)
	for path, want := range texts {
		s := all["skill://"+path]
		if s == nil || s.Name() != "refunds" || len(all) != 2 {
			t.Fatalf("%s is not listed: %v", path, all)
		}
		if d, err := skills.Load(t.Context(), c, s); err != nil || d.Text != want {
			t.Errorf("%s: %+v, %v", path, d, err)
		}
	}
}

// "Hosts MUST NOT treat an empty or partial listing as proof that a server has no skills,
// and MUST support loading a skill given only its URI".
func TestLoadUnlisted(t *testing.T) {
	h := &hostile{
		entries: []string{pdfEntry(doc("pdf"))},
		files:   map[string]string{pdf: doc("pdf"), forms: "forms"},
		pages:   func(*string) ([]string, *string, error) { return nil, nil, nil },
	}
	c := h.connect(t)
	if all := listed(t, c); len(all) != 0 {
		t.Fatalf("listed: %v", all)
	}
	s := get(t, c, pdf)
	if d, err := skills.Load(t.Context(), c, s); err != nil || d.Text != doc("pdf") || !d.Verified {
		t.Errorf("%+v, %v", d, err)
	}
	if got, err := skills.Read(t.Context(), c, s, forms); err != nil || string(got.Data) != "forms" {
		t.Errorf("%+v, %v", got, err)
	}
}

// "When a host retrieves a file listed in a skill's resources, it MUST verify the content
// against that entry's digest and size", and not SKILL.md alone.
func TestVerifyFile(t *testing.T) {
	for text, want := range map[string]skills.Reason{
		"forms": "", "FORMS": skills.ReasonDigest, "forms!": skills.ReasonSize, "form": skills.ReasonSize, "": skills.ReasonSize,
	} {
		h := &hostile{entries: []string{pdfEntry(doc("pdf"))}, files: map[string]string{pdf: doc("pdf"), forms: text}}
		c := h.connect(t)
		got, err := skills.Read(t.Context(), c, one(t, c), forms)
		differs, ok := errors.AsType[*skills.VerifyError](err)
		switch {
		case want == "" && (err != nil || string(got.Data) != text || !got.Verified):
			t.Errorf("%q: %+v, %v", text, got, err)
		case want != "" && (!ok || got != nil || differs.Reason != want || differs.URI != forms):
			t.Errorf("%q: %+v, %v; want %s", text, got, err, want)
		}
	}
}

// The frontmatter of a dynamic skill has no digest, and is compared all the same: "Any
// discrepancy MUST be treated as a verification failure".
func TestVerifyDynamic(t *testing.T) {
	const entry = `{"uri":"` + pdf + `","frontmatter":{"name":"pdf","description":"What pdf is for."},"resources":"dynamic"}`
	for text, ok := range map[string]bool{
		doc("pdf"):               true,
		doc("pdf") + "\nmore\n":  true,
		doc("word"):              false,
		"# no frontmatter":       false,
		"---\nname: pdf\n---\n":  false,
		"---\nname: [pdf\n---\n": false,
		strings.Replace(doc("pdf"), "---\n#", "allowed-tools: Bash\n---\n#", 1): false,
	} {
		h := &hostile{entries: []string{entry}, files: map[string]string{pdf: text}}
		c := h.connect(t)
		d, err := skills.Load(t.Context(), c, one(t, c))
		differs, is := errors.AsType[*skills.VerifyError](err)
		switch {
		case ok && (err != nil || d.Text != text || d.Verified):
			t.Errorf("%q: %+v, %v", text, d, err)
		case !ok && (d != nil || !is || differs.Reason != skills.ReasonFrontmatter):
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	}
}

// A directory may be ahead of the entry that is held: "the host MUST NOT read the newly
// listed child", and "MUST NOT treat the directory result as extending the manifest".
func TestDirectoryAhead(t *testing.T) {
	dir := folder(t, some())
	s, catalog := enable(t, skills.Dir(dir), nil, nil)
	c := mcptest.Client(t, s, with())
	held := get(t, c, pdf)
	before, err := held.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "pdf", "new.md"), "new")
	if err := catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	const added = "skill://pdf/new.md"
	shown := false
	for r, err := range skills.Directory(t.Context(), c, "skill://pdf") {
		if err != nil {
			t.Fatal(err)
		}
		shown = shown || r.URI == added
	}
	if !shown {
		t.Fatal("the directory does not have the new file")
	}
	got, err := skills.Read(t.Context(), c, held, added)
	if differs, ok := errors.AsType[*skills.VerifyError](err); !ok || got != nil || differs.Reason != skills.ReasonUnlisted {
		t.Errorf("with the held entry: %+v, %v", got, err)
	}
	if after, err := held.MarshalJSON(); err != nil || string(after) != string(before) || len(held.Files) != 4 {
		t.Errorf("the held entry is now %s, %v", after, err)
	}
	if got, err := skills.Read(t.Context(), c, get(t, c, pdf), added); err != nil || string(got.Data) != "new" {
		t.Errorf("with the new entry: %+v, %v", got, err)
	}
}
