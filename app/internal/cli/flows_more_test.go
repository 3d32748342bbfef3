package cli_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
)

// A server that wants to know who calls, in a conversation: the person sees who asks for what
// and says no, then yes; the token is kept; and without a person it is said what to do.
//
// Proves: FLOW-AUTH-H, SEC-AUTH-1.
func TestFlowAuth(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	p := newPlace(t)
	code, _, said := command(t, "run", "--allow", "*", "--server", "vault="+p.url, "add 2 and 3")
	if code != 3 || !strings.Contains(said, "run 'parley login "+p.url) {
		t.Errorf("unattended: exit code %d\n%s", code, said)
	}
	k := begin(t, "--server", "vault="+p.url, "--server", "good=actor "+t.TempDir(), "--allow", "good/*")
	signIn(k, "n", "address: "+p.url, "authorization server: "+p.issuer, "scopes: everything:read", "asked because: the server lets in nobody whom it does not know")
	k.ready()
	k.says("good/who")
	k.sees("says:\n    parley speaks ")
	k.says("/servers")
	k.sees("Server vault ", "you chose not to sign in")
	k.says("/retry vault")
	signIn(k, "n")
	k.quits()

	k = begin(t, "--server", "vault="+p.url)
	signIn(k, "y")
	k.hears("Opening your browser. If it does not open, go to this address:\n\n  "+p.issuer, "You don't need to paste an address any more.")
	k.says("vault/add a=2 b=3")
	k.answers("y")
	k.sees("says:\n    5\n")
	k.quits()

	k = begin(t, "--server", "vault="+p.url)
	k.says("vault/add a=2 b=4")
	k.answers("y")
	k.sees("says:\n    6\n")
	k.quits()
	if shown := k.out.String() + k.said.String(); strings.Contains(shown, "sign in") {
		t.Errorf("asked again to sign in:\n%s", shown)
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

// signIn answers the question whether to sign in to the server vault. A line that is being read
// when the question is shown does not answer it, so that an empty one comes first.
func signIn(k *talk, answer string, about ...string) {
	k.t.Helper()
	k.sees("Server vault wants you to sign in.")
	k.sees(about...)
	k.sees("Your answer (y, n): ")
	k.types("")
	k.types(answer)
}

// In a pipe no line answers a question that nobody knew of when it was typed: a server that wants
// a sign-in is told with what to do, and the rest works.
func TestSignInFromPipe(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	signedIn(k)
	if code, out := k.parley("", "logout"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	code, out := k.parley("add 2 and 3\n/servers\n/quit\n", "chat", "--config", "vault.jsonc")
	if code != 0 || !strings.Contains(out, "Server vault") || !strings.Contains(out, "run 'parley login vault'") || strings.Contains(out, "Your answer") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// A server that speaks no revision that is allowed is not used, and it is said why.
//
// Proves: FLOW-INIT-H, SEC-INIT-1.
func TestFlowInitVersions(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
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
	if ranInOwnProcess(t) {
		return
	}
	for _, version := range []string{"2025-03-26", "2025-11-25", stateless} {
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		bulk := fakeScript(t, "server bulk "+version, "tool both Is answered in a batch.", "\tsay in a batch", "answer tools/call",
			`	line [{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"beside it"}},{answer}]`)
		k := begin(t, "--server", "bulk="+bulk, "--allow", "*", "--logs", "info")
		k.says("bulk/both")
		k.sees("both of server bulk: done", "says:\n    in a batch", "Done: ")
		k.hears(`[bulk] info: "beside it"`)
		k.quits()
	}
}
