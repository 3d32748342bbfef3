package cli_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/oauth"
)

// fileLimit is the size that files of a process have at most, as on a disk with that much room.
func (p *process) fileLimit(size uint64) {
	p.t.Helper()
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// While the disk under SQLite is full, at whatever point of a transaction, requests that must store
// something are refused as the fault of the server, which says that it is not ready and why. A refresh
// token is good afterwards, and a code that could not be taken; the server goes on by itself once there
// is room.
func TestDatabaseDiskFull(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "issuer.db")
	p := newProcess(t, file, "--refresh-grace", "0", // what is used twice ends
		"--introspector", clientFile(t, ""))
	access := accessToken(t, p.url, killResource)
	verifier := oauth.NewVerifier()
	spent := p.code(verifier)
	token, trouble := p.redeem(spent, verifier)
	if trouble != "" {
		t.Fatal(trouble)
	}
	secrets := []string{spent, token, verifier, access, guardSecret}
	for i, room := range []uint64{0, 100, 4200} {
		waiting := p.code(verifier)
		log, err := os.Stat(file + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		p.fileLimit(room)
		if i > 0 { // a part of a transaction is written
			p.fileLimit(uint64(log.Size()) + room)
		}
		p.refusesToStore(token, waiting, verifier)
		if answer := p.introspect(access); !strings.Contains(answer, `"active":true`) {
			t.Errorf("of an access token it says %s", answer)
		}
		p.fileLimit(unix.RLIM_INFINITY)
		(&place{t: t}).eventually(p.url+"/readyz", http.StatusOK, "")
		if token, trouble = p.refresh(token); trouble != "" {
			t.Fatalf("with room again: %q", trouble)
		}
		secrets = append(secrets, waiting, token)
		if _, trouble := p.redeem(waiting, verifier); i == 0 && trouble != "" {
			t.Errorf("the code that waited: %q", trouble)
		}
		if _, trouble := p.redeem(waiting, verifier); trouble != oauth.InvalidGrant {
			t.Errorf("the code once more: %q", trouble)
		}
	}
	said := p.said.String()
	for _, want := range []string{`msg="not ready" check=database error="ping by writing: SQLite answers `, "look whether its disk is full", `msg="ready again" check=database`} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	for _, secret := range secrets {
		if strings.Contains(said, secret) {
			t.Errorf("a secret is shown:\n%s", said)
		}
	}
}

// introspect asks about a token, as the client of clientFile.
func (p *process) introspect(token string) string {
	p.t.Helper()
	basic := base64.StdEncoding.EncodeToString([]byte("guard:" + guardSecret))
	return string(post(p.t, p.url+"/introspect", "application/x-www-form-urlencoded", url.Values{"token": {token}}.Encode(),
		http.Header{"Authorization": {"Basic " + basic}}))
}

// refusesToStore checks the answers of a server that cannot write.
func (p *process) refusesToStore(token, waiting, verifier string) {
	p.t.Helper()
	for range 2 {
		if _, trouble := p.refresh(token); trouble != oauth.ServerError {
			p.t.Errorf("a refresh: %q", trouble)
		}
		if _, trouble := p.redeem(waiting, verifier); trouble != oauth.ServerError {
			p.t.Errorf("a code: %q", trouble)
		}
		if code, page := newVisitor(p.t, p.url).authorize(verifier, nil); code != "" || !strings.Contains(page, "error=server_error") {
			p.t.Errorf("a sign-in: %s", page)
		}
	}
	body := (&place{t: p.t}).eventually(p.url+"/readyz", http.StatusServiceUnavailable, `"database":"failed"`)
	if strings.Contains(body, "SQLite") {
		p.t.Errorf("not ready: %s", body)
	}
	for _, path := range []string{"/livez", "/jwks", "/.well-known/oauth-authorization-server"} {
		if status, _ := get(p.t, p.url+path, ""); status != http.StatusOK {
			p.t.Errorf("%s: %d", path, status)
		}
	}
}
