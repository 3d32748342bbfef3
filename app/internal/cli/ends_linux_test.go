package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// roundsEnv is how often the screen is ended in each way; default 4.
const roundsEnv = "PARLEY_TEST_ROUNDS"

// A moment is what is under way when the screen ends.
type moment struct {
	name  string
	model bool // of the test, and not the built-in planner
	begin func(w *window)
	// leave goes back to where a message can be typed; nil if one can.
	leave func(w *window)
}

var moments = []moment{
	{name: "nothing", begin: func(*window) {}},
	{name: "an answer", model: true, begin: func(w *window) {
		w.types("Tell me.\r")
		w.sees("It begins")
	}},
	{name: "a call", begin: func(w *window) {
		w.types("one/hang\r")
		w.sees("at 1 of 2")
	}},
	{name: "a question", begin: func(w *window) {
		w.types("two/note text=hello\r")
		w.sees("a question waits")
	}},
	{name: "a question in the panel", begin: func(w *window) {
		w.types("two/note text=hello\r")
		w.sees("a question waits")
		w.types("\t")
		w.sees("[y]")
	}, leave: func(w *window) {
		for tries := 0; !w.shows("a question waits"); tries++ {
			if tries == int(patience/time.Second) {
				w.t.Fatal("Escape does not leave the panel")
			}
			w.types("\x1b") // a panel takes no key that comes too soon
			<-time.After(time.Second)
		}
	}},
	{name: "an editor", begin: func(w *window) {
		w.types("draft\x05")
		w.sees("SCRIBE")
	}, leave: func(w *window) {
		w.types("\n")
		w.sees("from the editor")
		w.types("\x15")
	}},
}

// modelServer is a provider of OpenAI's format. answer sends the pieces of each answer. over
// waits until no answer is under way.
func modelServer(t *testing.T, answer func(r *http.Request, send func(text string))) (url string, over func()) {
	t.Helper()
	var answers sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers.Add(1)
		defer answers.Done()
		w.Header().Set("Content-Type", "text/event-stream")
		answer(r, func(text string) {
			raw, _ := json.Marshal(text) // a string always can be
			_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":%s}}]}`+"\n\n", raw)
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
		})
		_, _ = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", answers.Wait
}

// However the screen ends, and whatever is under way, no process is left, and the terminal is
// as it was, except after SIGKILL, when nobody is left to give it back.
//
// Proves: FLOW-SHUTDOWN-H.
func TestEndsOfScreen(t *testing.T) {
	t.Parallel()
	rounds := 4
	if text := os.Getenv(roundsEnv); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", roundsEnv, err)
		}
	}
	signal := func(sig syscall.Signal) func(w *window, m *moment, round int) {
		return func(w *window, _ *moment, _ int) {
			if err := w.cmd.Process.Signal(sig); err != nil {
				w.t.Error(err)
			}
		}
	}
	for i, way := range []struct {
		name     string
		end      func(w *window, m *moment, round int)
		code     int
		terminal bool // is as it was
	}{
		{"a key", leaveByKey, 0, true},
		{"closing the terminal", func(w *window, _ *moment, _ int) { w.keys.Close() }, 128 + int(syscall.SIGHUP), false},
		{"SIGTERM", signal(syscall.SIGTERM), 128 + int(syscall.SIGTERM), true},
		{"SIGKILL", signal(syscall.SIGKILL), -1, false},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			for round := range rounds {
				m := &moments[(i+round)%len(moments)]
				t.Run(fmt.Sprintf("%d %s", round, m.name), func(t *testing.T) {
					w, over := atMoment(t, m)
					way.end(w, m, round)
					w.gone()
					over()
					if code := w.cmd.ProcessState.ExitCode(); code != way.code {
						t.Errorf("exit code %d, want %d\n%q", code, way.code, w.out)
					}
					if way.terminal {
						w.unchanged()
					}
				})
			}
		})
	}
}

// leaveByKey ends the screen by /quit, or by Ctrl-C twice.
func leaveByKey(w *window, m *moment, round int) {
	if m.leave != nil {
		m.leave(w)
	}
	if round%2 == 0 {
		w.types("/quit\r")
		return
	}
	w.types("\x03")
	w.sees("once more quits")
	w.types("\x03")
}

// atMoment starts the program with two servers, and waits for the moment. Both have started when it
// begins: a message waits for one that has not no longer than 750 ms.
func atMoment(t *testing.T, m *moment) (w *window, over func()) {
	t.Helper()
	dir := shortDir(t)
	args := []string{"chat", "--allow", "one/*"}
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--server", fmt.Sprintf("%s=actor %s/%s", name, dir, name))
	}
	over = func() {}
	if m.model {
		url := ""
		url, over = modelServer(t, func(r *http.Request, send func(string)) {
			send("It begins")
			<-r.Context().Done()
		})
		args = append(args, "--model", "openai:slow", "--base-url", url)
	}
	w = newWindow(t, dir, []string{"OPENAI_API_KEY=" + testKey}, args...)
	w.start()
	go w.read()
	w.sees("lists the keys")
	for _, name := range []string{"one", "two"} {
		w.until(func() bool {
			_, err := os.Stat(filepath.Join(dir, name, listedFile))
			return err == nil
		})
	}
	m.begin(w)
	return w, over
}

// What is typed before the screen is there is thrown away: it sends nothing, and answers
// nothing.
func TestTypedBeforeScreen(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	w := newWindow(t, dir, nil, "chat", "--server", "one=actor "+dir, "one/note text=hello")
	w.types("early\ry\r\ty\rlate")
	w.start()
	go w.read()
	w.sees("a question waits")
	w.types("/quit\r")
	w.gone()
	w.unchanged()
	k := &killable{t, dir}
	code, history := k.parley("", "history")
	if code != 0 || !strings.Contains(history, "one/note text=hello") {
		t.Errorf("exit code %d\n%s", code, history)
	}
	for _, text := range []string{"early", "late", "sent now", "agreed"} {
		if strings.Contains(history, text) {
			t.Errorf("the history has %q:\n%s", text, history)
		}
	}
}

// inShell has a shell start the program, and go on with it after a line when it was stopped.
func (w *window) inShell() {
	w.t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		w.t.Skip("there is no bash")
	}
	own := w.cmd
	w.cmd = exec.CommandContext(w.t.Context(), bash, "-mc", `own=$(stty -g); parley "$@"; echo "STOPPED $?"; read line; stty "$own"; fg; echo "ENDED $?"`, "-")
	w.cmd.Args = append(w.cmd.Args, own.Args[1:]...)
	w.cmd.Dir, w.cmd.Env, w.cmd.SysProcAttr = own.Dir, own.Env, own.SysProcAttr
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = own.Stdin, own.Stdout, own.Stderr
}

// inShellPID is the process of the program that a shell has started.
func (w *window) inShellPID() int {
	w.t.Helper()
	shell := w.cmd.Process.Pid
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", shell, shell))
	if err != nil {
		w.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}

// Ctrl-Z goes back to the shell, which has its terminal as it was, also while the program starts servers.
// From there the screen goes on.
func TestSuspended(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string]int{"one server": 1, "many that start": 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			args := []string{"chat"}
			for i := range servers {
				args = append(args, "--server", fmt.Sprintf("s%d=actor %s", i, dir))
			}
			w := newWindow(t, dir, nil, args...)
			w.inShell()
			w.start()
			go w.read()
			w.sees("lists the keys")
			w.types("draft\x1a")
			w.sees(fmt.Sprint("STOPPED ", 128+int(syscall.SIGTSTP)))
			w.unchanged()
			w.types("\n")
			w.sees("draft")
			w.types("\x15/quit\r")
			w.sees("ENDED 0")
			w.gone()
			w.unchanged()
		})
	}
}

// After a signal that stops the program, the screen has its terminal again.
func TestSuspendedBySignal(t *testing.T) {
	t.Parallel()
	for _, stop := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGSTOP} {
		t.Run(stop.String(), func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			w := newWindow(t, dir, nil, "chat", "--server", "one=actor "+dir)
			w.inShell()
			w.start()
			go w.read()
			w.sees("lists the keys")
			w.types("#") // one character, which one frame shows
			w.sees("#")
			if err := syscall.Kill(w.inShellPID(), stop); err != nil {
				t.Fatal(err)
			}
			w.sees(fmt.Sprint("STOPPED ", 128+int(stop)))
			w.types("\n")
			w.sees("#")
			w.types("\x15/quit\r")
			w.sees("ENDED 0")
			w.gone()
			w.unchanged()
		})
	}
}

// Without a shell the program goes on at once.
func TestSuspendedWithoutShell(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	w := newWindow(t, dir, nil, "chat", "--server", "one=actor "+dir)
	w.start()
	go w.read()
	w.sees("lists the keys")
	w.types("\x1a")
	w.sees("there is no shell to go back to")
	w.types("/quit\r")
	w.gone()
	w.unchanged()
}
