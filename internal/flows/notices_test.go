package flows_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Proves: FLOW-PROGRESS-P, SEC-PROG-1 (the sender's part)
func TestFLOW_PROGRESS_P(t *testing.T) {
	build := with(server.Tool("work", "Works.", func(ctx context.Context, _ mcp.None) (string, error) {
		for i := range 200 {
			if err := server.Progress(ctx, float64(i)+0.5, 200, fmt.Sprintf("step\x1b[31m %d", i)); err != nil {
				return "", err
			}
		}
		if err := server.Progress(ctx, 7, 200, "back"); !errors.Is(err, server.ErrNoProgress) && server.CallFrom(ctx).Meta().ProgressToken != (mcp.ID{}) {
			return "", fmt.Errorf("a step back gives %w", err)
		}
		return "done", server.Progress(ctx, 300, 0, "")
	}))
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		var got []string
		o := &client.CallOptions{OnProgress: func(progress, total float64, message string) {
			got = append(got, fmt.Sprint(progress, total, message))
		}}
		if said, err := client.Call[string](t.Context(), c, "work", nil, o); err != nil || said != "done" {
			t.Fatalf("%q, %v", said, err)
		}
		var want []string
		for i := range 200 {
			message := fmt.Sprintf("step[31m %d", i)
			if era.Version == y2024 {
				message = ""
			}
			want = append(want, fmt.Sprint(float64(i)+0.5, 200, message))
		}
		want = append(want, fmt.Sprint(300, 0, ""))
		if !slices.Equal(got, want) {
			t.Errorf("%d notices, want %d; the first: %q", len(got), len(want), got[:min(3, len(got))])
		}
		if said, err := client.Call[string](t.Context(), c, "work", nil); err != nil || said != "done" {
			t.Errorf("without a token: %q, %v", said, err)
		}
	})
}

// Proves: FLOW-PROGRESS-P: without a token nothing is sent, with one it is
// the token that was given, a string or a number.
func TestFLOW_PROGRESS_P_Token(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, with(server.Tool("work", "Works.", func(ctx context.Context, _ mcp.None) (string, error) {
			return "done", server.Progress(ctx, 1, 0, "")
		}))(t, quiet()), nil)
		l.shake(june, "{}")
		l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work"}}`).want("1", "id")
		for _, token := range []string{`"t"`, `0`, `-7`, `""`} {
			m := l.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":%s}}}`, token)
			m.want(`{"progressToken":`+token+`,"progress":1}`, "params")
			l.next().want("2", "id")
		}
		l.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":1.5}}}`).fails(-32602, "3")
		l.Silent()
	})
}

// Proves: FLOW-LOG-P. Ruling 25: the level is the session's, or in the modern
// era the request's; what is beneath it is not sent.
func TestFLOW_LOG_P(t *testing.T) {
	build := with(server.Tool("talk", "Logs at each level.", func(ctx context.Context, _ mcp.None) (string, error) {
		for _, level := range mcp.LogLevels() {
			if err := server.Log(ctx, level, "talk", map[string]any{"level": level, "password": "hunter2"}); err != nil {
				return "", err
			}
		}
		if err := server.Log(ctx, "loud", "talk", "x"); err == nil {
			return "", errors.New("a level that is none was taken")
		}
		return "done", nil
	}))
	all := mcp.LogLevels()
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, _ *client.Client) {
		for i, level := range append([]mcp.LogLevel{""}, all...) {
			logs := make(chan *mcp.LogParams, 16)
			c := mcptest.Join(t, build, &client.Options{LogLevel: level, OnLog: func(_ context.Context, p *mcp.LogParams) { logs <- p }}, era)
			if _, err := c.CallTool(t.Context(), "talk", nil, nil); err != nil {
				t.Fatal(err)
			}
			if level == "" {
				i = 7 // info
			}
			for _, want := range all[:i] {
				p := <-logs
				if p.Level != want || p.Logger != "talk" || !strings.Contains(string(p.Data), `"[redacted]"`) || strings.Contains(string(p.Data), "hunter2") {
					t.Errorf("from %q on: %s %s %s, want %s", level, p.Level, p.Logger, p.Data, want)
				}
			}
			if len(logs) > 0 {
				t.Errorf("from %q on: %d more", level, len(logs))
			}
		}
	})
}

// Proves: FLOW-LOG-P: the level changes under way; who takes no logs gets none
// in the modern era.
func TestFLOW_LOG_P_Level(t *testing.T) {
	build := with(server.Tool("talk", "Logs.", func(ctx context.Context, _ mcp.None) (string, error) {
		return "done", server.Log(ctx, mcp.LogWarning, "", "careful")
	}))
	bubbles(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		var logs logtest.List
		_, c := join(&client.Options{OnLog: func(_ context.Context, p *mcp.LogParams) { logs.Addf("%s", p.Data) }})
		for _, level := range []mcp.LogLevel{mcp.LogError, mcp.LogWarning, mcp.LogEmergency, mcp.LogDebug} {
			if err := c.SetLogLevel(t.Context(), level); err != nil {
				t.Fatal(err)
			}
			if _, err := c.CallTool(t.Context(), "talk", nil, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if got := logs.All(); len(got) != 2 {
			t.Errorf("logs %q, want two", got)
		}
		if err := c.SetLogLevel(t.Context(), "loud"); err == nil {
			t.Error("a level that is none was taken")
		}
	})
	t.Run("by hand", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := dial(t, build(t, quiet()), nil)
			const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"talk","_meta":{%q:%q,%q:{}%s}}}`
			level := func(l string) string { return `,"` + mcp.MetaLogLevel + `":` + l }
			l.ask(call, 1, mcp.MetaProtocolVersion, newest, mcp.MetaClientCapabilities, "").want("1", "id")
			l.ask(call, 2, mcp.MetaProtocolVersion, newest, mcp.MetaClientCapabilities, level(`"error"`)).want("2", "id")
			l.ask(call, 3, mcp.MetaProtocolVersion, newest, mcp.MetaClientCapabilities, level(`"loud"`)).fails(-32602, "3")
			l.ask(call, 4, mcp.MetaProtocolVersion, newest, mcp.MetaClientCapabilities, level(`"warning"`)).want(`"careful"`, "params", "data")
			l.next().want("4", "id")
			l.ask(`{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{%s,"level":"info"}}`, meta("{}")).fails(-32601, "5")
			l.shake(autumn, "{}")
			l.ask(`{"jsonrpc":"2.0","id":6,"method":"logging/setLevel","params":{"level":"loud"}}`).fails(-32602, "6")
			l.Silent()
		})
	})
}

// Proves: FLOW-LOG-P. Ruling 25: a record outside of a request reaches the
// sessions of the handshake era; the modern one has no place for it.
func TestFLOW_LOG_P_Slog(t *testing.T) {
	bubbles(t, with(server.Text("x:a", "a", "A")), func(t *testing.T, era mcptest.Era, join joiner) {
		var logs logtest.List
		var fallback strings.Builder
		s, _ := join(&client.Options{OnLog: func(_ context.Context, p *mcp.LogParams) { logs.Addf("%s %s %s", p.Level, p.Logger, p.Data) }})
		log := slog.New(s.LogHandler("db", slog.NewTextHandler(&fallback, nil)))
		log.Warn("slow")
		log.Debug("fine")
		synctest.Wait()
		want := []string{`warning db {"message":"slow"}`}
		if era.Version == newest {
			want = nil
		}
		if got := logs.All(); !slices.Equal(got, want) {
			t.Errorf("logs %q, want %q", got, want)
		}
		if !strings.Contains(fallback.String(), "slow") {
			t.Errorf("standard error says %q", fallback.String())
		}
	})
}
