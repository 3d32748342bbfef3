package tui

import (
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

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/transport"
)

// fakeSessions are sessions that are kept without a store.
type fakeSessions struct {
	mu      sync.Mutex
	list    []host.SessionInfo
	records map[string][]host.Record
	next    *fakeSession // that is opened
	opened  []string
	deleted []string
	err     error
}

func (f *fakeSessions) List(context.Context) ([]host.SessionInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list), f.err
}

func (f *fakeSessions) Records(_ context.Context, id string) ([]host.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.records[id]; ok {
		return r, nil
	}
	return nil, host.ErrNoSession
}

func (f *fakeSessions) Open(_ context.Context, id string) (ui.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, "open "+id)
	if f.err != nil {
		return nil, f.err
	}
	return f.next, nil
}

func (f *fakeSessions) Fork(_ context.Context, id string) (ui.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, "fork "+id)
	return f.next, f.err
}

func (f *fakeSessions) Delete(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "PARENT" {
		return host.ErrHasForks
	}
	f.deleted = append(f.deleted, id)
	f.list = slices.DeleteFunc(f.list, func(s host.SessionInfo) bool { return s.ID == id })
	return nil
}

// recordsOf numbers bodies.
func recordsOf(bodies ...host.Body) []host.Record {
	records := make([]host.Record, len(bodies))
	for i, b := range bodies {
		records[i] = host.Record{N: int64(i) + 1, Body: b}
	}
	return records
}

// keptFor are sessions, of which ABC is the one that is open. The clock of a bubble begins on
// the first of January 2000.
func keptFor() *fakeSessions {
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	f := &fakeSessions{records: map[string][]host.Record{
		"ABC":    recordsOf(talk()...),
		"PARENT": recordsOf(append(talk(), user("And then?"), &host.TurnEndRecord{Usage: host.Usage{Input: 9_000, Cost: 0.12}})...),
		"OTHER":  {},
	}}
	f.list = []host.SessionInfo{
		{ID: "ABC", Title: "Write hello into /tmp/a, please.", Created: at, Used: at},
		{ID: "PARENT", Title: "Plan the week, \x1b[31mred\u202e", Created: at.Add(-48 * time.Hour), Used: at.Add(-30 * time.Hour)},
		{ID: "OTHER", Parent: "PARENT", At: 4, Created: at.Add(-40 * time.Hour), Used: at.Add(-40 * time.Hour)},
		{ID: "BAD", Title: "Cannot be read", Created: at.Add(-9000 * time.Hour), Used: at.Add(-9000 * time.Hour)},
	}
	return f
}

// viewHost sets the servers, tools and grants of the views.
func viewHost(k *kit) {
	k.host.status = []host.ServerStatus{
		{Name: "files", State: host.StateReady, Tools: 2, Version: "2026-07-28", Origin: "parley.jsonc:4", Since: time.Now()},
		{Name: "mail", State: host.StateGivenUp, Err: fmt.Errorf("mail wants \x1b[31myou\u202e: %w", transport.ErrDenied), Starts: 3},
	}
	k.host.tools = []*host.Tool{
		{Server: "files", ModelName: "files__read", Def: &mcp.Tool{Name: "read", Description: strings.Repeat("Reads a file. ", 20)}},
		{Server: "files", ModelName: "files__write", Def: &mcp.Tool{Name: "write", Description: strings.Repeat("Writes a file. ", 20)}},
	}
	now := time.Now()
	k.host.grants = []host.Grant{
		{ID: "g1", Rule: policy.Rule{Kind: policy.KindTool, Server: "files", Name: "read"}, Created: now.Add(-time.Hour), Session: "PARENT"},
		{ID: "g2", Rule: policy.Rule{Kind: policy.KindTool, Server: "mail", Name: "\x1b[2Jsend"}, Created: now, Expires: now.Add(time.Hour), Session: "ABC"},
		{ID: "g3", Rule: policy.Rule{Kind: policy.KindTool, Server: "old"}, Created: now, Revoked: now},
	}
}

// logs are what the servers have logged.
func logs(server string) []string {
	if server != "files" {
		return nil
	}
	lines := make([]string, 60)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d of the log \x1b[31mred\u202e", i+1)
	}
	return append(lines, strings.Repeat("one long line ", 2_000))
}

// viewOptions are options with which all views have something to show.
func viewOptions(kept *fakeSessions) *Options {
	return &Options{Sessions: kept, Logs: logs}
}

// granted is a talk in which g2 was agreed to.
func granted() []host.Body {
	return append(talk(), question("q1", ""), &host.AnswerRecord{Question: "q1", Answer: host.Answer{Action: host.Approve, Offer: 1}, Grant: &host.Grant{ID: "g2", Session: "ABC"}})
}

// Views that were looked at, in several sizes.
func TestGoldenViews(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ width, height int }{{80, 24}, {40, 12}, {20, 8}} {
		name := fmt.Sprintf("%dx%d", size.width, size.height)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drive(t, size.width, size.height, viewOptions(keptFor()), newFakeSession(granted()...), func(k *kit) {
				viewHost(k)
				k.each("f3", "down")
				l, _ := k.m.overlay.(*sessionList)
				for range 3 { // an entry may have several pages
					if l.at == 0 {
						k.each("down")
					}
				}
				k.golden("sessions-" + name)
				k.each("x")
				k.want("x once more deletes")
				k.golden("delete-" + name)
				k.each("esc", "f4", "down")
				k.golden("budget-" + name)
				k.each("f5")
				k.golden("grants-" + name)
				k.each("f2")
				k.golden("servers-view-" + name)
				k.each("enter")
				k.golden("server-" + name)
				k.each("esc", "down", "enter")
				k.golden("sign-in-" + name)
			})
		})
	}
}

// In all views only bold, underlined and reversed text is there without colours, in every size.
func TestViewsWithoutColor(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {20, 8}, {20, 3}, {300, 60}} {
		opts := viewOptions(keptFor())
		opts.Environ = []string{"NO_COLOR=1"}
		drive(t, size[0], size[1], opts, newFakeSession(granted()...), func(k *kit) {
			viewHost(k)
			for _, keys := range [][]string{{"f3"}, {"f4"}, {"f5"}, {"f2"}, {"f2", "enter"}, {"f2", "down", "enter"}} {
				k.each("f1") // another view, so that no key closes the same one
				for _, key := range keys {
					k.each(key)
					for range 3 {
						k.sound()
						for _, sgr := range styled.FindAllString(k.m.View().Content, -1) {
							for part := range strings.SplitSeq(strings.Trim(sgr, "\x1b[m"), ";") {
								if !strings.Contains(" 0 1 3 4 7 ", " "+part+" ") && part != "" {
									t.Fatalf("%q is a colour", sgr)
								}
							}
						}
						k.each("down")
					}
				}
				k.each("esc", "esc")
			}
			if size[0] == 80 {
				k.each("f3", "down")
				compare(t, "sessions-no-color.txt", strings.ReplaceAll(k.m.View().Content, "\x1b", "ESC")+"\n")
			}
		})
	}
}

// A person opens another session, which takes the place of this one: what is typed goes there.
func TestOpenSession(t *testing.T) {
	t.Parallel()
	kept := keptFor()
	kept.next = newFakeSession(append(talk(), user("A question of before"), &host.RunEndRecord{Outcome: host.OutcomeDone})...)
	drive(t, 80, 24, viewOptions(kept), newFakeSession(talk()...), func(k *kit) {
		kept.next.changed = make(chan struct{})
		k.typed("half a message")
		k.each("f3")
		k.want("open here", "2 messages, 12 records, clever-1, 10,712 tokens in and 100 out", "it cannot be read: no such session")
		k.each("enter")
		k.want("is the one that is open", "half a message")
		k.each("f3", "down", "enter")
		k.want("Session ABC: A talk.", "A question of before", "half a message")
		if !slices.Equal(kept.opened, []string{"open PARENT"}) {
			t.Errorf("opened %q", kept.opened)
		}
		k.each("enter")
		if len(k.session.sent) != 0 || len(kept.next.sent) != 1 || kept.next.sent[0].Text != "half a message" {
			t.Errorf("sent to the old one %v, to the new one %v", k.session.sent, kept.next.sent)
		}
		k.session.end() // its end is none of the screen's
		k.settle()
		if k.quit {
			t.Error("the end of the session before ends the screen")
		}
		k.each("f3", "n", "f3", "down", "down", "f")
		if !slices.Equal(kept.opened, []string{"open PARENT", "open ", "fork OTHER"}) {
			t.Errorf("opened %q", kept.opened)
		}
		kept.err = errors.New("it is open in another program\x1b[2J")
		k.each("f3")
		k.want("The sessions cannot be listed: it is open in another program")
		kept.err = nil
		k.each("esc", "f3")
		kept.err = errors.New("it is open in another program\x1b[2J")
		k.each("down", "enter")
		k.want("No other session was opened: it is open in another program")
	})
}

// Sessions are completed by their ids, but for the one that is open.
func TestCompleteSession(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, viewOptions(keptFor()), newFakeSession(talk()...), func(k *kit) {
		k.typed("/open ")
		k.want("▸ PARENT  30 Dec 1999  Plan the week, \\u{1b}[31mred\\u{202e}", "OTHER", "BAD")
		k.never("  ABC ")
		k.typed("O")
		k.each("tab")
		k.want("› /open OTHER")
	})
}

// While something is under way nobody is taken to another session.
func TestOpenSessionBusy(t *testing.T) {
	t.Parallel()
	kept := keptFor()
	drive(t, 80, 24, viewOptions(kept), newFakeSession(user("Go"), &host.TurnRecord{Step: 1, Model: "clever-1"}), func(k *kit) {
		k.each("f3", "down", "enter")
		k.want("Something is under way")
		k.each("f3", "n")
		if len(kept.opened) != 0 {
			t.Errorf("opened %q", kept.opened)
		}
	})
}

// A session is deleted by the second press on the same one, and never the open one.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	kept := keptFor()
	drive(t, 80, 24, viewOptions(kept), newFakeSession(talk()...), func(k *kit) {
		k.each("f3", "x", "x")
		k.want("This session is open")
		k.each("down", "x", "down", "x", "up", "x")
		held := keyOf(t, "x")
		held.IsRepeat = true
		k.update(held)
		k.settle()
		if len(kept.deleted) != 0 {
			t.Fatalf("deleted %q", kept.deleted)
		}
		k.each("esc", "f3", "down")
		k.twice("x")
		k.want("It was not deleted: the session has forks")
		time.Sleep(releaseTime)
		k.each("down")
		k.twice("x")
		k.want("Session OTHER is deleted.")
		k.never("a fork of PARENT")
		if !slices.Equal(kept.deleted, []string{"OTHER"}) {
			t.Errorf("deleted %q", kept.deleted)
		}
	})
}

// A grant is taken back by its key, once.
func TestRevokeGrant(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, viewOptions(keptFor()), newFakeSession(granted()...), func(k *kit) {
		viewHost(k)
		k.each("f5")
		k.want("tool \\u{1b}[2Jsend of server mail", "g2: until 2000-01-01 01:00.", "record 11: The model wants to call", "write_file of server files.", "tool read of server files")
		k.never("server old")
		k.each("x")
		k.want("Grant g2 is taken back.", "tool read of server files")
		k.never("server mail")
		if k.host.grants[1].Revoked.IsZero() || !k.host.grants[0].Revoked.IsZero() {
			t.Errorf("the grants are %+v", k.host.grants)
		}
		time.Sleep(releaseTime)
		k.each("x")
		k.want("There are no grants")
	})
}

// A run that a budget has ended says how to go on.
func TestSpentBudget(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(user("Go")), func(k *kit) {
		k.write(&host.RunEndRecord{Outcome: host.OutcomeFailed, Why: (&host.BudgetError{What: "steps", Limit: "16 steps"}).Error()})
		k.want("the budget of 16 steps is spent. /budget says", "raises a limit")
	})
}

// The views look the same in both themes but for their colours.
func TestThemesOfViews(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dark", "light"} {
		opts := viewOptions(keptFor())
		opts.Theme = must(name)
		drive(t, 80, 24, opts, newFakeSession(granted()...), func(k *kit) {
			viewHost(k)
			k.each("f2", "down", "enter", "s")
			compare(t, "sign-in-"+name+".txt", strings.ReplaceAll(k.m.View().Content, "\x1b", "ESC")+"\n")
		})
	}
}

// The budget is shown, and raised by a key of its own.
func TestRaiseBudget(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, nil, newFakeSession(talk()...), func(k *kit) {
		k.each("f4")
		k.want("steps   2 of 16, 14 left", "tokens  1,712 of 100,000, 98,288 left", "time    1m5s of 10m, 8m55s left", "money   $0.0123 used, no limit")
		k.each("enter", "+")
		k.want("steps   2 of 32, 30 left", "twice as high")
		k.each("down", "down", "+", "down", "down", "+")
		k.want("tokens  1,712 of 200,000", "no limit of money to raise")
		if got := k.session.Budget().Limit; got.Steps != 32 || got.Tokens != 200_000 || got.Calls != 256 {
			t.Errorf("the limits are %+v", got)
		}
		k.each("esc")
		k.typed("/budget steps=5 time=2h")
		k.each("enter")
		if got := k.session.Budget().Limit; got.Steps != 5 || got.Time != 2*time.Hour {
			t.Errorf("the limits are %+v", got)
		}
	})
}

// The list of servers and the details of one say what a server does not get across.
func TestServerWithWrongParts(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, viewOptions(keptFor()), newFakeSession(talk()...), func(k *kit) {
		viewHost(k)
		k.host.status[0].Problems = []client.Problem{{Method: mcp.MethodToolsList, Subject: "\x1b[2Jsend", Effect: client.Omitted, Why: "no \u202ename"}}
		k.each("f2")
		k.want(`1 of 3 tools is left out ("\x1b[2Jsend": no \u{202e}name)`)
		k.each("enter")
		k.want(`wrong (untrusted): 1 of 3 tools is left out ("\x1b[2Jsend": no`, `\u{202e}name)`)
	})
}

// A server's reason and log are shown as its words; keys start it again and sign in.
func TestServerDetails(t *testing.T) {
	t.Parallel()
	drive(t, 80, 24, viewOptions(keptFor()), newFakeSession(talk()...), func(k *kit) {
		viewHost(k)
		k.each("f2")
		k.want("files: ready, 2 tools of about", "mail: given up")
		k.each("s")
		k.want("does not want you to sign in")
		k.each("enter")
		k.want("Server files", "revision: 2026-07-28", "Log (untrusted), the last", `line 60 of the log \u{1b}[31mred\u{202e}`)
		k.each("ctrl+r", "esc")
		k.want("mail: given up")
		k.each("down", "enter")
		k.want(`reason (untrusted): mail wants \u{1b}[31myou\u{202e}`, "s signs in", "It has logged nothing")
		k.each("s")
		if !slices.Equal(k.host.retried, []string{"files", "mail"}) {
			t.Errorf("started again: %q", k.host.retried)
		}
		k.host.status = k.host.status[:1]
		k.update(secondMsg{})
		k.want("It was removed.")
	})
}

// A pasted path of a file is offered and attached only by a key.
func TestPastedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "my notes.txt")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, pasted := range map[string]string{
		"plain": path, "quotes": "'" + path + "' ", "shell": strings.ReplaceAll(path, " ", `\ `), "url": "file://" + strings.ReplaceAll(path, " ", "%20") + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
				k.typed("Read ")
				k.paste(pasted)
				k.want("Tab attaches the file my notes.txt, 5 bytes; Esc leaves its path as text")
				if name == "plain" {
					compare(t, "pasted-80x24.txt", strings.ReplaceAll(k.screen(), dir, "/home/ada"))
				}
				k.each("esc")
				k.never("attaches the file")
				k.each("enter")
				if len(k.session.sent) != 1 || len(k.session.sent[0].Attached) != 0 {
					t.Fatalf("sent %+v", k.session.sent)
				}
				k.paste(pasted)
				k.each("tab")
				k.want("Your next message has it: File my notes.txt 5 bytes.")
				k.never("attaches the file")
				k.typed("this")
				k.each("enter")
				if len(k.session.sent) != 2 || len(k.session.sent[1].Attached) != 1 || k.session.sent[1].Text != "this" {
					t.Errorf("sent %+v", k.session.sent)
				}
			})
		})
	}
	for _, pasted := range []string{dir, "my notes.txt", path + "x", "//host" + path, path + "\n" + path, path + "\x1b", "file://host" + path, "\\\\host\\x", ""} {
		drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
			k.paste(pasted)
			k.never("attaches the file")
		})
	}
}

// The image of the clipboard is attached by a key; without one a sentence says why.
func TestPasteImage(t *testing.T) {
	t.Parallel()
	image := mcp.Content(&mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"})
	var err error
	opts := &Options{Image: func(context.Context) (mcp.Content, error) { return image, err }}
	drive(t, 80, 24, opts, newFakeSession(), func(k *kit) {
		err = errors.New("the clipboard has no image")
		k.paste("")
		k.want("Nothing that is text was pasted. Ctrl-V attaches the image")
		k.each("ctrl+v")
		k.want("Nothing was attached: the clipboard has no image.")
		err = nil
		k.each("ctrl+v")
		k.want("Your next message has it:")
		k.typed("What is it?")
		k.each("enter")
		if len(k.session.sent) != 1 || len(k.session.sent[0].Attached) != 1 {
			t.Errorf("sent %+v", k.session.sent)
		}
	})
	drive(t, 80, 24, nil, newFakeSession(), func(k *kit) {
		k.each("ctrl+v")
		k.want("The clipboard cannot be read here.")
	})
}

// The wheel scrolls what is visible; no click, wherever it is, does anything.
func TestMouse(t *testing.T) {
	t.Parallel()
	drive(t, 60, 12, &Options{Mouse: true}, newFakeSession(append(talk(), talk()...)...), func(k *kit) {
		if got := k.m.View().MouseMode; got != tea.MouseModeCellMotion {
			t.Errorf("the mode of the mouse is %v", got)
		}
		end := k.screen()
		k.update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
		if k.screen() == end || k.m.conv.follow {
			t.Error("the wheel does not scroll up")
		}
		k.update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
		if k.screen() != end {
			t.Error("the wheel does not scroll down")
		}
		long := question("q1", "")
		long.Arguments = mcp.RawValue(`{"a":"` + strings.Repeat(`x\n`, 100) + `"}`)
		k.write(long)
		k.each("tab")
		time.Sleep(time.Second)
		before := k.screen()
		k.update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
		if k.screen() == before {
			t.Error("the wheel does not scroll the question")
		}
		before = k.screen()
		for x := range 60 {
			for y := range 12 {
				k.update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
				k.update(tea.MouseReleaseMsg{X: x, Y: y, Button: tea.MouseLeft})
			}
		}
		k.settle()
		if k.screen() != before || len(k.session.answers) != 0 {
			t.Errorf("clicks have done something: %+v\n%s", k.session.answers, k.screen())
		}
		k.each("f1")
		before = k.screen()
		k.update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
		if k.screen() == before {
			t.Error("the wheel does not scroll the help")
		}
	})
	drive(t, 60, 12, nil, newFakeSession(), func(k *kit) {
		if got := k.m.View().MouseMode; got != tea.MouseModeNone {
			t.Errorf("without being asked the mode of the mouse is %v", got)
		}
	})
}

// Nobody agrees to what was not on the screen: End shows the end, also of 1 MB.
func TestLongQuestion(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ width, height int }{{80, 24}, {20, 8}} {
		drive(t, size.width, size.height, nil, newFakeSession(), func(k *kit) {
			long := question("q1", "")
			long.Arguments = mcp.RawValue(`{"path":"/tmp/a","text":"` + strings.Repeat(`all is well\n`, 90_000) + `rm -rf /"}`)
			k.write(long)
			k.each("tab")
			time.Sleep(time.Second)
			k.golden(fmt.Sprintf("long-%dx%d", size.width, size.height))
			k.each("y", "enter", "f", "y", "pgdown", "y")
			k.want("Press End first")
			if len(k.session.answers) != 0 {
				t.Fatalf("answered %+v", k.session.answers)
			}
			k.each("end")
			if size.height > 8 {
				k.want("rm -rf /")
			}
			k.golden(fmt.Sprintf("long-end-%dx%d", size.width, size.height))
			k.each("y")
			if len(k.session.answers) != 1 || k.session.answers[0].Action != host.Approve {
				t.Errorf("answered %+v", k.session.answers)
			}
		})
	}
}
