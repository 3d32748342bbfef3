package issuer_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// A brokenStore fails from the moment it is told to, with details that nobody
// outside may see.
type brokenStore struct {
	issuer.Store
	broken map[string]bool
}

var errDetail = errors.New("dial tcp 10.0.0.5:5432: secret-detail")

func (b *brokenStore) fail(operation string) error {
	if b.broken[operation] {
		return errDetail
	}
	return nil
}

func (b *brokenStore) Client(ctx context.Context, id string, now time.Time) (*issuer.Client, error) {
	if err := b.fail("Client"); err != nil {
		return nil, err
	}
	return b.Store.Client(ctx, id, now)
}

func (b *brokenStore) AddClient(ctx context.Context, c *issuer.Client, limit int) (*issuer.Client, error) {
	if err := b.fail("AddClient"); err != nil {
		return nil, err
	}
	return b.Store.AddClient(ctx, c, limit)
}

func (b *brokenStore) AddGrant(ctx context.Context, g *issuer.Grant) error {
	return errors.Join(b.fail("AddGrant"), b.Store.AddGrant(ctx, g))
}

func (b *brokenStore) AddCode(ctx context.Context, hash string, c *issuer.Code) error {
	return errors.Join(b.fail("AddCode"), b.Store.AddCode(ctx, hash, c))
}

func (b *brokenStore) AddSession(ctx context.Context, session *issuer.Session) error {
	return errors.Join(b.fail("AddSession"), b.Store.AddSession(ctx, session))
}

func (b *brokenStore) Session(ctx context.Context, id string, now time.Time) (*issuer.Session, error) {
	if err := b.fail("Session"); err != nil {
		return nil, err
	}
	return b.Store.Session(ctx, id, now)
}

func (b *brokenStore) SetRecord(ctx context.Context, kind, hash string, data []byte, expires time.Time) error {
	if err := b.fail("SetRecord " + kind); err != nil {
		return err
	}
	return b.Store.SetRecord(ctx, kind, hash, data, expires)
}

func (b *brokenStore) Record(ctx context.Context, kind, hash string, now time.Time) ([]byte, error) {
	if err := b.fail("Record " + kind); err != nil {
		return nil, err
	}
	return b.Store.Record(ctx, kind, hash, now)
}

func (b *brokenStore) TakeRecord(ctx context.Context, kind, hash string, now time.Time) ([]byte, error) {
	if err := b.fail("TakeRecord " + kind); err != nil {
		return nil, err
	}
	return b.Store.TakeRecord(ctx, kind, hash, now)
}

func (b *brokenStore) Consent(ctx context.Context, subject, client, resource string, now time.Time) (*issuer.Consent, error) {
	if err := b.fail("Consent"); err != nil {
		return nil, err
	}
	return b.Store.Consent(ctx, subject, client, resource, now)
}

func (b *brokenStore) SetConsent(ctx context.Context, c *issuer.Consent) error {
	return errors.Join(b.fail("SetConsent"), b.Store.SetConsent(ctx, c))
}

// Attack: error text leaks. Whatever fails in the back, browsers and clients
// see fixed texts; the log has the detail.
func TestAttackErrorTextLeaksToBrowsers(t *testing.T) {
	t.Parallel()
	for operation, status := range map[string]int{
		"Client": http.StatusInternalServerError, "SetRecord request": 0, "Session": 0, "Record request": http.StatusInternalServerError,
		"TakeRecord request": http.StatusInternalServerError, "AddSession": 0, "Consent": 0, "SetConsent": 0, "AddGrant": 0, "AddCode": 0,
	} {
		store := &brokenStore{Store: issuer.NewMemory(), broken: map[string]bool{}}
		s := newSiteOn(t, "", store, formLogin{}, registering)
		p := s.person()
		p.signIn(s.request(), "ada")
		store.broken[operation] = true
		got := p.open(s.request())
		if operation == "Client" {
			got = p.open(s.request("client_id", "dynamic"))
		}
		if strings.Contains(got.body, "Allow") && got.away == nil {
			got = p.submit(got, "answer", "approve")
		}
		if operation == "AddSession" {
			store.broken[operation] = false
			form := p.open(s.request("prompt", "login"))
			store.broken[operation] = true
			got = p.submit(form, "user", "ada", "password", "right")
		}
		everything := got.body + got.header.Get("Location")
		if status == 0 && (got.away == nil || got.away.Query().Get("error") != oauth.ServerError) || status != 0 && got.status != status {
			t.Errorf("%s: %d %v", operation, got.status, got.away)
		}
		if strings.Contains(everything, "secret-detail") || strings.Contains(everything, "10.0.0.5") {
			t.Errorf("%s: %s", operation, everything)
		}
		if !strings.Contains(s.events.String(), "secret-detail") {
			t.Errorf("%s: the log lacks the detail", operation)
		}
	}
	store := &brokenStore{Store: issuer.NewMemory(), broken: map[string]bool{"AddClient": true}}
	s := newSiteOn(t, "", store, formLogin{}, registering)
	status, body := s.post("/register", "application/json", evilMetadata)
	if status != http.StatusInternalServerError || strings.Contains(body, "secret-detail") {
		t.Errorf("registration: %d %s", status, body)
	}
}

// What comes in does not come back: neither in pages nor in JSON.
func TestNothingIsRepeated(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, registering)
	const marker = "xyzzy"
	p := s.person()
	for _, target := range []string{
		s.request("client_id", marker), s.request("redirect_uri", "https://client.example/"+marker),
		s.url + "/consent?visit=" + marker, s.url + "/login/" + marker + "?state=" + marker, s.url + "/authorize?" + marker + "=%zz",
	} {
		if got := p.open(target); strings.Contains(got.body, marker) {
			t.Errorf("%s: %s", target, got.body)
		}
	}
	for _, pairs := range [][]string{
		{"scope", marker},
		{"resource", "https://" + marker},
		{"response_type", marker},
		{"prompt", marker},
	} {
		if got := p.open(s.request(pairs...)); strings.Contains(got.away.String(), marker) {
			t.Errorf("%v: %v", pairs, got.away)
		}
	}
	for _, body := range []string{`{"redirect_uris":["` + marker + `"]}`, `{"` + marker + `":`, `{"redirect_uris":["https://c.example/"],"application_type":"` + marker + `"}`} {
		if _, answer := s.post("/register", "application/json", body); strings.Contains(answer, marker) {
			t.Errorf("%s: %s", body, answer)
		}
	}
}

// Proves: R13: the log and the audit log hold no secret of a whole flow.
func TestLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	form := p.open(s.request())
	p.submit(form, "user", "ada", "password", "wrong-secret")
	question := p.submit(form, "user", "ada", "password", "right")
	login := p.login()
	code := p.code(p.submit(question, "answer", "approve"))
	p.open(question.url)
	visit, err := url.Parse(question.url)
	if err != nil {
		t.Fatal(err)
	}
	log := s.events.String()
	if !strings.Contains(log, "code.issued") || !strings.Contains(log, "ada") {
		t.Errorf("the log tells nothing:\n%s", log)
	}
	for name, secret := range map[string]string{
		"password": "wrong-secret", "login": login, "code": code, "handle": visit.Query().Get("visit"),
		"csrf": tokens.FindStringSubmatch(question.body)[1], "challenge": oauth.ChallengeS256(verifier),
	} {
		if secret == "" || strings.Contains(log, secret) {
			t.Errorf("the log has the %s %q", name, secret)
		}
	}
}
