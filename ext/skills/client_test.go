package skills_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// A hostile server answers with what a test says, and notes what was read.
type hostile struct {
	entries []string // of skills/list, as JSON
	files   map[string]string
	pages   func(cursor *string) (entries []string, next *string, err error)

	mu   sync.Mutex
	read []string
}

func (h *hostile) reads() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.read)
}

// server makes the server. It declares the extension in every revision, as some do.
func (h *hostile) server(_ testing.TB, o *server.Options) *server.Server {
	s := server.New("hostile", "1.0.0", o)
	for uri, text := range h.files {
		s.Add(server.Resource(uri, "x", func(context.Context) (string, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.read = append(h.read, uri)
			return text, nil
		}))
	}
	type cursor struct {
		Cursor *string `json:"cursor,omitzero"`
	}
	list := server.Method("skills/list", func(_ *server.Call, p cursor) (map[string]any, error) {
		entries, next, err := h.entries, (*string)(nil), error(nil)
		if h.pages != nil {
			entries, next, err = h.pages(p.Cursor)
		}
		r := map[string]any{"skills": mcp.RawValue("[" + strings.Join(entries, ",") + "]")}
		if next != nil {
			r["nextCursor"] = *next
		}
		return r, err
	})
	get := server.Method("skills/get", func(_ *server.Call, _ struct {
		URI string `json:"uri"`
	},
	) (map[string]any, error) {
		return map[string]any{"skill": mcp.RawValue(h.entries[0])}, nil
	})
	options := server.MethodOptions{Anyone: true, Revisions: server.AllRevisions}
	s.Extend(server.Extension{
		ID: skills.ID, Revisions: server.AllRevisions, Resources: true,
		Methods: []*server.ExtensionMethod{list.With(options), get.With(options)},
	})
	return s
}

func (h *hostile) connect(t *testing.T) *client.Client {
	t.Helper()
	return mcptest.Client(t, h.server(t, nil), with())
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// listedFile is a file of an entry.
func listedFile(uri, text string) string {
	return fmt.Sprintf(`{"uri":%q,"digest":%q,"size":%d}`, uri, digest(text), len(text))
}

const (
	pdf   = "skill://pdf/SKILL.md"
	forms = "skill://pdf/references/FORMS.md"
)

// pdfEntry is an entry of a skill whose SKILL.md is text.
func pdfEntry(text string) string {
	return `{"uri":"` + pdf + `","frontmatter":{"name":"pdf","description":"What pdf is for."},"resources":[` +
		listedFile(pdf, text) + "," + listedFile(forms, "forms") + `]}`
}

// one is the first entry that a server lists.
func one(t *testing.T, c *client.Client) *skills.Skill {
	t.Helper()
	for s, err := range skills.List(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Fatal("nothing is listed")
	return nil
}

// Whatever differs from the entry is an error with the first check that failed, and
// nothing of the file is returned: "hosts MUST NOT use the unverified content"; a
// frontmatter that differs "MUST be treated as a verification failure". In every era.
func TestVerify(t *testing.T) {
	good := doc("pdf")
	numbers := strings.Replace(good, "---\n#", "n: 1.0\nbig: 9007199254740993\n---\n#", 1)
	entryOf := func(text, frontmatter string) string {
		return strings.Replace(pdfEntry(text), `"What pdf is for."`, `"What pdf is for."`+frontmatter, 1)
	}
	for name, c := range map[string]struct {
		entry, text string
		reason      skills.Reason
		says        string
	}{
		"as it is":            {pdfEntry(good), good, "", ""},
		"changed, same size":  {pdfEntry(good), strings.Replace(good, "# pdf", "# PDF", 1), skills.ReasonDigest, "its digest is"},
		"longer":              {pdfEntry(good), good + "x", skills.ReasonSize, "bytes, not"},
		"empty":               {pdfEntry(good), "", skills.ReasonSize, "it has 0 bytes"},
		"numbers":             {entryOf(numbers, `,"n":1,"big":9007199254740993`), numbers, "", ""},
		"a rounded number":    {entryOf(numbers, `,"n":1,"big":9007199254740992`), numbers, skills.ReasonFrontmatter, `"big" is another value`},
		"another name":        {pdfEntry(strings.Replace(good, "name: pdf", "name: bad", 1)), strings.Replace(good, "name: pdf", "name: bad", 1), skills.ReasonFrontmatter, `"name" is another value`},
		"a field is missing":  {entryOf(good, `,"license":"MIT"`), good, skills.ReasonFrontmatter, `the file has no "license"`},
		"a field more":        {pdfEntry(numbers), numbers, skills.ReasonFrontmatter, `the entry has no "n"`},
		"no frontmatter":      {pdfEntry("# pdf"), "# pdf", skills.ReasonFrontmatter, "must begin with"},
		"a frontmatter of no": {pdfEntry("---\n- a\n---\n"), "---\n- a\n---\n", skills.ReasonFrontmatter, "no YAML mapping"},
	} {
		h := &hostile{entries: []string{c.entry}, files: map[string]string{pdf: c.text, forms: "forms"}}
		mcptest.EachEra(t, h.server, with(), func(t *testing.T, _ mcptest.Era, cl *client.Client) {
			s := one(t, cl)
			d, err := skills.Load(t.Context(), cl, s)
			if c.reason == "" {
				if err != nil || d.Text != c.text || !strings.HasPrefix(d.Body, "# pdf") || !d.Verified {
					t.Errorf("%s: %+v, %v", name, d, err)
				}
				return
			}
			differs, ok := errors.AsType[*skills.VerifyError](err)
			if !ok || d != nil || differs.Reason != c.reason || differs.URI != pdf || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %+v, %v; want %s, %q", name, d, err, c.reason, c.says)
			}
		}, mcptest.Over("mem", "streamable"))
	}
}

// "a host MUST resolve reads of the skill's files only to URIs listed in the held
// entry's resources": anything else fails before a request.
func TestUnlisted(t *testing.T) {
	good := doc("pdf")
	h := &hostile{entries: []string{pdfEntry(good)}, files: map[string]string{pdf: good, forms: "forms", "skill://pdf/new.md": "new", "skill://other/SKILL.md": doc("other")}}
	c := h.connect(t)
	s := one(t, c)
	for _, uri := range []string{"skill://pdf/new.md", "skill://other/SKILL.md", "skill://pdf/../other/SKILL.md", "skill://a/../b", "", "SKILL.md", "file:///etc/passwd", "skill://pdf/references/FORMS.md?"} {
		got, err := skills.Read(t.Context(), c, s, uri)
		if differs, ok := errors.AsType[*skills.VerifyError](err); !ok || got != nil || differs.Reason != skills.ReasonUnlisted || differs.URI != uri {
			t.Errorf("%q: %+v, %v", uri, got, err)
		}
	}
	if reads := h.reads(); len(reads) != 0 {
		t.Errorf("read: %v", reads)
	}
	if got, err := skills.Read(t.Context(), c, s, forms); err != nil || string(got.Data) != "forms" {
		t.Errorf("%+v, %v", got, err)
	}
}

// "Hosts MUST NOT retrieve a skill's files ahead of need": each read is of the file that
// was asked for, and of nothing else.
func TestNothingAhead(t *testing.T) {
	good := doc("pdf")
	h := &hostile{entries: []string{pdfEntry(good)}, files: map[string]string{pdf: good, forms: "forms"}}
	c := h.connect(t)
	s := get(t, c, pdf)
	one(t, c)
	if reads := h.reads(); len(reads) != 0 {
		t.Errorf("listing read %v", reads)
	}
	for range 2 { // nothing is kept that was not checked against this entry
		if _, err := skills.Load(t.Context(), c, s); err != nil {
			t.Fatal(err)
		}
	}
	if reads := h.reads(); !slices.Equal(reads, []string{pdf, pdf}) {
		t.Errorf("loading read %v", reads)
	}
}

// An entry that is not what the specification says "is invalid, and hosts MUST NOT load
// it"; others of the same list are not concerned.
func TestInvalidEntries(t *testing.T) {
	good := doc("pdf")
	change := func(old, new string) string { return strings.Replace(pdfEntry(good), old, new, 1) }
	resources := pdfEntry(good)[strings.Index(pdfEntry(good), `"resources"`):]
	many := make([]string, 0, 513)
	for i := range 512 {
		many = append(many, listedFile(fmt.Sprintf("skill://pdf/%d", i), ""))
	}
	many = append(many, listedFile(pdf, good))
	for says, entry := range map[string]string{
		"resources is missing":                change(","+resources, "}"),
		"neither an array nor \"dynamic\"":    change(resources, `"resources":"static"}`),
		"neither an array nor \"dynamic\" ":   change(resources, `"resources":{}}`),
		"neither an array nor \"dynamic\"  ":  change(resources, `"resources":null}`),
		"size is missing":                     change(`,"size":5}`, "}"),
		"/1/size":                             change(`"size":5}`, `"size":"5"}`),
		"expected integer":                    change(`"size":5}`, `"size":5.5}`),
		"is negative":                         change(`"size":5}`, `"size":-5}`),
		"is not sha256:":                      change(digest("forms"), "sha256:"+strings.ToUpper(digest("forms")[7:])),
		"is not sha256: ":                     change(digest("forms"), "md5:00"),
		"is not below skill://pdf":            change(forms, "skill://other/FORMS.md"),
		"is not below skill://pdf ":           change(forms, "skill://pdf/../other/FORMS.md"),
		"is there twice":                      change(forms, pdf),
		"do not have its SKILL.md":            change(`{"uri":"`+pdf+`","digest"`, `{"uri":"`+pdf+`x","digest"`),
		"its name is \"pdf\", but its folder": strings.ReplaceAll(pdfEntry(good), "skill://pdf/", "skill://word/"),
		"has characters other than":           change(`"name":"pdf"`, `"name":"PDF"`),
		"it has no name":                      change(`"name":"pdf"`, `"name":7`),
		"it has no description":               change(`"description":"What pdf is for."`, `"x":1`),
		"frontmatter":                         change(`{"name":"pdf","description":"What pdf is for."}`, `"text"`),
		"does not end with NAME/SKILL.md":     change(`"uri":"`+pdf+`"`, `"uri":"skill://pdf"`),
		"has a segment \"..\"":                change(`"uri":"`+pdf+`"`, `"uri":"skill://a/../pdf/SKILL.md"`),
		"has more than 512 files":             change(resources, `"resources":[`+strings.Join(many, ",")+`]}`),
		"has more than 16777216 bytes":        change(`"size":5}`, `"size":16777216}`),
		"has more than 16777216 bytes ":       change(`"size":5}`, `"size":9223372036854775807}`),
		"/uri":                                `{"uri":7}`,
	} {
		h := &hostile{entries: []string{entry, pdfEntry(good)}, files: map[string]string{pdf: good, forms: "forms"}}
		c := h.connect(t)
		var all []*skills.Skill
		for s, err := range skills.List(t.Context(), c) {
			if err != nil {
				t.Errorf("%s: %v", says, err)
			}
			all = append(all, s)
		}
		if len(all) != 2 || all[1].Check() != nil {
			t.Errorf("%s: listed %d", says, len(all))
			continue
		}
		d, err := skills.Load(t.Context(), c, all[0])
		_, invalid := errors.AsType[*skills.EntryError](err)
		_, large := errors.AsType[*skills.LimitError](err)
		if d != nil || !invalid && !large || !strings.Contains(err.Error(), strings.TrimSpace(says)) || all[0].Check() == nil {
			t.Errorf("%s: %v", says, err)
		}
		if _, err := skills.Get(t.Context(), c, pdf); err == nil {
			t.Errorf("%s: skills/get gave it", says)
		}
		if reads := h.reads(); len(reads) != 0 {
			t.Errorf("%s: read %v", says, reads)
		}
	}
	if err := new(skills.Skill).Check(); err == nil {
		t.Error("an empty entry")
	}
}

// The largest skills that the specification allows are loaded: "Hosts MUST support skills
// up to and including these limits".
func TestLargest(t *testing.T) {
	main := doc("large")
	texts := map[string]string{"large/SKILL.md": main, "large/blob": strings.Repeat("\xff", 16<<20-len(main))}
	for i := range 510 {
		texts[fmt.Sprintf("large/%d", i)] = ""
	}
	c := connect(t, skills.FS(files(texts)), nil)
	s := get(t, c, "skill://large/SKILL.md")
	got, err := skills.Read(t.Context(), c, s, "skill://large/blob")
	if err != nil || len(got.Data) != 16<<20-len(main) || len(s.Files) != 512 {
		t.Error(err)
	}
}

// An entry goes through JSON as it was sent, so that it can be held beyond a process.
func TestHeldEntry(t *testing.T) {
	good := doc("pdf")
	sent := strings.Replace(pdfEntry(good), `"resources"`, `"_meta":{"com.example/x":1},"later":true,"resources"`, 1)
	h := &hostile{entries: []string{sent}, files: map[string]string{pdf: good}}
	c := h.connect(t)
	kept, err := one(t, c).MarshalJSON()
	if err != nil || string(kept) != sent {
		t.Fatalf("%s, %v", kept, err)
	}
	var again skills.Skill
	if err := again.UnmarshalJSON(kept); err != nil || string(again.Meta["com.example/x"]) != "1" {
		t.Fatalf("%+v, %v", again, err)
	}
	if _, err := skills.Load(t.Context(), c, &again); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "7", "[]", `{"uri":"a","uri":"b"}`} {
		if err := new(skills.Skill).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%q is an entry", bad)
		}
	}
}

// "A client resolves a relative reference against the skill's root."
func TestResolve(t *testing.T) {
	s := &skills.Skill{URI: "skill://acme/refunds/SKILL.md"}
	for ref, want := range map[string]string{
		"references/GUIDE.md":   "skill://acme/refunds/references/GUIDE.md",
		"./a/./b":               "skill://acme/refunds/a/b",
		"a/../b":                "skill://acme/refunds/b",
		"a b#.txt":              "skill://acme/refunds/a%20b%23.txt",
		"a%20b":                 "skill://acme/refunds/a%20b",
		"templates/":            "skill://acme/refunds/templates",
		"SKILL.md":              "skill://acme/refunds/SKILL.md",
		"../other/SKILL.md":     "",
		"a/../../other":         "",
		"/etc/passwd":           "",
		"skill://other/x":       "",
		"https://example.com/x": "",
		"":                      "",
		".":                     "",
		"%2e%2e/x":              "",
		"a%2f..%2f..%2fb":       "",
		"a\\..\\b":              "",
		"a\x00":                 "",
	} {
		got, err := s.Resolve(ref)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", ref, got, err, want)
		}
	}
	// Servers may leave characters as they are, or escape all.
	s.Files = []skills.File{
		{URI: "skill://acme/refunds/a(1),b.md"},
		{URI: "skill://acme/refunds/r%c3%a9sum%c3%a9.md"},
		{URI: "skill://acme/refunds/%41.md"},
		{URI: "skill://acme/refunds/A.md"},
		{URI: "skill://acme/refunds/x/%2e%2e/y"},
	}
	for ref, want := range map[string]string{
		"a(1),b.md":       "skill://acme/refunds/a(1),b.md",
		"a%281%29%2Cb.md": "skill://acme/refunds/a(1),b.md",
		"résumé.md":       "skill://acme/refunds/r%c3%a9sum%c3%a9.md",
		"A.md":            "skill://acme/refunds/A.md",
		"y":               "skill://acme/refunds/y",
	} {
		if got, err := s.Resolve(ref); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", ref, got, err, want)
		}
	}
	if _, err := (&skills.Skill{URI: "skill://a/../b/SKILL.md"}).Resolve("x"); err == nil {
		t.Error("an invalid entry")
	}
}

// Lists that never end, go round or go stale.
func TestPagesOfStrangers(t *testing.T) {
	racetest.SkipSerial(t)
	entry := func(i int) string { return strings.ReplaceAll(pdfEntry(doc("pdf")), "pdf", fmt.Sprintf("s%d", i)) }
	count := func(pages func(cursor *string) ([]string, *string, error)) (n int, last error) {
		for _, err := range skills.List(t.Context(), (&hostile{pages: pages}).connect(t)) {
			if last = err; err == nil {
				n++
			}
		}
		return n, last
	}
	if n, err := count(func(*string) ([]string, *string, error) { return []string{entry(1)}, new("again"), nil }); n != 1 || err != nil {
		t.Errorf("in circles: %d, %v", n, err)
	}
	calls := 0
	n, err := count(func(cursor *string) ([]string, *string, error) {
		calls++
		switch {
		case cursor == nil:
			return []string{entry(1)}, new("a"), nil
		case calls < 4:
			return nil, nil, mcp.NewError(mcp.CodeInvalidParams, "stale")
		}
		return []string{entry(2)}, nil, nil
	})
	if n != 2 || err != nil {
		t.Errorf("stale once: %d, %v", n, err)
	}
	n, err = count(func(cursor *string) ([]string, *string, error) {
		if cursor == nil {
			return []string{entry(1)}, new("a"), nil
		}
		return nil, nil, mcp.NewError(mcp.CodeInvalidParams, "stale")
	})
	if n != 1 || err != nil {
		t.Errorf("always stale: %d, %v", n, err)
	}
	// What a client would have to keep is bounded too: entries, and cursors.
	large := strings.Repeat("x", 3<<20)
	for name, pages := range map[string]func(n int) ([]string, *string, error){
		"large entries": func(n int) ([]string, *string, error) {
			return []string{fmt.Sprintf(`{"uri":"skill://s%d/SKILL.md","x":"`, n) + large + `"}`}, new(fmt.Sprint(n)), nil
		},
		"large cursors": func(n int) ([]string, *string, error) { return nil, new(fmt.Sprint(n, large)), nil },
		"one entry for ever": func(n int) ([]string, *string, error) {
			return slices.Repeat([]string{`{"uri":"a"}`}, 30_000), new(fmt.Sprint(n)), nil
		},
	} {
		asked := 0
		_, err := count(func(*string) ([]string, *string, error) { asked++; return pages(asked) })
		if !errors.Is(err, client.ErrPages) || asked > 100 {
			t.Errorf("%s: asked for %d pages, %v", name, asked, err)
		}
	}
	if n, err := count(func(*string) ([]string, *string, error) { return []string{"null"}, nil, nil }); n != 0 || !errors.Is(err, client.ErrMalformed) {
		t.Errorf("null: %d, %v", n, err)
	}
}

// A page that has no list is no empty list.
func TestPageWithoutList(t *testing.T) {
	for _, result := range []string{`{}`, `{"skills":null,"resources":null}`, `{"skills":{},"resources":{}}`, `{"Skills":[],"Resources":[]}`} {
		s := server.New("hostile", "1.0.0", nil)
		answer := func(*server.Call, mcp.RawValue) (mcp.RawValue, error) { return mcp.RawValue(result), nil }
		options := server.MethodOptions{Anyone: true}
		s.Extend(server.Extension{ID: skills.ID, Settings: map[string]bool{"directoryRead": true}, Methods: []*server.ExtensionMethod{
			server.Method("skills/list", answer).With(options), server.Method("resources/directory/read", answer).With(options),
		}})
		c := mcptest.Client(t, s, with())
		asked := 0
		for _, err := range skills.List(t.Context(), c) {
			if asked++; !errors.Is(err, client.ErrMalformed) {
				t.Errorf("%s: %v", result, err)
			}
		}
		for _, err := range skills.Directory(t.Context(), c, "skill://pdf") {
			if asked++; !errors.Is(err, client.ErrMalformed) {
				t.Errorf("%s: %v", result, err)
			}
		}
		if asked != 2 {
			t.Errorf("%s: an empty list", result)
		}
	}
}

// A server that does not offer skills is not asked.
func TestWithoutSkills(t *testing.T) {
	s := server.New("plain", "1.0.0", nil)
	c := mcptest.Client(t, s, with())
	_, err := skills.Get(t.Context(), c, pdf)
	if _, ok := errors.AsType[*client.NoExtensionError](err); !ok {
		t.Error(err)
	}
	for _, err := range skills.List(t.Context(), c) {
		if !errors.Is(err, client.ErrNotCapable) {
			t.Error(err)
		}
	}
	for _, uri := range []string{"", "skill://a/../b", "skill://a/../b/SKILL.md", "a/SKILL.md"} {
		if _, err := skills.Get(t.Context(), c, uri); err == nil || errors.Is(err, client.ErrNotCapable) {
			t.Errorf("%q: %v", uri, err)
		}
	}
}
