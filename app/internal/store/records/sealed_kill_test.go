package records_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/app/internal/store/seal"
)

// sealEnv tells the test binary to open a database with a key and then, with "again", to make new
// data keys until it is killed: "WHAT KEY DSN".
const sealEnv = "PARLEY_TEST_SEAL"

// sealUntilKilled says what it has done line by line.
func sealUntilKilled(ctx context.Context, order string) error {
	what, rest, _ := strings.Cut(order, " ")
	text, dsn, _ := strings.Cut(rest, " ")
	key, err := seal.ParseKey(text)
	if err != nil {
		return err
	}
	fmt.Println("opening")
	db, err := records.Open(ctx, dsn, &records.Options{SecretsKey: key, Connections: databasetest.Connections})
	if err != nil {
		return err
	}
	fmt.Println("opened")
	for what == "again" {
		if _, err := db.RotateSecrets(ctx, key, &records.RotateOptions{Reseal: true, Wait: time.Nanosecond}); err != nil {
			return err
		}
		fmt.Println("sealed anew")
	}
	return db.Close()
}

// killAfter starts the test binary, waits for a line of its output, and kills it a while later,
// which is up to some time. It says whether the process had ended by then.
func killAfter(t *testing.T, order, line string, longest time.Duration) (ended bool) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), sealEnv+"="+order)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != line {
		continue
	}
	dies := time.NewTimer(rand.N(longest))
	<-dies.C
	_ = child.Process.Kill()
	err = child.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		t.Fatal("the process failed")
	}
	return err == nil
}

// A process is killed anywhere while it seals what is there for the first time: nothing is lost,
// and the next one seals what is left.
func TestKilledSeal(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, make := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killed := 0
			usual := 400 * time.Millisecond
			for round := 0; round < 5 || killed == 0 && round < 15; round++ {
				dsn := make(t)
				fillInClear(t, dsn)
				key, text := seal.GenerateKey()
				if killAfter(t, "once "+text+" "+dsn, "opening", usual) {
					usual = max(usual/2, time.Millisecond)
				} else {
					killed++
				}
				check(t, openWith(t, dsn, key))
				if found(t, dsn) {
					t.Error("there are secrets in clear")
				}
			}
			if killed == 0 {
				t.Error("no process was killed in the middle")
			}
		})
	}
}

// A process is killed anywhere while it makes a new data key and seals all anew: all can be read,
// also by a server that runs, and the next rotation leaves one data key.
func TestKilledReseal(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		key, text := seal.GenerateKey()
		server := openFilled(t, dsn, key)
		for range 4 {
			killAfter(t, "again "+text+" "+dsn, "opened", 500*time.Millisecond)
			check(t, server)
			check(t, openWith(t, dsn, key))
		}
		db := openWith(t, dsn, key)
		if _, err := db.RotateSecrets(t.Context(), key, &records.RotateOptions{Reseal: true, Wait: time.Nanosecond}); err != nil {
			t.Fatal(err)
		}
		check(t, server)
		var keys int
		if err := raw(t, dsn).QueryRowContext(t.Context(), `SELECT count(*) FROM data_keys`).Scan(&keys); err != nil || keys != 1 {
			t.Errorf("%d data keys, error %v", keys, err)
		}
	})
}
