package records_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	_ "modernc.org/sqlite"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// The file holds private keys: nobody else reads it.
func TestFileIsPrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the folder decides there")
	}
	path := filepath.Join(t.TempDir(), "new", "records.db")
	db := open(t, path)
	if err := db.SetRecord(t.Context(), "k", "h", []byte("x"), epoch); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{".": 0o700, "records.db": 0o600, "records.db-wal": 0o600, "records.db-shm": 0o600} {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %v, want %v", name, got, want)
		}
	}

	open600 := filepath.Join(t.TempDir(), "open.db")
	if err := os.WriteFile(open600, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := records.Open(t.Context(), open600, nil); err == nil || !strings.Contains(err.Error(), "read by others") {
		t.Errorf("a file that others can read: error %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	garbage := filepath.Join(folder, "garbage")
	if err := os.WriteFile(garbage, bytes.Repeat([]byte("garbage "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dsn := range map[string]string{
		"nothing":      "",
		"a folder":     folder,
		"no database":  garbage,
		"a broken URL": "postgres://user:hunter2@%zz",
		"nobody there": "postgres://user:hunter2@127.0.0.1:1/db?sslmode=disable&connect_timeout=1",
	} {
		db, err := records.Open(t.Context(), dsn, nil)
		if err == nil {
			t.Errorf("%s: opened", name)
			_ = db.Close()
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
	after, err := os.ReadFile(garbage)
	if err != nil || !bytes.HasPrefix(after, []byte("garbage garbage")) {
		t.Errorf("a file that is no database was changed: %v", err)
	}
}

// Several processes, or here several DBs, make the tables of one database at once.
func TestOpenRace(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				db, err := records.Open(t.Context(), dsn, &records.Options{Connections: 2})
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				if _, err := db.UseID(t.Context(), "i", "j", epoch.Add(time.Hour), epoch); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// A new file is opened although another program writes to it at this moment: it
// is waited for, as later.
func TestOpenWhileWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(60000)") // to commit while others look
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := records.Open(t.Context(), file, &records.Options{Wait: time.Millisecond}); err == nil {
		t.Error("opened a file that another program writes to")
	}
	opened := make(chan error, 1)
	go func() {
		db, err := records.Open(t.Context(), file, &records.Options{Wait: time.Hour})
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Errorf("did not wait: %v", err)
		opened <- err
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// What is stored is there after closing, and tables of a program from the
// future are left alone.
func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "records.db")
	db, err := records.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.SetRecord(t.Context(), "k", "h", []byte("x"), epoch.Add(time.Hour)), db.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := records.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Record(t.Context(), "k", "h", epoch)
	if err := errors.Join(err, again.Close()); err != nil || string(got) != "x" {
		t.Errorf("after reopening: %q, %v", got, err)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), `UPDATE schema_version SET version = 99`); err != nil {
		t.Fatal(err)
	}
	if _, err := records.Open(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("tables of a newer version: error %v", err)
	}
}

// No error of the store shows what was to be stored.
func TestErrorsHoldNoValues(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		const secret = "very-secret"
		db, err := records.Open(t.Context(), dsn, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		code := &issuer.Code{Grant: secret, Nonce: secret, Expires: epoch}
		errs := map[string]error{
			"code":               db.AddCode(ctx, secret, code),
			"code that is there": db.AddCode(ctx, secret, code),
		}
		_, errs["unknown grant"] = db.Grant(ctx, secret, epoch)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		errs["cancelled"] = db.AddCode(ended, secret+"2", code)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		errs["closed"] = db.AddCode(ctx, secret+"3", code)
		_, errs["closed, reading"] = db.Grant(ctx, secret, epoch)
		if errs["code"] != nil || !errors.Is(errs["cancelled"], context.Canceled) || !errors.Is(errs["unknown grant"], issuer.ErrNotFound) {
			t.Errorf("errors %v", errs)
		}
		delete(errs, "code")
		for doing, err := range errs {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: error %v", doing, err)
			}
		}
	})
}

// What a stranger calls itself is not found, rather than a failure.
func TestOddClientID(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		for _, id := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 10_000)} {
			if _, err := db.Client(t.Context(), id, epoch); !errors.Is(err, issuer.ErrNotFound) {
				t.Errorf("client: error %v", err)
			}
			if _, _, _, err := db.User(t.Context(), id); !errors.Is(err, issuer.ErrNotFound) {
				t.Errorf("user: error %v", err)
			}
			if first, err := db.UseID(t.Context(), id, id, epoch.Add(time.Hour), epoch); err != nil || !first {
				t.Errorf("id: %v, error %v", first, err)
			}
		}
	})
}

// A sweep takes more than one portion.
func TestSweepPortions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "records.db")
	db := open(t, path)
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, err = raw.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1234)
		INSERT INTO used_ids (key, expires) SELECT i, 10 FROM n`)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := db.Sweep(t.Context(), epoch); err != nil || n != 1234 {
		t.Errorf("swept %d, error %v", n, err)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		testUsers(t, open(t, dsn))
	})
}

func testUsers(t *testing.T, db *records.DB) {
	ctx := t.Context()
	subject, err := db.AddUser(ctx, "ada", "hash1", epoch)
	if err != nil || len(subject) < 20 {
		t.Fatalf("AddUser: %q, %v", subject, err)
	}
	if _, err := db.AddUser(ctx, "ada", "hash2", epoch); !errors.Is(err, records.ErrExists) {
		t.Errorf("AddUser of the same name: error %v", err)
	}
	for _, bad := range []string{"", "a\nb", "a\u202eb", "a\x00", "\xff", strings.Repeat("x", 256)} {
		if _, err := db.AddUser(ctx, bad, "hash", epoch); err == nil {
			t.Errorf("AddUser(%q) succeeds", bad)
		}
	}
	if _, err := db.AddUser(ctx, " Eve  Smith ", "other", epoch.Add(time.Second)); err != nil {
		t.Errorf("AddUser of a name in parts: %v", err)
	}
	old := &issuer.Grant{ID: "old", ClientID: "c", Subject: subject, Created: epoch, Expires: epoch.Add(time.Hour)}
	if err := db.AddGrant(ctx, old); err != nil {
		t.Fatal(err)
	}
	wantCurrent(t, db, subject, "hash1", true)
	if u, err := db.SetPassword(ctx, "Ada", "hash3"); err != nil || u.Subject != subject || u.Name != "ada" {
		t.Errorf("SetPassword: %+v, %v", u, err)
	}
	wantCurrent(t, db, subject, "hash1", false)
	wantCurrent(t, db, subject, "hash3", true)
	wantCurrent(t, db, "nobody", "hash3", false)
	if _, err := db.Grant(ctx, "old", epoch); !errors.Is(err, issuer.ErrRevoked) {
		t.Errorf("grant under another password: error %v", err)
	}
	for _, name := range []string{"ada", "ADA", " Ada ", "\uff21da"} {
		hash, got, stamp, err := db.User(ctx, name)
		if err != nil || hash != "hash3" || got != subject || stamp != issuer.Hash("hash3") {
			t.Errorf("User %q: %q %q %q %v", name, hash, got, stamp, err)
		}
		if u, err := db.FindUser(ctx, name); err != nil || u.Name != "ada" || u.Subject != subject {
			t.Errorf("FindUser %q: %+v, %v", name, u, err)
		}
	}
	users, err := db.Users(ctx, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]time.Time{}
	for _, u := range users {
		names[u.Name] = u.Created
	}
	if diff := cmp.Diff(map[string]time.Time{"ada": epoch, "eve smith": epoch.Add(time.Second)}, names); diff != "" {
		t.Errorf("Users (-want +got):\n%s", diff)
	}
	for i, u := range users {
		rest, err := db.Users(ctx, u.Name, 10)
		if diff := cmp.Diff(users[i+1:], rest, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("Users after %s: %v (-want +got):\n%s", u.Name, err, diff)
		}
	}
	testSignOut(t, db, "ada")

	// With the user goes what the user granted, and a later one is another.
	grant := &issuer.Grant{ID: "g", ClientID: "c", Subject: subject, Created: epoch, Expires: epoch.Add(time.Hour)}
	consent := &issuer.Consent{Subject: subject, ClientID: "c", Resource: "r", Created: epoch, Expires: epoch.Add(time.Hour)}
	_, err = db.RemoveUser(ctx, "nobody")
	if !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("RemoveUser of nobody: error %v", err)
	}
	if err := errors.Join(db.AddGrant(ctx, grant), db.SetConsent(ctx, consent)); err != nil {
		t.Fatal(err)
	}
	if u, err := db.RemoveUser(ctx, "ADA"); err != nil || u.Subject != subject || u.Name != "ada" {
		t.Fatalf("RemoveUser: %+v, %v", u, err)
	}
	wantCurrent(t, db, subject, "hash3", false)
	if _, err := db.Grant(ctx, "g", epoch); !errors.Is(err, issuer.ErrRevoked) {
		t.Errorf("grant of a removed user: error %v", err)
	}
	if _, err := db.Consent(ctx, subject, "c", "r", epoch); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("consent of a removed user: error %v", err)
	}
	if _, err := db.RemoveUser(ctx, "ada"); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("RemoveUser again: error %v", err)
	}
	if again, err := db.AddUser(ctx, "ada", "hash", epoch); err != nil || again == subject {
		t.Errorf("a later user of the same name has the subject of the first: %v", err)
	}
}

// testSignOut signs a user out, disables and enables the user: what began before
// each of them is over for good, and only a sign-in afterwards is current.
func testSignOut(t *testing.T, db *records.DB, name string) {
	t.Helper()
	ctx := t.Context()
	_, subject, stamp, err := db.User(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		what     string
		do       func(context.Context, string) (*records.User, error)
		disabled bool
	}{
		{"SignOut", db.SignOut, false},
		{"SignOut again", db.SignOut, false},
		{"DisableUser", db.DisableUser, true},
		{"DisableUser again", db.DisableUser, true},
		{"EnableUser", db.EnableUser, false},
	} {
		id := name + " " + strconv.Itoa(i)
		before, err := db.FindUser(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		err = db.AddGrant(ctx, &issuer.Grant{ID: id, Subject: subject, Created: epoch, Expires: epoch.Add(time.Hour)})
		if before.Disabled != errors.Is(err, issuer.ErrRevoked) || !before.Disabled && err != nil {
			t.Fatalf("%s: a grant before it, disabled %v: error %v", step.what, before.Disabled, err)
		}
		if u, err := step.do(ctx, strings.ToUpper(name)); err != nil || u.Subject != subject || u.Name != name || u.Disabled != step.disabled {
			t.Errorf("%s: %+v, %v", step.what, u, err)
		}
		if ok, err := db.Current(ctx, subject, stamp); ok || err != nil {
			t.Errorf("%s: a sign-in before it is current: %v, %v", step.what, ok, err)
		}
		if _, err := db.Grant(ctx, id, epoch); !before.Disabled && !errors.Is(err, issuer.ErrRevoked) {
			t.Errorf("%s: a grant before it: error %v", step.what, err)
		}
		if u, err := db.FindUser(ctx, name); err != nil || u.Disabled != step.disabled || u.Subject != subject {
			t.Errorf("%s: FindUser %+v, %v", step.what, u, err)
		}
		_, _, next, err := db.User(ctx, name)
		if step.disabled != errors.Is(err, issuer.ErrNotFound) {
			t.Errorf("%s: User: error %v", step.what, err)
		}
		if next != "" {
			if ok, err := db.Current(ctx, subject, next); !ok || err != nil {
				t.Errorf("%s: a sign-in after it is not current: %v, %v", step.what, ok, err)
			}
			stamp = next
		}
		if _, err := step.do(ctx, "nobody"); !errors.Is(err, issuer.ErrNotFound) {
			t.Errorf("%s of nobody: error %v", step.what, err)
		}
	}
}

func wantCurrent(t *testing.T, db *records.DB, subject, hash string, want bool) {
	t.Helper()
	if got, err := db.Current(t.Context(), subject, issuer.Hash(hash)); got != want || err != nil {
		t.Errorf("Current with %s: %v, %v, want %v", hash, got, err, want)
	}
	if got, err := db.Current(t.Context(), subject, ""); got || err != nil {
		t.Errorf("Current without a stamp: %v, %v", got, err)
	}
}
