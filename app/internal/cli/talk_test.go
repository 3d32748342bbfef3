package cli_test

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
)

// A talk is a conversation with the program in this process: a person who types when they
// see something.
type talk struct {
	t          *testing.T
	typed      *io.PipeWriter
	out, said  *output
	at         int // of out, what was seen until here
	interrupts chan os.Signal
	ended      chan struct{}
	code       int
}

// begin starts parley chat with arguments, and waits until a message can be typed.
func begin(t *testing.T, args ...string) *talk {
	t.Helper()
	in, typed := io.Pipe()
	k := &talk{t: t, typed: typed, out: new(output), said: new(output), interrupts: make(chan os.Signal, 1), ended: make(chan struct{})}
	streams := &kit.Streams{
		In: in, Out: k.out, Err: k.said, InTerminal: true, OutTerminal: true, ErrTerminal: true, Interrupts: k.interrupts,
		Width: func() int { return 1000 },
	}
	go func() {
		defer close(k.ended)
		k.code = cli.Main(context.WithoutCancel(t.Context()), append([]string{"chat", "--plain"}, args...), streams)
		_ = in.Close() // what is typed later is in vain
	}()
	t.Cleanup(func() {
		_ = typed.Close() // a pipe's never fails
		<-k.ended
		k.clean()
	})
	return k
}

// sees waits until a text is shown after what was seen before.
func (k *talk) sees(texts ...string) {
	k.t.Helper()
	for _, text := range texts {
		k.at = k.wait(k.out, k.at, text)
	}
}

// hears waits until a text is on standard error.
func (k *talk) hears(texts ...string) {
	k.t.Helper()
	for _, text := range texts {
		k.wait(k.said, 0, text)
	}
}

// wait waits until an output has a text after a position, and returns where it ends.
func (k *talk) wait(o *output, at int, text string) int {
	k.t.Helper()
	end, all, ok := o.after(at, text, k.ended)
	if !ok {
		k.t.Fatalf("%q is not shown. Seen before:\n%s\n===== and after it:\n%s\n===== on standard error:\n%s", text, all[:at], all[at:], k.said)
	}
	return end
}

// after waits until there is a text after a position, and returns where it ends, and all that
// there is. Ok is false if it does not come before ended is closed, or not at all.
func (o *output) after(at int, text string, ended <-chan struct{}) (end int, all string, ok bool) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for over := false; ; {
		o.mu.Lock()
		all = o.text.String()
		if o.grown == nil {
			o.grown = make(chan struct{})
		}
		grown := o.grown
		o.mu.Unlock()
		if i := strings.Index(all[at:], text); i >= 0 {
			return at + i + len(text), all, true
		}
		if over {
			return at, all, false
		}
		select {
		case <-grown:
		case <-ended:
			over = true
		case <-late.C:
			over = true
		}
	}
}

// says types a line once a message can be typed.
func (k *talk) says(line string) {
	k.t.Helper()
	if k.at == 0 {
		k.sees("> ")
	} else {
		k.sees("\n> ")
	}
	k.types(line)
}

// ready waits until no server is starting: the first message goes without the tools of those that
// are still starting after a moment.
func (k *talk) ready() {
	k.t.Helper()
	for late := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		k.says("/servers")
		end := k.wait(k.out, k.at, "\n> ")
		shown := k.out.String()[k.at:end]
		if !strings.Contains(shown, "): starting") {
			return
		}
		if time.Now().After(late) {
			k.t.Fatalf("a server does not start:\n%s", shown)
		}
	}
}

// answers types a line once an answer can be typed.
func (k *talk) answers(line string) {
	k.t.Helper()
	k.sees("Your answer (")
	k.sees("): ")
	k.types(line)
}

func (k *talk) types(line string) {
	k.t.Helper()
	if _, err := io.WriteString(k.typed, line+"\n"); err != nil {
		k.t.Fatalf("typing %q: %v\n%s%s", line, err, k.out, k.said)
	}
}

// quits ends the program and returns all that it showed.
func (k *talk) quits() string {
	k.t.Helper()
	k.says("/quit")
	<-k.ended
	if k.code != 0 {
		k.t.Errorf("exit code %d\n%s%s", k.code, k.out, k.said)
	}
	return k.out.String()
}

// clean fails if something was shown that a terminal would not show as text.
func (k *talk) clean() {
	k.t.Helper()
	for _, shown := range []string{k.out.String(), k.said.String()} {
		if shown != host.Escape(shown) || strings.Contains(shown, "\t") {
			k.t.Errorf("not safe to show:\n%q", shown)
		}
	}
}

// lines counts the lines of a text that match a pattern.
func lines(text, pattern string) int {
	return len(regexp.MustCompile(`(?m)^`+pattern).FindAllString(text, -1))
}
