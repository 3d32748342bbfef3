package timezone

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Where the name of the local zone comes from, in this order.
func TestLocalName(t *testing.T) {
	dir := t.TempDir()
	zone := filepath.Join(dir, "zoneinfo", "Europe", "Paris")
	if err := os.MkdirAll(filepath.Dir(zone), 0o700); err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(dir, "timezone"), filepath.Join(dir, "localtime")
	for path, text := range map[string]string{zone: "", file: "Asia/Tokyo\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(zone, link); err != nil {
		t.Skip(err)
	}
	for _, test := range []struct{ env, link, file, want string }{
		{"America/Lima", link, file, "America/Lima"},
		{":America/Lima", link, file, "America/Lima"},
		{"CET-1CEST", link, file, "Europe/Paris"},
		{"", link, file, "Europe/Paris"},
		{"", filepath.Join(dir, "none"), file, "Asia/Tokyo"},
	} {
		if got, err := localName(test.env, test.link, test.file); err != nil || got != test.want {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
	if got, err := localName("", filepath.Join(dir, "none"), filepath.Join(dir, "none")); got != "UTC" || !errors.Is(err, ErrLocalUnknown) {
		t.Errorf("%q, %v", got, err)
	}
}
