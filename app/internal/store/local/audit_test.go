package local_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

func newEntry(i int) *host.AuditEntry {
	return &host.AuditEntry{
		Time: epoch, Session: "s", Record: int64(i), Event: "called", Kind: policy.KindTool, Server: "files", Name: fmt.Sprintf("tool%d", i),
		Why: "rule 3", Arguments: "e3b0",
	}
}

// audited is the path of a file with six entries in its audit log.
func audited(t testing.TB) string {
	t.Helper()
	path := newPath(t)
	db, err := local.Open(path)
	ok(t, err)
	for i := range 6 {
		ok(t, db.Audit(t.Context(), newEntry(i+1)))
	}
	n, err := db.VerifyAudit(t.Context())
	ok(t, err, db.Close())
	if n != 6 {
		t.Fatalf("%d entries are verified", n)
	}
	return path
}

func TestAuditEntries(t *testing.T) {
	t.Parallel()
	db := open(t, audited(t))
	for _, c := range []struct {
		from  int64
		limit int
		want  []int64
	}{
		{1, 100, []int64{1, 2, 3, 4, 5, 6}},
		{-5, 2, []int64{1, 2}},
		{5, 100, []int64{5, 6}},
		{7, 100, nil},
		{1, 0, nil},
		{1, -1, nil},
	} {
		list, err := db.AuditEntries(t.Context(), c.from, c.limit)
		ok(t, err)
		var got []int64
		for _, e := range list {
			got = append(got, e.N)
			if want := newEntry(int(e.N)); e.AuditEntry != *want || len(e.Hash) != 64 {
				t.Errorf("entry %+v, want %+v", e, want)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%d entries from %d: %v, want %v", c.limit, c.from, got, c.want)
		}
	}
}

// The log outlives sessions.
func TestAuditStays(t *testing.T) {
	t.Parallel()
	path := audited(t)
	db := open(t, path)
	create(t, db, "s", "", 0)
	ok(t, db.DeleteSession(t.Context(), "s"))
	if n, err := db.VerifyAudit(t.Context()); n != 6 || err != nil {
		t.Errorf("%d entries, error %v", n, err)
	}
}

// No statement changes the log while its triggers are there.
func TestAuditOnlyGrows(t *testing.T) {
	t.Parallel()
	path := audited(t)
	raw := rawDB(t, path)
	for _, statement := range []string{
		`UPDATE audit SET why = 'x' WHERE n = 3`,
		`DELETE FROM audit`,
		`DELETE FROM audit WHERE n = 6`,
		`REPLACE INTO audit SELECT * FROM audit WHERE n = 3`,
		`INSERT OR REPLACE INTO audit SELECT 3, time, session, record, event, kind, server, name, 'x', arguments, previous, hash FROM audit WHERE n = 3`,
		`INSERT INTO audit SELECT 8, time, session, record, event, kind, server, name, why, arguments, previous, hash FROM audit WHERE n = 6`,
		`INSERT INTO audit SELECT 0, time, session, record, event, kind, server, name, why, arguments, previous, hash FROM audit WHERE n = 6`,
	} {
		if _, err := raw.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "the audit log only grows") {
			t.Errorf("%s: error %v", statement, err)
		}
	}
	if n, err := open(t, path).VerifyAudit(t.Context()); n != 6 || err != nil {
		t.Errorf("%d entries, error %v", n, err)
	}
}

// noTriggers are the statements of a program that changes the log.
func noTriggers(statements ...string) []string {
	return append([]string{`DROP TRIGGER audit_update`, `DROP TRIGGER audit_delete`, `DROP TRIGGER audit_insert`}, statements...)
}

// What others did to the log is found, and where; also after more entries were added.
func TestAuditTampered(t *testing.T) {
	t.Parallel()
	const copied = `time, session, record, event, kind, server, name, why, arguments, previous, hash FROM audit`
	type tampering struct {
		n          int64 // how many entries are as they were
		want       string
		statements []string
	}
	cases := map[string]tampering{
		"a middle entry is removed":    {2, "entry 3 is missing", []string{`DELETE FROM audit WHERE n = 3`}},
		"a middle entry is cut out":    {2, "entry 3 was changed", []string{`DELETE FROM audit WHERE n = 3`, `UPDATE audit SET n = -n WHERE n > 3`, `UPDATE audit SET n = -n - 1 WHERE n < 0`}},
		"the first entry is removed":   {0, "entry 1 is missing", []string{`DELETE FROM audit WHERE n = 1`}},
		"the last entry is removed":    {5, "entries 6 to 6", []string{`DELETE FROM audit WHERE n = 6`}},
		"the last two are removed":     {4, "entries 5 to 6", []string{`DELETE FROM audit WHERE n > 4`}},
		"the last, with the head":      {5, "entries 6 to 6", []string{`DELETE FROM audit WHERE n = 6`, `UPDATE audit_head SET n = 5, hash = (SELECT hash FROM audit WHERE n = 5)`}},
		"all are removed":              {0, "entries 1 to 6", []string{`DELETE FROM audit`, `DELETE FROM audit_head`}},
		"the head is removed":          {6, "audit_head is missing", []string{`DELETE FROM audit_head`}},
		"the head is changed":          {6, "audit_head names", []string{`UPDATE audit_head SET hash = x'00'`}},
		"two entries change places":    {1, "entry 2 was changed", []string{`UPDATE audit SET n = -2 WHERE n = 2`, `UPDATE audit SET n = 2 WHERE n = 3`, `UPDATE audit SET n = 3 WHERE n = -2`}},
		"an entry is put in":           {2, "entry 3 was changed", []string{`UPDATE audit SET n = -n - 1 WHERE n > 2`, `UPDATE audit SET n = -n WHERE n < 0`, `INSERT INTO audit SELECT 3, ` + copied + ` WHERE n = 2`}},
		"an entry is added":            {6, "entry 7 was changed", []string{`INSERT INTO audit SELECT 7, ` + copied + ` WHERE n = 6`}},
		"an entry is put in the front": {0, "entry 0", []string{`INSERT INTO audit SELECT 0, ` + copied + ` WHERE n = 1`}},
		"text goes to its neighbour":   {2, "entry 3 was changed", []string{`UPDATE audit SET server = 'filest', name = 'ool3' WHERE n = 3`}},
	}
	for column, value := range map[string]string{
		"time": "time + 1", "record": "record + 1", "session": "'t'", "event": "'refused'", "kind": "''", "server": "'file'",
		"name": "'tool4'", "why": "why || ' '", "arguments": "'e3b1'", "previous": "hash", "hash": "previous",
	} {
		cases["changed "+column] = tampering{2, "entry 3 was changed", []string{`UPDATE audit SET ` + column + ` = ` + value + ` WHERE n = 3`}}
		n, want := int64(5), "entry 6 was changed"
		cases["changed last "+column] = tampering{n, want, []string{`UPDATE audit SET ` + column + ` = ` + value + ` WHERE n = 6`}}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := audited(t)
			execute(t, path, noTriggers(c.statements...)...)
			db := open(t, path)
			n, err := db.VerifyAudit(t.Context())
			if n != c.n || !errors.Is(err, local.ErrAuditChanged) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%d entries, error %v; want %d, %s", n, err, c.n, c.want)
			}
			for range 3 {
				ok(t, db.Audit(t.Context(), newEntry(7)))
				if _, err := db.VerifyAudit(t.Context()); !errors.Is(err, local.ErrAuditChanged) {
					t.Errorf("after another entry: error %v", err)
				}
			}
		})
	}
}

// The file beside the database is missed, and what to write to it is said.
func TestAuditHeadFile(t *testing.T) {
	t.Parallel()
	path := audited(t)
	head := path + ".audit"
	right, err := os.ReadFile(head)
	ok(t, err)
	db := open(t, path)
	fails := func(what, want string) string {
		t.Helper()
		_, err := db.VerifyAudit(t.Context())
		if !errors.Is(err, local.ErrAuditChanged) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", what, err, want)
		}
		return fmt.Sprint(err)
	}
	for _, garbage := range []string{"", "6", "x\n", "6 00\n", strings.Replace(string(right), " ", " x", 1), "-" + string(right)} {
		ok(t, os.WriteFile(head, []byte(garbage), 0o600))
		fails("garbage", "number and a hash")
	}
	ok(t, os.WriteFile(head, []byte(strings.Replace(string(right), "6 ", "9 ", 1)), 0o600))
	fails("a head of entries that are not there", "entries 7 to 9")
	ok(t, os.WriteFile(head, []byte(strings.Replace(string(right), "6 ", "4 ", 1)), 0o600))
	fails("the hash of another entry", "entry 4")
	ok(t, os.Remove(head))
	ok(t, db.Audit(t.Context(), newEntry(7)))
	said := fails("no file", "accept the log")
	_, line, _ := strings.Cut(said, "write to it: ")
	ok(t, os.WriteFile(head, []byte(line+"\n"), 0o600))
	for range 3 {
		if _, err := db.VerifyAudit(t.Context()); err != nil {
			t.Errorf("after it was accepted: %v", err)
		}
		ok(t, db.Audit(t.Context(), newEntry(8)))
	}
}

// Two processes add entries, in turn and at once.
func TestAuditOfTwo(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	dbs := []*local.DB{open(t, path), open(t, path)}
	done := make(chan error)
	for i, db := range dbs {
		go func() {
			var err error
			for range 50 {
				err = errors.Join(err, db.Audit(t.Context(), newEntry(i)))
				if _, e := dbs[1-i].VerifyAudit(t.Context()); e != nil {
					err = errors.Join(err, e)
				}
			}
			done <- err
		}()
	}
	ok(t, <-done, <-done)
	if n, err := dbs[0].VerifyAudit(t.Context()); n != 100 || err != nil {
		t.Errorf("%d entries, error %v", n, err)
	}
}
