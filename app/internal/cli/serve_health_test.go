package cli_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// expectHealth expects what a server says of its health, without a token and under any name.
func expectHealth(t *testing.T, at, path string, status int, body string) {
	t.Helper()
	got, said := get(t, at+path, "balancer.example")
	for strings.Contains(said, `"timeout"`) { // the machine is too busy for a check
		<-time.After(50 * time.Millisecond)
		got, said = get(t, at+path, "balancer.example")
	}
	if got != status || said != body+"\n" {
		t.Errorf("%s: %d %s, want %d %s", path, got, said, status, body)
	}
}

// A server is ready when it can ask its issuer about tokens, and says no more to strangers than which
// issuer it cannot ask.
func TestServeHealthIntrospection(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	p, issuer := newEmptyPlace(t), newPeer(t)
	address := p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:0",
		"--auth", issuer.URL, "--introspect", clientFile(t, ""), "--require-fresh", "3s")
	at := strings.TrimSuffix(address, "/mcp")
	expectHealth(t, at, "/livez", http.StatusOK, `{"status":"ok"}`)
	expectHealth(t, at, "/readyz", http.StatusOK, `{"status":"ok","checks":{"introspection at `+issuer.URL+`":"ok"}}`)
	issuer.says(http.StatusUnauthorized, `{"error":"invalid_client"}`)
	body := p.eventually(at+"/readyz", http.StatusServiceUnavailable, `"failed"}`)
	if want := `{"status":"failed","checks":{"introspection at ` + issuer.URL + `":"failed"}}` + "\n"; body != want {
		t.Errorf("when the client is refused: %s, want %s", body, want)
	}
	if !p.saw(`msg="not ready" check="introspection at ` + issuer.URL + `" error="` + issuer.URL + `/introspect refuses the client`) {
		t.Errorf("the operator is not told:\n%s", p.said)
	}
	expectHealth(t, at, "/livez", http.StatusOK, `{"status":"ok"}`)
	if strings.Contains(p.said.String(), guardSecret) {
		t.Errorf("a secret is shown:\n%s", p.said)
	}
	issuer.says(http.StatusOK, `{"active":false}`)
	p.eventually(at+"/readyz", http.StatusOK, "")
}

// A server, and a bridge, is ready once it has the keys of its issuer.
func TestServeHealthKeys(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	for name, command := range map[string][]string{"serve": {"serve", "everything"}, "bridge": {"bridge", "everything"}} {
		t.Run(name, func(t *testing.T) {
			p := newEmptyPlace(t)
			away, err := pickPort()
			if err != nil {
				t.Fatal(err)
			}
			issuer := "http://127.0.0.1:" + away
			address := p.start(`"everything" at (\S+);`, append(command, "--http", "127.0.0.1:0", "--auth", issuer, "--keys-max-age", "2s")...)
			at := strings.TrimSuffix(address, "/mcp")
			expectHealth(t, at, "/readyz", http.StatusServiceUnavailable, `{"status":"failed","checks":{"keys of `+issuer+`":"failed"}}`)
			p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:"+away,
				"--database", filepath.Join(p.dir, "issuer.db"), "--resource", address+"=read")
			p.eventually(at+"/readyz", http.StatusOK, "")
			if status, _ := get(t, address, ""); status != http.StatusUnauthorized {
				t.Errorf("the endpoint without a token: %d", status)
			}
			p.stop()
			p.eventually(at+"/readyz", http.StatusServiceUnavailable, "")
		})
	}
}

// A server that needs no tokens is ready when it answers.
func TestServeHealthOpen(t *testing.T) {
	p := newEmptyPlace(t)
	at := strings.TrimSuffix(p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:0"), "/mcp")
	expectHealth(t, at, "/livez", http.StatusOK, `{"status":"ok"}`)
	expectHealth(t, at, "/readyz", http.StatusOK, `{"status":"ok"}`)
}
