package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
)

func TestStrict(t *testing.T) {
	for name, test := range map[string]struct {
		tool string
		want []string // rule, place
	}{
		"nothing":        {`{"inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, nil},
		"true":           {`{"inputSchema":{"type":"object","properties":{"a":true}}}`, []string{"boolean-schema inputSchema properties.a"}},
		"false in list":  {`{"inputSchema":{"anyOf":[{"type":"object"},false]}}`, []string{"boolean-schema inputSchema anyOf[1]"}},
		"open":           {`{"inputSchema":{"type":"object","additionalProperties":false}}`, nil},
		"whole":          {`{"inputSchema":true}`, []string{"boolean-schema inputSchema "}},
		"not":            {`{"inputSchema":{"not":{}}}`, nil},
		"not true":       {`{"inputSchema":{"not":true}}`, []string{"boolean-schema inputSchema not"}},
		"types":          {`{"inputSchema":{"type":"object"},"outputSchema":{"type":["object","null"]}}`, []string{"type-union outputSchema "}},
		"no such types":  {`{"inputSchema":{"type":["object","thing"]}}`, nil},
		"the same twice": {`{"inputSchema":{"type":["object","object"]}}`, nil},
		"far reference":  {`{"inputSchema":{"properties":{"x-y":{"$ref":"https://example.com"}}}}`, []string{`remote-ref inputSchema properties["x-y"]`}},
		"near reference": {`{"inputSchema":{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}}`, nil},
		"identified":     {`{"inputSchema":{"$ref":"other","$defs":{"a":{"$id":"other","type":"object"}}}}`, nil},
		"untyped":        {`{"inputSchema":{"type":"object","properties":{"a":{"description":"any"}}}}`, []string{"untyped-schema inputSchema properties.a"}},
		"condition":      {`{"inputSchema":{"if":{"type":"object"},"then":{"type":"object"}}}`, nil},
		"half condition": {`{"inputSchema":{"if":{"type":"object"}}}`, []string{"untyped-schema inputSchema "}},
		"items as list":  {`{"inputSchema":{"items":[true,{"type":"string"}]}}`, []string{"boolean-schema inputSchema items[0]"}},
		"deep": {
			`{"inputSchema":` + strings.Repeat(`{"items":`, 60) + `true` + strings.Repeat(`}`, 60) + `}`,
			[]string{"boolean-schema inputSchema items" + strings.Repeat(".items", 59)},
		},
		"no object": {`{"inputSchema":7}`, nil},
		"no tool":   {`7`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, errors, warnings := strict([]mcp.RawValue{mcp.RawValue(test.tool)})
			var got []string
			for _, tool := range found {
				for _, f := range tool.Findings {
					got = append(got, f.Rule+" "+f.Schema+" "+f.Path)
					if f.Issue == "" || f.Suggestion == "" {
						t.Errorf("%+v", f)
					}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || errors+warnings != len(got) {
				t.Errorf("%d errors, %d warnings\n%s", errors, warnings, diff)
			}
		})
	}
}

// What a server wrote is looked at without a panic, and findings can be written.
func FuzzStrict(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","inputSchema":{"type":"object","properties":{"a":true,"b":{"$ref":"x"},"c":{"type":["string","null"]}}}}`,
		`{"inputSchema":{"items":[{},false],"$defs":{"":{}}}}`, `[]`, `{"inputSchema":{"properties":7,"items":null}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, tool []byte) {
		found, errors, warnings := strict([]mcp.RawValue{tool})
		if len(found) == 0 && errors+warnings > 0 {
			t.Error("counted what was not found")
		}
		if _, err := encoded(found); err != nil {
			t.Error(err)
		}
	})
}

// So are entries of skills, and files.
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

func TestArguments(t *testing.T) {
	const schema = `{"properties":{"n":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"}}}`
	for pair, want := range map[string]string{
		"s=hello": `"hello"`, "s=5": `5`, `s="5"`: `"5"`, "n=5": `5`, `n="5"`: `5`, "n=012": `12`, "n=x": `"x"`, "n=1e999": `1e999`,
		"b=true": `true`, "b=True": `true`, "b=yes": `"yes"`, `s={"a": 1}`: `{"a":1}`, "s=": `""`, "other=[1,2]": `[1,2]`, "s=a=b": `"a=b"`,
	} {
		p, ok := ParsePair(pair)
		if !ok {
			t.Fatal(pair)
		}
		got, err := (&Args{Pairs: []Pair{p}}).arguments(mcp.RawValue(schema))
		if diff := cmp.Diff(`{"`+p.Name+`":`+want+`}`, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", pair, err, diff)
		}
	}
	if _, ok := ParsePair("=x"); ok {
		t.Error("a pair without a name")
	}
	if diff := cmp.Diff(map[string]string{"a": "x y", "b": "5", "c": "null"}, texts([]Pair{{"a", `"x y"`}, {"b", "5"}, {"c", "null"}})); diff != "" {
		t.Error(diff)
	}
}
