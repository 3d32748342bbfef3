package cli_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// saw waits until a server has said something on standard error; false if it
// does not for long.
func (p *place) saw(want string) bool {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	return p.said.wait(regexp.QuoteMeta(want), ctx.Done()) != ""
}

// What breaks in an authorization server is told to its operator, without -v;
// to clients it is "try again later".
func TestBrokenTableIsLogged(t *testing.T) {
	p := newEmptyPlace(t)
	file := filepath.Join(p.dir, "issuer.db")
	at := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database", file,
		"--client", killClient+"="+killRedirect, "--resource", killResource+"=read", "--audit-file", filepath.Join(p.dir, "audit"))
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)") // the server writes to it as well
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "DROP TABLE refresh_tokens")
	if closing := db.Close(); err != nil || closing != nil {
		t.Fatal(err, closing)
	}
	form := url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {"x"}, "client_id": {killClient}}
	said := post(t, at+"/token", "application/x-www-form-urlencoded", form.Encode(), nil)
	if !bytes.Contains(said, []byte(oauth.ServerError)) || bytes.Contains(said, []byte("refresh_tokens")) {
		t.Errorf("the client was told %s", said)
	}
	if !p.saw(`level=ERROR msg="request failed" path=/token`) || !p.saw("reading a refresh token") {
		t.Errorf("the operator was told nothing of it:\n%s", p.said)
	}
	if strings.Contains(p.said.String(), "level=DEBUG") || strings.Contains(p.said.String(), "level=INFO") {
		t.Errorf("the operator was told too much:\n%s", p.said)
	}
}

// That tokens cannot be judged because their issuer is not there is told to the
// operator of the server, without -v.
func TestUnreachableIssuerIsLogged(t *testing.T) {
	p := newEmptyPlace(t)
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	at := p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:0", "--auth", "http://127.0.0.1:"+port)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"ES256","typ":"at+jwt","kid":"k"}`)) + "." +
		part([]byte(`{"iss":"http://127.0.0.1:`+port+`","sub":"a","aud":"`+at+`","exp":4000000000}`)) + "." + part(make([]byte, 64))
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %s", resp.Status)
	}
	if !p.saw(`level=ERROR msg="token not judged"`) || strings.Contains(p.said.String(), token) {
		t.Errorf("the operator was told nothing of it, or too much:\n%s", p.said)
	}
}
