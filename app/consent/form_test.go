package consent_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/consent"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

func form() *mcp.ElicitSchema {
	return &mcp.ElicitSchema{
		Required: []string{"name", "count", "sure", "colour"},
		Properties: mcp.Properties{
			{Name: "name", Schema: mcp.PrimitiveSchema{Type: "string", Title: "Name\x1b", MinLength: new(int64(2))}},
			{Name: "mail", Schema: mcp.PrimitiveSchema{Type: "string", Format: mcp.FormatEmail}},
			{Name: "count", Schema: mcp.PrimitiveSchema{Type: "integer", Minimum: new(1.0), Maximum: new(9.0)}},
			{Name: "size", Schema: mcp.PrimitiveSchema{Type: "number", Default: mcp.RawValue("1.5")}},
			{Name: "sure", Schema: mcp.PrimitiveSchema{Type: "boolean"}},
			{Name: "colour", Schema: mcp.PrimitiveSchema{Type: "string", OneOf: []mcp.EnumOption{{Const: "r", Title: "Red"}, {Const: "g", Title: "Green"}}}},
			{Name: "pets", Schema: mcp.PrimitiveSchema{Type: "array", Items: &mcp.EnumItems{Type: "string", Enum: []string{"cat", "dog"}}, MaxItems: new(int64(2))}},
		},
	}
}

// elicit shows a form to a person who types the lines.
func elicit(t *testing.T, schema *mcp.ElicitSchema, lines ...string) (*mcp.ElicitResult, string) {
	t.Helper()
	var out bytes.Buffer
	face := consent.New(strings.NewReader(strings.Join(lines, "\n")+"\n"), &out)
	res, err := face.Elicit(t.Context(), &host.ElicitQuestion{
		Server: "db", Origin: "./dbserver",
		Params: &mcp.ElicitParams{Message: "Who \x1b[2J are you?", RequestedSchema: schema},
	})
	if err != nil {
		t.Fatal(err)
	}
	if shown := out.String(); shown != host.Escape(shown) {
		t.Errorf("the form is not safe to show: %q", shown)
	}
	return res, out.String()
}

// Proves: FLOW-ELICIT-H, SEC-ELICIT-1, ruling 20. Each kind of field is
// checked, the answer is reviewed, and only what was filled in is sent.
func TestForm(t *testing.T) {
	res, shown := elicit(t, form(),
		"A", "Ada", // too short, then right
		"nobody", "ada@example.com",
		"x", "10", "3",
		"",      // the default
		"maybe", // neither
		"yes",
		"blue", "2",
		"cat, cow", "dog,cat,dog",
		"y")
	want := &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: map[string]mcp.RawValue{
		"name": mcp.RawValue(`"Ada"`), "mail": mcp.RawValue(`"ada@example.com"`), "count": mcp.RawValue(`3`),
		"size": mcp.RawValue(`1.5`), "sure": mcp.RawValue(`true`), "colour": mcp.RawValue(`"g"`), "pets": mcp.RawValue(`["dog","cat"]`),
	}}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"db (./dbserver)", "untrusted", `Who \u{1b}[2J are you?`, "/decline", "/cancel", "This would be sent", "mail: \"ada@example.com\""} {
		if !strings.Contains(shown, text) {
			t.Errorf("the form does not show %q", text)
		}
	}
}

// Proves: SEC-ELICIT-1. Decline and cancel are always there.
func TestFormLeft(t *testing.T) {
	all := []string{"Ada", "", "3", "", "yes", "Red", ""}
	for _, test := range []struct {
		lines []string
		want  mcp.ElicitAction
	}{
		{[]string{"/decline"}, mcp.ElicitDecline},
		{[]string{"Ada", "/cancel"}, mcp.ElicitCancel},
		{append(all[:7:7], "n"), mcp.ElicitDecline},
		{append(all[:7:7], "c"), mcp.ElicitCancel},
		{append(all[:7:7], "y"), mcp.ElicitAccept},
		{[]string{"A", "A", "A", "A", "A", "Ada"}, mcp.ElicitCancel}, // nothing fits
		{[]string{"Ada"}, mcp.ElicitCancel},                          // the input ends
	} {
		res, _ := elicit(t, form(), test.lines...)
		if res.Action != test.want || (res.Content != nil) != (test.want == mcp.ElicitAccept) {
			t.Errorf("%q: %+v, want %s", test.lines, res, test.want)
		}
	}
}

// A field that looks like a secret is warned about.
func TestFormSecret(t *testing.T) {
	_, shown := elicit(t, &mcp.ElicitSchema{Properties: mcp.Properties{{Name: "password", Schema: mcp.PrimitiveSchema{Type: "string"}}}}, "/decline")
	if !strings.Contains(shown, "WARNING: this looks like a secret") {
		t.Errorf("no warning:\n%s", shown)
	}
}

// Proves: SEC-ELICIT-2, ruling 18. The URL is shown whole with its host, and
// only agreed to.
func TestPage(t *testing.T) {
	page := &client.ElicitPage{
		URL: "https://pay.example.com/a/very/long/path?x=1", Host: "pay.example.com",
		Warnings: []string{"the connection is not encrypted"},
	}
	for line, want := range map[string]mcp.ElicitAction{
		"y": mcp.ElicitAccept, "n": mcp.ElicitDecline, "c": mcp.ElicitCancel, "": mcp.ElicitCancel,
	} {
		var out bytes.Buffer
		res, err := consent.New(strings.NewReader(line+"\n"), &out).Elicit(t.Context(), &host.ElicitQuestion{
			Server: "shop", Params: &mcp.ElicitParams{Mode: mcp.ModeURL, Message: "Pay", URL: page.URL}, Page: page,
		})
		if err != nil || res.Action != want || res.Content != nil {
			t.Errorf("%q: %+v, %v; want %s", line, res, err, want)
		}
		for _, text := range []string{page.URL + "\n", "The page is at: pay.example.com", "WARNING: the connection is not encrypted"} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("the question does not show %q", text)
			}
		}
	}
}
