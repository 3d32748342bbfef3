package records_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/store/databasetest"
	"github.com/parley-mcp/parley/app/store/records"
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
