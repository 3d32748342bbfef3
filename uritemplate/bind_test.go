package uritemplate_test

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/uritemplate"
)

type base struct {
	Owner string `uri:"owner"`
}

type vars struct {
	base
	Number int8       `uri:"number"`
	Draft  *bool      `uri:"draft"`
	Path   []string   `uri:"path"`
	Addr   netip.Addr `uri:"addr"`
	Size   uint16     `uri:"size"`
	Other  string
}

const varsTemplate = "t://{owner}/{number}/{size}/{addr}{/path*}{?draft}"

func TestBindDecode(t *testing.T) {
	tmpl := parse(t, varsTemplate)
	b, err := uritemplate.Bind(reflect.TypeFor[vars](), tmpl)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := tmpl.Match("t://ada/-7/9/127.0.0.1/a/b?draft=true")
	if !ok {
		t.Fatal("no match")
	}
	var got vars
	if err := b.Decode(v, &got); err != nil {
		t.Fatal(err)
	}
	want := vars{base: base{"ada"}, Number: -7, Draft: new(true), Path: []string{"a", "b"}, Addr: netip.MustParseAddr("127.0.0.1"), Size: 9}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(vars{}, base{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if v, _ = tmpl.Match("t://ada/1/1/::1"); v != nil {
		t.Error("a colon matches a simple expression")
	}
	got = vars{}
	v, _ = tmpl.Match("t://ada/1/1/1.2.3.4")
	if err := b.Decode(v, &got); err != nil || got.Draft != nil || got.Path != nil {
		t.Errorf("absent variables: %+v, %v", got, err)
	}
	for uri, want := range map[string]string{
		"t://ada/x/1/1.2.3.4":            "variable number",
		"t://ada/200/1/1.2.3.4":          "variable number",
		"t://ada/007/1/1.2.3.4":          "variable number",
		"t://ada/1/-1/1.2.3.4":           "variable size",
		"t://ada/1/1/localhost":          "variable addr",
		"t://ada/1/1/1.2.3.4?draft=yes":  "variable draft: expected true or false",
		"t://ada/1/1/1.2.3.4?draft=TRUE": "variable draft",
	} {
		v, _ := tmpl.Match(uri)
		if err := b.Decode(v, &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if err := b.Decode(v, got); err == nil {
		t.Error("a value that is no pointer is accepted")
	}
}

func TestBindValues(t *testing.T) {
	tmpl := parse(t, "t://{x}")
	b, err := uritemplate.Bind(reflect.TypeFor[uritemplate.Values](), tmpl)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := tmpl.Match("t://1")
	var got uritemplate.Values
	if err := b.Decode(v, &got); err != nil || got.Get("x") != "1" || got.Get("y") != "" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestBindErrors(t *testing.T) {
	for _, c := range []struct {
		typ            reflect.Type
		template, want string
	}{
		{reflect.TypeFor[struct {
			X string `uri:"y"`
		}](), "t://{x}", ".X: uri:\"y\" is no variable"},
		{reflect.TypeFor[struct{}](), "t://{x}", "variable x of t://{x} has no field"},
		{reflect.TypeFor[struct {
			X float64 `uri:"x"`
		}](), "t://{x}", ".X: type float64 cannot"},
		{reflect.TypeFor[struct {
			X []string `uri:"x"`
		}](), "t://{x}", ".X: the variable has one value"},
		{reflect.TypeFor[struct {
			X string `uri:"x"`
		}](), "t://r{/x*}", ".X: the variable is exploded"},
		{reflect.TypeFor[struct {
			x string `uri:"x"`
		}](), "t://{x}", ".x: it is not exported"},
		{reflect.TypeFor[struct{ *base }](), "t://{owner}", "embedded by pointer"},
		{reflect.TypeFor[struct {
			X string `uri:"x"`
			Y string `uri:"x"`
		}](), "t://{x}", ".Y"},
		{reflect.TypeFor[string](), "t://{x}", "want a struct"},
	} {
		_, err := uritemplate.Bind(c.typ, parse(t, c.template))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.typ, err)
		}
	}
}
