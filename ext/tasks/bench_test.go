package tasks_test

import (
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// BenchmarkGet asks for the state of a task that has ended.
func BenchmarkGet(b *testing.B) {
	store := tasks.Memory()
	n := &tasks.NewTask{ID: "J3VQ5XH2WZ7KD4NBTAYC6MRLES", Owner: principal.Local.Identity(), Tool: "echo", PollInterval: time.Second}
	_, lease, err := store.Create(b.Context(), n, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	result := mcp.RawValue(`{"content":[{"type":"text","text":"hello"}],"resultType":"complete"}`)
	if _, err := store.Change(b.Context(), lease, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: result}}); err != nil {
		b.Fatal(err)
	}
	s := server.New("bench", "1", &server.Options{Limits: server.Limits{ToolRate: server.Unlimited}})
	tasks.Enable(s, store, nil)
	c, err := client.Connect(b.Context(), mem.New(s, nil), &client.Options{Extensions: []client.Extension{knows(nil)}})
	if err != nil {
		b.Fatal(err)
	}
	params := map[string]string{"taskId": n.ID}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.CallMethod[mcp.RawValue](b.Context(), c, tasks.MethodGet, params); err != nil {
			b.Fatal(err)
		}
	}
}
