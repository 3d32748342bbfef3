package host_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// Proves: SEC-TOOL-5. What the name of a member says to be secret is not kept either if it is a
// number, or stands deeper in an object.
func TestSecretsOfOtherTypesAreNotKept(t *testing.T) {
	type login struct {
		PIN         int               `json:"pin"`
		Credentials map[string]string `json:"credentials"`
	}
	var got []login
	store := new(host.Memory)
	h := newHost(t, &host.Options{Attended: true, Store: store}, map[string]transport.Handler{
		"one": serverOf(t, server.Tool("login", "Signs in.", func(_ context.Context, in login) (string, error) {
			got = append(got, in)
			return "done", nil
		})),
	})
	s := begin(t, h, &scripted{turns: []turn{use("one__login", `{"pin":471199,"credentials":{"value":"hunter2-deep"}}`)}})
	who := attend(t, s, approve)
	ask(t, s)
	if len(got) != 1 || got[0].PIN != 471199 || got[0].Credentials["value"] != "hunter2-deep" {
		t.Fatalf("the server got %+v", got)
	}
	if q := who.one(t); len(q.Secrets) != 2 || q.Offers[0].Scope == host.ScopeArguments {
		t.Errorf("the person was shown %+v, offered %+v", q.Secrets, q.Offers)
	}
	notKept(t, store, s, "471199", "hunter2-deep")
}

// notKept checks that no record of a session in a store has a text.
func notKept(t *testing.T, store *host.Memory, s *host.Session, secrets ...string) {
	t.Helper()
	records, err := store.Records(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		raw, err := host.EncodeBody(r.Body)
		for _, secret := range secrets {
			if err != nil || strings.Contains(string(raw), secret) {
				t.Errorf("record %d, %s: %s, %v", r.N, r.Body.Kind(), raw, err)
			}
		}
	}
}

// Proves: SEC-TOOL-5. A summary is made of calls as the store has them: what a model writes of
// their secrets would be kept with it.
func TestSecretsAreNotSummarized(t *testing.T) {
	const secret = "hunter2-of-the-model"
	ran := 0
	store := new(host.Memory)
	h := newHost(t, &host.Options{Policy: allowing(t, "*"), Store: store}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
	m := &scripted{turns: []turn{use("one__none", `{"password":"`+secret+`","text":"a"}`)}}
	s := begin(t, h, m)
	ask(t, s)
	m.then(func(r *host.Request) []host.Piece {
		c, ok := r.Messages[0].Blocks[0].Content.(*mcp.TextContent)
		if !ok {
			return nil
		}
		return say(c.Text)
	})
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := bodies[*host.CompactionRecord](s); len(list) != 1 || !strings.Contains(list[0].Summary, "call of one__none") {
		t.Fatalf("summarized as %+v", list)
	}
	notKept(t, store, s, secret)
}
