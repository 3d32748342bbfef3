package cli_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
)

// What a server asks during a call is answered at the terminal, in each way of asking that a
// revision has.
//
// Proves: FLOW-ELICIT-H, FLOW-SAMPLE-H, SEC-ELICIT-1, SEC-ELICIT-2.
func TestInspectAnswersAtTerminal(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, test := range map[string]struct {
		call  []string
		input string
		out   string
		asked []string
	}{
		"form": {
			[]string{"trigger-elicitation-request"},
			"y\n\nAda\nada\nada@example.com\n\n\n-1\n36\n\n\nred\n1\ny\n", "Name: Ada",
			[]string{"Server everything asks you for something.", "Please introduce yourself.", "it is required", "Parley would send this to the server:", `"age": 36`},
		},
		"form, filled in again": {
			[]string{"trigger-elicitation-request"}, "y\nEve\n\n\n\n\n\n\n\n\na\nAda\n\n\n\n\n\n\n\n\ny\n", "Name: Ada", []string{"[a]gain"},
		},
		"form declined":      {[]string{"trigger-elicitation-request"}, "maybe\nn\n", "did not answer: decline", []string{"Type one of the letters."}},
		"form declined late": {[]string{"trigger-elicitation-request"}, "y\n/decline\n", "did not answer: decline", nil},
		"form cancelled":     {[]string{"trigger-elicitation-request"}, "y\nAda\n/cancel\n", "did not answer: cancel", nil},
		"input ended":        {[]string{"trigger-elicitation-request"}, "y\nAda\n", "did not answer: cancel", nil},
		"page":               {[]string{"trigger-url-elicitation", "--tool-arg", "errorPath=false"}, "y\n", "agreed", []string{"whole address", "https://example.com/parley/demonstration", "Open it in your browser?"}},
		"page declined":      {[]string{"trigger-url-elicitation", "--tool-arg", "errorPath=false"}, "n\n", "did not go there", nil},
		"model":              {[]string{"trigger-sampling-request", "--tool-arg", "prompt=Who are you?"}, "Nobody.\n", "says: Nobody.", []string{"sent a sampling request. You answer instead of a model.", "Who are you?"}},
		"two questions":      {[]string{"drop-table", "--tool-arg", "table=t"}, "y\ny\ny\ny\nlong unused\ny\n", "dropped t", nil},
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(name+", "+era, func(t *testing.T) {
				t.Parallel()
				exit, out, stderr := run(t, test.input, append(append([]string{"inspect", "--protocol-era", era, "--method", "tools/call", "--tool-name"}, test.call...), "everything")...)
				if exit != 0 || !strings.Contains(out, test.out) {
					t.Errorf("exit code %d, no %q in\n%s\n%s", exit, test.out, out, stderr)
				}
				for _, text := range test.asked {
					if !strings.Contains(stderr, text) {
						t.Errorf("no %q in\n%s", text, stderr)
					}
				}
			})
		}
	}
}

// A model's answer that the person refuses to give is refused in each era's way.
func TestInspectDeclinesSampling(t *testing.T) {
	t.Parallel()
	for era, exit := range map[string]int{"legacy": 5, "modern": 1} {
		for _, input := range []string{"/decline\n", ""} {
			code, out, stderr := run(t, input, "inspect", "--protocol-era", era, "--method", "tools/call", "--tool-name", "trigger-sampling-request", "--tool-arg", "prompt=x", "everything")
			if code != exit || !strings.Contains(out+stderr, "refused") {
				t.Errorf("%s: exit code %d\n%s\n%s", era, code, out, stderr)
			}
		}
	}
}

// Without a terminal --answer answers, and what it does not answer is declined with a note that
// says how to answer.
func TestInspectAnswersBeforehand(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	const form, page, model = "trigger-elicitation-request", "trigger-url-elicitation", "trigger-sampling-request"
	for name, test := range map[string]struct {
		tool    string
		answers []string
		exit    int
		out     string
		said    string
	}{
		"nobody, form":    {form, nil, 0, "did not answer: decline", `Answer at a terminal, or first pass --answer '{"name": "…"}'`},
		"nobody, page":    {page, nil, 0, "did not go there", "The server asks you to open https://example.com/parley/demonstration\n"},
		"form":            {form, []string{`{"name":"Ada","age":36}`}, 0, "newsletter: false; age: 36", ""},
		"form declined":   {form, []string{"decline"}, 0, "did not answer: decline", ""},
		"form cancelled":  {form, []string{"cancel"}, 0, "did not answer: cancel", ""},
		"form's defaults": {form, []string{"accept"}, 1, "", `--answer accept sends the defaults of the form, and the answer does not fit the form`},
		"wrong member":    {form, []string{`{"nme":"Ada"}`}, 1, "", `--answer, number 1: the form has no field \"nme\"; the form wants '{\"name\": \"…\"}'`},
		"wrong value":     {form, []string{`{"name":"Ada","age":"old"}`}, 1, "", `--answer, number 1: the answer does not fit the form: `},
		"page":            {page, []string{"accept"}, 0, "agreed", ""},
		"page declined":   {page, []string{"decline"}, 0, "did not go there", ""},
		"model":           {model, []string{"Nobody."}, 0, "The model a person says: Nobody.", ""},
		"whole result":    {model, []string{`{"role":"assistant","content":{"type":"text","text":"Nobody."},"model":"m"}`}, 0, "The model m says: Nobody.", ""},
		"no result":       {model, []string{`{"text":"Nobody."}`}, 1, "", "--answer: the server sent a sampling request; write the model's text"},
		"one too many":    {form, []string{"a text", `{"name":"Ada"}`}, 0, "Name: Ada", "did not request input for one --answer"},
		"no JSON":         {form, []string{`{"name"}`}, 1, "", "--answer: must be a JSON object"},
		"empty":           {form, []string{" "}, 1, "", "--answer must not be empty"},
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(name+", "+era, func(t *testing.T) {
				t.Parallel()
				args := []string{"inspect", "--json", "--protocol-era", era, "--method", "tools/call", "--tool-name", test.tool}
				if test.tool == model {
					args = append(args, "--tool-arg", "prompt=x")
				}
				for _, a := range test.answers {
					args = append(args, "--answer", a)
				}
				exit, out, stderr := command(t, append(args, "everything")...)
				if exit != test.exit || !strings.Contains(out, test.out) || !strings.Contains(stderr, test.said) || test.said == "" && stderr != "" {
					t.Errorf("exit code %d\n%s\n%s", exit, out, stderr)
				}
			})
		}
	}
	// Nothing is declared that the flags switch off; a server may then not ask.
	exit, _, stderr := command(t, "inspect", "--json", "--protocol-era", "modern", "--method", "tools/call", "--tool-name", form, "--elicit", "off", "everything")
	if exit != 1 || !strings.Contains(stderr, `"code":"rpc_error"`) {
		t.Errorf("without elicitation: exit code %d\n%s", exit, stderr)
	}
	exit, _, stderr = command(t, "inspect", "--json", "--method", "tools/list", "--answer", "accept", "everything")
	if exit != 1 || !strings.Contains(stderr, "--answer requires a method that can request input") {
		t.Errorf("an answer to no question: exit code %d\n%s", exit, stderr)
	}
}
