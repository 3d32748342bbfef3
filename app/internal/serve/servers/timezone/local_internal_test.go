package timezone

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	none := filepath.Join(dir, "none")
	for _, test := range []struct{ env, link, file, want, problem string }{
		{"America/Lima", link, file, "America/Lima", ""},
		{":America/Lima", link, file, "America/Lima", ""},
		{"/usr/share/zoneinfo/Europe/Berlin", link, file, "Europe/Berlin", ""},
		{":/usr/share/zoneinfo/posix/Europe/Berlin", link, file, "Europe/Berlin", ""},
		{"W. Europe Standard Time", link, file, "Europe/Berlin", ""},
		{"", link, file, "Europe/Paris", ""},
		{"", none, file, "Asia/Tokyo", ""},
		{"", none, none, "UTC", "the system does not name its time zone; using UTC"},
		{"IST", link, file, "Europe/Paris", `environment variable TZ="IST": unknown time zone; it must be a name of the IANA database, such as Europe/Paris or UTC; the abbreviation can mean Asia/Kolkata, Europe/Dublin or Asia/Jerusalem; using Europe/Paris`},
		{"IST", none, none, "UTC", `TZ="IST"`},
		{"CET-1CEST", link, file, "Europe/Paris", `TZ="CET-1CEST": unknown time zone`},
		{"Local", link, file, "Europe/Paris", `TZ="Local": unknown time zone`},
		{"/etc/passwd", none, none, "UTC", `TZ="/etc/passwd": unknown time zone`},
		{"../../etc/passwd", none, none, "UTC", `unknown time zone`},
		{"/usr/share/zoneinfo/../../../etc/passwd", none, none, "UTC", `unknown time zone`},
	} {
		got, err := localName(test.env, test.link, test.file)
		if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
	if _, err := localName("", none, none); !errors.Is(err, ErrLocalUnknown) {
		t.Error(err)
	}
	if _, err := localName("IST", none, none); !errors.Is(err, ErrUnknownZone) {
		t.Error(err)
	}
}
