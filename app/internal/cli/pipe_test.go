package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// A pipe is the program with a person who types in a pipe when they see something.
type pipe struct {
	t     *testing.T
	cmd   *exec.Cmd
	typed io.WriteCloser
	out   *output // and what is said on standard error
	at    int     // of out, what was seen until here
	ended chan struct{}
}

// newPipe starts the program with the settings of k. It ends with the test at the latest.
func newPipe(k *killable, args ...string) *pipe {
	k.t.Helper()
	p := &pipe{t: k.t, cmd: exec.CommandContext(k.t.Context(), "parley", args...), out: new(output), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = k.dir, append(os.Environ(), "HOME="+k.dir, "XDG_CONFIG_HOME="+k.dir)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	var err error
	if p.typed, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the code tells
	}()
	k.t.Cleanup(func() { <-p.ended }) // the context of the test has ended then
	return p
}

// sees waits until texts are shown, each after what was seen before.
func (p *pipe) sees(texts ...string) *pipe {
	p.t.Helper()
	for _, text := range texts {
		end, all, ok := p.out.after(p.at, text, p.ended)
		if !ok {
			p.t.Fatalf("%q is not shown. Seen before:\n%s\n===== and after it:\n%s", text, all[:p.at], all[p.at:])
		}
		p.at = end
	}
	return p
}

// finds waits for a text that matches a pattern, and returns what is in its parentheses.
func (p *pipe) finds(pattern string) string {
	p.t.Helper()
	found := p.out.wait(pattern, p.ended)
	if found == "" {
		p.t.Fatalf("nothing matches %s:\n%s", pattern, p.out)
	}
	return found
}

// says types a message, or a command, once one can be typed.
func (p *pipe) says(line string) *pipe {
	p.t.Helper()
	return p.sees("\n> ").types(line)
}

// answers answers a question that has a text.
func (p *pipe) answers(question, answer string) *pipe {
	p.t.Helper()
	return p.sees(question, "Your answer (", "): ").types(answer)
}

func (p *pipe) types(line string) *pipe {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.typed, line); err != nil {
		p.t.Fatalf("typing %q: %v\n%s", line, err, p.out)
	}
	return p
}

// interrupts is a Ctrl-C.
func (p *pipe) interrupts() *pipe {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	return p
}

// quits ends the program.
func (p *pipe) quits() {
	p.t.Helper()
	p.says("/quit")
	<-p.ended
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("exit code %d:\n%s", code, p.out)
	}
}
