package tasks_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	store "github.com/parley-mcp/parley/app/internal/store/tasks"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

// Saved calls hold what clients have sent in the clear: nobody else reads the file.
func TestFileIsPrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the folder decides there")
	}
	folder := filepath.Join(t.TempDir(), "new")
	create(t, open(t, filepath.Join(folder, "tasks.db")), "t")
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, error %v", f.Name(), info.Mode(), err)
		}
	}
	public := filepath.Join(t.TempDir(), "public.db")
	if err := os.WriteFile(public, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), public, nil); err == nil || !strings.Contains(err.Error(), "holds what clients have sent; chmod 600") {
		t.Errorf("a file that others can read: error %v", err)
	}
}

// create creates a task of the owner "ada".
func create(t testing.TB, db *store.DB, id string) tasks.Lease {
	t.Helper()
	_, l, err := db.Create(t.Context(), newTask(id), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newTask(id string) *tasks.NewTask {
	return &tasks.NewTask{ID: id, Owner: "ada", LimitKey: "ada", Tool: "slow", TTL: time.Hour, Call: []byte("call of " + id)}
}

// What is kept is there after closing, beside the records of an authorization server in
// the same database.
func TestReopen(t *testing.T) {
	t.Parallel()
	for name, dsn := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			other, err := records.Open(t.Context(), dsn, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			db, err := store.Open(t.Context(), dsn, nil)
			if err != nil {
				t.Fatal(err)
			}
			l := create(t, db, "t")
			if err := errors.Join(other.SetRecord(t.Context(), "k", "h", []byte("x"), time.Now().Add(time.Hour)), db.Close()); err != nil {
				t.Fatal(err)
			}
			again := open(t, dsn)
			got, err := again.Change(t.Context(), l, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`1`)}})
			if err != nil || got.Status != tasks.Completed {
				t.Errorf("%+v, error %v", got, err)
			}
		})
	}
}

// No error of the store shows what was to be stored, nor the password of the database.
func TestErrorsHoldNoValues(t *testing.T) {
	t.Parallel()
	const secret = "very-secret"
	for name, dsn := range map[string]string{
		"a broken URL":   "postgres://user:" + secret + "@%zz",
		"another scheme": "mysql://user:" + secret + "@127.0.0.1/db",
		"nobody there":   "postgres://user:" + secret + "@127.0.0.1:1/db?sslmode=disable&connect_timeout=1",
	} {
		if _, err := store.Open(t.Context(), dsn, nil); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for name, dsn := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := store.Open(t.Context(), dsn(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			n := newTask(secret)
			n.Owner, n.Call = secret, []byte(secret)
			_, l, err := db.Create(t.Context(), n, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			broken := &tasks.Question{Key: "k", Method: "m", Params: mcp.RawValue(`{"` + secret)}
			errs := map[string]error{"no JSON": second(db.Change(t.Context(), l, tasks.Change{Ask: broken}))}
			_, _, errs["a task that is there"] = db.Create(t.Context(), n, time.Minute)
			n.ID = secret + "\x00"
			_, _, errs["an identifier that is no text"] = db.Create(t.Context(), n, time.Minute)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			_, _, errs["closed, Create"] = db.Create(t.Context(), newTask("u"), time.Minute)
			errs["closed, Get"] = second(db.Get(t.Context(), secret, secret))
			errs["closed, List"] = second(db.List(t.Context(), tasks.Query{Owner: secret, Most: 1}))
			errs["closed, Change"] = second(db.Change(t.Context(), l, tasks.Change{}))
			for doing, err := range errs {
				if err == nil || strings.Contains(err.Error(), secret) {
					t.Errorf("%s: error %v", doing, err)
				}
				if errors.Is(err, tasks.ErrUnknown) || errors.Is(err, tasks.ErrLost) {
					t.Errorf("%s: error %v, which says that there is no task", doing, err)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// What callers sent is deleted when a task ends: the call, its records and answers.
func TestEndDeletes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tasks.db")
	db := open(t, path)
	kept, ended := create(t, db, "kept"), create(t, db, "ended")
	change := tasks.Change{Records: newRecords("r"), Ask: &tasks.Question{Key: "q", Method: "m"}}
	for _, l := range []tasks.Lease{kept, ended} {
		if _, err := db.Change(t.Context(), l, change); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Answer(t.Context(), l.ID, "ada", mcp.InputResponses{"q": []byte(`"answer"`)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Cancel(t.Context(), "ended", "ada", ""); err != nil {
		t.Fatal(err)
	}
	raw := openRaw(t, path)
	for what, query := range map[string]string{
		"parts":   `SELECT count(*) FROM task_parts WHERE task = (SELECT seq FROM tasks WHERE id = $1)`,
		"answers": `SELECT length(answers) FROM tasks WHERE id = $1`,
	} {
		for id, want := range map[string]bool{"kept": true, "ended": false} {
			var n int
			if err := raw.QueryRowContext(t.Context(), query, id).Scan(&n); err != nil || (n > 0) != want {
				t.Errorf("%s of %s: %d, error %v", what, id, n, err)
			}
		}
	}
}

func openRaw(t *testing.T, path string) *sql.DB {
	t.Helper()
	raw, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	return raw
}

// Another program holds the file: a call ends with its context, or after Options.Wait with
// an error that says why, and what follows succeeds.
func TestSQLiteIsLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tasks.db")
	db, err := store.Open(t.Context(), path, &store.Options{Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	slow, l := open(t, path), create(t, db, "t")
	conn, err := openRaw(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Change(t.Context(), l, tasks.Change{}); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("Change while another program writes: error %v", err)
	}
	if _, err := db.Get(t.Context(), "t", "ada"); err != nil {
		t.Errorf("Get while another program writes: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := slow.Cancel(ctx, "t", "ada", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Cancel while another program writes: error %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	for _, db := range []*store.DB{db, slow} {
		if _, err := db.Change(t.Context(), l, tasks.Change{}); err != nil {
			t.Errorf("Change after that: %v", err)
		}
	}
}

// Changes are kept for those that watch, the last of them alone; Watch says when it has
// missed some.
func TestSQLiteMissed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tasks.db")
	db, raw := open(t, path), openRaw(t, path)
	create(t, db, "t")
	over := watch(t, db)
	if _, err := raw.ExecContext(t.Context(), `INSERT INTO task_changes (n, id) VALUES (99999, 't')`); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err == nil || !strings.Contains(err.Error(), "missed") {
		t.Errorf("Watch returns %v", err)
	}
	create(t, db, "u")
	var n, first int
	if err := raw.QueryRowContext(t.Context(), `SELECT count(*), min(n) FROM task_changes`).Scan(&n, &first); err != nil {
		t.Fatal(err)
	}
	if n != 2 || first != 99999 {
		t.Errorf("%d changes are kept, from %d", n, first)
	}
}
