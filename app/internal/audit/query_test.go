package audit_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/audit"
)

// lines are entries as an authorization server writes them.
func queried(t *testing.T) (path string) {
	t.Helper()
	path = newPath(t)
	log := audit.New(path, &audit.Options{MaxSize: maxSize})
	at := func(minute int) time.Time { return time.Date(2026, 11, 25, 12, minute, 0, 0, time.UTC) }
	type line struct {
		Time       time.Time      `json:"time"`
		Event      string         `json:"event"`
		User       string         `json:"user,omitzero"`
		UserName   string         `json:"userName,omitzero"`
		Client     string         `json:"client,omitzero"`
		ClientName string         `json:"clientName,omitzero"`
		Remote     string         `json:"remote,omitzero"`
		Parameters map[string]any `json:"parameters,omitzero"`
	}
	for _, l := range []line{
		{Time: at(0), Event: "login", User: "s1", UserName: "ada", Client: "c1", ClientName: "Notes", Remote: "192.0.2.1"},
		{Time: at(1), Event: "token.issued", User: "s1", UserName: "ada", Client: "c1", Remote: "192.0.2.1"},
		{Time: at(2), Event: "login", User: "s2", UserName: "b\u00f6b <x>", Client: "c2", Remote: "2001:db8::1"},
		{Time: at(3), Event: "admin user disable", Parameters: map[string]any{"name": "ada"}},
		{Time: at(4), Event: "admin grant revoke", Parameters: map[string]any{"user": "ada", "client": "c2"}},
		{Time: at(5), Event: "admin client remove", Parameters: map[string]any{"id": "c1"}},
		{Time: at(6), Event: "tokens", Remote: "not an address"},
		{Time: at(7), Event: "login", User: "ada-2", Remote: "192.0.20.1"},
	} {
		if err := log.Append(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestQuery(t *testing.T) {
	path := queried(t)
	at := func(minute int) time.Time { return time.Date(2026, 11, 25, 12, minute, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		filter audit.Filter
		want   []uint64
	}{
		"all":                     {audit.Filter{}, []uint64{1, 2, 3, 4, 5, 6, 7, 8}},
		"since":                   {audit.Filter{Since: at(6)}, []uint64{7, 8}},
		"until":                   {audit.Filter{Until: at(2)}, []uint64{1, 2}},
		"event":                   {audit.Filter{Event: "login"}, []uint64{1, 3, 8}},
		"first word of an event":  {audit.Filter{Event: "token"}, []uint64{2}},
		"acts":                    {audit.Filter{Event: "admin"}, []uint64{4, 5, 6}},
		"acts on users":           {audit.Filter{Event: "admin user"}, []uint64{4}},
		"user by name":            {audit.Filter{User: "ada"}, []uint64{1, 2, 4, 5}},
		"user by subject":         {audit.Filter{User: "s1"}, []uint64{1, 2}},
		"a name that JSON writes": {audit.Filter{User: "böb <x>"}, []uint64{3}},
		"client by ID":            {audit.Filter{Client: "c1"}, []uint64{1, 2, 6}},
		"client by name":          {audit.Filter{Client: "Notes"}, []uint64{1}},
		"client of an act":        {audit.Filter{Client: "c2"}, []uint64{3, 5}},
		"address":                 {audit.Filter{Address: netip.MustParsePrefix("192.0.2.1/32")}, []uint64{1, 2}},
		"network":                 {audit.Filter{Address: netip.MustParsePrefix("192.0.0.0/16")}, []uint64{1, 2, 8}},
		"another family":          {audit.Filter{Address: netip.MustParsePrefix("2001:db8::/32")}, []uint64{3}},
		"two at once":             {audit.Filter{User: "ada", Event: "login"}, []uint64{1}},
		"the newest":              {audit.Filter{Last: 3}, []uint64{6, 7, 8}},
		"the newest of some":      {audit.Filter{Last: 2, User: "ada"}, []uint64{4, 5}},
		"more than there are":     {audit.Filter{Last: 100, Client: "c2"}, []uint64{3, 5}},
		"none":                    {audit.Filter{User: "eve"}, nil},
	} {
		var got []uint64
		unreadable, err := audit.Query(t.Context(), path, &c.filter, func(raw []byte, l *audit.Line) error {
			if !strings.Contains(string(raw), fmt.Sprintf(`"seq":%d,`, l.Seq)) {
				t.Errorf("%s: %d is %s", name, l.Seq, raw)
			}
			got = append(got, l.Seq)
			return nil
		})
		if err != nil || unreadable > 0 || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v; %d, %v", name, got, c.want, unreadable, err)
		}
	}
}

// What cannot be read does not keep the rest from being read.
func TestQueryDamaged(t *testing.T) {
	path := queried(t)
	whole := read(t, path)
	if err := os.WriteFile(path, []byte("no JSON\n{\"event\":\"no chain\"}\n"+whole+`{"seq":9,"pre`), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	visit := func(_ []byte, l *audit.Line) error {
		got = append(got, l.Seq)
		return nil
	}
	unreadable, err := audit.Query(t.Context(), path, &audit.Filter{Event: "login"}, visit)
	if !errors.As(err, new(*audit.IncompleteError)) || unreadable != 2 || !slices.Equal(got, []uint64{1, 3, 8}) {
		t.Errorf("%v, %d, %v", got, unreadable, err)
	}
	stop := errors.New("stop")
	for last := range 2 {
		if _, err := audit.Query(t.Context(), path, &audit.Filter{Last: last}, func([]byte, *audit.Line) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("an error of visit: %v", err)
		}
	}
}

// The newest lines are kept in memory, up to a bound.
func TestQueryBytes(t *testing.T) {
	path := queried(t)
	for _, c := range []struct{ last, bytes, want int }{
		{8, 8000, 8},
		{8, 1000, 0},
		{2, 1000, 2},
		{0, 1, 8}, // none are kept
	} {
		got := 0
		_, err := audit.Query(t.Context(), path, &audit.Filter{Last: c.last, LastBytes: c.bytes}, func([]byte, *audit.Line) error {
			got++
			return nil
		})
		if got != c.want || errors.As(err, new(*audit.TooLargeError)) != (c.want == 0) {
			t.Errorf("the newest %d in %d bytes: %d, want %d; %v", c.last, c.bytes, got, c.want, err)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "192.0.2.0/24": "192.0.2.0/24", "2001:db8::1": "2001:db8::1/128",
		"": "", "here": "", "192.0.2.0/33": "",
	} {
		got, err := audit.ParseAddress(text)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%q is %v, %v; want %q", text, got, err, want)
		}
	}
}
