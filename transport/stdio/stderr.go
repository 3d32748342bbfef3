package stdio

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxStderrLine is how much of one line of standard error is kept.
const maxStderrLine = 4 << 10

// maxReason is how much of the last line of standard error goes into an error.
const maxReason = 512

// A stderr reads what a child says on standard error, all of it, always, so
// that the child never waits for us to listen.
type stderr struct {
	name string
	w    io.Writer
	log  *slog.Logger

	mu   sync.Mutex
	last string
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
	s.mu.Lock()
	s.last = line
	s.mu.Unlock()
	if s.w == nil {
		s.log.Info("server says", "server", s.name, "line", line)
		return
	}
	_, _ = io.WriteString(s.w, line+"\n") // a writer that fails must not stop the draining
}

// reason is the last line that said something.
func (s *stderr) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) <= maxReason {
		return s.last
	}
	return strings.ToValidUTF8(s.last[:maxReason], "") + "…"
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
