package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/audit"
)

// names are those of the files of a log, but its lock.
func names(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			all = append(all, e.Name())
		}
	}
	return all
}

func appendAll(t *testing.T, log *audit.Log, events ...string) {
	t.Helper()
	for _, event := range events {
		if err := log.Append(t.Context(), entry{event}); err != nil {
			t.Fatal(err)
		}
	}
}

// filler makes lines of some 400 bytes, two of which go into a file of maxSize.
var filler = strings.Repeat("x", 300)

const maxSize = 1000

// The chain goes on from file to file.
func TestRotate(t *testing.T) {
	path := newPath(t)
	log := audit.New(path, &audit.Options{MaxSize: maxSize})
	appendAll(t, log, filler, filler, filler, filler, "last")
	want := []string{"audit", "audit.000000000002"}
	if got := names(t, path); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for _, name := range want {
		if info, err := os.Stat(filepath.Join(filepath.Dir(path), name)); err != nil || info.Size() > maxSize || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if chain, err := audit.Verify(t.Context(), path, nil); err != nil || chain.Lines != 5 || chain.First != 1 {
		t.Errorf("%+v, %v", chain, err)
	}
	// A file that is gone from the middle or the beginning, without a line that says so.
	appendAll(t, log, filler, filler, filler, filler)
	all := names(t, path)
	for _, name := range all[1:] {
		hidden := filepath.Join(filepath.Dir(path), name)
		if err := os.Rename(hidden, hidden+".old"); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Verify(t.Context(), path, nil); err == nil {
			t.Errorf("%s is missing, and nobody noticed", name)
		}
		if err := os.Rename(hidden+".old", hidden); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := audit.Verify(t.Context(), path, nil); err != nil || len(all) != 4 {
		t.Errorf("%v: %v", all, err)
	}
}

// A new file has the permissions that its predecessor was given.
func TestRotatePermissions(t *testing.T) {
	path := newPath(t)
	log := audit.New(path, &audit.Options{MaxSize: maxSize})
	appendAll(t, log, filler)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	appendAll(t, log, filler, filler)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 || len(names(t, path)) != 2 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Files that are too old are removed, with a line that says so.
func TestKeep(t *testing.T) {
	path := newPath(t)
	log := audit.New(path, &audit.Options{MaxSize: maxSize, Keep: 2})
	for range 20 {
		appendAll(t, log, filler)
		if got := names(t, path); len(got) > 3 {
			t.Fatalf("files %v", got)
		}
		if _, err := audit.Verify(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
	}
	chain, err := audit.Verify(t.Context(), path, nil)
	if err != nil || chain.First == 1 || chain.Last < 20 {
		t.Errorf("%+v, %v", chain, err)
	}
	oldest := names(t, path)[1]
	said := fmt.Sprintf(`"event":"audit removed","removedLines":%d}`, chain.First-1)
	if !strings.Contains(read(t, path), said) {
		t.Errorf("no line says %s, and the oldest file is %s:\n%s", said, oldest, read(t, path))
	}
	// More is missing than the line says.
	if err := os.Remove(filepath.Join(filepath.Dir(path), oldest)); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Verify(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), "lines before it are missing") {
		t.Errorf("a file was removed by hand: %v", err)
	}
}

// What stands beside a log under like names is no part of it, and nothing is overwritten.
func TestForeignNames(t *testing.T) {
	path := newPath(t)
	log := audit.New(path, &audit.Options{MaxSize: maxSize, Keep: 1})
	for _, name := range []string{".1", ".2.gz", ".0000000000000001", ".00000000000x", ".-00000000001", ".lock.000000000009"} {
		if err := os.WriteFile(path+name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	appendAll(t, log, filler, filler, filler, filler, filler, filler)
	if _, err := audit.Verify(t.Context(), path, nil); err != nil {
		t.Error(err)
	}
	for _, name := range []string{".1", ".2.gz", ".0000000000000001", ".00000000000x", ".-00000000001", ".lock.000000000009"} {
		if got := read(t, path+name); got != name {
			t.Errorf("%s was changed: %.20s", name, got)
		}
	}
	taken := newPath(t)
	appendAll(t, audit.New(taken, nil), filler, filler)
	if err := os.Mkdir(taken+".000000000002", 0o700); err != nil {
		t.Fatal(err)
	}
	err := audit.New(taken, &audit.Options{MaxSize: maxSize}).Append(t.Context(), entry{filler})
	if err == nil || !strings.Contains(err.Error(), "already exists; move it away") {
		t.Errorf("a name that is taken: %v", err)
	}
}

// A log whose newest file is gone or empty goes on after the file that was renamed last, and not
// after one that is damaged.
func TestGoesOn(t *testing.T) {
	path := newPath(t)
	log := audit.New(path, &audit.Options{MaxSize: maxSize})
	appendAll(t, log, filler, filler, filler, filler)
	for _, content := range []string{"", `{"seq":3,"pr`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := log.Check(); err != nil {
			t.Error(err)
		}
		appendAll(t, log, "next")
		if chain, err := audit.Verify(t.Context(), path, nil); err != nil || chain.Last < 3 {
			t.Errorf("after %q: %+v, %v", content, chain, err)
		}
	}
	before := read(t, path+".000000000002")
	for _, content := range []string{before[:len(before)-2], before[:len(before)/2], "", before + "x"} {
		if err := os.WriteFile(path+".000000000002", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), entry{"next"}); err == nil || !strings.Contains(err.Error(), "audit.000000000002: ") {
			t.Errorf("went on after a file of %d bytes of %d: %v", len(content), len(before), err)
		}
		if err := log.Check(); err == nil {
			t.Error("and Check found nothing")
		}
	}
}
