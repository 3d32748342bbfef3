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
