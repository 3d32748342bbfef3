// Package databasetest has what tests of stores share: databases of their own, and
// processes that are killed.
package databasetest

import (
	"bufio"
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-mcp/parley/oauth"
)

// All are SQLite and Postgres by name.
var All = map[string]func(testing.TB) string{"sqlite": SQLite, "postgres": Postgres}

// Connections is how many connections a store opens in a test. The go command tests several packages at
// once, and PostgreSQL allows 100 connections by default: eight stores with the usual 16 exceed that.
const Connections = 4

// Parallel has at least eight parallel tests of a package run at once, for its TestMain: they wait,
// for processes and for leases that end, more than they work. The flag -parallel goes before.
func Parallel() {
	const most = 8
	if runtime.GOMAXPROCS(0) < most {
		if err := flag.Set("test.parallel", strconv.Itoa(most)); err != nil {
			panic(err)
		}
	}
}

// Each runs a test with a database of each kind, side by side.
func Each(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	for name, database := range All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, database(t))
		})
	}
}

// SQLite names a file that is not there yet, in a folder that is not there either.
func SQLite(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "state", "data ?#%.db")
}

// NeedPostgres skips the test unless PARLEY_TEST_POSTGRES names a database, such as
// postgres://127.0.0.1:5432/test?sslmode=disable.
func NeedPostgres(t testing.TB) {
	t.Helper()
	if os.Getenv("PARLEY_TEST_POSTGRES") == "" {
		t.Skip("PARLEY_TEST_POSTGRES names no database")
	}
}

// Postgres is the URL of a schema of its own, which goes with the test.
func Postgres(t testing.TB) string {
	t.Helper()
	NeedPostgres(t)
	u, err := url.Parse(os.Getenv("PARLEY_TEST_POSTGRES"))
	if err != nil {
		t.Fatal(err)
	}
	schema := pgx.Identifier{"parley_" + oauth.NewSecret()}.Sanitize()
	Exec(t, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { Exec(t, "DROP SCHEMA "+schema+" CASCADE") })
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// Exec executes a statement in the database of PARLEY_TEST_POSTGRES.
func Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, os.Getenv("PARLEY_TEST_POSTGRES"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement, args...); err != nil {
		t.Fatal(err)
	}
}

// Opened is a store that was opened without an error, and is closed with the test.
func Opened[S io.Closer](t testing.TB, store S, err error) S {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Killed starts the test binary with an addition to its environment, kills it after 2 to
// 61 lines of its output, and returns what it said until then.
func Killed(t *testing.T, env string) []string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), env)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	enough := 2 + rand.IntN(60)
	var said []string
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line without an end was not said
		}
		said = append(said, strings.TrimSpace(line))
		if len(said) == enough {
			// From another goroutine, so that it falls anywhere in what the
			// process does next.
			go func() { _ = child.Process.Kill() }()
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() == 1 {
		t.Fatalf("the process ended by itself: %v", err)
	}
	return said
}
