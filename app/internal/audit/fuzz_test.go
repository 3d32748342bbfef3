package audit_test

import (
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/audit"
)

// Whatever is in the files, reading ends without a panic; what is appended to is verified after it if it
// was before, and what is refused stays as it is.
func FuzzLog(f *testing.F) {
	path, lines := f.TempDir()+"/audit", ""
	for range 3 {
		if err := audit.New(path, &audit.Options{Key: []byte("0123456789abcdef")}).Append(f.Context(), entry{"e"}); err != nil {
			f.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	lines = string(raw)
	first := lines[:strings.Index(lines, "\n")+1]
	for _, seed := range [][2]string{
		{"", ""},
		{"", lines},
		{first, lines[len(first):]},
		{first, lines[len(first) : len(lines)-9]},
		{first, ""},
		{first[:9], "x\n"},
		{`{"seq":1,"prev":""}` + "\n", `{"seq":18446744073709551615,"prev":"00"}` + "\n"},
		{"", `{"seq":5,"prev":"00","event":"audit removed","removedLines":4}` + "\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, now string) {
		path := newPath(t)
		for name, content := range map[string]string{path + ".000000000001": before, path: now} {
			if content == "" {
				continue
			}
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, whole := audit.Verify(t.Context(), path, nil)
		if _, err := audit.Query(t.Context(), path, &audit.Filter{Last: 2}, func([]byte, *audit.Line) error { return nil }); err != nil && whole == nil {
			t.Errorf("verified, but cannot be read: %v", err)
		}
		err := audit.New(path, &audit.Options{MaxSize: maxSize, Keep: 1}).Append(t.Context(), entry{"e"})
		if whole == nil && err != nil {
			t.Errorf("verified, but cannot be appended to: %v", err)
		}
		if err == nil && whole == nil {
			if _, err := audit.Verify(t.Context(), path, nil); err != nil {
				t.Errorf("appended to, and not verified any more: %v", err)
			}
		}
		if got, reading := os.ReadFile(path); err != nil && now != "" && (reading != nil || string(got) != now) {
			t.Errorf("refused, and changed: %v, %v", err, reading)
		}
	})
}
