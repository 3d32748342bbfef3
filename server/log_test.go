package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// chatty logs one message of each level.
func chatty() server.Feature {
	return server.Tool("chatty", "", func(ctx context.Context, _ none) (string, error) {
		for _, level := range slices.Backward(mcp.LogLevels()) {
			if err := server.Log(ctx, level, "t", string(level)); err != nil {
				return "", err
			}
		}
		return "", nil
	})
}

func logged(l *line) []string {
	var got []string
	for _, n := range l.notes {
		if n.Method == mcp.NotifyMessage {
			got = append(got, decode[struct {
				Data string `json:"data"`
			}](l.t, n.Params).Data)
		}
	}
	l.notes = nil
	return got
}

// In the handshake era the level is the session's; in the stateless one the
// request's, without which nothing is sent. Proves: FLOW-LOG. Ruling 25.
func TestLogLevels(t *testing.T) {
	s := newServer(unlimited(), chatty())
	all := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		l.text(l.tool("chatty", emptyBody))
		if got := logged(l); l.modern() && got != nil || !l.modern() && len(got) != 7 {
			t.Errorf("before a level was set: %v", got)
		}
		for i, level := range all {
			if l.modern() {
				l.meta = `"io.modelcontextprotocol/logLevel":"` + level + `"`
			} else {
				l.result(l.call("logging/setLevel", `{"level":"`+level+`"}`))
			}
			l.text(l.tool("chatty", emptyBody))
			if d := cmp.Diff(all[i:], logged(l)); d != "" {
				t.Errorf("%s: %s", level, d)
			}
		}
		if l.modern() {
			l.meta = `"io.modelcontextprotocol/logLevel":"loud"`
			l.fails(l.tool("chatty", emptyBody), mcp.CodeInvalidParams)
			l.meta = ""
			l.text(l.tool("chatty", emptyBody))
			if got := logged(l); got != nil {
				t.Errorf("the level outlived its request: %v", got)
			}
			l.fails(l.call("logging/setLevel", `{"level":"info"}`), mcp.CodeMethodNotFound)
			return
		}
		for _, params := range []string{`{"level":"loud"}`, `{"level":5}`, `{}`} {
			l.fails(l.call("logging/setLevel", params), mcp.CodeInvalidParams)
		}
	})
}

// A level that does not exist is the author's mistake; outside of a request
// nothing happens.
func TestLogMisuse(t *testing.T) {
	s := newServer(nil, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		if err := server.Log(ctx, "loud", "", "x"); err == nil {
			return "no error", nil
		}
		if err := server.Log(ctx, mcp.LogError, "", make(chan int)); err == nil {
			return "no error for a channel", nil
		}
		return "", nil
	}))
	l := join(t, s, v2511)
	if got := l.text(l.tool("t", emptyBody)); got != "" {
		t.Error(got)
	}
	if err := server.Log(t.Context(), mcp.LogError, "", "x"); err != nil {
		t.Error(err)
	}
}

// What looks like a secret is blanked. Proves: SEC-LOG-1.
func TestLogScrubs(t *testing.T) {
	data := map[string]any{
		"password": "hunter2", "API_KEY": "k-hunter2", "nested": map[string]any{"access_token": "hunter2", "pin_secret": 4711},
		"text": "Authorization: Bearer hunter2hunter2", "quoted": `{"client_secret":"hunter2"}`, "list": []any{map[string]any{"token": []string{"hunter2", "x"}}},
		"cookies": map[string]any{"session": "hunter2"}, "user": "ada", "count": 5,
	}
	s := newServer(nil, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		return "", server.Log(ctx, mcp.LogError, "", data)
	}))
	l := join(t, s, v2511)
	l.text(l.tool("t", emptyBody))
	got := l.notes[0].raw
	for _, secret := range []string{"hunter2", "4711"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is in %s", secret, got)
		}
	}
	for _, plain := range []string{`"user":"ada"`, `"count":5`} {
		if !strings.Contains(got, plain) {
			t.Errorf("%s is not in %s", plain, got)
		}
	}
}

// Texts stay texts: no escape is cut in two, and all of a quoted secret goes.
// Proves: SEC-LOG-1.
func TestLogScrubsTexts(t *testing.T) {
	for text, want := range map[string]string{
		"token=\nhunter2":                      "token=\n" + "[redacted]",
		"Cookie:\t\"hunter2\"":                 "Cookie:\t\"[redacted]\"",
		`password="correct horse" user=ada`:    `password="[redacted]" user=ada`,
		`secret: 'two words'`:                  `secret: '[redacted]'`,
		`{"api_key":"a b","user":"ada"}`:       `{"api_key":"[redacted]","user":"ada"}`,
		`Authorization: Basic hunter2 x=1`:     `Authorization: [redacted] x=1`,
		`"{\"token\":\"a b\",\"n\":1}"`:        `"{\"token\":\"[redacted]\",\"n\":1}"`,
		"nothing to hide: \\ \" \u00e9 \u2028": "nothing to hide: \\ \" \u00e9 \u2028",
	} {
		s := newServer(nil, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			return "", server.Log(ctx, mcp.LogError, "", text)
		}))
		l := join(t, s, v2511)
		l.text(l.tool("t", emptyBody))
		if len(l.notes) != 1 {
			t.Errorf("%q: %d messages", text, len(l.notes))
			continue
		}
		if got := decode[struct {
			Data string `json:"data"`
		}](t, l.notes[0].Params); got.Data != want {
			t.Errorf("%q became %q, want %q", text, got.Data, want)
		}
	}
}

// A flood is limited; what was left out is counted in the next message.
// Proves: SEC-LOG-1.
func TestLogRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.LogRate = 10
		s := newServer(o, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			for range 100 {
				if err := server.Log(ctx, mcp.LogError, "", "x"); err != nil {
					return "", err
				}
			}
			time.Sleep(time.Second)
			return "", server.Log(ctx, mcp.LogError, "", "after")
		}))
		l := join(t, s, v2511)
		l.text(l.tool("t", emptyBody))
		if len(l.notes) != 11 {
			t.Fatalf("%d messages", len(l.notes))
		}
		if last := l.notes[10].raw; !strings.Contains(last, `"dev.parley/droppedMessages":90`) {
			t.Errorf("the last is %s", last)
		}
	})
}

// A rate below one message per second lets one through each time that it allows.
func TestLogRateBelowOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.LogRate = 0.5
		s := newServer(o, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			for range 6 {
				if err := server.Log(ctx, mcp.LogError, "", "x"); err != nil {
					return "", err
				}
				time.Sleep(time.Second)
			}
			return "", nil
		}))
		l := join(t, s, v2511)
		l.text(l.tool("t", emptyBody))
		if len(l.notes) != 3 || !strings.Contains(l.notes[2].raw, `"dev.parley/droppedMessages":1`) {
			t.Errorf("told %v", l.notes)
		}
	})
}

// What is logged outside of requests has the same rate in each session, is counted
// where it is left out, and holds up no notice of a change.
func TestLogRateOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.LogRate, o.Limits.ChangeRate = 10, 1
		s := newServer(o, echo())
		log := slog.New(s.LogHandler("app", nil))
		l := join(t, s, v2511)
		for i := range 3 { // the last two notices wait for their turn
			s.ResourcesChanged()
			s.Add(give(fmt.Sprint("t", i), ""))
			synctest.Wait()
		}
		for range 100 {
			log.Info("burst")
		}
		time.Sleep(time.Minute)
		log.Info("after")
		synctest.Wait()
		l.result(l.call("ping", emptyBody))
		seen := make(map[string]int)
		var last message
		for _, m := range l.notes {
			if seen[m.Method]++; m.Method == "notifications/message" {
				last = m
			}
		}
		if seen["notifications/message"] != 11 || !strings.Contains(last.raw, `"dev.parley/droppedMessages":90`) {
			t.Errorf("%d messages, of which the last is %s", seen["notifications/message"], last.raw)
		}
		if seen["notifications/tools/list_changed"] == 0 || seen["notifications/resources/list_changed"] == 0 {
			t.Errorf("notices %v", seen)
		}
	})
}

// A steady stream of log messages does not delay the notice of a change.
func TestLogsBesideNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, echo())
		log := slog.New(s.LogHandler("app", nil))
		l := join(t, s, v2511)
		for range 100 {
			log.Info("burst")
		}
		s.Add(give("later", ""))
		begun := time.Now()
		for range 200 {
			log.Info("more")
			if l.next().Method != "notifications/tools/list_changed" {
				continue
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("the notice came after %v", took)
			}
			return
		}
		t.Errorf("no notice within %v", time.Since(begun))
	})
}

// A session that does not read loses messages beyond those that wait for it, and
// is told how many.
func TestLogsOfSlowSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.LogRate = server.Unlimited
		s := newServer(o, echo())
		stalled := make(chan struct{})
		c := &fakeConn{}
		var told []string
		c.sends = func(m *jsonrpc.Outgoing) {
			<-stalled
			raw, err := m.Params.AppendJSON(nil)
			if err != nil {
				t.Error(err)
			}
			told = append(told, string(raw))
		}
		p, err := s.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		p.Begin(t.Context(), c.exchange(t, hello))()
		log := slog.New(s.LogHandler("app", nil))
		log.Info("under way")
		synctest.Wait()
		for range 300 {
			log.Info("x")
		}
		close(stalled)
		synctest.Wait()
		log.Info("after")
		synctest.Wait()
		p.Close(nil)
		if len(told) != 1+256+1 || !strings.Contains(told[len(told)-1], `"dev.parley/droppedMessages":44`) {
			t.Errorf("%d messages, of which the last is %s", len(told), told[len(told)-1])
		}
	})
}

// holder has methods that need a value, which a typed nil is not.
type holder struct{ text string }

func (h *holder) Error() string { return h.text }

// broken encodes in no way.
type broken struct{}

func (broken) MarshalJSON() ([]byte, error) { panic("cannot") }

// A record with a value that is no JSON is told without it, as slog's own handlers
// do: no record is lost, and none ends its handler.
func TestLogHandlerOddValues(t *testing.T) {
	var typedNil *holder
	odd := []any{
		"typed", typedNil, "func", func() {}, "nan", math.NaN(), "bytes\xff", "a\xffb", "panics",
		broken{},
		"inner",
		map[string]any{"f": func() {}},
		"took", time.Second, "list",
		[]int{1, 2},
	}
	s := newServer(nil)
	log := slog.New(s.LogHandler("app", nil))
	s.Add(server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		log.InfoContext(ctx, "odd\xff", odd...)
		return "", nil
	}))
	l := join(t, s, v2511)
	l.text(l.tool("t", emptyBody))
	if len(l.notes) != 1 {
		t.Fatalf("%d messages", len(l.notes))
	}
	told := decode[struct {
		Data map[string]mcp.RawValue `json:"data"`
	}](t, l.notes[0].Params).Data
	for name, want := range map[string]string{
		"message": `"odd�"`, "typed": `"<nil>"`, "func": `"!ERROR: `, "nan": `"!ERROR: `, "bytes�": `"a�b"`, "panics": `"!PANIC: cannot"`,
		"inner": `"!ERROR: `, "list": "[1,2]",
	} {
		if got := string(told[name]); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if len(told) != 9 {
		t.Errorf("told %s", l.notes[0].Params)
	}
}

// Records of slog go to the request's client, outside of one to the sessions
// whose level they meet, and always to the fallback. Proves: FLOW-LOG. Ruling 25.
func TestLogHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text logtest.Log
		s := newServer(nil)
		log := slog.New(s.LogHandler("app", slog.NewTextHandler(&text, nil)))
		s.Add(server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
			log.With("a", 1).WithGroup("g").With("b", "two").WarnContext(ctx, "inside", "err", errors.New("bad"), slog.Group("h", "c", true))
			return "", nil
		}))
		old, quiet, modern := join(t, s, v2511), join(t, s, v2511), join(t, s, v2607)
		quiet.result(quiet.call("logging/setLevel", `{"level":"error"}`))
		modern.meta = `"io.modelcontextprotocol/logLevel":"debug"`
		want := `{"level":"warning","logger":"app","data":{"a":1,"g":{"b":"two","err":"bad","h":{"c":true}},"message":"inside"}}`
		for _, l := range []*line{old, modern} {
			l.text(l.tool("t", emptyBody))
			if len(l.notes) != 1 {
				t.Fatalf("%s: %v", l.version, l.notes)
			}
			if d := cmp.Diff(decode[any](t, mcp.RawValue(want)), decode[any](t, l.notes[0].Params)); d != "" {
				t.Error(d)
			}
		}
		log.Warn("outside", "token", "hunter2")
		if m := old.note("notifications/message"); !strings.Contains(m.raw, "outside") || strings.Contains(m.raw, "hunter2") {
			t.Errorf("got %s", m.raw)
		}
		quiet.Silent()
		modern.Silent()
		log.Error("loud")
		quiet.note("notifications/message")
		log.Debug("hidden from the text, which wants info")
		if got := text.String(); strings.Count(got, "\n") != 4 || !strings.Contains(got, "g.b=two") {
			t.Errorf("the fallback has %s", got)
		}
	})
}
