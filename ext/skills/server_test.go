package skills_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// In every era and over every transport: a server that "declares this extension MUST
// implement skills/list and skills/get" and "MUST also declare the resources capability";
// in revisions with a handshake it does not declare it, and files are ordinary resources.
func TestServerEras(t *testing.T) {
	build := func(tb testing.TB, o *server.Options) *server.Server {
		s, _ := enable(tb, skills.FS(some()), nil, o)
		return s
	}
	mcptest.EachEra(t, build, with(), func(t *testing.T, era mcptest.Era, c *client.Client) {
		r, err := c.ReadResource(t.Context(), "skill://pdf/references/FORMS.md", nil)
		if err != nil || len(r.Contents) != 1 || r.Contents[0].Text != "forms" || r.Contents[0].MIMEType != "text/markdown" {
			t.Errorf("%+v, %v", r, err)
		}
		if c.Capabilities().Resources == nil {
			t.Error("resources are not declared")
		}
		if !era.Stateless {
			_, err := skills.Get(t.Context(), c, "skill://pdf/SKILL.md")
			if _, ok := errors.AsType[*client.NoExtensionError](err); !ok || c.Capabilities().Extensions[skills.ID] != nil {
				t.Errorf("with a handshake: %v, %s", err, c.Capabilities().Extensions)
			}
			return
		}
		if got := string(c.Capabilities().Extensions[skills.ID]); got != `{"directoryRead":true}` {
			t.Errorf("settings: %s", got)
		}
		all := listed(t, c)
		if len(all) != 3 {
			t.Errorf("listed: %v", all)
		}
		for uri, s := range all {
			d, err := skills.Load(t.Context(), c, s)
			if err != nil || !d.Verified || d.URI != uri {
				t.Errorf("%s: %+v, %v", uri, d, err)
			}
			for _, f := range s.Files {
				if _, err := skills.Read(t.Context(), c, s, f.URI); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// A server may offer skills in every revision, over every transport.
func TestAllRevisions(t *testing.T) {
	build := func(tb testing.TB, o *server.Options) *server.Server {
		s, _ := enable(tb, skills.FS(some()), &skills.Options{Logger: quiet, Revisions: server.AllRevisions}, o)
		return s
	}
	mcptest.EachEra(t, build, with(), func(t *testing.T, era mcptest.Era, c *client.Client) {
		for uri, s := range listed(t, c) {
			if d, err := skills.Load(t.Context(), c, s); err != nil || d.URI != uri {
				t.Errorf("%+v, %v", d, err)
			}
		}
		got, err := raw(t.Context(), c, "skills/get", map[string]string{"uri": "skill://pdf/SKILL.md"})
		if err != nil || strings.Contains(got, `"ttlMs"`) != era.Stateless || strings.Contains(got, `"resultType"`) != era.Stateless {
			t.Errorf("%s, %v", got, err)
		}
		n := 0
		for _, err := range skills.Directory(t.Context(), c, "skill://pdf") {
			if n++; err != nil {
				t.Error(err)
			}
		}
		if n != 3 {
			t.Errorf("%d in the directory", n)
		}
	})
}

// The bytes that a digest is of are those that are read: byte order mark, CR LF and what
// is not UTF-8 as they are. "When resources is an array, it MUST be complete", nested
// skills included, "each exactly once".
func TestEntry(t *testing.T) {
	fsys := some()
	c := connect(t, skills.FS(fsys), nil)
	for uri, names := range map[string][]string{
		"skill://pdf/SKILL.md":                        {"SKILL.md", "assets/logo.bin", "references/FORMS.md", "references/a b#.txt"},
		"skill://acme/billing/refunds/SKILL.md":       {"SKILL.md", "parts/SKILL.md", "parts/more.json"},
		"skill://acme/billing/refunds/parts/SKILL.md": {"SKILL.md", "more.json"},
	} {
		s := get(t, c, uri)
		dir := strings.TrimSuffix(strings.TrimPrefix(uri, "skill://"), "SKILL.md")
		if len(s.Files) != len(names) {
			t.Errorf("%s: %+v", uri, s.Files)
		}
		for _, name := range names {
			want := fsys[dir+name].Data
			sum := sha256.Sum256(want)
			own, err := s.Resolve(name)
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(s.Files, func(f skills.File) bool { return f.URI == own }); i < 0 ||
				s.Files[i].Digest != "sha256:"+hex.EncodeToString(sum[:]) || s.Files[i].Size != int64(len(want)) {
				t.Errorf("%s: %s is not there, or wrong: %+v", uri, own, s.Files)
			}
			got, err := skills.Read(t.Context(), c, s, own)
			if err != nil || string(got.Data) != string(want) || !got.Verified {
				t.Errorf("%s: %+v, %v", own, got, err)
			}
		}
	}
	refunds := get(t, c, "skill://acme/billing/refunds/SKILL.md")
	if got := string(refunds.Frontmatter); got != `{"name":"refunds","description":"Refunds.","since":"2026-07-28","metadata":{"version":1.0}}` {
		t.Errorf("frontmatter: %s", got)
	}
	r, err := c.ReadResource(t.Context(), "skill://pdf/assets/logo.bin", nil)
	if err != nil || string(r.Contents[0].Blob) != "\x00\xff\xfe" || r.Contents[0].Text != "" {
		t.Errorf("what is not UTF-8: %+v, %v", r, err)
	}
}

// Results have ttlMs, cacheScope and resultType; skills/get has no cursor, and no
// request has a header that names a skill.
func TestResults(t *testing.T) {
	o := &skills.Options{Logger: quiet, Cache: server.Cache{TTL: time.Minute, Public: true}}
	c := connect(t, skills.FS(some()), o)
	for method, params := range map[string]any{
		"skills/list":              nil,
		"skills/get":               map[string]string{"uri": "skill://pdf/SKILL.md"},
		"resources/directory/read": map[string]string{"uri": "skill://pdf"},
	} {
		got, err := raw(t.Context(), c, method, params)
		for _, want := range []string{`"resultType":"complete"`, `"ttlMs":60000`, `"cacheScope":"public"`} {
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: %s, %v; want %s", method, got, err, want)
			}
		}
		if strings.Contains(got, "nextCursor") {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// SEP-2640, Resource Metadata: type, name and description of each SKILL.md.
func TestListedResources(t *testing.T) {
	c := connect(t, skills.FS(some()), nil)
	got := make(map[string]mcp.Resource)
	for r, err := range c.Resources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got[r.URI] = *r
	}
	r := got["skill://acme/billing/refunds/SKILL.md"]
	if len(got) != 7 || r.Name != "refunds" || r.Description != "Refunds." || r.MIMEType != "text/markdown" {
		t.Errorf("%d: %+v", len(got), r)
	}
	if r := got["skill://pdf/references/a%20b%23.txt"]; r.Name != "a b#.txt" || r.MIMEType != "text/plain" || *r.Size != 3 {
		t.Errorf("%+v", r)
	}
}

// Unknown skills, files and directories are -32602, with a text that says what to do;
// so is whatever only looks like the URI of one that exists.
func TestUnknown(t *testing.T) {
	c := connect(t, skills.FS(some()), nil)
	for method, uris := range map[string][]string{
		"skills/get": {
			"", "skill://pdf", "skill://pdf/references/FORMS.md", "skill://nothing/SKILL.md", "skill://pdf/references/../SKILL.md",
			"skill://PDF/SKILL.md", "skill://pdf/%53KILL.md", "skill://pdf//SKILL.md", "skill://" + strings.Repeat("x", 10_000) + "/SKILL.md",
		},
		"resources/directory/read": {"", "skill://", "skill://pdf/", "skill://pdf/SKILL.md", "skill://nothing", "skill://pdf/references/..", "skill://acme/../pdf"},
		"resources/read":           {"skill://a/../b", "skill://pdf/../pdf/SKILL.md", "skill://pdf/.secret", "skill://pdf", "skill://README.md", "skill://pdf/references/FORMS.md?x"},
	} {
		for _, uri := range uris {
			var got mcp.RawValue
			err := c.Request(t.Context(), method, map[string]string{"uri": uri}, &got, nil)
			if code(err) != mcp.CodeInvalidParams {
				t.Errorf("%s %q: %s, %v", method, uri, got, err)
			}
		}
	}
	_, err := raw(t.Context(), c, "resources/directory/read", map[string]string{"uri": "skill://pdf/SKILL.md"})
	if err == nil || !strings.Contains(err.Error(), "is a file, not a directory; read it with resources/read") {
		t.Error(err)
	}
	if _, err := raw(t.Context(), c, "skills/get", map[string]int{"uri": 1}); code(err) != mcp.CodeInvalidParams {
		t.Error(err)
	}
}

// "The result contains every direct child of the directory", also of those that lead to
// a skill; "An empty directory yields an empty resources array."
func TestDirectory(t *testing.T) {
	fsys := some()
	fsys["pdf/empty"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	c := connect(t, skills.FS(fsys), nil)
	for uri, want := range map[string]string{
		"skill://pdf":                  "SKILL.md text/markdown pdf, assets inode/directory assets, empty inode/directory empty, references inode/directory references",
		"skill://pdf/references":       "FORMS.md text/markdown FORMS.md, a%20b%23.txt text/plain a b#.txt",
		"skill://pdf/empty":            "",
		"skill://acme":                 "billing inode/directory billing",
		"skill://acme/billing":         "refunds inode/directory refunds",
		"skill://acme/billing/refunds": "SKILL.md text/markdown refunds, parts inode/directory parts",
	} {
		var got []string
		for r, err := range skills.Directory(t.Context(), c, uri) {
			if err != nil {
				t.Fatal(uri, err)
			}
			got = append(got, strings.TrimPrefix(r.URI, uri+"/")+" "+r.MIMEType+" "+r.Name)
		}
		if list := strings.Join(got, ", "); list != want {
			t.Errorf("%s: got %s, want %s", uri, list, want)
		}
	}
	if got, err := raw(t.Context(), c, "resources/directory/read", map[string]string{"uri": "skill://pdf/empty"}); err != nil || !strings.Contains(got, `"resources":[]`) {
		t.Errorf("%s, %v", got, err)
	}
	without := connect(t, skills.FS(some()), &skills.Options{Logger: quiet, NoDirectories: true})
	if got := string(without.Capabilities().Extensions[skills.ID]); got != "{}" {
		t.Errorf("settings: %s", got)
	}
	if _, err := raw(t.Context(), without, "resources/directory/read", map[string]string{"uri": "skill://pdf"}); code(err) != mcp.CodeMethodNotFound {
		t.Error(err)
	}
	for _, err := range skills.Directory(t.Context(), without, "skill://pdf") {
		if !errors.Is(err, skills.ErrNoDirectories) {
			t.Errorf("a request to a server that did not declare it: %v", err)
		}
	}
}

// Pages have sealed cursors, a bounded number of entries and of bytes, and no part of
// an entry.
func TestPages(t *testing.T) {
	racetest.SkipSerial(t)
	fsys := make(map[string]string)
	for i := range 9 {
		fsys[fmt.Sprintf("s%d/SKILL.md", i)] = doc(fmt.Sprintf("s%d", i))
	}
	for i := range 511 { // long names, so that three of these entries are too long for a page
		for _, s := range []string{"s0", "s1", "s2"} {
			fsys[fmt.Sprintf("%s/%s/%d", s, strings.Repeat("x", 900), i)] = "x"
		}
	}
	s, _ := enable(t, skills.FS(files(fsys)), nil, &server.Options{Limits: server.Limits{PageSize: 4}})
	c := mcptest.Client(t, s, with())
	if all := listed(t, c); len(all) != 9 || len(all["skill://s1/SKILL.md"].Files) != 512 {
		t.Errorf("%d skills", len(all))
	}
	type page struct {
		Skills []skills.Skill `json:"skills"`
		mcp.Page
	}
	var sizes []int
	var cursor *string
	for {
		p, err := client.CallMethod[page](t.Context(), c, "skills/list", map[string]*string{"cursor": cursor})
		if err != nil {
			t.Fatal(err)
		}
		if sizes = append(sizes, len(p.Skills)); p.NextCursor == nil {
			break
		}
		cursor = p.NextCursor
	}
	if !slices.Equal(sizes, []int{2, 4, 3}) {
		t.Errorf("pages of %v", sizes)
	}
	for _, cursor := range []string{"", "x", *cursor + "x"} {
		if _, err := raw(t.Context(), c, "skills/list", map[string]string{"cursor": cursor}); code(err) != mcp.CodeInvalidParams {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
	if n := len(slices.Collect(func(yield func(string) bool) {
		for r, err := range skills.Directory(t.Context(), c, "skill://s0/"+strings.Repeat("x", 900)) {
			if err != nil || !yield(r.URI) {
				t.Error(err)
				return
			}
		}
	})); n != 511 {
		t.Errorf("%d files in a directory", n)
	}
}

// A server without any skill declares the extension and resources, and lists none.
func TestEmpty(t *testing.T) {
	log := new(logtest.Log)
	c := connect(t, skills.FS(files(nil)), &skills.Options{Logger: log.Logger()})
	if all := listed(t, c); len(all) != 0 || c.Capabilities().Resources == nil {
		t.Errorf("%v, %+v", all, c.Capabilities())
	}
	if got, err := raw(t.Context(), c, "skills/list", nil); err != nil || !strings.Contains(got, `"skills":[]`) {
		t.Errorf("%s, %v", got, err)
	}
}

// What cannot be served is an error that names the place and says what to do, and
// nothing is served then.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		says  []string
	}{
		"name unlike its folder": {map[string]string{"other/SKILL.md": doc("mine")}, []string{"skill other:", `the name "mine" is not that of its folder, "other"; rename one of them`}},
		"bad name":               {map[string]string{"Bad_Name/SKILL.md": doc("Bad_Name")}, []string{`"Bad_Name" has characters other than a to z`}},
		"hyphens":                {map[string]string{"a--b/SKILL.md": doc("a--b")}, []string{"has two in a row"}},
		"long name":              {map[string]string{strings.Repeat("a", 65) + "/SKILL.md": doc(strings.Repeat("a", 65))}, []string{"longer than 64"}},
		"no name":                {map[string]string{"a/SKILL.md": "---\ndescription: b\n---\n"}, []string{"skill a:", "it has no name"}},
		"name that is no text":   {map[string]string{"1/SKILL.md": "---\nname: 1\ndescription: b\n---\n"}, []string{"it has no name"}},
		"no description":         {map[string]string{"a/SKILL.md": "---\nname: a\n---\n"}, []string{"it has no description; say"}},
		"long description":       {map[string]string{"a/SKILL.md": "---\nname: a\ndescription: " + strings.Repeat("é", 1025) + "\n---\n"}, []string{"1025 characters"}},
		"no frontmatter":         {map[string]string{"a/SKILL.md": "# A"}, []string{`must begin with a line "---"`}},
		"duplicate keys":         {map[string]string{"a/SKILL.md": "---\nname: a\nname: a\ndescription: b\n---\n"}, []string{"line 3", "is there twice"}},
		"at the top":             {map[string]string{"SKILL.md": doc("a")}, []string{"put it in a folder"}},
		"several":                {map[string]string{"a/SKILL.md": "x", "b/SKILL.md": "y"}, []string{"skill a:", "skill b:"}},
		"a misleading file":      {map[string]string{"a/SKILL.md": doc("a"), "a/x\u202etxt": ""}, []string{"not shown; rename it", `"x\u202etxt"`}},
		"a file for terminals":   {map[string]string{"a/SKILL.md": doc("a"), "a/\x1b[2J": ""}, []string{`"\x1b[2J"`}},
		"a folder for terminals": {map[string]string{"\x1b[2J/SKILL.md": doc("a")}, []string{`skill "\x1b[2J"`}},
	} {
		s := server.New("skills", "1.0.0", nil)
		_, err := skills.Enable(s, skills.FS(files(c.files)), nil)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", name, err, want)
			}
		}
		if got := mcptest.Client(t, s).Capabilities(); got.Resources != nil || got.Extensions != nil {
			t.Errorf("%s: something is served: %+v", name, got)
		}
	}
}

// "Servers SHOULD NOT serve a skill that exceeds either limit": 512 files and 16 MiB are
// served, one more is an error with the name of the option.
func TestLimits(t *testing.T) {
	many := func(n int) map[string]string {
		all := map[string]string{"a/SKILL.md": doc("a")}
		for i := range n - 1 {
			all[fmt.Sprintf("a/%d", i)] = ""
		}
		return all
	}
	main := doc("a")
	large := func(n int) map[string]string {
		return map[string]string{"a/SKILL.md": main, "a/b": strings.Repeat("x", n-len(main))}
	}
	load := func(f map[string]string, o *skills.Options) error {
		_, err := skills.Enable(server.New("skills", "1.0.0", nil), skills.FS(files(f)), o)
		return err
	}
	for name, err := range map[string]error{
		"512 files": load(many(512), nil), "16 MiB": load(large(16<<20), nil),
		"513 files, as told":       load(many(513), &skills.Options{MaxFiles: -1}),
		"more than 16 MiB as told": load(large(16<<20+1), &skills.Options{MaxBytes: 32 << 20}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for option, err := range map[string]error{
		"Options.MaxFiles":  load(many(513), nil),
		"Options.MaxBytes":  load(large(16<<20+1), nil),
		"Options.MaxMemory": load(large(1000), &skills.Options{MaxMemory: 999}),
	} {
		limit, ok := errors.AsType[*skills.LimitError](err)
		if !ok || limit.Option != option || !strings.Contains(err.Error(), option) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// A file that changes after it was digested is read as it was, until the catalog is
// loaded again; then all changes at once, and clients that watch are told.
func TestReload(t *testing.T) {
	dir := folder(t, some())
	s, catalog := enable(t, skills.Dir(dir), nil, nil)
	told := make(chan struct{}, 1)
	o := with()
	o.OnResourcesChanged = func(context.Context) {
		select {
		case told <- struct{}{}:
		default:
		}
	}
	c := mcptest.Client(t, s, o)
	old := get(t, c, "skill://pdf/SKILL.md")
	forms := "skill://pdf/references/FORMS.md"
	write(t, filepath.Join(dir, "pdf", "references", "FORMS.md"), "other")
	if got, err := skills.Read(t.Context(), c, old, forms); err != nil || string(got.Data) != "forms" {
		t.Errorf("after the change: %+v, %v", got, err)
	}

	write(t, filepath.Join(dir, "pdf", "SKILL.md"), "broken")
	if err := catalog.Reload(t.Context()); err == nil {
		t.Error("a broken skill was loaded")
	}
	if _, err := skills.Load(t.Context(), c, old); err != nil {
		t.Errorf("after a failed reload: %v", err)
	}

	write(t, filepath.Join(dir, "pdf", "SKILL.md"), doc("pdf"))
	if err := os.Remove(filepath.Join(dir, "pdf", "assets", "logo.bin")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "pdf", "new.md"), "new")
	if err := catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-told
	_, err := skills.Read(t.Context(), c, old, forms)
	if differs, ok := errors.AsType[*skills.VerifyError](err); !ok || differs.Reason != skills.ReasonDigest {
		t.Errorf("with the old entry: %v", err)
	}
	if _, err := skills.Read(t.Context(), c, old, "skill://pdf/assets/logo.bin"); code(err) != mcp.CodeInvalidParams {
		t.Errorf("what is gone: %v", err)
	}
	now := get(t, c, "skill://pdf/SKILL.md")
	for _, f := range now.Files {
		if _, err := skills.Read(t.Context(), c, now, f.URI); err != nil {
			t.Error(err)
		}
	}
	if len(now.Files) != 4 {
		t.Errorf("%+v", now.Files)
	}
	// An empty directory is in no entry: another one is a change all the same.
	for _, name := range []string{"one", "two"} {
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, "pdf", "one")), os.Mkdir(filepath.Join(dir, "pdf", name), 0o755), catalog.Reload(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got, err := raw(t.Context(), c, "resources/directory/read", map[string]string{"uri": "skill://pdf"}); err != nil || !strings.Contains(got, "skill://pdf/"+name) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if err := catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// While the catalog is loaded again, a client gets what its entry says, or an error, and
// never other bytes; and each entry is of one state.
func TestReloadWhileReading(t *testing.T) {
	const states = 40
	state := func(n int) map[string]string {
		return map[string]string{"a/SKILL.md": doc("a") + strings.Repeat("x", n), "a/b": strings.Repeat("y", n), fmt.Sprintf("a/only%d", n): ""}
	}
	now := files(state(0))
	source := skills.SourceFunc(func(ctx context.Context, add func(skills.Bundle)) error { return skills.FS(now).Skills(ctx, add) })
	s, catalog := enable(t, source, nil, nil)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		c := mcptest.Client(t, s, with())
		readers.Go(func() {
			for {
				e, err := skills.Get(t.Context(), c, "skill://a/SKILL.md")
				if err != nil || len(e.Files) != 3 {
					t.Errorf("%+v, %v", e, err)
					return
				}
				for _, f := range e.Files {
					got, err := skills.Read(t.Context(), c, e, f.URI)
					_, differs := errors.AsType[*skills.VerifyError](err)
					if err == nil && int64(len(got.Data)) != f.Size || err != nil && !differs && code(err) != mcp.CodeInvalidParams {
						t.Errorf("%+v, %v", f, err)
					}
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for n := range states {
		now = files(state(n + 1))
		if err := catalog.Reload(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
	c := mcptest.Client(t, s, with())
	last := get(t, c, "skill://a/SKILL.md")
	for _, f := range last.Files {
		if _, err := skills.Read(t.Context(), c, last, f.URI); err != nil {
			t.Error(err)
		}
	}
}

// A generated skill: its content differs with each read, its frontmatter does not.
func TestDynamic(t *testing.T) {
	reports := &changing{MapFS: files(map[string]string{"SKILL.md": doc("daily"), "data/today.txt": "one"})}
	source := skills.SourceFunc(func(_ context.Context, add func(skills.Bundle)) error {
		add(skills.Bundle{Path: "reports/daily", Files: reports, Dynamic: true})
		return nil
	})
	c := connect(t, skills.Join(skills.FS(some()), source), nil)
	uri := "skill://reports/daily/SKILL.md"
	s := get(t, c, uri)
	if !s.Dynamic || s.Files != nil || len(listed(t, c)) != 4 {
		t.Errorf("%+v", s)
	}
	if got, err := raw(t.Context(), c, "skills/get", map[string]string{"uri": uri}); err != nil || !strings.Contains(got, `"resources":"dynamic"`) {
		t.Errorf("%s, %v", got, err)
	}
	for _, want := range []string{"one", "two"} {
		reports.MapFS["data/today.txt"].Data = []byte(want)
		got, err := skills.Read(t.Context(), c, s, "skill://reports/daily/data/today.txt")
		if err != nil || string(got.Data) != want || got.Verified {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if d, err := skills.Load(t.Context(), c, s); err != nil || d.Verified {
		t.Errorf("%+v, %v", d, err)
	}
	reports.MapFS["SKILL.md"].Data = []byte(doc("other"))
	if _, err := skills.Load(t.Context(), c, s); code(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "must load its skills again") {
		t.Errorf("another frontmatter: %v", err)
	}
	var outside *skills.VerifyError
	if _, err := skills.Read(t.Context(), c, s, "skill://pdf/SKILL.md"); !errors.As(err, &outside) || outside.Reason != skills.ReasonUnlisted {
		t.Errorf("a file of another skill: %v", err)
	}
}

// changing is a file system whose files change between reads, not during them.
type changing struct{ fstest.MapFS }

// A source that fails, or gives the same twice, leaves the catalog as it is.
func TestSources(t *testing.T) {
	broken := errors.New("the database is away")
	failing := skills.SourceFunc(func(context.Context, func(skills.Bundle)) error { return broken })
	for says, source := range map[string]skills.Source{
		"the database is away":                skills.Join(skills.FS(some()), failing),
		"two sources have a skill":            skills.Join(skills.FS(some()), skills.FS(some())),
		"the source is nil":                   nil,
		"source 1 of Join is nil":             skills.Join(skills.FS(some()), nil),
		"which does not have all its files: ": skills.Join(skills.FS(some()), skills.FS(files(map[string]string{"pdf/inner/SKILL.md": doc("inner")}))),
		"which does not have all its files:":  bundles(skills.Bundle{Path: "a", Files: files(map[string]string{"SKILL.md": doc("a")})}, skills.Bundle{Path: "a/x/b", Files: files(map[string]string{"SKILL.md": doc("b")}), Dynamic: true}),
		"its file system is nil":              bundles(skills.Bundle{Path: "a"}),
		"the path is not one":                 bundles(skills.Bundle{Path: "../a", Files: some()}),
		"it has no SKILL.md":                  bundles(skills.Bundle{Path: "a", Files: files(nil)}),
		"two sources have it; load them ":     bundles(skills.Bundle{Path: "a", Files: files(map[string]string{"SKILL.md": doc("a"), "b/SKILL.md": doc("b")})}, skills.Bundle{Path: "a/b", Files: files(map[string]string{"SKILL.md": doc("b") + "x"})}),
	} {
		_, err := skills.Enable(server.New("skills", "1.0.0", nil), source, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
	if _, err := skills.Enable(server.New("skills", "1.0.0", nil), skills.Dir(filepath.Join(t.TempDir(), "none")), nil); err == nil {
		t.Error("a folder that does not exist")
	}
	for _, prefix := range []string{"skill", "skill://a", "skill:///", "/", "skill://a/../", "skill://a?b/"} {
		if _, err := skills.Enable(server.New("skills", "1.0.0", nil), skills.FS(some()), &skills.Options{Prefix: prefix}); err == nil {
			t.Errorf("prefix %q", prefix)
		}
	}
	c := connect(t, skills.FS(some()), &skills.Options{Logger: quiet, Prefix: "github://owner/repo/"})
	if _, err := skills.Load(t.Context(), c, get(t, c, "github://owner/repo/pdf/SKILL.md")); err != nil {
		t.Error(err)
	}
}

func bundles(list ...skills.Bundle) skills.Source {
	return skills.SourceFunc(func(_ context.Context, add func(skills.Bundle)) error {
		for _, b := range list {
			add(b)
		}
		return nil
	})
}

// What Server.Visible hides no method tells of.
func TestVisible(t *testing.T) {
	fsys := some()
	fsys["acme/billing/refunds/empty"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	fsys["pdf/inner/SKILL.md"] = &fstest.MapFile{Data: []byte(doc("inner")), Mode: 0o644}
	fsys["pdf/inner/empty"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	fsys["pdf/shown"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	s, _ := enable(t, skills.FS(fsys), &skills.Options{Logger: quiet, Cache: server.Cache{Public: true}}, nil)
	s.Visible(func(_ context.Context, it server.Item) bool {
		return !strings.HasPrefix(it.Name, "skill://acme/") && !strings.HasPrefix(it.Name, "skill://pdf/inner/") && !strings.Contains(it.Name, "/assets/")
	})
	c := mcptest.Client(t, s, with())
	if all := listed(t, c); len(all) != 1 {
		t.Errorf("%v", all)
	}
	if _, err := skills.Get(t.Context(), c, "skill://acme/billing/refunds/SKILL.md"); code(err) != mcp.CodeInvalidParams {
		t.Error(err)
	}
	for _, dir := range []string{"skill://acme", "skill://acme/billing/refunds", "skill://acme/billing/refunds/empty", "skill://pdf/inner", "skill://pdf/inner/empty"} {
		if got, err := raw(t.Context(), c, "resources/directory/read", map[string]string{"uri": dir}); code(err) != mcp.CodeInvalidParams {
			t.Errorf("%s: %s, %v", dir, got, err)
		}
	}
	if got, err := raw(t.Context(), c, "skills/list", nil); err != nil || !strings.Contains(got, `"cacheScope":"private"`) || strings.Contains(got, "logo") {
		t.Errorf("%s, %v", got, err)
	}
	// A file of a skill, or a skill within it, may be hidden alone.
	got, err := raw(t.Context(), c, "skills/get", map[string]string{"uri": pdf})
	if err != nil || strings.Contains(got, "logo") || strings.Contains(got, "inner") || len(get(t, c, pdf).Files) != 3 {
		t.Errorf("%s, %v", got, err)
	}
	got, err = raw(t.Context(), c, "resources/directory/read", map[string]string{"uri": "skill://pdf"})
	if err != nil || strings.Contains(got, "assets") || strings.Contains(got, "inner") || !strings.Contains(got, "skill://pdf/shown") {
		t.Errorf("%s, %v", got, err)
	}
}

// "keys prefixed with io.modelcontextprotocol/ are reserved": they pass through, with a
// warning for the author.
func TestReservedKeys(t *testing.T) {
	log := new(logtest.Log)
	text := "---\nname: a\ndescription: b\nmetadata:\n  io.modelcontextprotocol/x: y\n---\n"
	c := connect(t, skills.FS(files(map[string]string{"a/SKILL.md": text})), &skills.Options{Logger: log.Logger()})
	if got := string(get(t, c, "skill://a/SKILL.md").Frontmatter); !strings.Contains(got, `"io.modelcontextprotocol/x":"y"`) {
		t.Errorf("%s", got)
	}
	if !strings.Contains(log.String(), "reserved") {
		t.Errorf("no warning: %s", log)
	}
}
