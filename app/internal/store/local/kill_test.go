package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/policy"
)

// writeEnv tells the test binary to write to a file until it is killed.
const writeEnv = "PARLEY_TEST_WRITE"

// killsEnv is how many processes are killed; default 20.
const killsEnv = "PARLEY_TEST_KILLS"

func TestMain(m *testing.M) {
	if path := os.Getenv(writeEnv); path != "" {
		err := write(context.Background(), path, func(what, id string, n int64) bool {
			fmt.Println(what, id, n)
			return true
		})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // it was to be killed
	}
	os.Exit(m.Run())
}

func newGrant(id string) *host.Grant {
	return &host.Grant{ID: id, Rule: policy.Rule{Effect: policy.Allow, Kind: policy.KindTool, Name: "tool"}, Created: epoch}
}

// write writes sessions, and says each step once it was acknowledged, until it is told to end.
func write(ctx context.Context, path string, said func(what, id string, n int64) (on bool)) (err error) {
	db, err := local.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	parent, at := "", int64(0)
	for on := true; on; {
		id := "s" + oauth.NewSecret()
		if err := db.CreateSession(ctx, &host.SessionInfo{ID: id, Parent: parent, At: at, Created: epoch}); err != nil {
			return err
		}
		said("created", id, at)
		for n := at + 1; n <= at+12; n += 3 {
			list := []host.Record{newRecord(id, n), newRecord(id, n+1), newRecord(id, n+2)}
			if err := db.Append(ctx, id, list...); err != nil {
				return err
			}
			said("added", id, n+2)
			if err := db.Audit(ctx, newEntry(int(n))); err != nil {
				return err
			}
			said("audited", id, n)
		}
		if err := errors.Join(db.PutBlob(ctx, id, "b", []byte(id)), db.PutGrant(ctx, newGrant("g"+id))); err != nil {
			return err
		}
		said("granted", id, 0)
		if err := db.RevokeGrant(ctx, "g"+id, epoch.Add(1)); err != nil {
			return err
		}
		on = said("revoked", id, 0)
		parent, at = id, at+5
	}
	return nil
}

// What was acknowledged survives the end of the process at any moment, while another process
// writes to the same file: no record, grant, blob or entry of the audit log is lost, no end of a
// grant is, and no number is missing.
func TestKillLosesNothing(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	kills := 20
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		kills = n
	}
	path, steps, entries := newPath(t), 0, int64(0)
	for range kills {
		killed, written := writeAndKill(t, path)
		steps += len(killed)
		entries += look(t, path, killed) + look(t, path, written)
		db := open(t, path)
		if n, err := db.VerifyAudit(t.Context()); err != nil || n < entries {
			t.Fatalf("%d entries are verified, want at least %d, error %v", n, entries, err)
		}
	}
	if steps < 2*kills {
		t.Errorf("only %d steps were made before the processes ended", steps)
	}
}

// A step is what a process said that it did.
type step struct {
	what, id string
	n        int64
}

// writeAndKill kills a process that writes, while this one does, and returns the steps of both.
func writeAndKill(t *testing.T, path string) (killed, written []step) {
	t.Helper()
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := write(context.WithoutCancel(t.Context()), path, func(what, id string, n int64) bool {
			written = append(written, step{what, id, n})
			select {
			case <-end:
				return false
			default:
				return true
			}
		})
		if err != nil {
			t.Errorf("the process that is not killed: %v", err)
		}
	})
	for _, line := range databasetest.Killed(t, writeEnv+"="+path) {
		var s step
		if _, err := fmt.Sscan(line, &s.what, &s.id, &s.n); err != nil {
			t.Errorf("the process says %q", line)
		}
		killed = append(killed, s)
	}
	close(end)
	wg.Wait()
	return killed, written
}

// look opens the file and looks for what was said. It returns how many entries of the audit log
// that was.
func look(t *testing.T, path string, said []step) (entries int64) {
	t.Helper()
	db, err := local.Open(path)
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	grants := map[string]host.Grant{}
	list, err := db.Grants(t.Context())
	ok(t, err)
	for _, g := range list {
		grants[g.ID] = g
	}
	last := map[string]int64{}
	for _, s := range said {
		g, granted := grants["g"+s.id]
		switch s.what {
		case "created", "added":
			last[s.id] = s.n
		case "audited":
			entries++
		case "granted":
			if !granted {
				t.Errorf("grant g%s is lost", s.id)
			}
			if data, _, err := db.Blob(t.Context(), s.id, "b", 0, 100); string(data) != s.id || err != nil {
				t.Errorf("blob %q, error %v", data, err)
			}
		case "revoked":
			if !g.Revoked.Equal(epoch.Add(1)) {
				t.Errorf("grant g%s was revoked, and is so at %v", s.id, g.Revoked)
			}
		default:
			t.Errorf("the process says %+v", s)
		}
	}
	for id, n := range last {
		checkRecords(t, db, id, n)
	}
	return entries
}

// checkRecords tests that a session has at least the records up to a number, as they were written.
func checkRecords(t *testing.T, db host.Store, id string, most int64) {
	t.Helper()
	info, err := db.Session(t.Context(), id)
	ok(t, err)
	list, err := db.Records(t.Context(), id)
	ok(t, err)
	for i, r := range list {
		want := newRecord(id, info.At+1+int64(i))
		if r.N != want.N || !r.Time.Equal(want.Time) || r.Body.(*host.TextRecord).Text != want.Body.(*host.TextRecord).Text {
			t.Errorf("record %+v, want %+v", r, want)
		}
	}
	if last := info.At + int64(len(list)); last < most || len(list)%3 != 0 {
		t.Errorf("session %s has records up to %d, want %d", id, last, most)
	}
}

// A second DB of a process does not end the locks of the first, which say to other processes
// that the file is in use.
func TestLocksStay(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	open(t, path)
	if !locked(t, path) {
		t.Skip("locks cannot be seen here")
	}
	open(t, path)
	if !locked(t, path) {
		t.Error("the lock on the file was lost")
	}
}

// locked says whether Linux lists a lock on a file. The list is read in parts, between which others come
// and go, so that a part may leave one out: one that was lost is not there the next time either.
func locked(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	ok(t, err)
	inode := reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Ino")
	for range 50 {
		list, err := os.ReadFile("/proc/locks")
		if err != nil {
			return false
		}
		if strings.Contains(string(list), fmt.Sprintf(":%d ", inode.Uint())) {
			return true
		}
	}
	return false
}

// A file that another process holds is waited for, as long as the caller waits.
func TestWaitsForOther(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path)
	create(t, db, "s", "", 0)
	conn, err := rawDB(t, path).Conn(t.Context())
	ok(t, err)
	defer func() { ok(t, conn.Close()) }()
	_, err = conn.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := db.Append(ctx, "s", newRecord("s", 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if list, err := db.Records(t.Context(), "s"); len(list) != 0 || err != nil {
		t.Errorf("%d records, error %v", len(list), err)
	}
	done := make(chan error)
	go func() { done <- db.Append(t.Context(), "s", newRecord("s", 1)) }()
	_, err = conn.ExecContext(t.Context(), `COMMIT`)
	ok(t, err, <-done)
}
