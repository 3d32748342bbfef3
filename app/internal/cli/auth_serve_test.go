package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// A process is an authorization server of its own, which can be killed.
type process struct {
	*tokenEndpoint
	args  []string
	cmd   *exec.Cmd
	said  output     // by all that were started
	ended chan error // of the process
}

const killClient, killRedirect, killResource = "cli", "http://127.0.0.1/callback", "https://mcp.example/mcp"

func newProcess(t *testing.T, database string, flags ...string) *process {
	t.Helper()
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + port
	p := &process{tokenEndpoint: &tokenEndpoint{t, "http://" + address}, args: append([]string{
		"auth", "serve", "--http", address, "--database", database, "--auto-approve", "ada",
		"--client", killClient + "=" + killRedirect, "--resource", killResource + "=read",
	}, flags...)}
	p.start()
	t.Cleanup(func() {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	_, p.cmd, p.ended = spawn(p.t, "authorization server is", &p.said, p.args...)
}

// spawn starts the program as a process, and returns what it says in the parentheses of a pattern. All
// that it says goes to said; ended gets the error of its end.
func spawn(t *testing.T, pattern string, said *output, args ...string) (value string, cmd *exec.Cmd, ended chan error) {
	t.Helper()
	path, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(context.WithoutCancel(t.Context()), path, args...)
	var own output
	cmd.Stderr = io.MultiWriter(&own, said)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	ended = make(chan error, 1)
	go func() {
		defer close(over)
		ended <- cmd.Wait()
	}()
	if value = own.wait(pattern, over); value == "" {
		t.Fatalf("parley %s did not start:\n%s", strings.Join(args, " "), &own)
	}
	return value, cmd, ended
}

// startChild is spawn of a process that ends with the test.
func startChild(t *testing.T, pattern string, args ...string) (value string) {
	t.Helper()
	said := new(output)
	value, cmd, ended := spawn(t, pattern, said, args...)
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), <-ended); err != nil {
			t.Errorf("parley %s: %v\n%s", strings.Join(args, " "), err, said)
		}
	})
	return value
}

// kill ends it as the machine's kernel would, and starts it anew.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	if err := <-p.ended; err == nil {
		p.t.Fatal("the authorization server was not killed")
	}
	p.start()
}

// authorizeURL is an authorization request of the client "cli".
func authorizeURL(issuer, verifier string) string {
	return issuer + "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {killClient}, "redirect_uri": {killRedirect}, "state": {"state"}, "scope": {"read"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {"S256"}, "resource": {killResource},
	}.Encode()
}

// code is one that the browser is sent back with.
func (p *process) code(verifier string) string {
	p.t.Helper()
	end, err := endOf(p.t.Context(), authorizeURL(p.url, verifier))
	if err != nil {
		p.t.Fatal(err)
	}
	u, err := url.Parse(end)
	if err != nil {
		p.t.Fatal(err)
	}
	return u.Query().Get("code")
}

func (p *process) redeem(code, verifier string) (refresh, trouble string) {
	p.t.Helper()
	return p.token(url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {killRedirect},
	})
}

func (p *process) refresh(token string) (refresh, trouble string) {
	p.t.Helper()
	return p.token(url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {token}})
}

// A tokenEndpoint is that of an authorization server.
type tokenEndpoint struct {
	t   *testing.T
	url string // of the server
}

// token asks it as the client "cli", and returns a refresh token or an error code.
func (p *tokenEndpoint) token(form url.Values) (refresh, trouble string) {
	p.t.Helper()
	form.Set("client_id", killClient)
	form.Set("resource", killResource)
	var answer struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal(post(p.t, p.url+"/token", "application/x-www-form-urlencoded", form.Encode(), nil), &answer); err != nil {
		p.t.Fatal(err)
	}
	if (answer.Access == "") == (answer.Error == "") {
		p.t.Error("neither an access token nor an error, or both")
	}
	return answer.Refresh, answer.Error
}

func (p *process) keys() string {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/jwks", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(send(p.t, r))
}

func post(t *testing.T, address, media, body string, header http.Header) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", media)
	return send(t, r)
}

func send(t *testing.T, r *http.Request) []byte {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A server that is killed between authorization and token goes on where it was:
// with its keys, its codes and its refresh tokens, and what was spent is spent.
// Proves: the records of auth serve, in both databases.
func TestServeSurvivesKill(t *testing.T) {
	t.Parallel()
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, database(t))
			verifier := oauth.NewVerifier()
			waiting, spent := p.code(verifier), p.code(verifier)
			first, trouble := p.redeem(spent, verifier)
			keys := p.keys()
			if trouble != "" || first == "" || !strings.Contains(keys, `"kid"`) {
				t.Fatalf("before the kill: %q, keys %s", trouble, keys)
			}
			p.kill()
			if got := p.keys(); got != keys {
				t.Errorf("the keys were\n%s\nand are\n%s", keys, got)
			}
			second, trouble := p.refresh(first)
			if trouble != "" {
				t.Fatalf("the refresh after the kill: %s", trouble)
			}
			if _, trouble := p.redeem(waiting, verifier); trouble != "" {
				t.Errorf("a code that nobody had redeemed: %s", trouble)
			}
			p.kill()
			if _, trouble := p.redeem(waiting, verifier); trouble != oauth.InvalidGrant {
				t.Errorf("a code that was redeemed before the kill: %q", trouble)
			}
			third, trouble := p.refresh(second)
			if trouble != "" {
				t.Errorf("another refresh: %s", trouble)
			}
			if _, trouble := p.refresh(first); trouble != oauth.InvalidGrant {
				t.Errorf("a token that was rotated before the kill: %q", trouble)
			}
			if _, trouble := p.refresh(third); trouble != oauth.InvalidGrant {
				t.Errorf("the family of a token that was used twice: %q", trouble)
			}
		})
	}
}

// Behind a proxy that is named, limits and audit are about who comes.
func TestServeBehindProxy(t *testing.T) {
	for flag, want := range map[string]string{"127.0.0.0/8": "203.0.113.7", "10.0.0.0/8": "127.0.0.1"} {
		p := newEmptyPlace(t)
		file := filepath.Join(p.dir, "audit.json")
		at := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--trusted-proxy", flag, "--audit-file", file)
		post(t, at+"/token", "application/x-www-form-urlencoded", "", http.Header{"X-Forwarded-For": {"198.51.100.1, 203.0.113.7"}})
		raw, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(raw, []byte(`"remote":"`+want+`"`)) {
			t.Errorf("--trusted-proxy %s: want %s in\n%s%v", flag, want, raw, err)
		}
	}
}

// Attack: a tunnel to a server that asks nobody who they are.
func TestAutoApproveTakesNoProxy(t *testing.T) {
	p := newPlace(t)
	for header, want := range map[string]int{"X-Forwarded-For": http.StatusForbidden, "Via": http.StatusForbidden, "Accept": http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.issuer+"/jwks", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, "203.0.113.7")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with %s: %s, want %d", header, resp.Status, want)
		}
	}
}
