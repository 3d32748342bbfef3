package everything

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A simulatedLog logs messages of random levels while it is on: one with each call of a tool,
// since in revisions without sessions messages belong to requests, and one each interval to all
// sessions.
type simulatedLog struct {
	interval time.Duration
	sessions *slog.Logger // reaches the clients of sessions

	mu    sync.Mutex
	on    bool
	open  int         // sessions
	timer *time.Timer // nil while it is off or nobody is there
}

// newSimulatedLog adds what it needs to a server.
func newSimulatedLog(s *server.Server, interval time.Duration) *simulatedLog {
	l := &simulatedLog{interval: interval, sessions: slog.New(s.LogHandler("demo", nil))}
	s.Observe(server.Observer{
		SessionOpened: func(server.SessionInfo) { l.opened(1) },
		SessionEnded:  func(server.SessionInfo, error) { l.opened(-1) },
	})
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			if c.Method() == mcp.MethodToolsCall && l.isOn() {
				levels := mcp.LogLevels()
				level := levels[rand.IntN(len(levels))] // which one does not matter
				if logErr := server.Log(c, level, "demo", "A message of level "+string(level)); err == nil {
					err = logErr
				}
			}
			return res, err
		}
	})
	return l
}

// feature is the tool that turns it on and off.
func (l *simulatedLog) feature(scopes []string) server.Feature {
	return server.Tool("toggle-simulated-logging", "Has the server log messages of random levels, or ends that.", func(context.Context, mcp.None) (string, error) {
		if l.toggle() {
			return "Started simulated, random-leveled logging at a 5 second pace, and with each call of a tool. The level that a client asked for is respected.", nil
		}
		return "Stopped simulated logging", nil
	}).With(server.ToolOptions{Title: "Toggle logging", Scopes: scopes})
}

func (l *simulatedLog) isOn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.on
}

func (l *simulatedLog) toggle() (on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = !l.on
	l.adjust()
	return l.on
}

// opened counts sessions.
func (l *simulatedLog) opened(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += more
	l.adjust()
}

// adjust has the timer run while somebody is there to hear. The lock is held.
func (l *simulatedLog) adjust() {
	switch wanted := l.on && l.open > 0; {
	case wanted && l.timer == nil:
		l.timer = time.AfterFunc(l.interval, l.tick)
	case !wanted && l.timer != nil:
		l.timer.Stop()
		l.timer = nil
	}
}

func (l *simulatedLog) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		return
	}
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	level := levels[rand.IntN(len(levels))] // which one does not matter
	l.sessions.Log(context.Background(), level, "A message of level "+level.String())
	l.timer.Reset(l.interval)
}
