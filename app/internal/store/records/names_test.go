package records_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// A new name is not that of another user, nor one that people take for it.
func TestNewNames(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "db"))
	for _, name := range []string{"ada", "user1", "\u043c\u0438\u0440", "ren\u00e9", "\u5c71\u7530\u30bf\u30ed\u30a6", "a.b@c.example", "grace hopper"} {
		if _, err := db.AddUser(t.Context(), name, "hash", epoch); err != nil {
			t.Errorf("AddUser(%+q): %v", name, err)
		}
	}
	for _, test := range []struct {
		name  string
		taken bool
		alike string // of whom
	}{
		{"ADA", true, ""},
		{" ada", true, ""},
		{"\uff41\uff44\uff41", true, ""}, // wide letters
		{"rene\u0301", true, ""},         // an accent of its own
		{"Grace  Hopper", true, ""},
		{"\u0430\u0501\u0430", false, "ada"}, // Cyrillic
		{"\u0430da", false, ""},              // of two scripts
		{"ad\u03b1", false, ""},
		{"ada\u200b", false, ""},
		{"ad\u0131a\U0001f600", false, ""},
		{"\ufb01", false, ""}, // a ligature
		{" ", false, ""},
	} {
		_, err := db.AddUser(t.Context(), test.name, "hash", epoch)
		alike, _ := errors.AsType[*records.AlikeError](err)
		if err == nil || errors.Is(err, records.ErrExists) != test.taken || (alike != nil) != (test.alike != "") || alike != nil && alike.User != test.alike {
			t.Errorf("AddUser(%+q): %v", test.name, err)
		}
	}
	if got := db.NormalName("\U0001f600 X"); got != "\U0001f600 X" {
		t.Errorf("a name without a normal form becomes %q", got)
	}
}

// Users of earlier versions, whose names had no normal form, sign in as they did.
func TestNamesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "db")
	db := open(t, file)
	raw, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, name := range []string{"ada", "ADA", "\U0001f600", "Eve"} {
		if _, err := raw.ExecContext(t.Context(), `INSERT INTO users (name, subject, created, hash) VALUES ($1, $1, 0, $2)`, name, "hash of "+name); err != nil {
			t.Fatal(err)
		}
	}
	for typed, want := range map[string]string{"ada": "ada", "Ada": "ada", "ADA": "ADA", "\U0001f600": "\U0001f600", "Eve": "Eve"} {
		hash, subject, _, err := db.User(t.Context(), typed)
		if err != nil || subject != want || hash != "hash of "+want {
			t.Errorf("%+q is %+q with %q, %v", typed, subject, hash, err)
		}
		if u, err := db.FindUser(t.Context(), typed); err != nil || u.Name != want {
			t.Errorf("FindUser(%+q): %+v, %v", typed, u, err)
		}
	}
	if _, _, _, err := db.User(t.Context(), "eve"); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("eve: %v", err)
	}
	var alike *records.AlikeError
	if _, err := db.AddUser(t.Context(), "eve", "hash", epoch); !errors.As(err, &alike) || alike.User != "Eve" {
		t.Errorf("a new user besides: %v", err)
	}
	if _, err := db.AddUser(t.Context(), "\U0001f600", "hash", epoch); !errors.Is(err, records.ErrExists) {
		t.Errorf("a name that no new user can have: %v", err)
	}
	groups, err := db.AlikeNames(t.Context())
	if diff := cmp.Diff([][]string{{"ADA", "ada"}}, groups); err != nil || diff != "" {
		t.Errorf("alike: %v (-want +got):\n%s", err, diff)
	}
	for what, change := range map[string]func(ctx context.Context, name string) (*records.User, error){
		"SignOut": db.SignOut, "EnableUser": db.EnableUser,
		"SetPassword": func(ctx context.Context, name string) (*records.User, error) {
			return db.SetPassword(ctx, name, "other")
		},
	} {
		if u, err := change(t.Context(), "ADA"); err != nil || u.Name != "ADA" {
			t.Errorf("%s changes %+v, %v", what, u, err)
		}
	}
	if u, err := db.DisableUser(t.Context(), "ADA"); err != nil || u.Name != "ADA" {
		t.Errorf("DisableUser changes %+v, %v", u, err)
	}
	if _, _, _, err := db.User(t.Context(), "ADA"); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("a disabled user, besides one of the same normal form: %v", err)
	}
	if u, err := db.RemoveUser(t.Context(), "ADA"); err != nil || u.Name != "ADA" {
		t.Errorf("RemoveUser removes %+v, %v", u, err)
	}
	if hash, _, _, err := db.User(t.Context(), "ADA"); hash != "hash of ada" || err != nil {
		t.Errorf("after ADA is gone: %q, %v", hash, err)
	}
}
