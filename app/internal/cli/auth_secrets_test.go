package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/seal"
)

// newSecretsKey writes a new key into a file, and returns its source and what it is known by.
func newSecretsKey(t *testing.T) (source, id string) {
	t.Helper()
	key, text := seal.GenerateKey()
	path := filepath.Join(t.TempDir(), "secrets.key")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file:" + path, key.ID()
}

// refuseToServe runs auth serve with flags that it must refuse, and returns what it says.
func refuseToServe(t *testing.T, flags ...string) string {
	t.Helper()
	code, out, said := run(t, "", append([]string{"auth", "serve", "--http", "127.0.0.1:0", "--auto-approve", "ada"}, flags...)...)
	if code != 1 || out != "" {
		t.Errorf("%v: exit code %d, %s", flags, code, out)
	}
	return said
}

// A server seals what is in its database when it is started with a key for the first time, and from
// then on only with the key; what an operator does otherwise needs no key. A server that runs
// without the key then ends.
func TestSecretsKey(t *testing.T) {
	t.Parallel()
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			source, id := newSecretsKey(t)
			other, otherID := newSecretsKey(t)
			admin := func(want string, args ...string) {
				t.Helper()
				if code, out, said := run(t, "", append(append([]string{"auth"}, args...), "--database", dsn)...); code != 0 || !strings.Contains(out, want) {
					t.Errorf("%v: exit code %d\n%s%s", args, code, out, said)
				}
			}
			interrupts, before := make(chan os.Signal, 1), new(output)
			ended := make(chan int, 1)
			go func() {
				ended <- cli.Main(t.Context(), []string{"auth", "serve", "--http", "127.0.0.1:0", "--auto-approve", "ada", "--database", dsn},
					&kit.Streams{In: strings.NewReader(""), Out: new(output), Err: before, Interrupts: interrupts})
			}()
			if before.wait("authorization server is", t.Context().Done()) == "" || !strings.Contains(before.String(), "private keys in the records are not encrypted; encrypt them with --secrets-key") {
				t.Errorf("a server without a key says:\n%s", before)
			}
			admin("not encrypted", "secrets", "show")

			p := newProcess(t, dsn, "--secrets-key", source)
			if code := <-ended; code != 1 || !strings.Contains(before.String(), "another process encrypted the private keys in the records; start this one with --secrets-key too") {
				t.Errorf("the server without the key ended with %d:\n%s", code, before)
			}
			token := p.signIn()
			keys := p.keys()
			p.kill()
			if p.keys() != keys {
				t.Error("after a kill there are other keys")
			}
			if _, trouble := p.refresh(token); trouble != "" {
				t.Errorf("after a kill: %s", trouble)
			}

			if said := refuseToServe(t, "--database", dsn); !strings.Contains(said, "encrypted by the key "+id+"; name its source with --secrets-key") {
				t.Errorf("without the key: %s", said)
			}
			if said := refuseToServe(t, "--database", dsn, "--secrets-key", other); !strings.Contains(said, "--secrets-key "+other+": the private keys in the records are encrypted by the key "+id+", and this is "+otherID) {
				t.Errorf("with another key: %s", said)
			}
			admin("encrypted by the key "+id, "secrets", "show")
			admin("data key 1, since", "secrets", "show")
			admin("added tv", "client", "add", "tv", "--redirect-uri", "http://127.0.0.1/tv")
			admin("tv", "client", "list")
			admin("signs until", "key", "list")
			admin("revoked: 1", "grant", "revoke", "--client", killClient)
			admin("newest", "migrate")
		})
	}
}

// What a source of the key lacks is said with the flag and what to do about it, and never shown.
func TestSecretsKeySources(t *testing.T) {
	newEmptyPlace(t)
	dir := t.TempDir()
	_, text := seal.GenerateKey()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	t.Setenv("SHORT_KEY", text[:40])
	for source, want := range map[string]string{
		"file:" + filepath.Join(dir, "absent"):          "openssl rand -hex 32 >",
		write("open", text, 0o604):                      "run chmod 0600 on it",
		write("short", text[:40], 0o600):                "32 random bytes",
		write("long", text+text, 0o600):                 "32 random bytes",
		write("huge", strings.Repeat("0", 5000), 0o600): "not a key file",
		"file:" + dir:     "",
		"env:NO_SUCH_KEY": "$NO_SUCH_KEY is not set",
		"env:SHORT_KEY":   "32 random bytes",
		"secret":          "must be file:PATH, env:NAME or keyring",
		"file:":           "must be",
		"keyring:":        "must be",
		"vault:x":         "must be",
	} {
		said := refuseToServe(t, "--database", filepath.Join(dir, "x.db"), "--secrets-key", source)
		if !strings.Contains(said, "--secrets-key") || !strings.Contains(said, want) || strings.Contains(said, text[:40]) {
			t.Errorf("%s: %s", source, said)
		}
	}
	for _, flags := range [][]string{{}, {"--secrets-key", "env:X"}, {"--new-secrets-key", "env:X"}} {
		if code, _, said := run(t, "", append([]string{"auth", "secrets", "rotate"}, flags...)...); code != 1 || !strings.Contains(said, "--new-secrets-key, or use --reseal") {
			t.Errorf("rotate %v: exit code %d, %s", flags, code, said)
		}
	}
	t.Setenv("GOOD_KEY", text)
	if code, _, said := run(t, "", "auth", "secrets", "rotate", "--secrets-key", "env:GOOD_KEY", "--reseal", "--database", filepath.Join(dir, "x.db")); code != 1 || !strings.Contains(said, "not encrypted; start a server with --secrets-key") {
		t.Errorf("rotate of what is in clear: exit code %d, %s", code, said)
	}
}

// The keyring makes its key when it is used first, and not for records that another key encrypts.
func TestSecretsKeyring(t *testing.T) {
	keyring.MockInit()
	t.Cleanup(func() { keyring.MockInitWithError(keyring.ErrUnsupportedPlatform) }) // other tests look into files
	p := newEmptyPlace(t)
	db := filepath.Join(p.dir, "issuer.db")
	p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--auto-approve", "ada", "--database", db, "--secrets-key", "keyring")
	if !strings.Contains(p.said.String(), "now encrypted with the key from keyring") {
		t.Errorf("the server says:\n%s", p.said)
	}
	p.stop()
	p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--auto-approve", "ada", "--database", db, "--secrets-key", "keyring")
	p.stop()
	if said := refuseToServe(t, "--database", db, "--secrets-key", "keyring:other"); !strings.Contains(said, `there is no key "auth-secrets-key:other"`) {
		t.Errorf("a key that is not there: %s", said)
	}
	if code, out, said := run(t, "", "auth", "secrets", "rotate", "--database", db, "--secrets-key", "keyring", "--new-secrets-key", "keyring:other"); code != 0 {
		t.Fatalf("rotate: %d %s%s", code, out, said)
	}
	if code, out, said := run(t, "", "auth", "secrets", "rotate", "--database", db, "--secrets-key", "keyring:other", "--new-secrets-key", "keyring:other"); code != 1 || out != "" || !strings.Contains(said, "is the current key") {
		t.Errorf("rotate to the same key: %d %s%s", code, out, said)
	}
	p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--auto-approve", "ada", "--database", db, "--secrets-key", "keyring:other")
}

// Both keys are rotated while two servers issue tokens, without one request that fails; servers are
// started with the new key from then on.
func TestSecretsRotateWhileServing(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			source, _ := newSecretsKey(t)
			next, nextID := newSecretsKey(t)
			servers := []*process{newProcess(t, dsn, "--secrets-key", source), newProcess(t, dsn, "--secrets-key", source)}
			ctx, stop := context.WithCancel(t.Context())
			var busy sync.WaitGroup
			counts := make([]int, len(servers))
			for i, p := range servers {
				busy.Go(func() {
					pace := time.NewTicker(200 * time.Millisecond) // the server limits what comes from one address
					defer pace.Stop()
					for token := p.signIn(); ctx.Err() == nil; counts[i]++ {
						<-pace.C
						var trouble string
						if token, trouble = p.refresh(token); trouble != "" {
							t.Errorf("a refresh: %s", trouble)
							return
						}
						if counts[i]%5 == 0 {
							p.signIn()
						}
					}
				})
			}
			for _, flags := range [][]string{
				{"--secrets-key", source, "--new-secrets-key", next},
				{"--secrets-key", next, "--reseal"},
				{"--secrets-key", next, "--new-secrets-key", next, "--reseal"},
			} {
				start := time.Now()
				code, out, said := run(t, "", append([]string{"auth", "secrets", "rotate", "--json", "--database", dsn}, flags...)...)
				var report struct {
					Encrypted bool
					Key       string
				}
				if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || !report.Encrypted || report.Key != nextID {
					t.Errorf("%v: exit code %d, error %v\n%s%s", flags, code, err, out, said)
				}
				t.Logf("%v took %v", flags, time.Since(start))
			}
			stop()
			busy.Wait()
			t.Logf("%v refreshes", counts)
			if said := refuseToServe(t, "--database", dsn, "--secrets-key", source); !strings.Contains(said, nextID) {
				t.Errorf("started with the old key: %s", said)
			}
			keys := servers[0].keys()
			p := newProcess(t, dsn, "--secrets-key", next)
			if p.keys() != keys {
				t.Error("the new server has other keys")
			}
			if _, trouble := p.refresh(servers[1].signIn()); trouble != "" {
				t.Errorf("a token of the other server: %s", trouble)
			}
		})
	}
}

// A backup has the secrets as they are in the records, encrypted; what is made of it elsewhere
// needs the key, and says so.
func TestSecretsInBackup(t *testing.T) {
	t.Parallel()
	dsn := databasetest.SQLite(t)
	source, id := newSecretsKey(t)
	p := newProcess(t, dsn, "--secrets-key", source)
	token := p.signIn()
	file, elsewhere := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored.db")
	want := "its private keys are encrypted by the key " + id + ": a server needs this key too (--secrets-key)"
	for _, args := range [][]string{{"backup", file, "--database", dsn}, {"restore", file, "--database", elsewhere}} {
		if code, out, said := run(t, "", append([]string{"auth"}, args...)...); code != 0 || !strings.Contains(out, want) {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, out, said)
		}
	}
	if dump, err := databasetest.Dump(t.Context(), file); err != nil || strings.Contains(string(dump), `"d":"`) || !strings.Contains(string(dump), "sealed:1:1:") {
		t.Errorf("a private key is in the backup, or nothing that is encrypted; error %v", err)
	}
	if said := refuseToServe(t, "--database", elsewhere); !strings.Contains(said, id) {
		t.Errorf("the restored database without the key: %s", said)
	}
	restored := newProcess(t, elsewhere, "--secrets-key", source)
	if restored.keys() != p.keys() {
		t.Error("the restored server has other keys")
	}
	if _, trouble := restored.refresh(token); trouble != "" {
		t.Errorf("a token of before: %s", trouble)
	}
}
