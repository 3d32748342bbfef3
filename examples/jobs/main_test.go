package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// start starts the program's server on a folder, and a client that knows jobs.
func start(t *testing.T, path string) (*server.Server, *client.Client) {
	t.Helper()
	s, err := newServer(path)
	if err != nil {
		t.Fatal(err)
	}
	return s, mcptest.Client(t, s, &client.Options{
		Extensions: []client.Extension{knowsJobs},
		OnElicit:   long,
	})
}

// long answers every form.
func long(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: map[string]mcp.RawValue{"style": mcp.RawValue(`"long"`)}}, nil
}

// A job goes on in another process where the first one ended.
func TestJob(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, path)
		var answer created
		params := &mcp.CallToolParams{Name: "report", Arguments: mcp.RawValue(`{"topic":"tides"}`)}
		err := c.Request(t.Context(), "tools/call", params, &answer, &client.CallOptions{ResultTypes: []string{createdType}})
		if err != nil || answer.JobID == "" {
			t.Fatalf("%+v, %v", answer, err)
		}
		id := jobParams{answer.JobID}
		synctest.Wait()
		first, err := client.CallMethod[job](t.Context(), c, "jobs/get", id)
		if err != nil || first.State != "asks" || first.Progress != "outlined" || !strings.Contains(string(first.Question), "Which style?") {
			t.Fatalf("%+v, %v", first, err)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		_ = s.Shutdown(stopped) // its error is that of the context

		s, c = start(t, path)
		synctest.Wait()
		if _, err := client.CallMethod[mcp.None](t.Context(), c, "jobs/answer", answerParams{id.JobID, mcp.RawValue(`{"action":"accept","content":{"style":"loud"}}`)}); err == nil || !strings.Contains(err.Error(), "/style") {
			t.Errorf("an answer that does not fit: %v", err)
		}
		if _, err := client.CallMethod[mcp.None](t.Context(), c, "jobs/answer", answerParams{id.JobID, mcp.RawValue(`{"action":"accept","content":{"style":"short"}}`)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		last, err := client.CallMethod[job](t.Context(), c, "jobs/get", id)
		if err != nil || last.State != "done" || !strings.Contains(string(last.Result), "short: tides.") {
			t.Errorf("%+v, %v", last, err)
		}
		if left, _ := os.ReadDir(path); len(left) != 0 {
			t.Errorf("left in the folder: %v", left)
		}
		if _, err := client.CallMethod[job](t.Context(), c, "jobs/get", jobParams{"other"}); err == nil {
			t.Error("an unknown job was found")
		}
		_ = s.Shutdown(t.Context())
	})
}

// A client that does not know jobs gets the result of the tool, as always.
func TestWithoutJobs(t *testing.T) {
	s, err := newServer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := mcptest.Client(t, s, &client.Options{OnElicit: long})
	out, err := client.Call[string](t.Context(), c, "report", map[string]string{"topic": "tides"})
	if err != nil || !strings.Contains(out, "long: tides.") {
		t.Errorf("%q, %v", out, err)
	}
}

// A client that calls a tool gets its result at the end of the job, which asked
// something meanwhile.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newServer(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		text, err := ask(t.Context(), mem.New(s, nil), "tides")
		if err != nil || !strings.Contains(text, "long: tides.") {
			t.Errorf("%q, %v", text, err)
		}
		_ = s.Shutdown(t.Context())
	})
}
