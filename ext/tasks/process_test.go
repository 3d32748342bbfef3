package tasks_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// What the test binary is told when it is run as a client: the address of the server, and
// the file of the handle.
const (
	clientURLVar    = "PARLEY_TEST_TASKS_URL"
	clientHandleVar = "PARLEY_TEST_TASKS_HANDLE"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(clientURLVar); url != "" {
		if err := waitAsProcess(context.Background(), url, os.Getenv(clientHandleVar)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// waitAsProcess starts a task, or takes up the one whose handle is in a file, and waits
// for its end. It says what it is asked and what it got, one a line.
func waitAsProcess(ctx context.Context, url, file string) error {
	o := waiting(nil)
	first := false
	o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		fmt.Println("asked", r.Target, r.Params.Message)
		if first && r.Params.Message == "Who?" {
			<-ctx.Done() // nobody answers in this process
			return nil, context.Cause(ctx)
		}
		return accepted(ctx, r)
	}
	c, err := client.Connect(ctx, streamable.URL(url), &o)
	if err != nil {
		return err
	}
	defer c.Close()
	saved, err := os.ReadFile(file)
	var h *tasks.Handle[string]
	if errors.Is(err, os.ErrNotExist) {
		first = true
		if h, err = tasks.Start[string](ctx, c, "ask", nil, nil); err != nil {
			return err
		}
		if saved, err = h.MarshalBinary(); err == nil {
			err = os.WriteFile(file, saved, 0o600)
		}
	} else if err == nil {
		h, err = tasks.Resume[string](ctx, c, saved, nil)
	}
	if err != nil {
		return err
	}
	for state, err := range h.Updates(ctx) {
		if err != nil {
			return err
		}
		fmt.Println("state", state.Status, len(state.Questions))
	}
	got, err := h.Wait(ctx)
	fmt.Println("got", got)
	return err
}

// "Clients SHOULD persist task IDs to durable storage so that polling can resume after a
// crash": a client that is killed while it waits is taken up by another process, which
// answers the question that is still open, once; the other was answered already.
func TestClientKilled(t *testing.T) {
	var answers atomic.Int32
	s := newServer(t, server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
		sure, err := server.Elicit[confirmation](ctx, "Sure?")
		if err != nil {
			return "", err
		}
		answers.Add(1)
		who, err := server.Elicit[naming](ctx, "Who?")
		if err != nil {
			return "", err
		}
		answers.Add(1)
		return fmt.Sprint(who.Value.Name, " ", sure.Value.Confirm), nil
	}))
	tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: tasks.Tool{Mode: tasks.Must}, PollInterval: 1e8})
	endpoint := streamable.NewHandler(s, nil)
	site := webtest.Serve(t, http.Handler(endpoint))
	webtest.Abort(t, endpoint.Shutdown)
	file := filepath.Join(t.TempDir(), "handle")
	run := func() (*exec.Cmd, *bufio.Scanner) {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), clientURLVar+"="+site.URL, clientHandleVar+"="+file)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return child, bufio.NewScanner(out)
	}

	child, lines := run()
	for lines.Scan() && lines.Text() != "asked ask Who?" {
		if strings.HasPrefix(lines.Text(), "error") {
			t.Error(lines.Text())
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() == 1 {
		t.Fatalf("the process ended by itself: %v", err)
	}
	if n := answers.Load(); n != 1 {
		t.Fatalf("%d answers before the kill", n)
	}

	child, lines = run()
	var said []string
	for lines.Scan() {
		if text := lines.Text(); !strings.HasPrefix(text, "state") {
			said = append(said, text)
		}
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if got := strings.Join(said, "; "); got != "asked ask Who?; got Ada true" || answers.Load() != 2 {
		t.Errorf("the second process said %q; %d answers", got, answers.Load())
	}
}
