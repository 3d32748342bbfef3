package cli_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// A server that wants to know who calls, in a conversation: the person sees who asks for what
// and says no, then yes; the token is kept; and without a person it is said what to do.
//
// Proves: FLOW-AUTH-H, SEC-AUTH-1.
func TestFlowAuth(t *testing.T) {
	p := newPlace(t)
	code, _, said := command(t, "run", "--allow", "*", "--server", "vault="+p.url, "add 2 and 3")
	if code != 3 || !strings.Contains(said, "run 'parley login "+p.url) {
		t.Errorf("unattended: exit code %d\n%s", code, said)
	}
	k := begin(t, "--server", "vault="+p.url, "--server", "good=actor "+t.TempDir(), "--allow", "good/*")
	k.hears("A server wants you to sign in.", "server:               "+p.url, "authorization server: "+p.issuer, "scopes:               everything:read", "now? [y]es, [n]o: ")
	k.types("n")
	k.says("good/who")
	k.sees("says:\n    parley speaks ")
	k.says("/servers")
	k.sees("Server vault ", "you chose not to sign in")
	k.says("/retry vault")
	asked := k.wait(k.said, 0, "now? [y]es, [n]o: ")
	k.wait(k.said, asked, "now? [y]es, [n]o: ")
	k.types("n")
	k.quits()

	k = begin(t, "--server", "vault="+p.url)
	k.hears("now? [y]es, [n]o: ")
	k.types("y")
	k.hears("Your browser opens. If it does not, open this address:\n\n  "+p.issuer, "Nothing is to be pasted any more.")
	k.says("vault/add a=2 b=3")
	k.answers("y")
	k.sees("says:\n    5\n")
	k.quits()

	k = begin(t, "--server", "vault="+p.url)
	k.says("vault/add a=2 b=4")
	k.answers("y")
	k.sees("says:\n    6\n")
	k.quits()
	if strings.Contains(k.said.String(), "sign in") {
		t.Errorf("asked again to sign in:\n%s", k.said)
	}
	code, out, said := command(t, "run", "--allow", "*", "--server", "vault="+p.url, "add 2 and 5")
	if code != 0 || out != "7\n" {
		t.Errorf("signed in: exit code %d, %q\n%s", code, out, said)
	}
	for _, token := range p.stored() {
		if token != "" && strings.Contains(k.out.String()+k.said.String()+out+said, token) {
			t.Error("a secret is shown")
		}
	}
}

// A server that speaks no revision that is allowed is not used, and it is said why.
//
// Proves: FLOW-INIT-H, SEC-INIT-1.
func TestFlowInitVersions(t *testing.T) {
	for _, tt := range []struct{ allowed, spoken string }{
		{stateless, "2025-11-25"}, {"2025-11-25", "2024-11-05"}, {"2025-11-25", "2031-01-01"},
	} {
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		k := begin(t, "--server", "old=villain "+tt.spoken+" plain", "--protocol", tt.allowed, "--allow", "*")
		k.says("old/look")
		k.sees(`server "old": `, "no protocol version in common", "Failed. The reason: ")
		k.says("/servers")
		k.sees("Server old ")
		if shown := k.quits(); strings.Contains(shown, ": ready") {
			t.Errorf("%s is allowed and %s is spoken:\n%s", tt.allowed, tt.spoken, shown)
		}
		code, out, said := command(t, "run", "--allow", "*", "--server", "old=villain "+tt.spoken+" plain", "--protocol", tt.allowed, "look")
		if code == 0 || out != "" || !strings.Contains(said, "version") {
			t.Errorf("run: exit code %d, %q\n%s", code, out, said)
		}
	}
}

// Servers of 2025-03-26 may answer in batches. One that does so in another revision is
// understood too: each element says what it answers.
//
// Proves: FLOW-BATCH-H.
func TestFlowBatch(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-11-25", stateless} {
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		k := begin(t, "--server", "bulk=batcher "+version, "--allow", "*", "--logs", "info")
		k.says("bulk/both")
		k.sees("both of server bulk: done", "says:\n    in a batch", "Done: ")
		k.hears(`[bulk] info: "beside it"`)
		k.quits()
	}
}

// batcherMain is a server that answers calls in batches; its argument is its revision.
func batcherMain() {
	in := bufio.NewScanner(os.Stdin)
	v := &villain{version: os.Args[1], out: bufio.NewWriter(os.Stdout)}
	for in.Scan() {
		var m object
		if json.Unmarshal(in.Bytes(), &m) != nil || m["id"] == nil {
			continue
		}
		switch m["method"] {
		case "server/discover", "initialize", "logging/setLevel":
			v.request(m["id"], m["method"].(string), m)
		case "tools/list":
			v.reply(m["id"], object{"tools": []object{{"name": "both", "inputSchema": object{"type": "object"}}}, "ttlMs": 0, "cacheScope": "private"})
		case "tools/call":
			answer := text("in a batch")
			if v.version == stateless {
				answer["resultType"] = "complete"
			}
			_, _ = v.out.WriteString(compactJSON([]object{
				{"jsonrpc": "2.0", "method": "notifications/message", "params": object{"level": "info", "data": "beside it"}},
				{"jsonrpc": "2.0", "id": m["id"], "result": answer},
			}) + "\n")
		default:
			v.fail(m["id"], -32601, "no such method")
		}
		_ = v.out.Flush() // the end of the input tells
	}
}
