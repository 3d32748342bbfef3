package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/parley-mcp/parley/transport/frame"
)

// readBuffer is what one connection holds to read into while it is idle.
const readBuffer = 32 << 10

// joined is the size up to which queued messages are joined into one write.
const joined = 256 << 10

// lines reads messages that end with a newline, of at most limit bytes each.
type lines struct {
	src   io.Reader
	r     *bufio.Reader // of src
	limit int
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{src: r, r: bufio.NewReaderSize(r, readBuffer), limit: limit}
}

// onPart has arrived called when a part of a line was read, before anything is read.
func (l *lines) onPart(arrived func()) { l.r.Reset(&partReader{l.src, arrived}) }

// A partReader reports what it reads within a line.
type partReader struct {
	io.Reader

	arrived func()
}

// Read reads, and reports bytes among which no line ends.
func (r *partReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 && bytes.IndexByte(p[:n], '\n') < 0 {
		r.arrived()
	}
	return n, err
}

// next returns the next line in memory of its own, without its end (\n or
// \r\n). A line over the limit is skipped without being held, with a
// *frame.TooLongError. The rest before the end of input counts as a line.
func (l *lines) next() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil { // the usual case: the whole line is in the buffer
		return l.cut(bytes.Clone(part))
	}
	line := append(make([]byte, 0, 2*len(part)), part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(line) > l.limit+2 {
			return nil, l.skip(line)
		}
		part, err = l.r.ReadSlice('\n')
		line = l.grow(line, len(part))
		line = append(line, part...)
	}
	if err == io.EOF && len(line) > 0 {
		err = nil // the next call meets the end again
	}
	if err != nil {
		return nil, err
	}
	return l.cut(line)
}

// buffered reports whether a whole line has been read already.
func (l *lines) buffered() bool {
	ahead, _ := l.r.Peek(l.r.Buffered()) // what is buffered can be had
	return bytes.IndexByte(ahead, '\n') >= 0
}

// grow makes room for n more bytes: twice what there was, but not more than
// the limit and what a line end needs.
func (l *lines) grow(line []byte, n int) []byte {
	if cap(line)-len(line) >= n {
		return line
	}
	room := max(min(2*cap(line), l.limit+2), len(line)+n)
	return append(make([]byte, 0, room), line...)
}

// cut takes the line end off and checks the limit.
func (l *lines) cut(line []byte) ([]byte, error) {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) > l.limit {
		return nil, frame.NewTooLongError(l.limit, line)
	}
	return line, nil
}

// skip reads to the end of a line that is too long.
func (l *lines) skip(line []byte) error {
	long := frame.NewTooLongError(l.limit, line)
	for {
		switch _, err := l.r.ReadSlice('\n'); {
		case err == nil, errors.Is(err, io.EOF):
			return long
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// A lineWriter writes each message as one line, and as many as possible with
// one write.
type lineWriter struct {
	w   io.Writer
	buf []byte
}

// write writes messages. A message has no line break that means anything
// (they can only stand between tokens), so that each becomes a space.
func (l *lineWriter) write(messages [][]byte) error {
	for _, m := range messages {
		oneLine(m)
	}
	if len(messages) == 1 {
		n, err := l.w.Write(append(messages[0], '\n'))
		return writeError(0, n, err)
	}
	sent := 0 // messages
	for i, m := range messages {
		if len(l.buf) > 0 && len(l.buf)+len(m) >= joined {
			if err := l.flush(sent); err != nil {
				return err
			}
			sent = i
		}
		l.buf = append(append(l.buf, m...), '\n')
	}
	return l.flush(sent)
}

// flush writes the buffer, after sent messages that have been written.
func (l *lineWriter) flush(sent int) error {
	n, err := l.w.Write(l.buf)
	l.buf = l.buf[:0]
	if cap(l.buf) > 2*joined {
		l.buf = nil
	}
	return writeError(sent, n, err)
}

// writeError is err, with the number of messages that were sent if none of its bytes was written.
func writeError(sent, n int, err error) error {
	if err == nil || n > 0 {
		return err
	}
	return &frame.WriteError{Sent: sent, Err: err}
}

// oneLine replaces line breaks, where there are any, in place.
func oneLine(m []byte) {
	for _, c := range [2]byte{'\n', '\r'} {
		rest := m
		for i := bytes.IndexByte(rest, c); i >= 0; i = bytes.IndexByte(rest, c) {
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}
