package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names of users are one whatever their case, and one that could be taken for another is refused in
// plain words.
func TestUserNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("correct-horse"), 0o600); err != nil {
		t.Fatal(err)
	}
	user := func(args ...string) (code int, said string) {
		t.Helper()
		code, out, said := command(t, append([]string{"auth", "user", "--database", filepath.Join(dir, "db")}, args...)...)
		return code, out + said
	}
	for _, step := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"add", " Ada", "--password-file", password}, 0, "added ada\n"},
		{[]string{"add", "ADA", "--password-file", password}, 1, `user "ADA" already exists`},
		{[]string{"add", "\u0430\u0501\u0430", "--password-file", password}, 1, `user "ada" already exists, and`},
		{[]string{"add", "\u0430da", "--password-file", password}, 1, "letters of several scripts"},
		{[]string{"list"}, 0, "ada"},
		{[]string{"show", "ADA"}, 0, "ada\n"},
		{[]string{"disable", "Ada"}, 0, "disabled ada\n"},
		{[]string{"enable", "Ada "}, 0, "enabled ada\n"},
		{[]string{"signout", "\uff21da"}, 0, "signed out ada\n"},
		{[]string{"password", "ADA", "--password-file", password}, 0, "another password for ada\n"},
		{[]string{"remove", "ADA"}, 0, "removed ada\n"},
		{[]string{"remove", "ada"}, 1, "not found"},
	} {
		if code, said := user(step.args...); code != step.code || !strings.Contains(said, step.says) {
			t.Errorf("%+q ended with %d and said %q", step.args, code, said)
		}
	}
}
