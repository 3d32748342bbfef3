package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	store "github.com/parley-mcp/parley/app/internal/store/tasks"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/server"
)

// workEnv tells the test binary to work on tasks of a database until it is killed.
const workEnv = "PARLEY_TEST_WORK"

// killsEnv is how many processes are killed for each database; default 10.
const killsEnv = "PARLEY_TEST_KILLS"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(workEnv); dsn != "" {
		if err := work(context.Background(), dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1) // it was to be killed
	}
	if dsn := os.Getenv(serveEnv); dsn != "" {
		if err := serve(context.Background(), dsn, os.Getenv(filesEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	databasetest.Parallel()
	os.Exit(m.Run())
}

func newRecords(key string) []server.Record {
	return []server.Record{{Kind: server.RecordOnce, Key: key, Value: []byte(strconv.Quote(key))}}
}

// work creates tasks, each of which records, asks, is answered and ends, and prints each
// step once it was acknowledged: what was done, the identifier, and a value.
func work(ctx context.Context, dsn string) error {
	db, err := store.Open(ctx, dsn, &store.Options{Connections: databasetest.Connections})
	if err != nil {
		return err
	}
	process := oauth.NewSecret()
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", process, i)
		n := newTask(id)
		n.Repeatable, n.MaxAll = true, 1_000_000
		_, l, err := db.Create(ctx, n, time.Minute)
		if err != nil {
			return err
		}
		fmt.Println("created", id, l.Token)
		for j := range 3 {
			key := strconv.Itoa(j)
			if _, err := db.Change(ctx, l, tasks.Change{Records: newRecords(key), Ask: &tasks.Question{Key: key, Method: "m"}}); err != nil {
				return err
			}
			fmt.Println("recorded", id, key)
			if _, err := db.Answer(ctx, id, "ada", mcp.InputResponses{key: []byte(strconv.Quote(key))}); err != nil {
				return err
			}
			fmt.Println("answered", id, key)
		}
		if i%3 == 0 {
			if _, err := db.Cancel(ctx, id, "ada", "because"); err != nil {
				return err
			}
			fmt.Println("cancelled", id, "because")
			continue
		}
		if _, err := db.Change(ctx, l, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(strconv.Quote(id))}}); err != nil {
			return err
		}
		fmt.Println("completed", id, id)
	}
}

// What was acknowledged survives the end of the process at any moment: no task is unknown,
// no record, answer, result or cancellation is lost, and an old lease is worth nothing once
// another worker has the task. (A process that is killed, that is; that nothing is lost
// with the machine's power is what synchronous=FULL says.)
func TestKillLosesNothing(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	kills := 10
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		kills = n
	}
	for name, dsn := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, steps := dsn(t), 0
			for range kills {
				steps += killAndLook(t, dsn)
			}
			if steps < 2*kills {
				t.Errorf("only %d steps were made before the processes ended", steps)
			}
		})
	}
}

// A seen task is what a process said of it.
type seen struct {
	token             int64
	recorded, answers []string
	status            tasks.Status
	result            string
}

// killAndLook has a process work, kills it after a random number of steps, and looks for
// each of them. It returns how many there were.
func killAndLook(t *testing.T, dsn string) int {
	t.Helper()
	lines := databasetest.Killed(t, workEnv+"="+dsn)
	said := map[string]*seen{}
	for _, line := range lines {
		var step, id, value string
		if _, err := fmt.Sscan(line, &step, &id, &value); err != nil {
			t.Fatalf("the process says %q", line)
		}
		if said[id] == nil {
			said[id] = &seen{status: tasks.Working}
		}
		s := said[id]
		switch step {
		case "created":
			s.token, _ = strconv.ParseInt(value, 10, 64)
		case "recorded":
			s.recorded = append(s.recorded, value)
		case "answered":
			s.answers = append(s.answers, value)
		case "cancelled":
			s.status = tasks.Cancelled
		case "completed":
			s.status, s.result = tasks.Completed, value
		}
	}
	db, err := store.Open(t.Context(), dsn, &store.Options{Connections: 1})
	if err != nil {
		t.Fatalf("open after the kill: %v", err)
	}
	defer db.Close()
	var ahead atomic.Int64
	ahead.Store(int64(2 * time.Minute))
	store.SetAhead(db, &ahead)
	for id, s := range said {
		// PostgreSQL may still make the last change of the process: Claim leaves out what
		// is being changed, and this waits for it.
		if _, err := db.Change(t.Context(), tasks.Lease{ID: id, Token: s.token}, tasks.Change{}); err != nil && !errors.Is(err, tasks.ErrLost) {
			t.Error(err)
		}
	}
	claimed := map[string]*tasks.Claimed{}
	all, err := db.Claim(t.Context(), time.Minute, 500, nil)
	if err != nil {
		t.Fatalf("Claim after the kill: %v", err)
	}
	for _, c := range all {
		claimed[c.ID] = c
	}
	for id, s := range said {
		look(t, db, id, s, claimed[id])
	}
	for _, c := range all { // the next process has its own
		if _, err := db.Cancel(t.Context(), c.ID, "ada", ""); err != nil {
			t.Error(err)
		}
	}
	return len(lines)
}

// look tests that a task is at least as far as the process said.
func look(t *testing.T, db tasks.Store, id string, s *seen, c *tasks.Claimed) {
	t.Helper()
	got, err := db.Get(t.Context(), id, "ada")
	if err != nil {
		t.Errorf("a task that was created before the kill: %v", err)
		return
	}
	if s.status.Ended() {
		if got.Status != s.status || s.result != "" && string(got.Result) != strconv.Quote(s.result) {
			t.Errorf("a task that was %s before the kill is %+v", s.status, got)
		}
		if c != nil {
			t.Errorf("a task that was %s before the kill can be claimed", s.status)
		}
		return
	}
	if got.Status.Ended() {
		return // the end was made and not said
	}
	if c == nil {
		t.Errorf("a task that was working before the kill cannot be claimed")
		return
	}
	if c.Token <= s.token || string(c.Call) != "call of "+id || !c.Repeatable {
		t.Errorf("claimed %+v with the call %q, after the token %d", c.Lease, c.Call, s.token)
	}
	if len(c.Records) < len(s.recorded) {
		t.Errorf("%d records were kept of %d", len(c.Records), len(s.recorded))
	}
	answers, err := db.Answers(t.Context(), c.Lease)
	if err != nil {
		t.Errorf("Answers: %v", err)
	}
	for _, key := range s.answers {
		if string(answers[key]) != strconv.Quote(key) {
			t.Errorf("the answer to %s is %q", key, answers[key])
		}
	}
	if _, err := db.Change(t.Context(), tasks.Lease{ID: id, Token: s.token}, tasks.Change{}); !errors.Is(err, tasks.ErrLost) {
		t.Errorf("the old lease: error %v", err)
	}
}
