package ui_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// kept are sessions without a store.
type kept struct {
	list []host.SessionInfo
	next *session
	did  []string
}

func (k *kept) List(context.Context) ([]host.SessionInfo, error) { return k.list, nil }

func (k *kept) Records(_ context.Context, id string) ([]host.Record, error) {
	if id != "abc" {
		return nil, host.ErrNoSession
	}
	return []host.Record{
		{N: 1, Body: &host.UserRecord{Content: mcp.Contents{mcp.Text("Hi")}}},
		{N: 2, Body: &host.TurnRecord{Model: "clever\x1b"}},
		{N: 3, Body: &host.TurnEndRecord{Usage: host.Usage{Input: 1200, Output: 34, Cost: 0.5}}},
		{N: 4, Body: &host.TurnRecord{Offline: true}},
	}, nil
}

func (k *kept) Open(_ context.Context, id string) (ui.Session, error) {
	k.did = append(k.did, "open "+id)
	if id == "held" {
		return nil, errors.New("it is open in another program")
	}
	return k.next, nil
}

func (k *kept) Fork(_ context.Context, id string) (ui.Session, error) {
	return k.Open(context.Background(), id)
}

func (k *kept) Delete(_ context.Context, id string) error {
	k.did = append(k.did, "delete "+id)
	if id == "parent" {
		return host.ErrHasForks
	}
	return nil
}

// Sessions are listed, opened, begun and deleted by commands; what is said then goes to the
// session that is open.
func TestLineSessions(t *testing.T) {
	t.Parallel()
	s := newSession(func(*session, host.Input) {})
	next := newSession(func(*session, host.Input) {})
	next.id, next.title = "next", "The other\x1b one"
	k := &kept{next: next, list: []host.SessionInfo{
		{ID: "abc", Title: "A talk", Created: noon, Used: noon},
		{ID: "fork", Parent: "abc", Title: "Red \x1b[31m", Created: noon.Add(-time.Hour), Used: noon.Add(-48 * time.Hour)},
		{ID: "empty", Created: noon.AddDate(-1, 0, 0), Used: noon.AddDate(-1, 0, 0)},
	}}
	for range 30 {
		k.list = append(k.list, host.SessionInfo{ID: "old", Title: "Old", Created: noon, Used: noon})
	}
	shown := talk(t, servers(), s, &ui.LineOptions{Sessions: k, Width: func() int { return 200 }},
		"/sessions", "/sessions RED", "/sessions nothing like it", "/open", "/open abc", "/open held", "/delete", "/delete abc", "/delete parent", "/delete old", "/open next", "Hello.", "/new", "/quit")
	for _, want := range []string{
		"Session abc, today 12:00  A talk, the one that is open; 1 message, 4 records, clever\\u{1b} and the built-in planner, 1,200 tokens in and 34 out, $0.5000.",
		"Session fork, 30 Aug 12:00  Red \\u{1b}[31m, a fork of abc.", "Session empty, 1 Sep 2025  (nothing was said yet).", "13 more sessions were used before; /sessions WORDS",
		"There are no such sessions.", "Please write which session, as in /open ABCDEFGHIJ", "Session abc is the one that is open.", "No other session was opened: it is open in another program.",
		"as in /delete", "Session abc is open; begin or open another one first.", "It was not deleted: the session has forks", "Session old is deleted.", "This is session next now: The other\\u{1b} one.",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("not shown: %s", want)
		}
	}
	if t.Failed() {
		t.Log(shown)
	}
	if want := []string{"open held", "delete parent", "delete old", "open next", "open "}; !slices.Equal(k.did, want) {
		t.Errorf("done: %q, want %q", k.did, want)
	}
	if len(s.sent) != 0 || len(next.sent) != 1 || next.sent[0].Text != "Hello." {
		t.Errorf("the session before was sent %v, the other %v", s.sent, next.sent)
	}
	shown = talk(t, servers(), newSession(nil), nil, "/sessions", "/open x", "/new", "/delete x", "/log files", "/image", "/quit")
	if strings.Count(shown, "No other sessions are kept here.") != 4 || !strings.Contains(shown, "The logs of servers are not kept here.") || !strings.Contains(shown, "The clipboard cannot be read here.") {
		t.Errorf("without a store:\n%s", shown)
	}
}

// The budget is told, and its limits changed by their names.
func TestLineBudget(t *testing.T) {
	t.Parallel()
	s := newSession(nil)
	shown := talk(t, servers(), s, nil, "/budget", "/budget steps=40 tokens=0 time=1h30m money=2.5", "/budget steps=0", "/budget steps=x", "/budget time=soon",
		"/budget money=NaN", "/budget turns=3", "/budget 40", "/quit")
	for _, want := range []string{
		"The last run, of what a run may use:", "steps: 2 of 16, 14 left.", "calls: 3 of 256, 253 left.", "tokens: 1,712 of 100,000, 98,288 left.", "time: 1m5s of 10m, 8m55s left.",
		"money: $0.0123 used, no limit.", "no tokens that were told",
		"steps: 2 of 40, 38 left.", "tokens: 1,712 used, no limit.", "time: 1m5s of 1h30m, 1h28m55s left.", "money: $0.0123 of $2.50, $2.49 left.",
		"The limits stay: a run needs at least one step", `steps: "x" is no number`, `time: "soon" is no time`, `money: "NaN" is no number`, `"turns" is none of steps, calls, tokens, time and money`, "has no value",
	} {
		if !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
			t.Errorf("not shown: %s", want)
		}
	}
	if t.Failed() {
		t.Log(shown)
	}
	if got, want := s.Budget().Limit, (host.Amount{Steps: 40, Calls: 256, Time: 90 * time.Minute, Cost: 2.5}); got != want {
		t.Errorf("the limits are %+v, want %+v", got, want)
	}
}

// A log is shown as the server's words; an image of the clipboard is attached.
func TestLineLogAndImage(t *testing.T) {
	t.Parallel()
	s := newSession(func(*session, host.Input) {})
	opts := &ui.LineOptions{
		Logs: func(server string) []string {
			if server == "files" {
				return []string{"one \x1b[31mred", "two"}
			}
			return nil
		},
		Image: func(context.Context) (mcp.Content, error) {
			return &mcp.ImageContent{Data: []byte(pngFile), MIMEType: "image/png"}, nil
		},
	}
	shown := talk(t, servers(), s, opts, "/revoke", "/log", "/log db", "/log nosuch", "/log files", "/image", "look", "/quit")
	for _, want := range []string{"as in /revoke ID", "as in /log NAME", "Server db has logged nothing", "No server is called nosuch", "Log of server files (untrusted), the last 2 lines", `| one \u{1b}[31mred`, "| two", "has it: [image, image/png, 16 bytes]"} {
		if !strings.Contains(shown, want) {
			t.Errorf("not shown: %s\n%s", want, shown)
		}
	}
	if len(s.sent) != 1 || len(s.sent[0].Attached) != 1 {
		t.Errorf("sent %+v", s.sent)
	}
}

// A grant is traced to the question by which it was given.
func TestGivenBy(t *testing.T) {
	t.Parallel()
	records := []host.Record{
		{N: 1, Body: &host.QuestionRecord{Question: host.Question{ID: "q1", Kind: host.QuestionCall, Server: "files", Name: "read"}}},
		{N: 2, Body: &host.QuestionRecord{Question: host.Question{ID: "q2", Kind: host.QuestionCall, Server: "files", Name: "write\x1b"}}},
		{N: 3, Body: &host.AnswerRecord{Question: "q1"}},
		{N: 4, Body: &host.AnswerRecord{Question: "q2", Grant: &host.Grant{ID: "g1", Rule: policy.Rule{}}}},
		{N: 5, Body: &host.AnswerRecord{Question: "q9", Grant: &host.Grant{ID: "g2"}}},
	}
	if title, n := ui.GivenBy(records, "g1"); n != 2 || title != `The model wants to call write\u{1b} of server files.` {
		t.Errorf("%d: %s", n, title)
	}
	if _, n := ui.GivenBy(records, "g2"); n != 0 {
		t.Errorf("record %d", n)
	}
}

// No limit is raised beyond what can be counted, and none that is not there.
func TestDoubled(t *testing.T) {
	t.Parallel()
	limit := host.Amount{Steps: 1, Calls: 2, Tokens: 3, Cost: 4, Time: time.Second}
	for _, line := range ui.BudgetLines(host.Budget{Limit: limit}) {
		doubled, n := limit, 0
		for ok := true; ok; n++ {
			before := doubled
			if doubled, ok = ui.Doubled(before, line.Name); ok && doubled == before || n > 100 {
				t.Fatalf("%s: %+v after %d times", line.Name, doubled, n)
			}
		}
		if min(doubled.Steps, doubled.Calls) < 1 || doubled.Tokens < 3 || doubled.Time < time.Second || n < 10 {
			t.Errorf("%s: %+v after %d times", line.Name, doubled, n)
		}
	}
	if _, ok := ui.Doubled(host.Amount{}, "tokens"); ok {
		t.Error("no limit was doubled")
	}
}

func FuzzPastedFile(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "a b.txt")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{path, "'" + path + "'", strings.ReplaceAll(path, " ", `\ `), "file://" + path, "~/x", "//h/x", "\x1b" + path, `"`, "file://%zz"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !ui.IsPastedPath(text) {
			if got, _, ok := ui.PastedFile(text); ok {
				t.Fatalf("%q is the file %q, and no path", text, got)
			}
			return
		}
		got, _, ok := ui.PastedFile(text)
		if ok && (host.EscapeLine(got) != got || strings.ContainsAny(got, "\n\r") || strings.HasPrefix(got, "//") || strings.HasPrefix(got, `\\`)) {
			t.Fatalf("%q is taken for %q", text, got)
		}
	})
}
