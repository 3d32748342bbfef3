package cli_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// authorizeAddress is where a person signs in, over several lines of a screen.
var authorizeAddress = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/authorize\?[\s\S]*?state=[A-Za-z0-9_\-\s]*?\n *\n`)

// On the screen a server that wants a sign-in when it is started asks by a question. Whoever has
// the browser on another machine types the address of the page that it ends at: the model does
// not get it, and the run goes on.
func TestSignInOnScreen(t *testing.T) {
	t.Parallel()
	tmux := os.Getenv(tmuxEnv)
	if tmux == "" {
		t.Skip(tmuxEnv + " names no tmux")
	}
	k := newKillable(t)
	signedIn(k)
	if code, out := k.parley("", "logout"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	s := newTmuxScreen(t, tmux, k.dir, []string{"env", "BROWSER=true", "parley", "chat", "--motion=false", "--config", "vault.jsonc", "add 2 and 3"})
	s.question("Server vault wants you to sign in.")
	s.sees("authorization server: http://127.0.0.1:").keys("y").sees("Waiting for you to sign in.")
	shown := waited(t, "the address to sign in at is not shown", s.shown, authorizeAddress.MatchString)
	address := strings.Join(strings.Fields(authorizeAddress.FindString(shown)), "")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	end := resp.Header.Get("Location")
	if !strings.Contains(end, "/callback?code=") {
		t.Fatalf("%s leads to %q (%s)", address, end, resp.Status)
	}
	s.types(end).keys("Enter").sees("The address was used for the sign-in, not sent as a message.")
	s.question("wants to call add of server vault")
	s.keys("y").sees("ready ·").sees("Done:").keys("C-u").types("/quit").keys("Enter").sees("ENDED 0")
	log := k.log()
	if strings.Contains(log, "code=") || !strings.Contains(log, `"kind":"sign-in"`) || !strings.Contains(log, `"text":"5"`) {
		t.Errorf("the log is\n%s", log)
	}
}
