package records_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Names are those of users, or what another provider said last.
func TestSubjectName(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		if err := db.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		ada, err := db.AddUser(t.Context(), "ada", "hash", epoch)
		if err != nil {
			t.Fatal(err)
		}
		for i, person := range []issuer.Person{
			{Subject: ada, Name: "another name"}, {Subject: "there|1", Name: "Bob"}, {Subject: "there|1", Name: "Robert"}, {Subject: "there|2"},
		} {
			created := epoch.Add(time.Duration(i) * time.Minute)
			if err := db.AddSession(t.Context(), &issuer.Session{
				ID: fmt.Sprint(i), Person: person, Created: created, Used: created, Expires: created.Add(time.Hour),
			}); err != nil {
				t.Fatal(err)
			}
		}
		for subject, want := range map[string]string{ada: "ada", "there|1": "Robert", "there|2": "", "nobody": "", "": ""} {
			got, err := db.SubjectName(t.Context(), subject)
			if got != want || (want == "") != errors.Is(err, issuer.ErrNotFound) || want != "" && err != nil {
				t.Errorf("%q is %q, %v; want %q", subject, got, err, want)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Ping(t.Context()); err == nil {
			t.Error("a database that is closed works")
		}
	})
}

// A file that can only be read does not work, and the error says what to do.
func TestPingReadOnly(t *testing.T) {
	t.Parallel()
	if os.Getuid() <= 0 {
		t.Skip("files cannot be kept from this user")
	}
	file := filepath.Join(t.TempDir(), "data.db")
	if err := errors.Join(open(t, file).Close(), os.Chmod(file, 0o400)); err != nil {
		t.Fatal(err)
	}
	db := open(t, file)
	for range 2 {
		if err := db.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "the file can only be read; the user of this program must be able to write") {
			t.Errorf("error %v", err)
		}
	}
}

// Once a change has failed because the disk of PostgreSQL is full, the database does not work until one
// succeeds.
func TestPingFull(t *testing.T) {
	t.Parallel()
	dsn := databasetest.Postgres(t)
	db := open(t, dsn)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	execute := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a secret' USING ERRCODE = '53100'; END $$`)
	execute(`CREATE TRIGGER full_disk BEFORE INSERT ON revoked_tokens EXECUTE FUNCTION full_disk()`)
	if err := db.RevokeToken(t.Context(), "id", epoch); err == nil {
		t.Error("the disk is not full")
	}
	for range 2 {
		if err := db.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "its disk is full; make room there") || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
	}
	execute(`DROP TRIGGER full_disk ON revoked_tokens`)
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// Each operation is told by its name, in the context that it was given, with the errors that are no
// answers.
func TestObserve(t *testing.T) {
	t.Parallel()
	type key struct{}
	databasetest.Each(t, func(t *testing.T, dsn string) {
		var mu sync.Mutex
		var got []string
		db, err := records.Open(t.Context(), dsn, &records.Options{
			Observe: func(ctx context.Context, operation string) (context.Context, func(error)) {
				if ctx.Value(key{}) != nil {
					t.Errorf("%s is told of within another operation", operation)
				}
				return context.WithValue(ctx, key{}, operation), func(err error) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, fmt.Sprint(operation, " ", err != nil))
				}
			},
		})
		db = databasetest.Opened(t, db, err)
		take := func() string {
			mu.Lock()
			defer mu.Unlock()
			defer func() { got = nil }()
			return strings.Join(slices.Compact(got), ", ")
		}
		if told := take(); told != "make tables false" {
			t.Errorf("opening: %s", told)
		}
		ctx, now := t.Context(), epoch
		ended, cancel := context.WithCancel(ctx)
		cancel()
		for want, do := range map[string]func() error{
			"read client false":  func() error { _, err := db.Client(ctx, "c", now); return err },
			"read grant false":   func() error { _, err := db.Grant(ctx, "g", now); return err },
			"read session false": func() error { _, err := db.Session(ctx, "s", now); return err },
			"find user false":    func() error { _, err := db.FindUser(ctx, "ada"); return err },
			"consume code false": func() error { _, err := db.ConsumeCode(ctx, "c", now); return err },
			"rotate refresh token false": func() error {
				return db.RotateRefresh(ctx, "a", "b", &issuer.Refresh{}, 0, now)
			},
			"read keys false": func() error { _, err := db.Keys(ctx, now); return err },
			"read keys true":  func() error { _, err := db.Keys(ended, now); return err },
			"ping true":       func() error { return db.Ping(ended) },
		} {
			err := do()
			if told := take(); told != want {
				t.Errorf("told of %q, want %q (%v)", told, want, err)
			}
		}
	})
}
