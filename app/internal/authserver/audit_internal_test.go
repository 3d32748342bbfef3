package authserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	auditlog "github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/oauth/issuer"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "4KiB": 4096, "100MiB": 100 << 20, "2GiB": 2 << 30,
		"": -1, "MiB": -1, "-1": -1, "1.5GiB": -1, "1MB": -1, "1 MiB": -1, "9223372036854775807GiB": -1, "1e9": -1, "1KiBMiB": -1,
	} {
		got, err := parseSize(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                          {},
		"2026-11-01":                time.Date(2026, 11, 1, 0, 0, 0, 0, time.Local),
		"2026-11-01 08:30":          time.Date(2026, 11, 1, 8, 30, 0, 0, time.Local),
		"2026-11-01T08:30:15":       time.Date(2026, 11, 1, 8, 30, 15, 0, time.Local),
		"2026-11-01T08:30:15Z":      time.Date(2026, 11, 1, 8, 30, 15, 0, time.UTC),
		"2026-11-01T08:30:15+02:00": time.Date(2026, 11, 1, 6, 30, 15, 0, time.UTC),
		"90m":                       now.Add(-90 * time.Minute),
		"7d":                        now.AddDate(0, 0, -7),
	} {
		if got, err := parseMoment("since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "-1d", "99999999d", "2026-13-01", "1", " "} {
		if got, err := parseMoment("since", text, now); err == nil || !strings.Contains(err.Error(), "--since "+fmt.Sprintf("%q", text)) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// Whatever parameters an act has, its line can be written.
func TestBoundedParameters(t *testing.T) {
	racetest.SkipSerial(t)
	long := strings.Repeat("\x00<\u202e", 100_000)
	list := make([]string, 1000)
	for i := range list {
		list[i] = long
	}
	raw, err := json.Marshal(boundedParameters(map[string]any{"text": long, "list": list, "number": 7, "flag": true, "short": "ada"}))
	if err != nil || len(raw) > 200_000 || !strings.Contains(string(raw), `"short":"ada"`) || !strings.Contains(string(raw), `"and 980 more"`) {
		t.Errorf("%d bytes, %v: %.100s", len(raw), err, raw)
	}
}

// Names are looked for once in ten minutes, and as long as the database does not answer the old one is
// good.
func TestSubjectNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var name string
		var failure error
		names := &subjectNames{find: func(context.Context, string) (string, error) {
			asked++
			return name, failure
		}}
		expect := func(when, told, want string, times int) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // a client that is gone
			if got := names.of(ctx, "subject", told); got != want || asked != times {
				t.Errorf("%s: %q, asked %d times; want %q and %d", when, got, asked, want, times)
			}
		}
		failure = issuer.ErrNotFound
		expect("of nobody", "", "", 1)
		expect("again", "", "", 1)
		name, failure = "ada", nil
		time.Sleep(keptNamesTime)
		expect("later", "", "ada", 2)
		failure = errors.New("the database is gone")
		time.Sleep(keptNamesTime)
		expect("without a database", "", "ada", 3)
		expect("told", "Ada L.", "Ada L.", 3)
		expect("kept", "", "Ada L.", 3)
		for i := range 3 * maxKeptNames {
			names.of(t.Context(), fmt.Sprint(i), "x")
		}
		if len(names.kept) > maxKeptNames {
			t.Errorf("%d names are kept", len(names.kept))
		}
	})
}

// What stands in a file that somebody else wrote is shown on one line and as it is.
func TestEntryText(t *testing.T) {
	const evil = "x\x1b[2J\n\u202ey"
	e := &auditEntry{
		Event: evil, Outcome: evil, Actor: evil, Parameters: map[string]any{evil: evil, "list": []any{evil}}, Client: evil, ClientName: evil,
		User: evil, UserName: evil, Resource: evil, Scopes: []string{evil}, Type: evil, Remote: evil, Reason: evil, Count: 3, RemovedLines: 4,
	}
	text := e.text()
	if strings.ContainsAny(text, "\x1b\n\u202e") || strings.Count(text, `u{1b}[2J`) != 15 || !strings.HasSuffix(text, " times=3 removedLines=4") {
		t.Errorf("%q", text)
	}
}

// What does not fit into memory while the file cannot be written is lost, and a line says how much.
func TestAuditLost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit")
	var said bytes.Buffer
	p := &group{Console: &kit.Console{Streams: &kit.Streams{Err: &said}}}
	a, err := p.openAudit(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	const more = 5
	for range maxPending + more {
		a.event(t.Context(), issuer.Event{Name: "token.revoked", Outcome: "ok"})
	}
	if a.ready() {
		t.Error("it is ready")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	a.tried = time.Time{} // a second has passed
	a.event(t.Context(), issuer.Event{Name: "login", Outcome: "ok"})
	if !a.ready() {
		t.Error("it is not ready again")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	counts := make(map[string]int)
	if _, err := auditlog.Query(t.Context(), file, &auditlog.Filter{}, func(raw []byte, l *auditlog.Line) error {
		counts[l.Event]++
		if l.Event == "audit lost" && !strings.HasSuffix(string(raw), `"event":"audit lost","count":5}`) {
			t.Errorf("%s", raw)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if counts["token.revoked"] != maxPending || counts["audit lost"] != 1 || counts["login"] != 1 {
		t.Errorf("%v", counts)
	}
	if !strings.Contains(said.String(), fmt.Sprintf("wrote %d waiting lines, lost %d", maxPending, more)) {
		t.Errorf("%s", &said)
	}
}
