package skills_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// A Loader passes entries on as they were sent, and loads and reads by them.
func TestLoader(t *testing.T) {
	var l skills.Loader
	c := connect(t, skills.FS(some()), nil)
	if !l.Offers(c) {
		t.Error("the server offers skills")
	}
	byURI := make(map[string]mcp.RawValue)
	for raw, err := range l.List(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Check(raw); err != nil {
			t.Error(err)
		}
		for _, uri := range []string{"skill://pdf/SKILL.md", "skill://acme/billing/refunds/SKILL.md"} {
			if strings.Contains(string(raw), `"uri":"`+uri+`","frontmatter"`) {
				byURI[uri] = raw
			}
		}
	}
	entry := byURI["skill://pdf/SKILL.md"]
	if len(byURI) != 2 {
		t.Fatalf("listed %d of two", len(byURI))
	}
	got, err := l.Get(t.Context(), c, "skill://pdf/SKILL.md")
	if err != nil || string(got) != string(entry) {
		t.Errorf("got %s, %v; listed %s", got, err, entry)
	}
	text, err := l.Load(t.Context(), c, entry)
	if err != nil || text != doc("pdf") {
		t.Errorf("loaded %q, %v", text, err)
	}
	uri, _, data, err := l.Read(t.Context(), c, entry, "references/FORMS.md")
	if err != nil || uri != "skill://pdf/references/FORMS.md" || string(data) != "forms" {
		t.Errorf("read %s: %q, %v", uri, data, err)
	}
	for _, path := range []string{"../acme/billing/refunds/SKILL.md", "/SKILL.md", "skill://pdf/SKILL.md", "none.md", ""} {
		if _, _, _, err := l.Read(t.Context(), c, entry, path); !l.Differs(err) {
			t.Errorf("%q: %v", path, err)
		}
	}
	wrong := mcp.RawValue(strings.Replace(string(entry), `"size":`, `"size":1`, 1))
	if _, err := l.Load(t.Context(), c, wrong); !l.Differs(err) {
		t.Errorf("another size: %v", err)
	}
}

// A Loader loads nothing by an entry that is not valid, and a server without the extension
// has none.
func TestLoaderRefuses(t *testing.T) {
	var l skills.Loader
	c := connect(t, skills.FS(some()), nil)
	for _, raw := range []string{"", "7", "{", `{"uri":"skill://pdf/SKILL.md"}`} {
		_, loadErr := l.Load(t.Context(), c, mcp.RawValue(raw))
		_, _, _, readErr := l.Read(t.Context(), c, mcp.RawValue(raw), "SKILL.md")
		for _, err := range []error{l.Check(mcp.RawValue(raw)), loadErr, readErr} {
			var bad *skills.EntryError
			if !errors.As(err, &bad) || l.Differs(err) {
				t.Errorf("%q: %v", raw, err)
			}
		}
	}
	if _, err := l.Get(t.Context(), c, "skill://none/SKILL.md"); err == nil || l.Differs(err) {
		t.Errorf("no such skill: %v", err)
	}
	none := mcptest.Client(t, server.New("none", "1", nil), with())
	if l.Offers(none) {
		t.Error("the server offers no skills")
	}
	for raw, err := range l.List(t.Context(), none) {
		if err == nil {
			t.Errorf("listed %s", raw)
		}
	}
}
