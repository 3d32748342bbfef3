package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
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
	return s, connect(t, s)
}

func connect(t *testing.T, s *server.Server) *client.Client {
	t.Helper()
	return mcptest.Client(t, s, &client.Options{
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
		if err != nil || first.State != "working" || first.Progress != "outlined" {
			t.Fatalf("%+v, %v", first, err)
		}
		key := asked(t, first, "Which style?")
		stopped, stop := context.WithCancel(t.Context())
		stop()
		_ = s.Shutdown(stopped) // its error is that of the context

		s, c = start(t, path)
		synctest.Wait()
		if _, err := client.CallMethod[job](t.Context(), c, "jobs/answer", answerParams{id.JobID, key, mcp.RawValue(`{"action":"accept","content":{"style":"loud"}}`)}); err == nil || !strings.Contains(err.Error(), "/style") {
			t.Errorf("an answer that does not fit: %v", err)
		}
		if _, err := client.CallMethod[job](t.Context(), c, "jobs/answer", answerParams{id.JobID, key, mcp.RawValue(`{"action":"accept","content":{"style":"short"}}`)}); err != nil {
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
		time.Sleep(endedTime)
		synctest.Wait()
		if _, err := client.CallMethod[job](t.Context(), c, "jobs/get", id); err == nil {
			t.Error("an ended job is told of for ever")
		}
		_ = s.Shutdown(t.Context())
	})
}

// asked is the key of the one question of a job.
func asked(t *testing.T, own job, text string) string {
	t.Helper()
	for key, q := range own.Questions {
		if len(own.Questions) == 1 && strings.Contains(string(q.Params), text) {
			return key
		}
	}
	t.Fatalf("want the question %q: %+v", text, own)
	return ""
}

// sure is a form.
type sure struct {
	Sure bool `json:"sure"`
}

// The answer to a question that the handler has given up is not one to the next.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newServer(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var second server.Answer[sure]
		s.Add(server.Tool("tidy", "", func(ctx context.Context, _ struct{}) (string, error) {
			short, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if _, err := server.Elicit[sure](short, "Keep a copy?"); err == nil {
				t.Error("the first question was answered")
			}
			time.Sleep(time.Minute)
			second, err = server.Elicit[sure](ctx, "Delete everything?")
			return "", err
		}))
		c := connect(t, s)
		var answer created
		if err := c.Request(t.Context(), "tools/call", &mcp.CallToolParams{Name: "tidy"}, &answer, &client.CallOptions{ResultTypes: []string{createdType}}); err != nil {
			t.Fatal(err)
		}
		get := func() job {
			t.Helper()
			synctest.Wait()
			own, err := client.CallMethod[job](t.Context(), c, "jobs/get", jobParams{answer.JobID})
			if err != nil {
				t.Fatal(err)
			}
			return own
		}
		first := asked(t, get(), "Keep a copy?")
		accept := func(key string) error {
			_, err := client.CallMethod[mcp.None](t.Context(), c, "jobs/answer", answerParams{answer.JobID, key, mcp.RawValue(`{"action":"accept","content":{"sure":true}}`)})
			return err
		}
		time.Sleep(90 * time.Second) // the first question is given up
		if own := get(); len(own.Questions) != 0 || accept(first) == nil {
			t.Errorf("a question that was given up is open: %+v", own)
		}
		time.Sleep(time.Hour)
		key := asked(t, get(), "Delete everything?")
		if key == first || accept(first) == nil {
			t.Error("a late answer was taken")
		}
		if err := accept(key); err != nil {
			t.Fatal(err)
		}
		if own := get(); own.State != "done" || !second.Value.Sure {
			t.Errorf("%+v, %+v", own, second)
		}
		_ = s.Shutdown(t.Context())
	})
}

// A record that was being written when the process ended is cut off, and does not
// stand in the way of those after it.
func TestHalfWrittenRecord(t *testing.T) {
	path := t.TempDir()
	f, own := folder(path), newJob("a", "")
	record := func(key string) {
		t.Helper()
		if err := f.record(own, server.Record{Kind: server.RecordOnce, Key: key, Value: mcp.RawValue("1")}); err != nil {
			t.Fatal(err)
		}
	}
	record("first")
	whole, err := os.ReadFile(f.file("a", ".records"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.file("a", ".records"), append(whole, whole[:len(whole)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := f.records("a"); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	record("second")
	if got, err := f.records("a"); err != nil || len(got) != 2 || got[1].Key != "second" {
		t.Errorf("at the next start: %v, %v", got, err)
	}
}

// A job that cannot be taken up has failed, and the server starts.
func TestUnreadableJobs(t *testing.T) {
	path := t.TempDir()
	f := folder(path)
	owner := principal.Local.Identity()
	for id, saved := range map[string]string{"odd": `{"v":99}`, "torn": `{}`} {
		if err := f.create(newJob(id, owner), []byte(saved)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"half.job": `{"owner":`, "torn.records": "not JSON\n"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, c := start(t, path)
	for _, id := range []string{"odd", "torn"} {
		if own, err := client.CallMethod[job](t.Context(), c, "jobs/get", jobParams{id}); err != nil || own.State != "failed" || own.Error == "" {
			t.Errorf("%s: %+v, %v", id, own, err)
		}
	}
	if _, err := client.CallMethod[job](t.Context(), c, "jobs/get", jobParams{"half"}); err == nil {
		t.Error("a job that nobody was told of was found")
	}
	if left, _ := os.ReadDir(path); len(left) != 4 {
		t.Errorf("left in the folder: %v", left)
	}
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
