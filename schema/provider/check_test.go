package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema/provider"
)

// Each loss has its reason and what the author can do, for each provider.
func TestCheck(t *testing.T) {
	many := make([]string, 501)
	for i := range many {
		many[i] = fmt.Sprintf(`"v%d"`, i)
	}
	for name, test := range map[string]struct {
		tool, schema string
		profile      provider.Profile
		want         []provider.Loss
	}{
		"any":   {"a b", `{"oneOf":[{"type":"object"}]}`, provider.Any, nil},
		"plain": {"add", `{"type":"object","properties":{"a":{"type":"number"}}}`, provider.Gemini, nil},
		"alternatives": {"add", `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`, provider.Anthropic, []provider.Loss{{
			"input schema: oneOf is left out", "oneOf is not taken for the arguments as a whole",
			"make one object of the alternatives, with fields that may be missing, or a tool of each",
		}}},
		"keyword": {"add", `{"type":"object","additionalProperties":false}`, provider.Gemini, []provider.Loss{{
			"input schema: additionalProperties is left out", "additionalProperties is not taken",
			"none is needed where the server checks it; the description can tell it to the model",
		}}},
		"format": {"add", `{"type":"object","properties":{"a":{"type":"string","format":"email"}}}`, provider.Gemini, []provider.Loss{{
			`input field "a": format is left out`, `the format "email" is not taken`,
			"none is needed where the server checks it; the description can tell it to the model",
		}}},
		"numbers": {"add", `{"type":"object","properties":{"a":{"enum":[1,2]}}}`, provider.Gemini, []provider.Loss{{
			`input field "a": enum is left out`, "listed values are strings",
			"list the values as strings",
		}}},
		"many": {"add", `{"type":"object","properties":{"a":{"enum":[` + strings.Join(many, ",") + `]}}}`, provider.Gemini, []provider.Loss{{
			`input field "a": enum is left out`, "at most 500 values are listed",
			"make it a string, and name some values in the description",
		}}},
		"argument": {"add", `{"type":"object","properties":{"a b":{}}}`, provider.Anthropic, []provider.Loss{{
			`input field "a b" is left out: its name must be 1 to 64 letters, digits, _, . or -`,
			"names of arguments are 1 to 64 letters, digits, _, . or -", "give the field such a name",
		}}},
		"dot":     {"math.add", `{"type":"object"}`, provider.OpenAI, []provider.Loss{refused("math.add", "names of tools are 1 to 64 letters, digits, _ or -")}},
		"dot, ok": {"math.add", `{"type":"object"}`, provider.Gemini, nil},
		"digit": {"2add", `{"type":"object"}`, provider.Gemini, []provider.Loss{refused("2add",
			"names of tools are 1 to 64 letters, digits, _, ., : or -, and begin with a letter or _")}},
		"digit, ok": {"2add", `{"type":"object"}`, provider.Anthropic, nil},
		"newline":   {"add\n", `{"type":"object"}`, provider.Anthropic, []provider.Loss{refused(`add\n`, "names of tools are 1 to 64 letters, digits, _ or -")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := provider.Check(&mcp.Tool{Name: test.tool, InputSchema: mcp.RawValue(test.schema)}, test.profile)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func refused(name, why string) provider.Loss {
	return provider.Loss{`the name "` + name + `" is refused`, why, "rename the tool; until then hosts call it something else"}
}

// What Check tells is what Reduce does, and nothing is told without reason and mend.
func TestCheckIsReduce(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"null"},"b":{"$ref":"#/x"},"c":{"contains":{}},"d":{"type":["string","null"],"format":"uri","pattern":"(?=a)"}},"required":["z"]}`,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"not":{"required":["a"]},"dependentRequired":{"a":["b"]}}`,
		`{"type":"array"}`,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"minimum":2}],"description":"d"},"b":{"items":[{},{}]}}}`,
		`{"type":"object","properties":` + strings.Repeat(`{"a":{"properties":`, 12) + `{}` + strings.Repeat(`}}`, 12) + `}`,
		`{"type":"object","description":"` + strings.Repeat("x", 5000) + `"}`,
		`{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		for name, p := range map[string]provider.Profile{"anthropic": provider.Anthropic, "openai": provider.OpenAI, "gemini": provider.Gemini} {
			_, notes, err := provider.Reduce(mcp.RawValue(schema), p)
			losses, checkErr := provider.Check(&mcp.Tool{Name: "add", InputSchema: mcp.RawValue(schema)}, p)
			var told []string
			for _, l := range losses {
				told = append(told, l.What)
				if l.Why == "" || l.Mend == "" {
					t.Errorf("%s: %+v has no reason or no mend", name, l)
				}
			}
			if !slices.Equal(notes, told) || err != nil || checkErr != nil {
				t.Errorf("%s: Reduce says %q (%v), Check %q (%v)", name, notes, err, told, checkErr)
			}
		}
	}
	if _, err := provider.Check(&mcp.Tool{Name: "add", InputSchema: mcp.RawValue(`7`)}, provider.Gemini); err == nil {
		t.Error("a schema that is a number has no error")
	}
}

func ExampleCheck() {
	add := &mcp.Tool{Name: "math.add", InputSchema: mcp.RawValue(`{
		"type": "object",
		"properties": {"a": {"type": "integer", "exclusiveMinimum": 0}}
	}`)}
	losses, err := provider.Check(add, provider.Gemini)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range losses {
		fmt.Println(l.What, "-", l.Why)
	}
	losses, _ = provider.Check(add, provider.OpenAI)
	fmt.Println(losses[0].What, "-", losses[0].Why)
	// Output:
	// input field "a": exclusiveMinimum is left out - exclusiveMinimum is not taken
	// the name "math.add" is refused - names of tools are 1 to 64 letters, digits, _ or -
}
