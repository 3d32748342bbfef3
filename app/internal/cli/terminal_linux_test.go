package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-mcp/parley/app/internal/ui"
)

// openTerminal makes a pseudo-terminal of 100 columns and 30 lines: what is written to keys is
// typed at it, and what is shown on it is read from there.
func openTerminal(t *testing.T) (keys, terminal *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals for tests here: %v", err)
	}
	t.Cleanup(func() { keys.Close() })
	number := 0
	ioctls := func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		if err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 30}); err != nil {
			return err
		}
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	}
	raw, err := keys.SyscallConn() // with Fd, Close would wait for the goroutine that reads
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = ioctls(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keys, terminal
}

// markEnv is in the environment of a program on a pseudo-terminal, and so of all that it
// starts: by it they are found.
const markEnv = "PARLEY_TEST_MARK"

// A window is the program on a pseudo-terminal of its own, which it controls.
type window struct {
	t              *testing.T
	keys, terminal *os.File
	out            *output // what is shown
	at             int     // of out, what was seen until here
	before         *unix.Termios
	cmd            *exec.Cmd
	mark           string
	ended          chan struct{}
}

// newWindow starts the program with arguments and more of the environment.
func newWindow(t *testing.T, dir string, environ []string, args ...string) *window {
	t.Helper()
	w := &window{t: t, out: new(output), ended: make(chan struct{}), mark: fmt.Sprintf("%s=%d.%s", markEnv, os.Getpid(), filepath.Base(dir))}
	w.keys, w.terminal = openTerminal(t)
	var err error
	if w.before, err = unix.IoctlGetTermios(int(w.terminal.Fd()), unix.TCGETS); err != nil {
		t.Fatal(err)
	}
	w.cmd = exec.CommandContext(t.Context(), "parley", args...)
	w.cmd.Dir = dir
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = w.terminal, w.terminal, w.terminal
	w.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "TERM=xterm-256color", "GORACE=atexit_sleep_ms=0",
		"PARLEY_TEST_TYPED=1", "VISUAL=", "EDITOR=scribe", w.mark)
	w.cmd.Env = append(w.cmd.Env, environ...)
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return w
}

// start starts the program.
func (w *window) start() {
	w.t.Helper()
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		_ = w.cmd.Wait() // the code tells
	}()
}

// read takes what is shown, until the window is closed.
func (w *window) read() { _, _ = io.Copy(w.out, w.keys) }

// sees waits until something is shown that was not seen yet.
func (w *window) sees(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		late, ended := time.NewTimer(patience), w.ended
		for over := false; ; {
			grown, all := w.out.next()
			if i := strings.Index(all[w.at:], text); i >= 0 {
				w.at += i + len(text)
				break
			}
			if over {
				w.t.Fatalf("%q is not shown after %q", text, all[w.at:])
			}
			select {
			case <-grown:
			case <-ended: // what it wrote last is still on its way
				ended = nil
				late.Reset(time.Minute)
			case <-late.C:
				over = true
			}
		}
		late.Stop()
	}
}

// shows reports whether something is shown that was not seen yet.
func (w *window) shows(text string) bool {
	_, all := w.out.next()
	return strings.Contains(all[w.at:], text)
}

// types types a text.
func (w *window) types(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.keys, text); err != nil {
		w.t.Fatal(err)
	}
}

// answers types an answer to the last question of a program, which then ends. What comes too soon
// after a question is no answer, so it is typed again until the program has ended.
func (w *window) answers(text string) {
	w.t.Helper()
	again, late := time.NewTicker(3*ui.Burst), time.After(patience)
	defer again.Stop()
	for {
		select {
		case <-w.ended:
			return
		case <-again.C:
			w.types(text)
		case <-late:
			w.t.Fatalf("the answer %q is not taken", text)
		}
	}
}

// gone waits until the program has ended, and all that it has started.
func (w *window) gone() {
	w.t.Helper()
	late := time.After(patience)
	select {
	case <-w.ended:
	case <-late:
		w.t.Error("the program does not end")
		_ = w.cmd.Process.Kill() // it may have ended
		<-w.ended
	}
	var left []string
	defer func() {
		if len(left) > 0 {
			w.t.Errorf("processes are left: %q", left)
		}
	}()
	w.until(func() bool {
		left = marked(w.t, w.mark)
		return len(left) == 0
	})
}

// until waits until something is so.
func (w *window) until(so func() bool) {
	w.t.Helper()
	look, late := time.NewTicker(50*time.Millisecond), time.After(patience)
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-late:
			w.t.Fatal("it does not happen")
		}
	}
}

// marked are the command lines of the processes with something in their environment.
func marked(t *testing.T, mark string) (list []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		environ, err := os.ReadFile(name) // it may have ended, or be another person's
		if err == nil && slices.Contains(strings.Split(string(environ), "\x00"), mark) {
			line, _ := os.ReadFile(strings.TrimSuffix(name, "environ") + "cmdline")
			list = append(list, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}

// unchanged fails unless the terminal is as it was before the program.
func (w *window) unchanged() {
	w.t.Helper()
	after, err := unix.IoctlGetTermios(int(w.terminal.Fd()), unix.TCGETS)
	if err != nil {
		w.t.Fatal(err)
	}
	if *after != *w.before {
		w.t.Errorf("the terminal was %+v and is %+v", *w.before, *after)
	}
	const end = "<the end>" // behind all that the program has written
	if _, err := io.WriteString(w.terminal, end); err != nil {
		w.t.Fatal(err)
	}
	late := make(chan struct{})
	timer := time.AfterFunc(patience, func() { close(late) })
	defer timer.Stop()
	w.out.wait(end, late)
	if left := modesOf(w.out.String()); len(left) > 0 {
		w.t.Errorf("the terminal is left with %q by %q", left, w.out)
	}
}

// Sequences that change how a terminal is, until they are taken back.
var (
	modeSequences = regexp.MustCompile("\x1b\\[(?:\\?([0-9;]+)([hl])|>([0-9]+)(u)|<([0-9]*)(u)|>4(?:;([0-9]))?(m)|([0-9]*)( q)|([0-9;]*)(r)|([0-9;:]*)(m))")
	altScreens    = []string{"47", "1047", "1049"}
)

// modesOf are the modes in which a text leaves a terminal, other than its usual ones.
func modesOf(text string) (left []string) {
	modes := make(map[string]string)
	keyboards := map[bool]int{} // enhancements by screen: whether it is the alternate one
	for _, m := range modeSequences.FindAllStringSubmatch(text, -1) {
		switch {
		case m[2] != "":
			for mode := range strings.SplitSeq(m[1], ";") {
				usual := map[bool]string{true: "h", false: "l"}[mode == "25" || mode == "7"] // cursor, wrapping
				modes["mode "+mode] = m[2]
				if m[2] == usual {
					delete(modes, "mode "+mode)
				}
			}
		case m[4] != "", m[6] != "":
			alternate := slices.ContainsFunc(altScreens, func(s string) bool { return modes["mode "+s] != "" })
			if m[4] != "" {
				keyboards[alternate]++
			} else {
				keyboards[alternate] = max(keyboards[alternate]-1, 0)
			}
		case m[8] != "":
			modes["keys"] = strings.TrimPrefix(m[7], "0")
		case m[10] != "":
			modes["cursor"] = strings.TrimPrefix(m[9], "0")
		case m[12] != "":
			modes["region"] = strings.TrimPrefix(m[11], "1;30") // all lines
		case m[14] != "":
			modes["style"] = strings.TrimPrefix(m[13], "0")
		}
	}
	for name, value := range modes {
		if value != "" {
			left = append(left, name+" "+value)
		}
	}
	for alternate, n := range keyboards {
		if n > 0 {
			left = append(left, fmt.Sprintf("%d enhancements of keys, on the alternate screen: %v", n, alternate))
		}
	}
	slices.Sort(left)
	return left
}

// What is looked for in the end would be found.
func TestModesOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "",
		"\x1b[?1049h\x1b[?1049l":            "",
		"\x1b[?1049;2004h\x1b[?1049l":       "mode 2004 h",
		"\x1b[?25l":                         "mode 25 l",
		"\x1b[?25l\x1b[?25h":                "",
		"\x1b[?1049h\x1b[>3u\x1b[?1049l":    "1 enhancements of keys, on the alternate screen: true",
		"\x1b[?1049h\x1b[>3u\x1b[<1u":       "mode 1049 h",
		"\x1b[>3u\x1b[<u":                   "",
		"\x1b[>4;2m":                        "keys 2",
		"\x1b[>4;2m\x1b[>4m":                "",
		"\x1b[2 q":                          "cursor 2",
		"\x1b[2 q\x1b[0 q":                  "",
		"\x1b[1;5r":                         "region 1;5",
		"\x1b[1;5r\x1b[r":                   "",
		"\x1b[2;5r\x1b[1;30r":               "",
		"\x1b[1;31mx":                       "style 1;31",
		"\x1b[1;31mx\x1b[m\x1b[?1000;1006h": "mode 1000 h, mode 1006 h",
	} {
		if got := strings.Join(modesOf(text), ", "); got != want {
			t.Errorf("%q leaves %q, want %q", text, got, want)
		}
	}
}
