package storetest

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// Slow returns a store that calls delay before and after every operation of s,
// as a store on another machine would take its time: races between requests
// then show themselves. delay may be called by many goroutines at once.
func Slow(s issuer.Store, delay func()) issuer.Store { return &slow{s, delay} }

type slow struct {
	s     issuer.Store
	delay func()
}

var _ issuer.Store = (*slow)(nil)

// wait delays, and returns what delays again at the end.
func (s *slow) wait() func() {
	s.delay()
	return s.delay
}

func (s *slow) AddClient(ctx context.Context, c *issuer.Client, limit int) (*issuer.Client, error) {
	defer s.wait()()
	return s.s.AddClient(ctx, c, limit)
}

func (s *slow) Client(ctx context.Context, id string, now time.Time) (*issuer.Client, error) {
	defer s.wait()()
	return s.s.Client(ctx, id, now)
}

func (s *slow) UseClient(ctx context.Context, id string, expires time.Time) error {
	defer s.wait()()
	return s.s.UseClient(ctx, id, expires)
}

func (s *slow) RemoveClient(ctx context.Context, id string, now time.Time) error {
	defer s.wait()()
	return s.s.RemoveClient(ctx, id, now)
}

func (s *slow) AddGrant(ctx context.Context, g *issuer.Grant) error {
	defer s.wait()()
	return s.s.AddGrant(ctx, g)
}

func (s *slow) Grant(ctx context.Context, id string, now time.Time) (*issuer.Grant, error) {
	defer s.wait()()
	return s.s.Grant(ctx, id, now)
}

func (s *slow) RevokeGrant(ctx context.Context, id string, now time.Time) error {
	defer s.wait()()
	return s.s.RevokeGrant(ctx, id, now)
}

func (s *slow) RevokeGrants(ctx context.Context, subject, client string, now time.Time) (int, error) {
	defer s.wait()()
	return s.s.RevokeGrants(ctx, subject, client, now)
}

func (s *slow) AddCode(ctx context.Context, hash string, c *issuer.Code) error {
	defer s.wait()()
	return s.s.AddCode(ctx, hash, c)
}

func (s *slow) ConsumeCode(ctx context.Context, hash string, now time.Time) (*issuer.Code, error) {
	defer s.wait()()
	return s.s.ConsumeCode(ctx, hash, now)
}

func (s *slow) AddRefresh(ctx context.Context, hash string, r *issuer.Refresh) error {
	defer s.wait()()
	return s.s.AddRefresh(ctx, hash, r)
}

func (s *slow) Refresh(ctx context.Context, hash string, now time.Time) (*issuer.Refresh, error) {
	defer s.wait()()
	return s.s.Refresh(ctx, hash, now)
}

func (s *slow) RotateRefresh(ctx context.Context, old, hash string, next *issuer.Refresh, grace time.Duration, now time.Time) error {
	defer s.wait()()
	return s.s.RotateRefresh(ctx, old, hash, next, grace, now)
}

func (s *slow) RevokeToken(ctx context.Context, id string, expires time.Time) error {
	defer s.wait()()
	return s.s.RevokeToken(ctx, id, expires)
}

func (s *slow) TokenRevoked(ctx context.Context, id, grant string, now time.Time) (bool, error) {
	defer s.wait()()
	return s.s.TokenRevoked(ctx, id, grant, now)
}

func (s *slow) UseID(ctx context.Context, iss, id string, expires, now time.Time) (bool, error) {
	defer s.wait()()
	return s.s.UseID(ctx, iss, id, expires, now)
}

func (s *slow) SetConsent(ctx context.Context, c *issuer.Consent) error {
	defer s.wait()()
	return s.s.SetConsent(ctx, c)
}

func (s *slow) Consent(ctx context.Context, subject, client, resource string, now time.Time) (*issuer.Consent, error) {
	defer s.wait()()
	return s.s.Consent(ctx, subject, client, resource, now)
}

func (s *slow) RemoveConsents(ctx context.Context, subject, client string) error {
	defer s.wait()()
	return s.s.RemoveConsents(ctx, subject, client)
}

func (s *slow) AddSession(ctx context.Context, session *issuer.Session) error {
	defer s.wait()()
	return s.s.AddSession(ctx, session)
}

func (s *slow) Session(ctx context.Context, id string, now time.Time) (*issuer.Session, error) {
	defer s.wait()()
	return s.s.Session(ctx, id, now)
}

func (s *slow) UseSession(ctx context.Context, id string, now time.Time) error {
	defer s.wait()()
	return s.s.UseSession(ctx, id, now)
}

func (s *slow) RemoveSession(ctx context.Context, id string) error {
	defer s.wait()()
	return s.s.RemoveSession(ctx, id)
}

func (s *slow) RemoveSessions(ctx context.Context, subject, except string, now time.Time) (int, error) {
	defer s.wait()()
	return s.s.RemoveSessions(ctx, subject, except, now)
}

func (s *slow) SessionsOf(ctx context.Context, subject, after string, limit int, now time.Time) ([]*issuer.Session, string, error) {
	defer s.wait()()
	return s.s.SessionsOf(ctx, subject, after, limit, now)
}

func (s *slow) ConsentsOf(ctx context.Context, subject, after string, limit int, now time.Time) ([]*issuer.Consent, string, error) {
	defer s.wait()()
	return s.s.ConsentsOf(ctx, subject, after, limit, now)
}

func (s *slow) ConnectionsOf(ctx context.Context, subject, after string, limit int, now time.Time) ([]*issuer.Connection, string, error) {
	defer s.wait()()
	return s.s.ConnectionsOf(ctx, subject, after, limit, now)
}

func (s *slow) SetRecord(ctx context.Context, kind, hash string, data []byte, expires time.Time) error {
	defer s.wait()()
	return s.s.SetRecord(ctx, kind, hash, data, expires)
}

func (s *slow) Record(ctx context.Context, kind, hash string, now time.Time) ([]byte, error) {
	defer s.wait()()
	return s.s.Record(ctx, kind, hash, now)
}

func (s *slow) TakeRecord(ctx context.Context, kind, hash string, now time.Time) ([]byte, error) {
	defer s.wait()()
	return s.s.TakeRecord(ctx, kind, hash, now)
}

func (s *slow) AddKey(ctx context.Context, k *issuer.Key, now time.Time) (*issuer.Key, error) {
	defer s.wait()()
	return s.s.AddKey(ctx, k, now)
}

func (s *slow) Keys(ctx context.Context, now time.Time) ([]*issuer.Key, error) {
	defer s.wait()()
	return s.s.Keys(ctx, now)
}

func (s *slow) RetireKey(ctx context.Context, id string, from, now time.Time) (*issuer.Key, error) {
	defer s.wait()()
	return s.s.RetireKey(ctx, id, from, now)
}

func (s *slow) RevokeKey(ctx context.Context, id string, now time.Time) (*issuer.Key, error) {
	defer s.wait()()
	return s.s.RevokeKey(ctx, id, now)
}

func (s *slow) Sweep(ctx context.Context, now time.Time) (int, error) {
	defer s.wait()()
	return s.s.Sweep(ctx, now)
}
