package local_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
)

// rawDB is the file as another program sees it.
func rawDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	raw, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)+"?_pragma=busy_timeout(60000)")
	ok(t, err)
	t.Cleanup(func() { ok(t, raw.Close()) })
	return raw
}

// execute changes the file as another program does.
func execute(t testing.TB, path string, statements ...string) {
	t.Helper()
	raw := rawDB(t, path)
	for _, s := range statements {
		if _, err := raw.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func export(t testing.TB, db *local.DB, session string) []string {
	t.Helper()
	var out bytes.Buffer
	ok(t, db.Export(t.Context(), session, &out))
	if !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("exported %q", &out)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// A fork is exported with what it has from its ancestors, and from each only that.
func TestExport(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t))
	create(t, db, "root", "", 0)
	add(t, db, "root", 1, 5)
	create(t, db, "fork", "root", 3)
	add(t, db, "fork", 4, 6)
	create(t, db, "leaf", "fork", 5)
	add(t, db, "leaf", 6, 6)
	create(t, db, "early", "fork", 2) // before the fork's own records
	add(t, db, "early", 3, 3)
	create(t, db, "empty", "", 0)

	head := func(id, parent string, at int) string {
		middle := ""
		if parent != "" {
			middle = fmt.Sprintf(`"parent":%q,"at":%d,`, parent, at)
		}
		return fmt.Sprintf(`{"id":%q,%s"title":"title of %s","created":"2030-01-02T03:04:05.0060071Z"}`, id, middle, id)
	}
	line := func(session string, n int) string {
		return fmt.Sprintf(`{"n":%d,"session":%q,"time":"2030-01-02T03:04:05.00600%dZ","kind":"text","body":{"text":"record %d of %s <&>"}}`,
			n, session, 7100+n, n, session)
	}
	root, fork := head("root", "", 0), head("fork", "root", 3)
	for id, want := range map[string][]string{
		"root":  {`{"version":1,"session":` + root + `,"ancestors":[]}`, line("root", 1), line("root", 2), line("root", 3), line("root", 4), line("root", 5)},
		"empty": {`{"version":1,"session":` + head("empty", "", 0) + `,"ancestors":[]}`},
		"leaf": {
			`{"version":1,"session":` + head("leaf", "fork", 5) + `,"ancestors":[` + root + `,` + fork + `]}`,
			line("root", 1), line("root", 2), line("root", 3), line("fork", 4), line("fork", 5), line("leaf", 6),
		},
		"early": {
			`{"version":1,"session":` + head("early", "fork", 2) + `,"ancestors":[` + root + `,` + fork + `]}`,
			line("root", 1), line("root", 2), line("early", 3),
		},
	} {
		if got := export(t, db, id); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s is exported as\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// An export that cannot be whole is an error.
func TestExportErrors(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path)
	var out bytes.Buffer
	if err := db.Export(t.Context(), "none", &out); !errors.Is(err, host.ErrNoSession) || out.Len() > 0 {
		t.Errorf("wrote %q, error %v", &out, err)
	}
	create(t, db, "s", "", 0)
	add(t, db, "s", 1, 3)
	create(t, db, "fork", "s", 3)
	if err := db.Export(t.Context(), "s", full{}); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
	for statement, want := range map[string]string{
		`DELETE FROM record WHERE n = 3`:                            `record 3 of session "s" is missing`,
		`UPDATE session SET parent = 'fork', at = 0`:                "of itself",
		`DELETE FROM session WHERE id = 's'`:                        host.ErrNoSession.Error(),
		`DELETE FROM record WHERE n = 2`:                            `record 2 of session "s" is missing`,
		`UPDATE record SET body = CAST('{"a"' AS BLOB) WHERE n = 1`: `record 1 of session "s": /body`,
		`UPDATE session SET at = 1 WHERE id = 's'`:                  `record 2 of session "s" is missing`,
		`UPDATE session SET parent = 's' WHERE id ='s'`:             "of itself",
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			db := open(t, path)
			create(t, db, "s", "", 0)
			add(t, db, "s", 1, 3)
			create(t, db, "fork", "s", 3)
			execute(t, path, `DROP TRIGGER record_update`, `PRAGMA foreign_keys = 0`, statement)
			if err := db.Export(t.Context(), "fork", &out); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// A full disk.
type full struct{}

var errFull = errors.New("the disk is full")

func (full) Write([]byte) (int, error) { return 0, errFull }
