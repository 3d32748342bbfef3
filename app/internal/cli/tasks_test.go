package cli_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// serveTasks serves tools whose calls become tasks, and one whose calls do not, and
// returns the URL.
func serveTasks(t *testing.T) string {
	t.Helper()
	s := server.New("tasks", "1", nil)
	type named struct {
		Name string `json:"name"`
	}
	s.Add(
		server.Tool("quick", "Gives its result at once.", func(context.Context, mcp.None) (string, error) { return "at once", nil }),
		server.Tool("index", "Becomes a task.", func(ctx context.Context, _ mcp.None) (string, error) {
			return "indexed", server.Progress(ctx, 1, 2, "reading")
		}),
		server.Tool("fails", "Becomes a task, and fails.", func(context.Context, mcp.None) (string, error) { return "", mcp.Errorf("out of paper") }),
		server.Tool("hangs", "Becomes a task without end.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := server.Progress(ctx, 1, 2, "hanging"); err != nil {
				return "", err
			}
			<-ctx.Done()
			return "", context.Cause(ctx)
		}),
		server.Tool("greet", "Becomes a task, and asks.", func(ctx context.Context, _ mcp.None) (string, error) {
			who, err := server.Elicit[named](ctx, "Who are you?")
			if err != nil || !who.Accepted() {
				return "nobody", err
			}
			return "Hello, " + who.Value.Name, nil
		}),
	)
	must := tasks.Tool{Mode: tasks.Must}
	tasks.Enable(s, tasks.Memory(), &tasks.Options{PollInterval: 1e8, Tools: map[string]tasks.Tool{
		"index": must, "fails": must, "hangs": must, "greet": must,
	}})
	endpoint := streamable.NewHandler(s, nil)
	site := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = endpoint.Shutdown(ended) // the error is that of ended
		site.Close()
		_ = s.Shutdown(ended)
	})
	return site.URL
}

// A call that becomes a task gives what any call gives, questions and failures too.
func TestCallBecomesTask(t *testing.T) {
	t.Parallel()
	url := serveTasks(t)
	for _, c := range []struct {
		tool, input, out, err string
		code                  int
	}{
		{"index", "", "indexed\n", "", 0},
		{"fails", "", "", "the tool fails failed: out of paper", 5},
		{"greet", "y\nAda\ny\n", "Hello, Ada\n", "Who are you?", 0},
		{"greet", "n\n", "nobody\n", "Who are you?", 0},
	} {
		code, out, err := run(t, c.input, "call", c.tool, "--server", url)
		if code != c.code || out != c.out || !strings.Contains(err, c.err) {
			t.Errorf("%s: exit code %d, %q, want %d and %q\n%s", c.tool, code, out, c.code, c.out, err)
		}
	}
}

// A call that is not waited for is a task that the other commands take, by its
// identifier or by its handle.
func TestTaskCommands(t *testing.T) {
	t.Parallel()
	url := serveTasks(t)
	parley := func(input string, want int, args ...string) (out, err string) {
		t.Helper()
		code, out, err := run(t, input, append(args, "--server", url)...)
		if code != want {
			t.Errorf("parley %s: exit code %d, want %d: %s%s", strings.Join(args, " "), code, want, out, err)
		}
		return out, err
	}
	begin := func(tool string) string {
		t.Helper()
		out, err := parley("", 0, "call", "--task", tool)
		if !strings.Contains(err, "became a task") || len(strings.Fields(out)) != 1 {
			t.Errorf("call --task %s: %q\n%s", tool, out, err)
		}
		return strings.TrimSpace(out)
	}
	must := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}

	// reaches asks for a task until it says something: its call may not have come that far yet.
	reaches := func(id, want string) (out string) {
		t.Helper()
		within(time.Now(), patience, func() bool {
			out, _ = parley("", 0, "tasks", "get", id)
			return strings.Contains(out, want)
		})
		must(out, want)
		return out
	}

	id := begin("hangs")
	out := reaches(id, "working: hanging")
	must(out, ", kept until ")
	_, err := parley("", 0, "tasks", "cancel", id)
	must(err, "was asked to cancel")
	_, err = parley("", 5, "tasks", "wait", id)
	must(err, "the task was cancelled")
	out, _ = parley("", 0, "tasks", "get", "--json", id)
	var state struct {
		TaskID string `json:"taskId"`
		Status string `json:"status"`
		TTLMs  int64  `json:"ttlMs"`
	}
	if err := json.Unmarshal([]byte(out), &state); err != nil || state.TaskID != id || state.Status != "cancelled" || state.TTLMs == 0 {
		t.Errorf("%s: %v", out, err)
	}
	out, _ = parley("", 0, "tasks", "cancel", "--json", id)
	must(out, "{}\n")

	_, err = parley("", 5, "tasks", "wait", begin("fails"))
	must(err, "the task failed: out of paper")
	if out, _ = parley("", 0, "tasks", "wait", begin("index")); out != "indexed\n" {
		t.Errorf("wait gave %q", out)
	}

	out, _ = parley("", 0, "call", "--task", "--json", "greet")
	var started struct {
		Server, Tool, TaskID string
		Handle               json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &started); err != nil || started.Tool != "greet" || started.TaskID == "" {
		t.Fatalf("%s: %v", out, err)
	}
	out = reaches(started.TaskID, "input_required")
	must(out, "asks elicitation/create")
	if code, _, err := command(t, "tasks", "wait", started.TaskID, "--server", url); code != 5 || !strings.Contains(err, "the task keeps running") {
		t.Errorf("nobody to ask: exit code %d\n%s", code, err)
	}
	out, err = parley("y\nAda\ny\n", 0, "tasks", "wait", "--json", string(started.Handle))
	must(out, `"Hello, Ada"`)
	must(err, "Who are you?")
	out, _ = parley("", 0, "tasks", "get", "--json", string(started.Handle))
	must(out, `"result":{`)

	out, err = parley("", 0, "call", "--task", "quick")
	must(err, "created no task")
	must(out, "at once\n")
}

// What is no task says so.
func TestTaskCommandsRefused(t *testing.T) {
	t.Parallel()
	url := serveTasks(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"tasks", "get", "none", "--server", url}, 5, "no such task"},
		{[]string{"tasks", "wait", "none", "--server", url}, 5, "no such task"},
		{[]string{"tasks", "cancel", "none", "--server", url}, 5, "no such task"},
		{[]string{"tasks", "wait", `{"version":7}`, "--server", url}, 1, "its version is 7"},
		{[]string{"tasks", "wait", `{"version":1,"tool":"t","taskId":"a"`, "--server", url}, 1, "unusable handle of a task"},
		{[]string{"tasks", "wait", "", "--server", url}, 1, "missing or empty"},
		{[]string{"tasks", "wait", "a", "b"}, 1, "wrong number of arguments"},
		{[]string{"tasks", "wait", "a"}, 5, "no such task"},
		{[]string{"call", "--task", "none", "--server", url}, 1, "unknown tool"},
		{[]string{"tasks", "nothing"}, 1, ""},
	} {
		code, out, err := command(t, c.args...)
		if code != c.code || out != "" || !strings.Contains(err, c.want) {
			t.Errorf("parley %s: exit code %d, %q\n%s", strings.Join(c.args, " "), code, out, err)
		}
	}
}

// Ctrl-C while a task is waited for leaves the task, and says how to come back to it;
// during 'parley call' it cancels the task.
func TestInterruptTask(t *testing.T) {
	t.Parallel()
	url := serveTasks(t)
	interrupted := func(args ...string) string {
		t.Helper()
		interrupts := make(chan os.Signal, 1)
		w := new(output)
		go func() {
			w.wait("hanging", t.Context().Done())
			interrupts <- os.Interrupt
		}()
		code := cli.Main(t.Context(), append(args, "--server", url), &kit.Streams{
			In: strings.NewReader(""), Out: new(output), Err: w, Interrupts: interrupts,
		})
		if code != 130 {
			t.Errorf("parley %s: exit code %d, want 130", strings.Join(args, " "), code)
		}
		return w.String()
	}
	_, id, _ := command(t, "call", "--task", "hangs", "--server", url)
	id = strings.TrimSpace(id)
	if said := interrupted("tasks", "wait", id); !strings.Contains(said, "the task keeps running; run 'parley tasks wait'") || !strings.Contains(said, id) {
		t.Errorf("tasks wait said %q", said)
	}
	if _, out, err := command(t, "tasks", "get", id, "--server", url); !strings.HasPrefix(out, "working") {
		t.Errorf("the task is %q\n%s", out, err)
	}
	if said := interrupted("call", "hangs"); strings.Contains(said, "goes on") {
		t.Errorf("call said %q", said)
	}
}
