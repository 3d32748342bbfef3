package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// A vault is a transport that has a person sign in before it connects, and again before each
// call.
type vault struct {
	transport.Dialer
	agreed chan bool // whether they did; has room
}

var (
	login = host.SignIn{Resource: "https://vault.example/mcp?key=hunter2", Issuer: "https://login.example", Scopes: []string{"read"}}
	more  = host.SignIn{Resource: "https://vault.example/mcp", Issuer: "https://login.example", Scopes: []string{"read", "write"}, More: true}
)

var errNoToken = errors.New("no token")

func (v *vault) ask(ctx context.Context, in host.SignIn, call bool) error {
	agreed, err := host.AskSignIn(ctx, &in)
	if err == nil && host.DuringCall(ctx) != call {
		err = errors.New("a request is taken for that of a call, or the reverse")
	}
	v.agreed <- agreed
	if err == nil && !agreed {
		err = errNoToken
	}
	return err
}

func (v *vault) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if err := v.ask(ctx, login, false); err != nil {
		return nil, err
	}
	l, err := v.Dialer.Dial(ctx, in)
	return &vaultLink{l, v}, err
}

type vaultLink struct {
	transport.Link
	vault *vault
}

func (l *vaultLink) Do(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) (*jsonrpc.Incoming, error) {
	if m.Method == mcp.MethodToolsCall {
		if err := l.vault.ask(ctx, more, true); err != nil {
			return nil, err
		}
	}
	return l.Link.Do(ctx, m, r)
}

// A transport asks the person to sign in: in the session that its request is for, as a question
// like others, before the connection and in the middle of a call, which goes on. A refusal is an
// answer, and the address is kept without what may be a key.
func TestAskSignIn(t *testing.T) {
	t.Parallel()
	ran := 0
	v := &vault{mem.New(serverOf(t, echo("echo", &ran)), nil), make(chan bool, 8)}
	store := new(host.Memory)
	h := newHost(t, &host.Options{Attended: true, Store: store, Policy: allowing(t, "*")}, nil)
	m := new(scripted)
	m.then(use("vault__echo", `{"text":"a"}`), use("vault__echo", `{"text":"b"}`))
	s := begin(t, h, m)
	refused := 0
	p := attend(t, s, func(q *host.Question) host.Answer {
		if q.SignIn.More {
			if refused++; refused == 2 {
				return host.Answer{Face: "test"}
			}
		}
		return approve(q)
	})
	if err := h.Add(host.Server{Name: "vault", Dialer: v, Origin: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	questions := p.questions()
	if len(questions) != 3 {
		t.Fatalf("asked %d times, want 3", len(questions))
	}
	for i, want := range []*host.SignIn{&login, &more, &more} {
		q := questions[i]
		if q.Kind != host.QuestionSignIn || q.Server != "vault" || q.Origin != "test" || q.SignIn.Issuer != want.Issuer ||
			strings.Join(q.SignIn.Scopes, " ") != strings.Join(want.Scopes, " ") || (q.Call != "") != want.More {
			t.Errorf("question %d is %+v about %+v", i, q, q.SignIn)
		}
		if agreed := <-v.agreed; agreed != (i < 2) {
			t.Errorf("question %d: agreed is %v", i, agreed)
		}
	}
	if results := bodies[*host.ResultRecord](s); ran != 1 || len(results) != 2 || results[0].Outcome != host.OutcomeDone ||
		results[1].Outcome != host.OutcomeFailed || !strings.Contains(results[1].Why, errNoToken.Error()) {
		t.Errorf("it ran %d times, and the results are %+v", ran, results)
	}
	var audit []string
	for _, e := range store.AuditLog() {
		if strings.Contains(e.Why, "sign in") {
			audit = append(audit, e.Event+" "+e.Server+" "+e.Name)
		}
	}
	if got := strings.Join(audit, ", "); got != "approved vault https://login.example, approved vault https://login.example, refused vault https://login.example" {
		t.Errorf("the audit log has %s", got)
	}
	kept, err := store.Records(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range kept {
		raw, err := host.EncodeBody(r.Body)
		if err != nil || strings.Contains(string(raw), "hunter2") {
			t.Errorf("record %d is kept as %s (%v)", r.N, raw, err)
		}
	}
}

// Nobody can be asked about what is no request of a host, and a server that asks too often is
// not asked about any more.
func TestAskSignInRefused(t *testing.T) {
	t.Parallel()
	if agreed, err := host.AskSignIn(t.Context(), &login); err == nil || agreed || host.DuringCall(t.Context()) {
		t.Errorf("without a request: %v, %v", agreed, err)
	}
	ran := 0
	v := &vault{mem.New(serverOf(t, echo("echo", &ran)), nil), make(chan bool, 8)}
	h := newHost(t, &host.Options{Attended: true, MaxQuestions: 1, Policy: allowing(t, "*")}, nil)
	m := new(scripted)
	m.then(use("vault__echo", `{"text":"a"}`))
	s := begin(t, h, m)
	p := attend(t, s, approve)
	if err := h.Add(host.Server{Name: "vault", Dialer: v, Origin: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	p.one(t)
	if results := bodies[*host.ResultRecord](s); ran != 0 || len(results) != 1 || !strings.Contains(results[0].Why, "1 questions of server vault") {
		t.Errorf("it ran %d times, and the results are %+v", ran, results)
	}
}
