package server

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Log sends a log message to the client of the request, if it wants messages
// of that level. data is anything that encodes as JSON; what looks like a
// secret in it is blanked. Messages over Limits.LogRate are counted and told
// with the next one. Log does nothing outside of a request.
//
// spec 2026-07-28, server/utilities/logging: messages go only to requests
// whose `_meta` asks for a level.
//
// Deprecated: MCP logging is deprecated in the newest revision; write to
// standard error, or use telemetry.
func Log(ctx context.Context, level mcp.LogLevel, logger string, data any) error {
	c := CallFrom(ctx)
	if c == nil {
		return nil
	}
	if !level.Valid() {
		return fmt.Errorf("log level %q: use one of %v", level, mcp.LogLevels())
	}
	if least := c.era().level(c); least == "" || !level.AtLeast(least) {
		return nil
	}
	p, err := logParams(level, logger, data)
	if err != nil {
		return err
	}
	p, ok := c.extras().logs.admit(p, c.srv.limits.LogRate)
	if !ok {
		return nil
	}
	return c.notify(ctx, mcp.NotifyMessage, p)
}

func logParams(level mcp.LogLevel, logger string, data any) (*mcp.LogParams, error) {
	raw, err := wire.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("log data: %w", err)
	}
	return &mcp.LogParams{Level: level, Logger: logger, Data: scrubSecrets(raw)}, nil
}

// logState limits the log messages of one request or session.
type logState struct {
	mu      sync.Mutex
	tokens  float64
	at      time.Time
	dropped int
}

// admit takes a token for a message, or counts it as dropped. What it returns is
// p, or after dropped messages a copy that tells how many they were.
func (l *logState) admit(p *mcp.LogParams, perSecond float64) (*mcp.LogParams, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.take(perSecond) {
		l.dropped++
		return nil, false
	}
	if l.dropped > 0 {
		own := *p
		own.Meta.Extra = map[string]mcp.RawValue{metaDropped: fmt.Appendf(nil, "%d", l.dropped)}
		p, l.dropped = &own, 0
	}
	return p, true
}

// take takes a token, if there is one. The lock is held.
func (l *logState) take(perSecond float64) bool {
	if perSecond < 0 {
		return true
	}
	now := time.Now()
	full := max(1, perSecond)
	if l.at.IsZero() {
		l.tokens = full
	} else {
		l.tokens = min(full, l.tokens+now.Sub(l.at).Seconds()*perSecond)
	}
	l.at = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// drop counts a message as dropped.
func (l *logState) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped++
}

// metaDropped is the `_meta` key that tells how many log messages were left
// out before this one.
const metaDropped = "dev.parley/droppedMessages"

// LogHandler returns a slog.Handler that sends records to clients: inside a
// request, to its client; outside of one, to the clients of sessions whose
// level it meets (ruling 25: the stateless revision has no place for those,
// they go to fallback alone). Every record goes to fallback too, unless that
// is nil, and says there which request it is about (RequestLogs).
func (s *Server) LogHandler(logger string, fallback slog.Handler) slog.Handler {
	if fallback != nil {
		fallback = RequestLogs(fallback)
	}
	return &logHandler{srv: s, logger: logger, fallback: fallback}
}

type logHandler struct {
	srv      *Server
	logger   string
	fallback slog.Handler
	attrs    []slog.Attr
	groups   []string
}

// Enabled is true: whether a client wants the record is known only later.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	n.attrs = append(n.attrs[:len(n.attrs):len(n.attrs)], grouped(h.groups, attrs)...)
	if n.fallback != nil {
		n.fallback = n.fallback.WithAttrs(attrs)
	}
	return &n
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	n := *h
	n.groups = append(n.groups[:len(n.groups):len(n.groups)], name)
	if n.fallback != nil {
		n.fallback = n.fallback.WithGroup(name)
	}
	return &n
}

// grouped puts attributes into the open groups.
func grouped(groups []string, attrs []slog.Attr) []slog.Attr {
	for i := len(groups) - 1; i >= 0; i-- {
		attrs = []slog.Attr{{Key: groups[i], Value: slog.GroupValue(attrs...)}}
	}
	return attrs
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.fallback != nil && h.fallback.Enabled(ctx, r.Level) {
		if err := h.fallback.Handle(ctx, r); err != nil {
			return err
		}
	}
	data := map[string]any{"message": valid(r.Message)}
	for _, a := range h.attrs {
		put(data, a)
	}
	var own []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		own = append(own, a)
		return true
	})
	for _, a := range grouped(h.groups, own) {
		put(data, a)
	}
	level := levelOf(r.Level)
	if CallFrom(ctx) != nil {
		return Log(ctx, level, h.logger, data)
	}
	p, err := logParams(level, h.logger, data)
	if err != nil {
		return err
	}
	h.srv.hub.log(p)
	return nil
}

// put adds an attribute to the data of a message; groups become objects.
func put(data map[string]any, a slog.Attr) {
	v := a.Value.Resolve()
	key := valid(a.Key)
	switch {
	case v.Kind() == slog.KindGroup && key == "":
		for _, g := range v.Group() {
			put(data, g)
		}
	case v.Kind() == slog.KindGroup:
		inner, ok := data[key].(map[string]any)
		if !ok {
			inner = make(map[string]any)
		}
		for _, g := range v.Group() {
			put(inner, g)
		}
		data[key] = inner
	default:
		data[key] = jsonValue(v)
	}
}

// jsonValue is a value that encodes as JSON. As in slog's own handlers, one that
// cannot be encoded, or whose methods panic, becomes a text that says so: a record
// must not be lost for it, nor end the handler that logs.
func jsonValue(v slog.Value) (encodes any) {
	switch v.Kind() {
	case slog.KindBool, slog.KindInt64, slog.KindUint64, slog.KindDuration:
		return v.Any()
	case slog.KindString:
		return valid(v.String())
	case slog.KindAny, slog.KindFloat64, slog.KindTime, slog.KindGroup, slog.KindLogValuer:
	}
	defer func() {
		if p := recover(); p == nil {
			return
		} else if r := reflect.ValueOf(v.Any()); r.Kind() == reflect.Pointer && r.IsNil() {
			encodes = "<nil>"
		} else {
			encodes = valid(fmt.Sprintf("!PANIC: %v", p))
		}
	}()
	if err, ok := v.Any().(error); ok {
		return valid(err.Error())
	}
	raw, err := wire.Marshal(v.Any())
	if err != nil {
		return valid(fmt.Sprintf("!ERROR: %v", err))
	}
	return mcp.RawValue(raw)
}

// valid is s with the replacement character for what is no UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// levelOf translates slog's levels.
func levelOf(l slog.Level) mcp.LogLevel {
	switch {
	case l < slog.LevelInfo:
		return mcp.LogDebug
	case l < slog.LevelWarn:
		return mcp.LogInfo
	case l < slog.LevelError:
		return mcp.LogWarning
	}
	return mcp.LogError
}

// outgoingLog is the notification of a log message outside of requests.
func outgoingLog(p *mcp.LogParams) *jsonrpc.Outgoing {
	return &jsonrpc.Outgoing{Method: mcp.NotifyMessage, Params: jsonrpc.JSON(p)}
}
