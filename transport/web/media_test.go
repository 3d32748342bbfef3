package web_test

import (
	"testing"

	"github.com/parley-mcp/parley/transport/web"
)

func TestIsJSON(t *testing.T) {
	for value, want := range map[string]bool{
		"application/json":                        true,
		"Application/JSON ; charset=utf-8":        true,
		"application/json;charset=UTF-8":          true,
		"application/json; charset=utf8":          true,
		"application/json; charset=UTF8":          true,
		`application/json; charset="Utf-8"; x=y`:  true,
		`application/json; charset="UTF8"`:        true,
		"application/json;":                       true,
		"":                                        false,
		"text/json":                               false,
		"application/json; charset=latin1":        false,
		"application/json; charset=utf-16":        false,
		"application/json; charset=":              false,
		"application/json, text/plain":            false,
		"application/json; charset=utf8; charset": false,
	} {
		if got := web.IsJSON(value); got != want {
			t.Errorf("%q is JSON in UTF-8: %t, want %t", value, got, want)
		}
	}
}
