package ui_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/mcp"
)

// everyField is a form with a field of each kind.
func everyField() *mcp.ElicitSchema {
	return &mcp.ElicitSchema{
		Required: []string{"name", "count", "sure", "colour"},
		Properties: mcp.Properties{
			{Name: "name", Schema: mcp.PrimitiveSchema{Type: "string", Title: "Name\x1b", Description: "Yours\n\u202e", MinLength: new(int64(2)), MaxLength: new(int64(5))}},
			{Name: "mail", Schema: mcp.PrimitiveSchema{Type: "string", Format: mcp.FormatEmail}},
			{Name: "home", Schema: mcp.PrimitiveSchema{Type: "string", Format: mcp.FormatURI}},
			{Name: "born", Schema: mcp.PrimitiveSchema{Type: "string", Format: mcp.FormatDate}},
			{Name: "at", Schema: mcp.PrimitiveSchema{Type: "string", Format: mcp.FormatDateTime}},
			{Name: "count", Schema: mcp.PrimitiveSchema{Type: "integer", Minimum: new(1.0), Maximum: new(9.0)}},
			{Name: "size", Schema: mcp.PrimitiveSchema{Type: "number", Default: mcp.RawValue("1.5"), Maximum: new(2.0)}},
			{Name: "sure", Schema: mcp.PrimitiveSchema{Type: "boolean"}},
			{Name: "colour", Schema: mcp.PrimitiveSchema{Type: "string", OneOf: []mcp.EnumOption{{Const: "r", Title: "Red"}, {Const: "2", Title: "Two"}, {Const: "g", Title: "Green"}}}},
			{Name: "deep", Schema: mcp.PrimitiveSchema{Other: mcp.RawValue(`{"type":["object","string"]}`)}},
			{Name: "pets", Schema: mcp.PrimitiveSchema{Type: "array", Items: &mcp.EnumItems{Type: "string", Enum: []string{"cat", "dog", "cow"}}, MinItems: new(int64(1)), MaxItems: new(int64(2))}},
		},
	}
}

func field(t *testing.T, name string) *ui.Field {
	t.Helper()
	form := ui.NewForm(everyField())
	for i := range form.Fields {
		if form.Fields[i].Name == name {
			return &form.Fields[i]
		}
	}
	t.Fatalf("no field %s", name)
	return nil
}

// Proves: FLOW-ELICIT. Each kind of field takes what fits, and says what does when
// something does not.
func TestFieldParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want, err string }{
		{"name", " Ada ", `"Ada"`, ""},
		{"deep", `{"a": [1]}`, `{"a":[1]}`, ""},
		{"deep", "7", "7", ""},
		{"deep", `"x"`, `"x"`, ""},
		{"deep", "plain words", `"plain words"`, ""},
		{"deep", `{"a": 1, "a": 2}`, "", "a JSON value"},
		{"deep", `[1,`, "", "a JSON value"},
		{"deep", "}", "", "on one line"},
		{"deep", "1,", "", "a JSON value"},
		{"deep", "},", "", "a JSON value"},
		{"deep", "é", `"é"`, ""},
		{"deep", "", "", ""},
		{"name", "A", "", "at least 2"},
		{"name", "Adalbert", "", "at most 5"},
		{"name", "", "", "required"},
		{"mail", "", "", ""},
		{"mail", "ada@example.com", `"ada@example.com"`, ""},
		{"mail", "Ada <ada@example.com>", "", "a mail address"},
		{"home", "https://example.com/", `"https://example.com/"`, ""},
		{"home", "example.com", "", "a whole URI"},
		{"born", "1815-12-10", `"1815-12-10"`, ""},
		{"born", "1815-13-10", "", "year-month-day"},
		{"at", "1815-12-10T09:00:00Z", `"1815-12-10T09:00:00Z"`, ""},
		{"at", "1815-12-10 09:00", "", "with a zone"},
		{"count", "3", "3", ""},
		{"count", "3.0", "", "a whole number"},
		{"count", "0", "", "at least 1"},
		{"count", "10", "", "at most 9"},
		{"count", "99999999999999999999", "", "a whole number"},
		{"size", "", "1.5", ""},
		{"size", "1.25", "1.25", ""},
		{"size", "NaN", "", "a number"},
		{"size", "Inf", "", "a number"},
		{"size", "1e999", "", "a number"},
		{"size", "3", "", "at most 2"},
		{"sure", "Yes", "true", ""},
		{"sure", "n", "false", ""},
		{"sure", "maybe", "", "yes or no"},
		{"colour", "g", `"g"`, ""},
		{"colour", "green", `"g"`, ""},
		{"colour", "3", `"g"`, ""},
		{"colour", "2", `"2"`, ""}, // a value goes before a number
		{"colour", "4", "", "from the list"},
		{"pets", "dog, cat,DOG", `["dog","cat"]`, ""},
		{"pets", "cat,3", `["cat","cow"]`, ""},
		{"pets", "1,2,3", "", "at most 2"},
		{"pets", "horse", "", "from the list"},
	} {
		f := field(t, test.name)
		got, err := f.Parse(test.text)
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s %q: %s, %v; want an error with %q", test.name, test.text, got, err, test.err)
			}
		case err != nil || string(got) != test.want:
			t.Errorf("%s %q: %s, %v; want %s", test.name, test.text, got, err, test.want)
		case got != nil && f.Check(got) != nil:
			t.Errorf("%s %q: the value does not fit: %v", test.name, test.text, f.Check(got))
		}
	}
}

// What a face shows of a field is escaped.
func TestFormPlan(t *testing.T) {
	t.Parallel()
	form := ui.NewForm(everyField())
	want := ui.Field{Name: "name", Label: `Name\u{1b}`, Help: `Yours \u{202e}`, Kind: ui.KindText, Required: true, MinLength: new(int64(2)), MaxLength: new(int64(5))}
	if diff := cmp.Diff(want, form.Fields[0]); diff != "" {
		t.Error(diff)
	}
	var kinds []ui.FieldKind
	for i := range form.Fields {
		kinds = append(kinds, form.Fields[i].Kind)
	}
	if diff := cmp.Diff([]ui.FieldKind{
		ui.KindText, ui.KindEmail, ui.KindURI, ui.KindDate, ui.KindDateTime,
		ui.KindInteger, ui.KindNumber, ui.KindBoolean, ui.KindChoice, ui.KindJSON, ui.KindChoices,
	}, kinds); diff != "" {
		t.Error(diff)
	}
	if hint := form.Fields[6].Hint(); hint != "a number; Enter for 1.5" {
		t.Errorf("the hint is %q", hint)
	}
	for name, secret := range map[string]bool{"password": true, "apiKey": true, "name": false} {
		s := &mcp.ElicitSchema{Properties: mcp.Properties{{Name: name, Schema: mcp.PrimitiveSchema{Type: "string"}}}}
		if f := ui.NewForm(s).Fields[0]; f.Secret != secret {
			t.Errorf("%s: secret %v", name, f.Secret)
		}
	}
	if f := ui.NewForm(nil); len(f.Fields) != 0 || f.Check(nil) != nil {
		t.Errorf("no form: %+v", f)
	}
}

// The values of a form are checked as a whole.
func TestFormCheck(t *testing.T) {
	t.Parallel()
	good := func() map[string]mcp.RawValue {
		return map[string]mcp.RawValue{"name": mcp.RawValue(`"Ada"`), "count": mcp.RawValue("3"), "sure": mcp.RawValue("true"), "colour": mcp.RawValue(`"r"`)}
	}
	form := ui.NewForm(everyField())
	if err := form.Check(good()); err != nil {
		t.Error(err)
	}
	for _, test := range []struct{ name, value, err string }{
		{"name", "", "it is required"},
		{"name", "3", "enter a text"},
		{"name", `"A"`, "at least 2"},
		{"count", "3.5", "whole number"},
		{"count", `"3"`, "whole number"},
		{"count", "12", "at most 9"},
		{"size", "true", "a number"},
		{"size", "2.5", "at most 2"},
		{"sure", `"yes"`, "yes or no"},
		{"colour", `"Red"`, "from the list"},
		{"colour", "1", "enter a text"},
		{"pets", `["cat","ox"]`, "from the list"},
		{"pets", `[]`, "at least 1"},
		{"pets", `"cat"`, "from the list"},
		{"mail", `"ada"`, "mail address"},
		{"other", "1", `no field "other"`},
	} {
		values := good()
		values[test.name] = mcp.RawValue(test.value)
		if test.value == "" {
			delete(values, test.name)
		}
		if err := form.Check(values); err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s %s: %v; want an error with %q", test.name, test.value, err, test.err)
		}
	}
}

// A field of another kind shows its schema, without anything that could act on a terminal, and says
// when a secret is asked for in the depth.
func TestFieldOfOtherKind(t *testing.T) {
	t.Parallel()
	for schema, secret := range map[string]bool{
		`{"type":"object","properties":{"n":{"type":"integer"}}}`:                                                        false,
		`{"type":"object","properties":{"\u001b[2J":{"type":"integer"}}}`:                                                false,
		`{"type":"object","properties":{"login":{"type":"object","properties":{"password":{"type":"string"}}}}}`:         true,
		`{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"object","properties":{"api_key":{}}}}],"title":"T"}`: true,
		`{"type":"object","properties":{"a":{"type":"string","title":"Your API key"}}}`:                                  true,
		`{"type":"object","title":"Next page token"}`:                                                                    false,
	} {
		var p mcp.Properties
		if err := p.UnmarshalJSON([]byte(`{"x":` + schema + `}`)); err != nil {
			t.Fatal(err)
		}
		f := ui.NewForm(&mcp.ElicitSchema{Properties: p}).Fields[0]
		if f.Kind != ui.KindJSON || f.Secret != secret || !strings.Contains(f.Help, "Schema: {") || strings.ContainsRune(f.Help, '\x1b') || f.Hint() == "" {
			t.Errorf("%s: %+v, hint %q", schema, f, f.Hint())
		}
	}
}
