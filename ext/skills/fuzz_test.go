package skills_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/ext/skills"
)

// An entry of a stranger that may be loaded has files below its folder alone, is written
// as it came, and no reference leads out of it.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		pdfEntry(doc("pdf")), strings.Replace(pdfEntry("x"), forms, "skill://pdf/../x", 1),
		`{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"b"},"resources":"dynamic"}`, `{"uri":1}`, `{}`,
	} {
		f.Add(seed, "references/FORMS.md")
		f.Add(seed, "a/%2e%2e/../../b")
	}
	f.Fuzz(func(t *testing.T, text, ref string) {
		var s skills.Skill
		if s.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		if kept, err := s.MarshalJSON(); err != nil || string(kept) != text {
			t.Fatalf("%s, %v", kept, err)
		}
		if s.Check() != nil {
			return
		}
		dir, ok := strings.CutSuffix(s.URI, "/SKILL.md")
		inside := func(uri string) bool {
			rest, below := strings.CutPrefix(uri, dir+"/")
			return below && rest != "" && !strings.Contains("/"+rest+"/", "/../") && !strings.ContainsAny(rest, "?#\\ ")
		}
		if !ok || !strings.HasSuffix(dir, "/"+s.Name()) && !strings.HasSuffix(dir, "://"+s.Name()) || s.Description() == "" {
			t.Fatalf("%q: %q, %q", s.URI, s.Name(), s.Description())
		}
		if len(s.Files) > skills.MaxFiles || !s.Dynamic && len(s.Files) == 0 {
			t.Fatalf("%d files", len(s.Files))
		}
		for _, file := range s.Files {
			if !inside(file.URI) || file.Size < 0 || file.Size > skills.MaxBytes {
				t.Fatalf("%+v", file)
			}
		}
		if uri, err := s.Resolve(ref); err == nil && !inside(uri) {
			t.Fatalf("%q: %q", ref, uri)
		}
	})
}
