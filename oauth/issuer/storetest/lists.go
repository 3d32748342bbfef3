package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// A lister lists what a person has.
type lister[T any] func(ctx context.Context, subject, after string, limit int, now time.Time) ([]T, string, error)

// pages reads all pages of a person, and returns the keys of their entries, sorted.
func pages[T any](t *testing.T, list lister[T], subject string, limit int, now time.Time, key func(T) string) []string {
	t.Helper()
	keys, after := []string{}, ""
	for range 100 {
		page, next, err := list(t.Context(), subject, after, limit, now)
		succeed(t, "a page", err)
		if len(page) > limit || next != "" && len(page) < limit {
			t.Errorf("a page has %d entries, limit %d, next %q", len(page), limit, next)
		}
		for _, entry := range page {
			keys = append(keys, key(entry))
		}
		if after = next; next == "" {
			slices.Sort(keys) // what is twice stays twice
			return keys
		}
	}
	t.Fatal("pages without end")
	return nil
}

func testLists(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		succeed(t, "AddSession", s.AddSession(ctx, session(id, "p")))
		succeed(t, "SetConsent", s.SetConsent(ctx, consent("p", "client "+id, "r")))
	}
	short := session("short", "p")
	short.Expires = at(time.Minute)
	succeed(t, "AddSession", s.AddSession(ctx, short))
	succeed(t, "AddSession of another person", s.AddSession(ctx, session("other", "q")))
	succeed(t, "SetConsent of another person", s.SetConsent(ctx, consent("q", "client a", "r")))
	succeed(t, "SetConsent for another resource", s.SetConsent(ctx, consent("p", "client a", "s")))
	later := at(2 * time.Minute)
	bySession := func(s *issuer.Session) string { return s.ID }
	byConsent := func(c *issuer.Consent) string { return c.Subject + " " + c.ClientID + " " + c.Resource }
	for _, limit := range []int{1, 2, 5, 6, 100} {
		equal(t, "sessions", pages(t, s.SessionsOf, "p", limit, later, bySession), []string{"a", "b", "c", "d", "e"})
		equal(t, "consents", pages(t, s.ConsentsOf, "p", limit, later, byConsent), []string{
			"p client a r", "p client a s", "p client b r", "p client c r", "p client d r", "p client e r",
		})
	}
	for _, subject := range []string{"", "nobody"} {
		equal(t, "sessions of nobody", pages(t, s.SessionsOf, subject, 2, start, bySession), []string{})
		equal(t, "consents of nobody", pages(t, s.ConsentsOf, subject, 2, start, byConsent), []string{})
	}
	page, _, err := s.SessionsOf(ctx, "q", "", 10, start)
	succeed(t, "SessionsOf", err)
	equal(t, "a session", page[0], session("other", "q"))
	consents, _, err := s.ConsentsOf(ctx, "q", "", 10, start)
	succeed(t, "ConsentsOf", err)
	equal(t, "a consent", consents[0], consent("q", "client a", "r"))
	for _, after := range []string{"~~~", "%' OR 1=1 --", "ö"} {
		stray, _, err := s.SessionsOf(ctx, "p", after, 10, start)
		succeed(t, "an after of no page", err)
		for _, found := range stray {
			equal(t, "the person of an after of no page", found.Person.Subject, "p")
		}
	}
	testConnections(t, s)
}

func testConnections(t *testing.T, s issuer.Store) {
	t.Helper()
	ctx := t.Context()
	for i, g := range []struct {
		id, subject, client, resource string
		scopes                        []string
	}{
		{"g1", "p", "c", "https://b.example", []string{"w", "r"}},
		{"g2", "p", "c", "https://a.example", []string{"r"}},
		{"g3", "p", "c", "https://b.example", []string{"r", "x"}},
		{"g4", "p", "d", "https://b.example", nil},
		{"g5", "p", "e", "https://b.example", []string{"r"}},
		{"g6", "p", "gone", "https://b.example", []string{"r"}},
		{"g7", "q", "f", "https://b.example", []string{"r"}},
		{"g8", "", "itself", "https://b.example", []string{"r"}},
	} {
		made := grant(g.id, g.subject, g.client)
		made.Resource, made.Scopes, made.Created = g.resource, g.scopes, at(time.Duration(i)*time.Minute)
		if g.client == "gone" {
			made.Expires = at(time.Hour)
		}
		succeed(t, "AddGrant", s.AddGrant(ctx, made))
	}
	revoked := grant("g9", "p", "c")
	revoked.Scopes = []string{"revoked"}
	succeed(t, "AddGrant", s.AddGrant(ctx, revoked))
	succeed(t, "RevokeGrant", s.RevokeGrant(ctx, "g9", start))
	later := at(2 * time.Hour)
	byClient := func(c *issuer.Connection) string { return c.ClientID }
	for _, limit := range []int{1, 2, 3, 4} {
		equal(t, "connections", pages(t, s.ConnectionsOf, "p", limit, later, byClient), []string{"c", "d", "e"})
	}
	equal(t, "connections before one ends", pages(t, s.ConnectionsOf, "p", 2, start, byClient), []string{"c", "d", "e", "gone"})
	equal(t, "connections of clients", pages(t, s.ConnectionsOf, "", 2, start, byClient), []string{})
	all, _, err := s.ConnectionsOf(ctx, "p", "", 10, later)
	succeed(t, "ConnectionsOf", err)
	i := slices.IndexFunc(all, func(c *issuer.Connection) bool { return c.ClientID == "c" })
	equal(t, "a connection", all[i], &issuer.Connection{ClientID: "c", Access: []issuer.Access{
		{Resource: "https://a.example", Scopes: []string{"r"}, Since: at(time.Minute), Grants: 1},
		{Resource: "https://b.example", Scopes: []string{"r", "w", "x"}, Since: start, Grants: 2},
	}})
	_, err = s.RevokeGrants(ctx, "p", "c", later)
	succeed(t, "RevokeGrants", err)
	equal(t, "connections that are left", pages(t, s.ConnectionsOf, "p", 2, later, byClient), []string{"d", "e"})
}
