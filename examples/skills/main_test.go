package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/transport/mem"
)

// start starts the program's server on a copy of its folder, and a client.
func start(t *testing.T) (folder string, catalog *skills.Catalog, c *client.Client) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "skills")
	if err := os.CopyFS(folder, os.DirFS("skills")); err != nil {
		t.Fatal(err)
	}
	s, catalog, err := newServer(folder)
	if err != nil {
		t.Fatal(err)
	}
	c, err = connect(t.Context(), mem.New(s, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return folder, catalog, c
}

func TestLoad(t *testing.T) {
	_, _, c := start(t)
	s, err := find(t.Context(), c, "release-notes")
	if err != nil {
		t.Fatal(err)
	}
	text, file, err := load(t.Context(), c, s, "references/groups.md")
	if err != nil || !strings.Contains(text, "# Release notes") || !strings.Contains(file, "# Groups") {
		t.Errorf("%q, %q, %v", text, file, err)
	}
	if _, _, err := load(t.Context(), c, s, "../../etc/passwd"); err == nil {
		t.Error("a path out of the skill")
	}
	if s, err := find(t.Context(), c, "daily-report"); err != nil || s.URI != "skill://reports/daily-report/SKILL.md" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := find(t.Context(), c, "none"); err == nil {
		t.Error("a skill that is not there")
	}
}

// A changed skill is loaded when the server was told to read its folder, and the person
// has agreed.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, catalog, c := start(t)
		held, err := find(t.Context(), c, "release-notes")
		if err != nil {
			t.Fatal(err)
		}
		yes, no := func(*skills.Skill) bool { return true }, func(*skills.Skill) bool { return false }
		if same, err := refresh(t.Context(), c, held, no); err != nil || same != held {
			t.Errorf("unchanged: %+v, %v", same, err)
		}
		told := make(chan os.Signal)
		go reload(t.Context(), catalog, told)
		path := filepath.Join(folder, "release-notes", "SKILL.md")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, "4. Be brief.\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		told <- syscall.SIGHUP
		synctest.Wait()
		if _, err := refresh(t.Context(), c, held, no); err == nil {
			t.Error("changed, and not approved")
		}
		now, err := refresh(t.Context(), c, held, yes)
		if err != nil {
			t.Fatal(err)
		}
		if doc, err := skills.Load(t.Context(), c, now); err != nil || !strings.HasSuffix(doc.Body, "4. Be brief.\n") {
			t.Errorf("%+v, %v", doc, err)
		}
		_ = c.Close()
	})
}

func TestFriday(t *testing.T) {
	for day, want := range map[string]string{"2026-11-23": "2026-11-27", "2026-11-27": "2026-11-27", "2026-11-28": "2026-12-04"} {
		d, err := time.Parse(time.DateOnly, day)
		if err != nil || friday(d).Format(time.DateOnly) != want {
			t.Errorf("%s: %v, %v", day, friday(d), err)
		}
	}
}
