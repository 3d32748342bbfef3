package secrets_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zalando/go-keyring"

	"github.com/parley-mcp/parley/app/internal/store/secrets"
	"github.com/parley-mcp/parley/oauth/login"
)

// workEnv gives the test binary a folder to work in as another process.
const workEnv = "PARLEY_TEST_SECRETS"

func TestMain(m *testing.M) {
	if folder := os.Getenv(workEnv); folder != "" {
		if err := work(context.Background(), folder, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	keyring.MockInit() // tests touch nobody's keyring
	os.Exit(m.Run())
}

const rounds = 20

// work is what another process does: it adds names of its own, and counts up
// what all share under a lock; or it takes a lock and stays.
func work(ctx context.Context, folder, me string) error {
	s, err := secrets.Open(&secrets.Options{Kind: secrets.File, Folder: folder})
	if err != nil {
		return err
	}
	if me == "hold" {
		if _, err := s.Lock(ctx, "shared"); err != nil {
			return err
		}
		fmt.Println("held")
		time.Sleep(time.Hour) // until it is killed; without cgo, a program that waits for nothing is a deadlock
	}
	for i := range rounds {
		if err := s.Set(ctx, me+strconv.Itoa(i), []byte(me)); err != nil {
			return err
		}
		if err := countUp(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func countUp(ctx context.Context, s login.Store) error {
	unlock, err := s.Lock(ctx, "shared")
	if err != nil {
		return err
	}
	defer unlock()
	text, err := s.Get(ctx, "count")
	if err != nil && !errors.Is(err, login.ErrNotFound) {
		return err
	}
	n, _ := strconv.Atoi(string(text)) // nothing yet is 0
	return s.Set(ctx, "count", []byte(strconv.Itoa(n+1)))
}

func process(t *testing.T, folder, what string) *exec.Cmd {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], what)
	child.Env = append(os.Environ(), workEnv+"="+folder)
	child.Stderr = os.Stderr
	return child
}

// Two processes and two goroutines lose nothing of each other's.
func TestProcessesRace(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var wg sync.WaitGroup
	for _, who := range []string{"first", "second"} {
		child := process(t, folder, who)
		wg.Go(func() {
			if err := child.Run(); err != nil {
				t.Errorf("%s process: %v", who, err)
			}
		})
	}
	for _, who := range []string{"third", "fourth"} {
		wg.Go(func() {
			if err := work(t.Context(), folder, who); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := open(t, &secrets.Options{Kind: secrets.File, Folder: folder})
	names, err := s.Names(t.Context())
	if err != nil || len(names) != 4*rounds+1 {
		t.Errorf("%d names, error %v; want %d", len(names), err, 4*rounds+1)
	}
	if got, err := s.Get(t.Context(), "count"); err != nil || string(got) != strconv.Itoa(4*rounds) {
		t.Errorf("count is %s, error %v; want %d", got, err, 4*rounds)
	}
}

// A lock ends with the process that has it, and waiting for it with the context.
func TestLockEndsWithProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	child := process(t, folder, "hold")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	s := open(t, &secrets.Options{Kind: secrets.File, Folder: folder})
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Lock(short, "shared"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a lock that somebody has: error %v", err)
	}
	other, err := s.Lock(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	other()
	other() // which does nothing
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	unlock, err := s.Lock(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func open(t *testing.T, o *secrets.Options) secrets.Store {
	t.Helper()
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	s, err := secrets.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	secrets.Quick(s)
	return s
}

func passphrase(text string) func() (string, error) {
	return func() (string, error) { return text, nil }
}

// Every kind keeps login.Store's contract. The keyrings of tests are for one
// goroutine, so these do not run in parallel.
func TestStores(t *testing.T) {
	for _, kind := range []string{secrets.Keyring, secrets.Encrypted, secrets.File} {
		t.Run(kind, func(t *testing.T) {
			o := &secrets.Options{Kind: kind, Folder: t.TempDir(), Service: "parley test " + kind, Passphrase: passphrase("open sesame")}
			testStore(t, open(t, o), func() secrets.Store { return open(t, o) })
		})
	}
}

func testStore(t *testing.T, s secrets.Store, again func() secrets.Store) {
	ctx := t.Context()
	if _, err := s.Get(ctx, "none"); !errors.Is(err, login.ErrNotFound) {
		t.Errorf("Get of none: error %v", err)
	}
	if err := s.Delete(ctx, "none"); err != nil {
		t.Errorf("Delete of none: %v", err)
	}
	long := make([]byte, 64<<10)
	for i := range long {
		long[i] = byte(i * 7)
	}
	want := map[string][]byte{
		"a": []byte("1"), "A": {}, "tokens https://as.example/ü '\"\\ \n": []byte("\x00\xff"),
		strings.Repeat("n", 512): []byte("x"), "long": long, "edge": long[:1350], "over": long[:1351],
	}
	for round := range 2 {
		for name, value := range want {
			if round == 1 && name == "long" {
				value = value[:3000] // fewer parts than before
				want[name] = value
			}
			if err := s.Set(ctx, name, value); err != nil {
				t.Fatalf("Set(%q): %v", name, err)
			}
		}
		s = again()
		for name, value := range want {
			got, err := s.Get(ctx, name)
			if err != nil {
				t.Fatalf("Get(%q): %v", name, err)
			}
			if diff := cmp.Diff(string(value), string(got)); diff != "" {
				t.Errorf("Get(%q) differs", name)
			}
		}
	}
	names, err := s.Names(ctx)
	if err != nil || len(names) != len(want) {
		t.Errorf("Names: %q, %v", names, err)
	}
	for name := range want {
		if err := s.Delete(ctx, name); err != nil {
			t.Errorf("Delete(%q): %v", name, err)
		}
		if _, err := s.Get(ctx, name); !errors.Is(err, login.ErrNotFound) {
			t.Errorf("Get of what was deleted: error %v", err)
		}
	}
	if names, err := s.Names(ctx); err != nil || len(names) != 0 {
		t.Errorf("Names of nothing: %q, %v", names, err)
	}
	for name, value := range map[string][]byte{"": nil, strings.Repeat("n", 513): nil, "x": make([]byte, 64<<10+1)} {
		if s.Set(ctx, name, value) == nil {
			t.Errorf("Set of a name of %d bytes, a value of %d succeeds", len(name), len(value))
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Set(ended, "x", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Set with a context that has ended: error %v", err)
	}
}

// A keyring that was emptied behind our back is filled again.
func TestKeyringEmptied(t *testing.T) {
	const service = "parley test emptied"
	s := open(t, &secrets.Options{Kind: secrets.Keyring, Service: service})
	big := []byte(strings.Repeat("secret!!", 1000))
	if err := s.Set(t.Context(), "n", big); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Kind(), "keyring") {
		t.Errorf("Kind is %q", s.Kind())
	}
	if err := keyring.DeleteAll(service); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), "n", big); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "n"); err != nil || string(got) != string(big) {
		t.Errorf("after the keyring was emptied: %d bytes, error %v", len(got), err)
	}
}

// Without a keyring there is a file, encrypted if there is a passphrase; and
// what is asked for by name is that or an error.
func TestChoice(t *testing.T) {
	t.Cleanup(keyring.MockInit)
	for _, test := range []struct {
		name    string
		broken  bool
		options secrets.Options
		want    string // part of Kind, or "" for an error
	}{
		{"keyring", false, secrets.Options{Passphrase: passphrase("x")}, "keyring"},
		{"no keyring, passphrase", true, secrets.Options{Passphrase: passphrase("x")}, "encrypted file"},
		{"no keyring, no passphrase", true, secrets.Options{Passphrase: passphrase("")}, "readable by you alone"},
		{"no keyring", true, secrets.Options{}, "readable by you alone"},
		{"no keyring, forced", true, secrets.Options{Kind: secrets.Keyring}, ""},
		{"no passphrase, forced", false, secrets.Options{Kind: secrets.Encrypted}, ""},
		{"unknown", false, secrets.Options{Kind: "vault"}, ""},
		{"passphrase fails", true, secrets.Options{Passphrase: func() (string, error) { return "", errors.New("no terminal") }}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			keyring.MockInit()
			if test.broken {
				keyring.MockInitWithError(errors.New("no bus"))
			}
			test.options.Folder = t.TempDir()
			s, err := secrets.Open(&test.options)
			if test.want == "" {
				if err == nil {
					t.Errorf("opened %s", s.Kind())
				}
				return
			}
			if err != nil || !strings.Contains(s.Kind(), test.want) {
				t.Errorf("opened %v, error %v; want %s", s, err, test.want)
			}
		})
	}
}

func TestFileIsPrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the folder decides there")
	}
	folder := filepath.Join(t.TempDir(), "new", "parley")
	s := open(t, &secrets.Options{Kind: secrets.File, Folder: folder})
	if err := s.Set(t.Context(), "n", []byte("v")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "secrets.json")
	for name, want := range map[string]os.FileMode{folder: 0o700, path: 0o600, filepath.Join(folder, "locks"): 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, error %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}

	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "n"); err == nil || !strings.Contains(err.Error(), "other users") {
		t.Errorf("a file that others can read: error %v", err)
	}
	if err := s.Set(t.Context(), "n", []byte("v2")); err == nil {
		t.Error("a file that others can read is written")
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/null", path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "n"); err == nil || errors.Is(err, login.ErrNotFound) {
		t.Errorf("a link: error %v", err)
	}

	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Open(&secrets.Options{Kind: secrets.File, Folder: folder}); err == nil {
		t.Error("a folder that others can write to is taken")
	}
	if os.Geteuid() != 0 {
		return // cannot give files away
	}
	other := t.TempDir()
	if err := os.Chown(other, 65534, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Open(&secrets.Options{Kind: secrets.File, Folder: other}); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("a folder of another user: error %v", err)
	}
	// Attack: a link, in a place where all may write, that leads to wherever
	// its maker likes.
	own := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Chmod(own, 0o700), os.Symlink(own, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Open(&secrets.Options{Kind: secrets.File, Folder: link}); err != nil {
		t.Errorf("a link of one's own: %v", err)
	}
	if err := os.Lchown(link, 65534, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Open(&secrets.Options{Kind: secrets.File, Folder: link}); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("a link of another user: error %v", err)
	}
}

// What cannot be read is left as it is, and never taken for nothing.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":    "",
		"cut":      `{"version":1,"secrets":{"a":"eA`,
		"garbage":  "\x00\x01\x02",
		"another":  `{"version":1,"other":{}}`,
		"twice":    `{"version":1,"secrets":{}} {"version":1}`,
		"newer":    `{"version":2,"secrets":{}}`,
		"no value": `{"version":1,"secrets":{"a":"very secret"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path := filepath.Join(folder, "secrets.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, &secrets.Options{Kind: secrets.File, Folder: folder})
			_, getErr := s.Get(t.Context(), "a")
			for what, err := range map[string]error{"Get": getErr, "Set": s.Set(t.Context(), "a", nil), "Delete": s.Delete(t.Context(), "a")} {
				if err == nil || errors.Is(err, login.ErrNotFound) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "very secret") {
					t.Errorf("%s: error %v", what, err)
				}
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != text {
				t.Errorf("the file is now %q, %v", after, err)
			}
		})
	}
}

// The encrypted file shows nothing, and opens with its passphrase alone.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	options := func(text string) *secrets.Options {
		return &secrets.Options{Kind: secrets.Encrypted, Folder: folder, Passphrase: passphrase(text)}
	}
	s := open(t, options("right"))
	if err := s.Set(t.Context(), "the name", []byte("the value")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secrets.age", "secrets.key"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || strings.Contains(string(data), "the name") || strings.Contains(string(data), "AGE-SECRET-KEY") ||
			!strings.HasPrefix(string(data), "age-encryption.org/v1\n") {
			t.Errorf("%s is not encrypted: %v", name, err)
		}
	}
	before, err := os.ReadFile(filepath.Join(folder, "secrets.age"))
	if err != nil {
		t.Fatal(err)
	}
	wrong := open(t, options("wrong"))
	if _, err := wrong.Get(t.Context(), "the name"); err == nil || !strings.Contains(err.Error(), "passphrase is wrong") {
		t.Errorf("a wrong passphrase: error %v", err)
	}
	if wrong.Set(t.Context(), "x", nil) == nil {
		t.Error("Set with a wrong passphrase succeeds")
	}
	if err := os.Rename(filepath.Join(folder, "secrets.key"), filepath.Join(folder, "gone")); err != nil {
		t.Fatal(err)
	}
	if open(t, options("right")).Set(t.Context(), "x", nil) == nil {
		t.Error("Set without the key of the file succeeds")
	}
	if after, err := os.ReadFile(filepath.Join(folder, "secrets.age")); err != nil || string(after) != string(before) {
		t.Errorf("the file changed: %v", err)
	}
}
