package ui_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// Proves: SEC-TOOL-5. An edit changes what it names, and nothing else.
func TestEdit(t *testing.T) {
	t.Parallel()
	const raw = `{"to": "ada","n":1.50,"on":true,"list":[1, "two"],"deep":{"a/b":{"c":"x"}},"nil":null}`
	for _, test := range []struct{ text, want, err string }{
		{"to=bob", strings.Replace(raw, `"ada"`, `"bob"`, 1), ""},
		{"to = 5", strings.Replace(raw, `"ada"`, `"5"`, 1), ""}, // it was a text
		{`to="5"`, strings.Replace(raw, `"ada"`, `"5"`, 1), ""},
		{`to="`, strings.Replace(raw, `"ada"`, `"\""`, 1), ""},
		{"to=", strings.Replace(raw, `"ada"`, `""`, 1), ""},
		{"to=a=b", strings.Replace(raw, `"ada"`, `"a=b"`, 1), ""},
		{"n=2", strings.Replace(raw, `1.50`, `2`, 1), ""},
		{"n=two", strings.Replace(raw, `1.50`, `"two"`, 1), ""},
		{"on=false", strings.Replace(raw, `true`, `false`, 1), ""},
		{`nil={"a":1}`, strings.Replace(raw, `null`, `{"a":1}`, 1), ""},
		{"/list/1=three", strings.Replace(raw, `[1, "two"]`, `[1,"three"]`, 1), ""},
		{"/list/-=4", strings.Replace(raw, `[1, "two"]`, `[1,"two",4]`, 1), ""},
		{"/deep/a~1b/c=y", strings.Replace(raw, `"x"`, `"y"`, 1), ""},
		{"/deep/a~1b/d=1", strings.Replace(raw, `"x"}`, `"x","d":1}`, 1), ""},
		{"new=1", strings.Replace(raw, `null}`, `null,"new":1}`, 1), ""},
		{"/new/a=1", strings.Replace(raw, `null}`, `null,"new":{"a":1}}`, 1), ""},
		{`{"x": 1}`, `{"x": 1}`, ""},
		{`{"x": 1, "x": 2}`, "", "reading the value"},
		{`{"x": 1`, "", "reading the value"},
		{"[1]", "", "NAME=VALUE"},
		{"word", "", "NAME=VALUE"},
		{"=1", "", "NAME=VALUE"},
		{"/list/7=1", "", "no item 7"},
		{"/list/x=1", "", "no item x"},
		{"/to/x=1", "", "part of no object"},
		{strings.Repeat("/a", 40) + "=1", "", "deeper than"},
	} {
		got, err := ui.Edit(mcp.RawValue(raw), test.text)
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %s, %v; want an error with %q", test.text, got, err, test.err)
			}
		case err != nil:
			t.Errorf("%s: %v", test.text, err)
		case strings.ReplaceAll(string(got), `"to": `, `"to":`) != strings.ReplaceAll(test.want, `"to": `, `"to":`):
			t.Errorf("%s:\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

func FuzzEdit(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":[1,"x"]}}`, "/b/c/1=y")
	f.Add(`{"a":"é\u001b"}`, `b={"x":1}`)
	f.Fuzz(func(t *testing.T, raw, text string) {
		before, err := strictjson.ParseObject([]byte(raw))
		if err != nil {
			return
		}
		got, err := ui.Edit(mcp.RawValue(raw), text)
		if err != nil {
			return
		}
		after, err := strictjson.ParseObject(got)
		if err != nil {
			t.Fatalf("%s and %q give %s: %v", raw, text, got, err)
		}
		if strings.HasPrefix(strings.TrimSpace(text), "{") {
			return
		}
		changed := 0
		for key, value := range before.All() {
			if now, ok := after.Member(key); !ok || string(now) != string(value) {
				changed++
			}
		}
		if changed > 1 || after.Len() > before.Len()+1 {
			t.Errorf("%s and %q give %s", raw, text, got)
		}
	})
}

func TestPairs(t *testing.T) {
	t.Parallel()
	got, err := ui.Pairs(`a=1  b="two words" c= d="q\"\\" e=x=y`)
	want := map[string]string{"a": "1", "b": "two words", "c": "", "d": `q"\`, "e": "x=y"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for text, want := range map[string]string{"word": "no value", "a=1 a=2": "twice", `a="1`: "no closing quote", `="x"`: "no value", `"a b"=1`: "no value"} {
		if got, err := ui.Pairs(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	servers := []string{"files", "files:old", "my notes"}
	for text, want := range map[string][]host.ResourceInput{
		"no resource, mail ada@files:x":  nil,
		"@files:file:///a.txt, please":   {{Server: "files", URI: "file:///a.txt"}},
		"(@files:x)":                     {{Server: "files", URI: "x"}},
		"@files:old:x":                   {{Server: "files:old", URI: "x"}},
		`@"my notes:a b" @files:y`:       {{Server: "my notes", URI: "a b"}, {Server: "files", URI: "y"}},
		"@files: @files @other:x @":      nil,
		`@"files:not closed`:             nil,
		"@files:db://x?y=1 and @files:z": {{Server: "files", URI: "db://x?y=1"}, {Server: "files", URI: "z"}},
	} {
		got, _ := ui.Resources(text, servers)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	if _, unknown := ui.Resources("@other:file:///x @files:file:///y @//z", servers); len(unknown) != 1 || unknown[0] != "other" {
		t.Errorf("unknown: %q", unknown)
	}
}
