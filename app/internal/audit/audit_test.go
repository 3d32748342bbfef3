package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/audit"
)

type entry struct {
	Event string `json:"event"`
}

// newPath is that of a log that is not there yet.
func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "audit")
}

// written is a log of three lines.
func written(t *testing.T, o *audit.Options) (path string, lines []string) {
	t.Helper()
	path = newPath(t)
	for _, event := range []string{"one", "two\nlines", "three"} {
		if err := audit.New(path, o).Append(t.Context(), entry{event}); err != nil {
			t.Fatal(err)
		}
	}
	return path, strings.SplitAfter(read(t, path), "\n")[:3]
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// verify verifies a log of these lines.
func verify(t *testing.T, lines []string, o *audit.VerifyOptions) (audit.Chain, error) {
	t.Helper()
	path := newPath(t)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return audit.Verify(t.Context(), path, o)
}

// What is done to a log is found, with the line.
func TestVerify(t *testing.T) {
	_, l := written(t, nil)
	whole, err := verify(t, l, nil)
	if err != nil || whole.Lines != 3 || whole.First != 1 || whole.Last != 3 {
		t.Fatal(whole, err)
	}
	first, err := verify(t, l[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lines        []string
		expect, want string
	}{
		"as it was":            {l, whole.Hash, ""},
		"changed":              {[]string{l[0], strings.Replace(l[1], "two", "2", 1), l[2]}, "", "line 3 does not follow"},
		"removed":              {[]string{l[0], l[2]}, "", "line 2 does not follow"},
		"first removed":        {l[1:], "", "line 2 is the first: the lines before it are missing"},
		"first kept elsewhere": {l[1:], first.Hash, ""},
		"moved":                {[]string{l[0], l[2], l[1]}, "", "line 2 does not follow"},
		"inserted":             {[]string{l[0], l[0], l[1], l[2]}, "", "line 2 does not follow"},
		"not JSON":             {[]string{l[0], "x\n"}, "", "line 2 is not JSON"},
		"no chain":             {[]string{"{\"event\":\"old\"}\n"}, "", "the first line is not one of a chained audit"},
		"in a line":            {[]string{l[0], l[1][:9]}, "", "line 2 is incomplete"},
		"a long line":          {[]string{l[0], strings.Repeat("x", 1<<20+1) + "\n"}, "", "longer than"},
		"last removed":         {l[:2], whole.Hash, "no line has the hash"},
		"last changed":         {[]string{l[0], l[1], strings.Replace(l[2], "three", "3", 1)}, whole.Hash, "no line has the hash"},
		"last removed, unseen": {l[:2], "", ""}, // what --expect is for
	} {
		_, err := verify(t, c.lines, &audit.VerifyOptions{Expect: c.expect})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := audit.Verify(t.Context(), newPath(t), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log that is not there: %v", err)
	}
}

// Without the key nobody can change a line, or make one, such that it is not found.
func TestVerifyKey(t *testing.T) {
	key := []byte("0123456789abcdef")
	_, l := written(t, &audit.Options{Key: key})
	_, plain := written(t, nil)
	_, foreign := written(t, &audit.Options{Key: []byte("another key, not that")})
	later := newPath(t) // a log that has a key from its second line on
	for _, o := range []*audit.Options{nil, {Key: key}, {Key: key}} {
		if err := audit.New(later, o).Append(t.Context(), entry{"e"}); err != nil {
			t.Fatal(err)
		}
	}
	mixed := strings.SplitAfter(read(t, later), "\n")[:3]
	for name, c := range map[string]struct {
		lines         []string
		key           []byte
		authenticated uint64
		want          string
	}{
		"as it was":              {l, key, 1, ""},
		"without the key":        {l, nil, 0, ""},
		"last changed":           {[]string{l[0], l[1], strings.Replace(l[2], "three", "3", 1)}, key, 0, "line 3 has a wrong MAC"},
		"last without MAC":       {[]string{l[0], l[1], l[2][:strings.Index(l[2], `,"mac"`)] + "}\n"}, key, 0, "line 3 has no MAC"},
		"all anew":               {plain, key, 0, "no line has a MAC"},
		"all by another":         {foreign, key, 0, "line 1 has a wrong MAC"},
		"from a line on":         {mixed, key, 2, ""},
		"before that, a change":  {[]string{strings.Replace(mixed[0], `"e"`, `"f"`, 1), mixed[1], mixed[2]}, key, 0, "line 2 does not follow"},
		"end cut off, unseen":    {l[:2], key, 1, ""}, // what --expect is for
		"of an empty log":        {nil, key, 0, ""},
		"a MAC of upper letters": {[]string{upperMAC(l[0])}, key, 0, "line 1 has a wrong MAC"},
	} {
		got, err := verify(t, c.lines, &audit.VerifyOptions{Key: c.key})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && got.Authenticated != c.authenticated {
			t.Errorf("%s: authenticated from line %d on, want %d", name, got.Authenticated, c.authenticated)
		}
	}
}

func upperMAC(line string) string {
	at := strings.Index(line, `,"mac":"`) + len(`,"mac":"`)
	return line[:at] + strings.ToUpper(line[at:at+64]) + line[at+64:]
}

// A line cut off anywhere is removed by the next append, which says so.
func TestTornLine(t *testing.T) {
	_, l := written(t, nil)
	path := newPath(t)
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	log := audit.New(path, &audit.Options{Now: func() time.Time { return now }})
	for cut := 1; cut < len(l[2]); cut++ {
		if err := os.WriteFile(path, []byte(l[0]+l[1]+l[2][:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), entry{"next"}); err != nil {
			t.Fatal(err)
		}
		got := read(t, path)
		end, err := audit.Verify(t.Context(), path, nil)
		note := fmt.Sprintf(`"time":"2026-11-25T12:00:00Z","event":"audit repaired","removedBytes":%d}`, cut)
		if err != nil || end.Lines != 4 || !strings.HasPrefix(got, l[0]+l[1]) || !strings.Contains(got, note) {
			t.Fatalf("cut at %d: %v\n%s", cut, err, got)
		}
	}
}

// Many append at once, each with a file and lock of its own, as processes have; files are renamed
// meanwhile, and the log is verified and read.
func TestAppendAtOnce(t *testing.T) {
	for name, o := range map[string]*audit.Options{"one file": nil, "rotated": {MaxSize: 1000}} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			ctx, ended := context.WithCancel(t.Context())
			var writers, readers sync.WaitGroup
			for range 4 {
				writers.Go(func() {
					for range 25 {
						if err := audit.New(path, o).Append(t.Context(), entry{"e"}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			readers.Go(func() {
				for ctx.Err() == nil {
					if _, err := audit.Verify(t.Context(), path, nil); err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Errorf("verified meanwhile: %v", err)
						return
					}
				}
			})
			writers.Wait()
			ended()
			readers.Wait()
			end, err := audit.Verify(t.Context(), path, nil)
			if err != nil || end.Lines != 100 {
				t.Errorf("%+v, %v", end, err)
			}
		})
	}
}

// Files that are no chained log are refused and left as they are; so are entries that are too long.
func TestRefused(t *testing.T) {
	path, _ := written(t, nil)
	log := audit.New(path, nil)
	before := read(t, path)
	if err := log.Append(t.Context(), entry{"short"}, entry{strings.Repeat("x", 1<<20)}); err == nil || read(t, path) != before {
		t.Errorf("a line that is too long: %v", err)
	}
	for _, content := range [][]byte{[]byte("{\"event\":\"old\"}\n"), slices.Concat(bytes.Repeat([]byte("x"), 9<<20), []byte("\n"))} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), entry{"e"}); err == nil || read(t, path) != string(content) {
			t.Errorf("a file of %d bytes: %v", len(content), err)
		}
		if err := log.Check(); err == nil || read(t, path) != string(content) {
			t.Errorf("a file of %d bytes is found to be a log: %v", len(content), err)
		}
	}
	folder := audit.New(t.TempDir(), nil)
	if err := folder.Append(t.Context(), entry{"e"}); err == nil {
		t.Error("a folder was appended to")
	}
	if err := folder.Check(); err == nil {
		t.Error("a folder is found to be a log")
	}
}
