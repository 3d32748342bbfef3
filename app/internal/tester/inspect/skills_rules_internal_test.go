package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
)

// What a server wrote of skills is looked at without a panic, and issues can be written.
func FuzzSkillEntry(f *testing.F) {
	f.Add([]byte(`{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"b"},"resources":[{"uri":"skill://a/SKILL.md","digest":"sha256:","size":1}]}`), []byte("---\nname: a\n---\n"))
	f.Add([]byte(`{"uri":"skill:/%2e%2e/../SKILL.md","frontmatter":{"name":7},"resources":"dynamic"}`), []byte("# A"))
	f.Add([]byte(`{"resources":[null]}`), []byte("---\n"))
	f.Fuzz(func(t *testing.T, entry, file []byte) {
		e := readEntry(entry)
		if e.shownName() != e.uri && e.uri == "" && e.name == nil {
			t.Errorf("the name %q came from nowhere", e.shownName())
		}
		if _, err := encoded([][]Issue{e.check(), e.matches(file)}); err != nil {
			t.Error(err)
		}
		sameNames([]*skillEntry{e, e})
	})
}

func TestSkillRules(t *testing.T) {
	digest := `"digest":"sha256:` + strings.Repeat("0", 64) + `"`
	whole := func(uri, name, files string) string {
		return `{"uri":"` + uri + `","frontmatter":{"name":"` + name + `","description":"d"},"resources":` + files + `}`
	}
	own := `{"uri":"skill://a/SKILL.md",` + digest + `,"size":1}`
	for name, test := range map[string]struct {
		entry string
		want  []string
	}{
		"right":          {whole("skill://a/SKILL.md", "a", "["+own+"]"), nil},
		"encoded":        {whole("skill://%61/SKILL.md", "a", "["+own+"]"), nil},
		"dynamic":        {whole("skill://a/SKILL.md", "a", `"dynamic"`), []string{"dynamic-resources"}},
		"other name":     {whole("skill://a/SKILL.md", "b", "["+own+"]"), []string{"name-path-mismatch"}},
		"bad name":       {whole("skill://A/SKILL.md", "A", `[{"uri":"skill://A/SKILL.md",`+digest+`,"size":1}]`), []string{"malformed-name"}},
		"no name":        {`{"uri":"skill://a/SKILL.md","frontmatter":{"description":"d"},"resources":[` + own + `]}`, []string{"missing-name"}},
		"no description": {`{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a"},"resources":[` + own + `]}`, []string{"missing-description"}},
		"bad URI":        {whole("skill://a", "a", `[{"uri":"skill://a",`+digest+`,"size":1}]`), []string{"malformed-uri"}},
		"no self":        {whole("skill://a/SKILL.md", "a", "[]"), []string{"manifest-missing-self"}},
		"twice":          {whole("skill://a/SKILL.md", "a", "["+own+","+own+"]"), []string{"duplicate-resource"}},
		"outside":        {whole("skill://a/SKILL.md", "a", "["+own+`,{"uri":"skill://b/x",`+digest+`,"size":1}]`), []string{"resource-outside-skill-root"}},
		"no digest":      {whole("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md","size":1}]`), []string{"missing-digest"}},
		"bad digest":     {whole("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md","digest":"md5:0","size":1}]`), []string{"malformed-digest"}},
		"no size":        {whole("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md",`+digest+`}]`), []string{"missing-size"}},
		"bad size":       {whole("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md",`+digest+`,"size":-1}]`), []string{"malformed-size"}},
		"too large":      {whole("skill://a/SKILL.md", "a", `[{"uri":"skill://a/SKILL.md",`+digest+`,"size":99999999}]`), []string{"size-limit-exceeded"}},
		"broken":         {`{"uri":"skill://a/SKILL.md","resources":7}`, []string{"malformed-entry"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, issue := range readEntry(mcp.RawValue(test.entry)).check() {
				got = append(got, issue.Code)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
