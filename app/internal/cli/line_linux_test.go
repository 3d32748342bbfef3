package cli_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The prompt is there, and takes what is typed, before any of twenty servers is: five are
// dead, five never answer, and the test holds the others until then.
//
// Proves: FLOW-INIT-H, SEC-DOS-1.
func TestPromptWaitsForNoServer(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	gate, err := net.Listen("unix", filepath.Join(dir, gateFile))
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	typed := make(chan struct{})
	go func() {
		for {
			conn, err := gate.Accept()
			if err != nil {
				return
			}
			go func() {
				<-typed
				_ = conn.Close()
			}()
		}
	}()
	config := twentyServers(t, dir, "held")
	for i := range 10 {
		if err := os.Symlink(filepath.Join(dir, gateFile), filepath.Join(dir, fmt.Sprint(i), gateFile)); err != nil {
			t.Fatal(err)
		}
	}
	w := newWindow(t, dir, nil, "chat", "--config", config, "--allow", "*")
	w.start()
	go w.read()
	w.sees("Write a message")
	w.types("Z")
	w.sees("Z")
	close(typed)
	w.types("\x15what is there?\r")
	w.sees("Done: ")
	w.types("/quit\r")
	w.gone()
	w.unchanged()
}

// A slow reader reads what is shown only while it is told to.
type slowReader struct {
	from  io.Reader
	to    *output
	pause chan chan struct{} // takes what ends the pause
}

func (r *slowReader) run() {
	buf := make([]byte, 1024)
	for {
		n, err := r.from.Read(buf)
		if err != nil {
			return
		}
		_, _ = r.to.Write(buf[:n])
		select {
		case over := <-r.pause:
			<-over
		default:
		}
	}
}

// stall has a window whose terminal takes nothing from now on, until the function that it
// returns is called.
func stall(w *window, r *slowReader) (goOn func()) {
	w.t.Helper()
	over := make(chan struct{})
	go func() { r.pause <- over }()
	fd, err := unix.Open(w.terminal.Name(), unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0) // the program's stays as it is
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing is lost
	full := 0
	w.until(func() bool {
		_, err := unix.Write(fd, make([]byte, 100)) // terminals show nothing for it
		if full++; err == nil {
			full = 0
		} else if !errors.Is(err, syscall.EAGAIN) {
			w.t.Fatal(err)
		}
		return full == 5 // the reader has read what it was to read
	})
	return func() { close(over) }
}

// A terminal that takes nothing for long keeps nobody from typing, and the program from
// nothing. When it goes on it shows how things are, and not all that was between.
func TestStalledTerminal(t *testing.T) {
	t.Parallel()
	const lines = 5000
	// They differ in each character: of a line that is drawn again, only what differs is.
	ends := map[string]string{"first": "It is over.", "second": "FINISHED-NOW"}
	asked := make(chan string, 1)
	url, over := modelServer(t, func(r *http.Request, send func(string)) {
		raw, _ := io.ReadAll(r.Body)
		question := "first"
		if strings.Contains(string(raw), "second question") {
			question = "second"
		}
		for n := range lines {
			send(fmt.Sprintf("%s line %d of the answer\n\n", question, n))
		}
		send(ends[question])
		asked <- question
	})
	dir := shortDir(t)
	w := newWindow(t, dir, []string{"OPENAI_API_KEY=" + testKey}, "chat", "--server", "one=actor "+dir, "--model", "openai:much", "--base-url", url)
	w.start()
	r := &slowReader{w.keys, w.out, make(chan chan struct{})}
	go r.run()
	w.sees("lists the keys")
	goOn, late := stall(w, r), time.Now().Add(patience)
	for _, question := range []string{"first", "second"} {
		for got := ""; got != question; { // while the answer before is not over, it is not sent
			w.types("\x15" + question + " question\r")
			select {
			case got = <-asked:
			case <-time.After(time.Second):
			case <-w.ended:
				t.Fatalf("the program has ended:\n%q", w.out)
			}
			if time.Now().After(late) {
				t.Fatalf("the %s question does not arrive while the terminal is stalled", question)
			}
		}
		over()
	}
	before := len(w.out.String())
	goOn()
	w.sees(ends["second"])
	if shown := len(w.out.String()) - before; shown > 200<<10 {
		t.Errorf("%d bytes came after the pause: all frames, and not the last", shown)
	}
	w.types("\x15/quit\r") // a question that was typed again may stand there
	w.gone()
	w.unchanged()
}

// A program whose terminal takes nothing ends all the same, with its servers.
func TestStalledEnd(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	w := newWindow(t, dir, nil, "chat", "--allow", "*", "--server", "one=actor "+dir)
	w.start()
	r := &slowReader{w.keys, w.out, make(chan chan struct{})}
	go r.run()
	w.sees("lists the keys")
	w.types("one/hang\r")
	w.sees("at 1 of 2")
	goOn := stall(w, r)
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.gone()
	if code := w.cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
	after, err := unix.IoctlGetTermios(int(w.terminal.Fd()), unix.TCGETS)
	if err != nil || *after != *w.before {
		t.Errorf("the terminal was %+v and is %+v: %v", *w.before, after, err)
	}
	goOn()
}
