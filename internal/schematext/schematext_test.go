package schematext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/wire"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		``: ``,
		` {"b" : 1 , "a":[ true, null,"\u00e4"]}`: `{"a":[true,null,"ä"],"b":1}`,
		` 1.50 `:        `1.50`,
		`{"a":1,"a":2}`: `{"a":1,"a":2}`,
		`{"a":`:         `{"a":`,
	} {
		if got := Canonical(wire.RawValue(raw)); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	p := Path{Kind: "input"}
	if got := p.String(); got != "input schema" {
		t.Error(got)
	}
	if got := p.Field("a").Step("each item").String(); got != `input field "a", each item` {
		t.Error(got)
	}
	if got := p.Step("alternative 1").String(); got != "input schema, alternative 1" {
		t.Error(got)
	}
	deep := p
	for range 100 {
		deep = deep.Field(strings.Repeat("ä\x1b", 100))
	}
	if got := deep.String(); len(got) > 400 || !utf8.ValidString(got) || strings.Contains(got, "\x1b") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	if got := Clip("short", 5); got != "short" {
		t.Error(got)
	}
	got := Clip(strings.Repeat("ä", 100), 61)
	if len(got) > 61 || !utf8.ValidString(got) || !strings.HasSuffix(got, " more bytes)") {
		t.Errorf("%q", got)
	}
}
