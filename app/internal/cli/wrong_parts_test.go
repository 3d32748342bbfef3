package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
)

// look is a server of a handshake with one tool.
var look = []string{"server rogue 2025-11-25", "tool look Looks.", "\tsay seen"}

// wrongParts are answers of which only parts are wrong, by method.
var wrongParts = map[string][]string{
	"tools/list": {
		"answer tools/list",
		`	result {"tools":[{"name":"look","title":7,"annotations":{"readOnlyHint":"no"},"inputSchema":{"type":"object"}},{"name":"\u001b[31m"},{"name":9}]}`,
	},
	"tools/call": {
		"answer tools/call",
		`	result {"content":[{"type":"text","text":"seen"},{"type":"hologram","depth":3}]}`,
	},
}

// A wrong part of an answer costs nothing but itself, and is reported in one line per server.
func TestWrongParts(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	const list = `parley: server "rogue": 1 of 3 tools is left out (/tools/2/name: expected string, got number); ` +
		`the arguments of 1 of 3 tools are not checked ("\x1b[31m": it is missing); ` +
		`2 parts of its answers are wrong and were left out or replaced, the first: tools/list "look": /tools/0/title: expected string, got number; ` +
		`run 'parley doctor' to check the server`
	const block = `a part of its answers is wrong and was left out or replaced: tools/call "look": /content/1: of an unknown type`
	for _, test := range []struct {
		at, input string
		command   []string
		out, said []string
	}{
		{"tools/list", "", []string{"tools"}, []string{"rogue/look()"}, []string{list}},
		{"tools/list", "", []string{"call", "look"}, []string{"seen"}, []string{list}},
		{"tools/call", "", []string{"tools"}, []string{"rogue/look()"}, nil},
		{"tools/call", "", []string{"call", "look"}, []string{"seen", "of an unknown type", `"depth":3`}, []string{`parley: server "rogue": ` + block}},
		{"tools/call", "", []string{"run", "--allow", "*", "look"}, []string{"seen"}, []string{`server "rogue": ` + block}},
		{"tools/list", "/servers\n/quit\n", []string{"chat", "--allow", "*", "look"}, []string{"1 of 3 tools is left out", "2 parts of its answers are wrong", "seen"}, nil},
	} {
		server := "rogue=" + fakeScript(t, append(look, wrongParts[test.at]...)...)
		code, out, said := run(t, test.input, append(test.command, "--server", server)...)
		if code != 0 {
			t.Errorf("%v: exit code %d\n%s%s", test.command, code, out, said)
		}
		plain := strings.Join(strings.Fields(strings.ReplaceAll(said, "\n    | ", " ")), " ")
		shown := strings.Join(strings.Fields(strings.ReplaceAll(out, "\n    | ", " ")), " ")
		for _, want := range test.out {
			if !strings.Contains(shown, want) {
				t.Errorf("%v with %s wrong: not in the output: %s\n%s", test.command, test.at, want, out)
			}
		}
		for _, want := range test.said {
			if !strings.Contains(plain, want) {
				t.Errorf("%v with %s wrong: not on standard error: %s\n%s", test.command, test.at, want, said)
			}
		}
		if test.said == nil && strings.Contains(said, "wrong") {
			t.Errorf("%v with %s wrong: %s", test.command, test.at, said)
		}
	}
}

// The JSON list of tools includes each wrong part.
func TestWrongPartsAsJSON(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	code, out, said := run(t, "", "tools", "--json", "--server", "rogue="+fakeScript(t, append(look, wrongParts["tools/list"]...)...))
	var listed struct {
		Tools    []struct{ Tool struct{ Name string } }
		Problems []struct {
			Server string
			client.Problem
		}
	}
	if err := json.Unmarshal([]byte(out), &listed); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, said)
	}
	if len(listed.Tools) != 2 || listed.Tools[1].Tool.Name != "look" || len(listed.Problems) != 4 {
		t.Fatalf("%+v", listed)
	}
	if p := listed.Problems[3]; p.Subject != listed.Tools[0].Tool.Name || p.Effect != client.ArgumentsUnchecked || p.Why != "it is missing" {
		t.Errorf("%+v", p)
	}
	if p := listed.Problems[2]; p.Server != "rogue" || p.Method != "tools/list" || p.Place != "/tools/2/name" || p.Effect != client.Omitted || p.Why == "" {
		t.Errorf("%+v", p)
	}
}
