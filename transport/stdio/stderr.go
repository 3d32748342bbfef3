package stdio

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxStderrLine is how much of one line of standard error is kept.
const maxStderrLine = 4 << 10

// maxReason is how much of a line of standard error goes into an error.
const maxReason = 512

// maxAfterCrash is how many lines besides its stack may follow the panic that
// is still taken for the reason of the end.
const maxAfterCrash = 20

// crashed begins what the runtime of Go writes when it ends the process.
var crashed = []string{"panic: ", "fatal error: "}

// trace are lines around the one that says why a program crashed: stack frames
// of Go, and remarks of go run, Node and Rust. Frames of other languages are
// indented.
var trace = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(goroutine \d+ .*:|created by .*|(panic|[^\s(]+\.\S*)\(.*\)|\[signal .*\]|runtime stack:` +
		`|\.\.\..*frames elided\.\.\.|[a-z0-9]+ +0x[0-9a-f]+|exit status \d+|[)\]}]+|Node\.js v\d.*|note: run with .*)$`)
})

// A stderr reads what a child says on standard error, all of it, always, so
// that the child never waits for us to listen.
type stderr struct {
	name string
	w    io.Writer
	log  *slog.Logger

	mu    sync.Mutex
	last  string // that said something
	frame bool   // it is part of a stack
	crash string // the last that the runtime of Go began its end with
	after int    // lines besides the stack since
}

// drain reads until the end.
func (s *stderr) drain(r io.Reader) {
	in := bufio.NewReaderSize(r, maxStderrLine)
	for {
		line, err := in.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 {
			s.take(string(line), cut)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

// take passes one line on.
func (s *stderr) take(line string, cut bool) {
	line = printable(strings.TrimRight(line, "\r\n"))
	if cut {
		line += "…"
	}
	if strings.TrimSpace(line) == "" {
		return
	}
	s.note(line)
	if s.w == nil {
		s.log.Info("server says", "server", s.name, "line", line)
		return
	}
	_, _ = io.WriteString(s.w, line+"\n") // a writer that fails must not stop the draining
}

// note keeps the line if it may be why the process ends.
func (s *stderr) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frame := strings.ContainsAny(line[:1], " \t") || trace().MatchString(line)
	if slices.ContainsFunc(crashed, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
		s.crash, s.after, frame = line, 0, false
	} else if !frame {
		s.after++
	}
	if !frame || s.frame || s.last == "" {
		s.last, s.frame = line, frame
	}
}

// reason is the line that says why the process ended: the panic of a program
// in Go, or else the last line that is no part of a stack.
func (s *stderr) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := s.last
	if s.crash != "" && s.after <= maxAfterCrash {
		reason = s.crash
	}
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + "…"
}

// printable escapes what would do something to a terminal or a log instead of
// being read: control and formatting characters and invalid UTF-8.
func printable(line string) string {
	var b strings.Builder
	for i, r := range line {
		switch {
		case r == '\t', unicode.IsPrint(r):
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(line[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(line[i]), 16))
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}
