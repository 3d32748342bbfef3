package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcptest"
)

func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(tasks.Memory())
		t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
		c := mcptest.Client(t, s, &client.Options{Extensions: []client.Extension{tasks.Client(nil)}, OnElicit: long})
		got, err := ask(t.Context(), c, "tides")
		if err != nil || !strings.HasSuffix(got, ", long: tides.") {
			t.Errorf("as a task: %q, %v", got, err)
		}
		plain := mcptest.Client(t, s, &client.Options{OnElicit: long})
		got, err = client.Call[string](t.Context(), plain, "report", map[string]string{"topic": "tides"})
		if err != nil || !strings.HasSuffix(got, ", long: tides.") {
			t.Errorf("as an ordinary call: %q, %v", got, err)
		}
	})
}
