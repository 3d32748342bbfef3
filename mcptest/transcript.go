package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// messageTimeout is how long a transcript waits for a message of the server, on a machine that may be busy.
const messageTimeout = 2 * time.Minute

// wide is the width from which on messages are laid out over several lines.
const wide = 140

// maxReply bounds a line of the server.
const maxReply = 64 << 20

// Transcript plays a file of messages with a handler, over lines on a pair of
// pipes, and fails the test where the handler says something else than the
// file.
//
// The file is a txtar archive: its comment says what it proves, its parts are
// steps. In a part each message begins a line with a mark; lines that begin
// with white space continue it, other lines that begin with # are remarks.
//
//	> text   the client sends it
//	>! text  likewise, though it is no message that a schema allows
//	< text   the next message of the server, compared as a JSON value
//	<& text  messages of the server that come next to each other, in any order
//	<* text  such messages of the server may come from here on, and are skipped
//	< ?      to be filled in with -update
//
// Strings in the place of a value that begin with a dollar sign stand for what
// varies: "$any" for everything, "$save:name" for what is kept under a name,
// and "$name" for what was kept, also in what the client sends. One member of
// an object may have "$save:name" for its name. "$$" begins a string that
// begins with one dollar sign. Once the file is played the client
// ends its output, and the handler must have nothing more to say.
//
// If the test binary has a flag "update" (a bool, which the tests define) and
// it is set, the file is written anew with what the server said, placeholders
// kept. With [SpecVar] in the environment every message of both directions is
// checked by an [Oracle] against the schema of the revision in use.
func Transcript(t testing.TB, h transport.Handler, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("reading a transcript: %v", err)
	}
	oracle, err := specified()
	if err != nil {
		t.Fatalf("reading the specification: %v", err)
	}
	p := &player{file: parseArchive(data), update: updating(), trace: newTrace(oracle)}
	p.connect(h)
	err = p.play()
	if endErr := p.end(); err == nil { // after a failure the rest only confuses
		err = endErr
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if p.update {
		if err := os.WriteFile(file, p.file.format(), 0o644); err != nil {
			t.Fatalf("writing a transcript: %v", err)
		}
	}
}

// updating says whether the flag "update" of the tests is set.
func updating() bool {
	f := flag.Lookup("update")
	if f == nil {
		return false
	}
	g, ok := f.Value.(flag.Getter)
	if !ok {
		return false
	}
	set, _ := g.Get().(bool)
	return set
}

// An entry is one message of a part, or a remark.
type entry struct {
	mark string // as in the file, or "" for a remark
	text string // without the mark, continued lines as they are
	line int    // within the part
}

// entries splits a part.
func entries(body []byte) ([]entry, error) {
	var list []entry
	n := 0
	for line := range bytes.Lines(body) {
		n++
		text := string(bytes.TrimRight(line, "\n"))
		switch mark, rest, _ := strings.Cut(text, " "); mark {
		case ">", ">!", "<", "<&", "<*":
			list = append(list, entry{mark: mark, text: rest, line: n})
		case "":
			if text != "" && len(list) > 0 && list[len(list)-1].mark != "" {
				list[len(list)-1].text += "\n" + text
				continue
			}
			list = append(list, entry{text: text, line: n})
		default:
			if !strings.HasPrefix(text, "#") {
				return nil, fmt.Errorf("line %d begins with no mark: %.40q", n, text)
			}
			list = append(list, entry{text: text, line: n})
		}
	}
	return list, nil
}

// written is the text of entries.
func written(list []entry) []byte {
	var b bytes.Buffer
	for _, e := range list {
		if e.mark != "" {
			b.WriteString(e.mark + " ")
		}
		b.WriteString(e.text + "\n")
	}
	return b.Bytes()
}

// oneLine joins the lines of a message.
func (e *entry) oneLine() string {
	if !strings.Contains(e.text, "\n") {
		return e.text
	}
	lines := strings.Split(e.text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

// A player plays one transcript.
type player struct {
	file    archive
	update  bool
	trace   *trace
	matcher matcher
	skipped []*tree // what may come at any time

	in     *io.PipeWriter // what the client says
	lines  chan []byte    // what the server says
	readOK error          // why lines ended; set before it is closed
	done   chan error     // the end of serving
}

// ends is one end of two pipes.
type ends struct {
	*io.PipeReader
	*io.PipeWriter
}

func (e ends) Close() error {
	return errors.Join(e.PipeReader.Close(), e.PipeWriter.Close())
}

// connect starts serving.
func (p *player) connect(h transport.Handler) {
	heard, in := io.Pipe()
	out, said := io.Pipe()
	p.in, p.lines, p.done = in, make(chan []byte), make(chan error, 1)
	go func() { p.done <- stdio.ServeConn(context.Background(), ends{heard, said}, h, nil) }()
	go func() {
		defer close(p.lines)
		s := bufio.NewScanner(out)
		s.Buffer(nil, maxReply)
		for s.Scan() {
			p.lines <- bytes.Clone(s.Bytes())
		}
		p.readOK = s.Err()
		_ = out.CloseWithError(io.ErrClosedPipe) // unblocks a writer whose line was too long
	}()
}

// play plays all parts.
func (p *player) play() error {
	for i := range p.file.parts {
		part := &p.file.parts[i]
		list, err := entries(part.body)
		if err != nil {
			return fmt.Errorf("part %q: %w", part.name, err)
		}
		for j := 0; j < len(list); {
			n, err := p.step(list[j:])
			if err != nil {
				return fmt.Errorf("part %q, line %d: %w", part.name, list[j].line, err)
			}
			j += n
		}
		part.body = written(list)
	}
	return nil
}

// step plays the first of some entries, or as many as belong together, and
// returns their number.
func (p *player) step(list []entry) (int, error) {
	switch e := &list[0]; e.mark {
	case ">", ">!":
		return 1, p.send(e)
	case "<*":
		want, err := parseTree([]byte(e.oneLine()))
		if err != nil {
			return 0, err
		}
		p.skipped = append(p.skipped, want)
	case "<":
		return 1, p.receive(list[:1])
	case "<&":
		n := 1
		for n < len(list) && list[n].mark == e.mark {
			n++
		}
		return n, p.receive(list[:n])
	}
	return 1, nil
}

// send sends a line of the client.
func (p *player) send(e *entry) error {
	text, err := p.matcher.substitute(e.oneLine())
	if err != nil {
		return err
	}
	if e.mark == ">" {
		if err := p.trace.see(mcp.FromClient, []byte(text)); err != nil {
			return fmt.Errorf("the client's message %.400s: %w", text, err)
		}
	} else {
		p.trace.note([]byte(text))
	}
	if _, err := io.WriteString(p.in, text+"\n"); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return nil
}

// receive takes as many messages of the server as there are entries, in any
// order.
func (p *player) receive(list []entry) error {
	wanted := make([]*tree, len(list))
	open := make([]int, len(list))
	for i := range list {
		open[i] = i
		if list[i].oneLine() == "?" {
			if !p.update {
				return errors.New("a message is to be filled in: run the test with -update")
			}
			continue
		}
		var err error
		if wanted[i], err = parseTree([]byte(list[i].oneLine())); err != nil {
			return err
		}
	}
	for len(open) > 0 {
		got, err := p.next()
		if err != nil {
			return err
		}
		if k, ok := p.find(wanted, open, got); ok {
			open = slices.Delete(open, k, k+1)
			continue
		}
		if p.skips(got) {
			continue
		}
		i := open[0]
		if !p.update {
			return fmt.Errorf("%w\nthe message: %s", p.matcher.match(wanted[i], got), shown(got))
		}
		now := renewed(wanted[i], got)
		if err := p.matcher.match(now, got); err != nil {
			return fmt.Errorf("%w\nthe message: %s", err, shown(got))
		}
		list[i].text = now.layout(wide)
		open = open[1:]
	}
	return nil
}

// find looks for a message among those that are still wanted.
func (p *player) find(wanted []*tree, open []int, got *tree) (int, bool) {
	for k, i := range open {
		if wanted[i] != nil && p.matcher.match(wanted[i], got) == nil {
			return k, true
		}
	}
	return 0, false
}

// skips says whether a message is one of those that may come at any time.
func (p *player) skips(got *tree) bool {
	for _, want := range p.skipped {
		if p.matcher.match(want, got) == nil {
			return true
		}
	}
	return false
}

var (
	errOver   = errors.New("the server has closed the connection")
	errSilent = fmt.Errorf("nothing came within %v", messageTimeout)
)

// next waits for a message of the server and has it checked.
func (p *player) next() (*tree, error) {
	timer := time.NewTimer(messageTimeout)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			return nil, errors.Join(errOver, p.readOK)
		}
		if err := p.trace.see(mcp.FromServer, line); err != nil {
			return nil, fmt.Errorf("the server's message %.2000s: %w", line, err)
		}
		return parseTree(line)
	case <-timer.C:
		return nil, errSilent
	}
}

// end ends the client's output and takes what the server still says, which
// must be nothing.
func (p *player) end() error {
	_ = p.in.Close() // never fails
	var found error
	for {
		got, err := p.next()
		switch {
		case errors.Is(err, errOver):
			if err := <-p.done; err != nil {
				found = errors.Join(found, fmt.Errorf("serving: %w", err))
			}
			return errors.Join(found, p.readOK)
		case errors.Is(err, errSilent):
			return errors.Join(found, err)
		case err != nil:
			found = errors.Join(found, err)
		case !p.skips(got) && found == nil:
			found = fmt.Errorf("a message that no step expects: %s", shown(got))
		}
	}
}
