package records_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// spendEnv tells the test binary to spend codes and tokens of a database until
// it is killed.
const spendEnv = "PARLEY_TEST_SPEND"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(spendEnv); dsn != "" {
		if err := spend(context.Background(), dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1) // whoever gets here was not killed
	}
	if order := os.Getenv(sealEnv); order != "" {
		if err := sealUntilKilled(context.Background(), order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	databasetest.Parallel()
	os.Exit(m.Run())
}

var epoch = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// spend consumes codes and rotates one family's refresh token, and prints each
// success once it was answered.
func spend(ctx context.Context, dsn string) error {
	db, err := records.Open(ctx, dsn, &records.Options{Connections: databasetest.Connections})
	if err != nil {
		return err
	}
	grant := oauth.NewSecret()
	token := grant + "-0"
	if err := errors.Join(
		db.AddGrant(ctx, &issuer.Grant{ID: grant, ClientID: "c", Subject: "s", Created: epoch, Expires: epoch.Add(time.Hour)}),
		db.AddRefresh(ctx, token, newRefresh(grant)),
	); err != nil {
		return err
	}
	for i := 1; ; i++ {
		code := fmt.Sprintf("%s-code-%d", grant, i)
		if err := db.AddCode(ctx, code, &issuer.Code{Grant: grant, ClientID: "c", Expires: epoch.Add(time.Minute)}); err != nil {
			return err
		}
		if _, err := db.ConsumeCode(ctx, code, epoch); err != nil {
			return err
		}
		fmt.Println("code", code)
		next := grant + "-" + strconv.Itoa(i)
		if err := db.RotateRefresh(ctx, token, next, newRefresh(grant), 0, epoch); err != nil {
			return err
		}
		fmt.Println("refresh", token)
		token = next
	}
}

func newRefresh(grant string) *issuer.Refresh {
	return &issuer.Refresh{Grant: grant, ClientID: "c", Created: epoch, Expires: epoch.Add(time.Hour)}
}

// What was answered survives the end of the process at any moment: no code can
// be redeemed again, no rotated token is current again. (A process that is
// killed, that is; that nothing is lost with the machine's power is what
// synchronous=FULL says.)
func TestKillNeverRevives(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		spent := 0
		for range 6 {
			spent += killAndLook(t, dsn)
		}
		if spent < 12 {
			t.Errorf("only %d codes and tokens were spent before the processes ended", spent)
		}
	})
}

// killAndLook lets a process spend, kills it after a random number of
// successes, and tries each of them again. It returns how many there were.
func killAndLook(t *testing.T, dsn string) int {
	t.Helper()
	spent := databasetest.Killed(t, spendEnv+"="+dsn)
	db, err := records.Open(t.Context(), dsn, &records.Options{Connections: databasetest.Connections})
	if err != nil {
		t.Fatalf("open after the kill: %v", err)
	}
	defer db.Close()
	for _, line := range spent {
		kind, hash, _ := strings.Cut(line, " ")
		switch kind {
		case "code":
			if _, err := db.ConsumeCode(t.Context(), hash, epoch); !errors.Is(err, issuer.ErrConsumed) {
				t.Errorf("a code that was consumed before the kill: error %v, want %v", err, issuer.ErrConsumed)
			}
		case "refresh":
			r, err := db.Refresh(t.Context(), hash, epoch)
			if err != nil || r.Rotated.IsZero() {
				t.Errorf("a token that was rotated before the kill is %+v, error %v", r, err)
			}
			if err := db.RotateRefresh(t.Context(), hash, hash+"-again", newRefresh("x"), 0, epoch); !errors.Is(err, issuer.ErrReused) {
				t.Errorf("a token that was rotated before the kill: error %v, want %v", err, issuer.ErrReused)
			}
		default:
			t.Errorf("the process says %q", line)
		}
	}
	return len(spent)
}
