package admin_test

import (
	"context"
	"database/sql"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// fill adds 100,000 users with a browser each, 10,000 clients, and a million grants with refresh tokens,
// by SQL that both databases understand.
func fill(t *testing.T, dsn string) {
	t.Helper()
	driver, source := "pgx", dsn
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < COUNT) `
	for _, part := range []struct{ count, insert string }{
		{"100000", `INSERT INTO users (name, subject, created, hash) ` + numbers + `SELECT 'user' || i, 'subject' || i, 1, 'x' FROM n`},
		{"100000", `INSERT INTO sessions (id, subject, created, used, expires, data) ` + numbers +
			`SELECT 'session' || i, 'subject' || i, 1, 1, 4000000000, '{}' FROM n`},
		{"10000", `INSERT INTO clients (id, dynamic, digest, created, expires, data) ` + numbers +
			`SELECT 'client' || i, 1, 'digest' || i, 1, 4000000000, '{"metadata":{}}' FROM n`},
		{"1000000", `INSERT INTO grants (id, client_id, subject, resource, revoked, created, expires, data) ` + numbers +
			`SELECT 'grant' || i, 'client' || (i % 10000), 'subject' || (i % 100000), '` + resource + `', 0, 1, 4000000000, '{"scopes":["read"]}' FROM n`},
		{"1000000", `INSERT INTO refresh_tokens (hash, grant_id, successor, created, expires, rotated, family, gone, data) ` + numbers +
			`SELECT 'refresh' || i, 'grant' || i, '', 1, 4000000000, 0, 4000000000, 4000000000, '{}' FROM n`},
	} {
		if _, err := db.ExecContext(t.Context(), strings.Replace(part.insert, "COUNT", part.count, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if driver == "pgx" {
		if _, err := db.ExecContext(t.Context(), `ANALYZE`); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMeasureSize measures how long a server with a large database takes to start, until it has issued a
// token, and what a request for a token costs beside that of an empty database. It is switched on by
// PARLEY_TEST_MEASURE.
func TestMeasureSize(t *testing.T) {
	if os.Getenv("PARLEY_TEST_MEASURE") == "" {
		t.Skip("PARLEY_TEST_MEASURE is not set")
	}
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			dsn := database(t)
			small := newSite(t, database(t))
			openDB(t, dsn) // makes the tables
			began := time.Now()
			fill(t, dsn)
			t.Logf("filled in %v", time.Since(began).Round(time.Second))

			large := &site{t: t, audit: new(acts), clock: stopped()}
			front := httptest.NewUnstartedServer(nil)
			large.first = "http://" + front.Listener.Addr().String()
			began = time.Now()
			front.Config.Handler = large.server(dsn)
			front.Start()
			t.Cleanup(front.Close)
			ask := func(s *site) time.Duration {
				began := time.Now()
				a := new(answer)
				s.postAs("guard", "secret-of-guard", s.first+"/token", url.Values{"grant_type": {oauth.GrantClientCredentials}, "resource": {resource}}, a)
				if a.Access == "" {
					t.Fatalf("no token: %+v", a)
				}
				return time.Since(began)
			}
			ask(large)
			start := time.Since(began)
			t.Logf("start until the first token: %v (at most 2 s)", start)
			if start > 2*time.Second {
				t.Error("a start takes too long")
			}
			large.db = openDB(t, dsn)
			large.operator = administer(t, "unix:"+filepath.Join(t.TempDir(), "s"), admin.New(large.db, nil))
			for _, s := range []*site{small, large} {
				s.addUser("ada")
			}
			compare(t, "client_credentials", func() time.Duration { return ask(small) }, func() time.Duration { return ask(large) })
			renew := func(s *site) func() time.Duration {
				token := s.signIn("app", "ada").refresh
				return func() time.Duration {
					began := time.Now()
					a := s.token(s.first, "app", byRefresh(token))
					if token = a.Refresh; token == "" {
						t.Fatalf("no refresh: %+v", a)
					}
					return time.Since(began)
				}
			}
			compare(t, "refresh_token", renew(small), renew(large))
			for what, work := range map[string]func(ctx context.Context) error{
				"user list": func(ctx context.Context) error { _, err := large.db.AlikeNames(ctx); return err },
				"sweep":     func(ctx context.Context) error { _, err := large.db.Sweep(ctx, time.Now()); return err },
			} {
				began := time.Now()
				if err := work(t.Context()); err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
			}
		})
	}
}

// compare takes the medians of two kinds of requests, made in turn.
func compare(t *testing.T, what string, small, large func() time.Duration) {
	t.Helper()
	const rounds = 500
	var of [2][]time.Duration
	for range rounds {
		of[0], of[1] = append(of[0], small()), append(of[1], large())
	}
	slices.Sort(of[0])
	slices.Sort(of[1])
	a, b := of[0][rounds/2], of[1][rounds/2]
	t.Logf("%s: %v with an empty database, %v with a large one: %.2f times (at most 1.2)", what, a, b, float64(b)/float64(a))
	if float64(b) > 1.2*float64(a) {
		t.Errorf("%s costs too much", what)
	}
}
