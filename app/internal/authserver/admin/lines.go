package admin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// resultTrailer is the trailer with the result of a verb that streams.
const resultTrailer = "Parley-Result"

// lineBuffer is the size in bytes of what is written at once.
const lineBuffer = 32 << 10

// A lineWriter answers with lines. The header is written with the first full buffer, so that what goes
// wrong before that has a status of its own.
type lineWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  *bufio.Writer
	begun   bool
}

func newLineWriter(w http.ResponseWriter) *lineWriter {
	l := &lineWriter{w: w, control: http.NewResponseController(w)}
	l.buffer = bufio.NewWriterSize(deadlineWriter{l}, lineBuffer)
	return l
}

// extend gives the client answerTime to take what is written next, however long the verb took. A writer
// without deadlines needs none.
func (l *lineWriter) extend() { _ = l.control.SetWriteDeadline(time.Now().Add(answerTime)) }

// A deadlineWriter gives each write a time of its own.
type deadlineWriter struct{ *lineWriter }

func (d deadlineWriter) Write(p []byte) (int, error) {
	if !d.begun {
		d.begin()
	}
	d.extend()
	return d.w.Write(p)
}

func (l *lineWriter) begin() {
	l.begun = true
	header := l.w.Header()
	header.Set("Content-Type", "application/x-ndjson")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Trailer", resultTrailer)
	l.w.WriteHeader(http.StatusOK)
}

func (l *lineWriter) write(line []byte) error {
	_, err := l.buffer.Write(line)
	return errors.Join(err, l.buffer.WriteByte('\n'))
}

// flush writes what is left of the lines.
func (l *lineWriter) flush() error {
	err := l.buffer.Flush()
	if !l.begun {
		l.begin()
	}
	return err
}

// end writes the result.
func (l *lineWriter) end(result Result) {
	raw, err := json.Marshal(result)
	if err != nil {
		panic(http.ErrAbortHandler) // the client sees that the result is missing
	}
	l.w.Header().Set(resultTrailer, string(raw))
}

// errCutOff is that of an answer which ended before its result.
var errCutOff = fmt.Errorf("the server's response ended before all lines were sent; see the server's log: %w", io.ErrUnexpectedEOF)

// readLines gives the lines of an answer to visit.
func readLines(r io.Reader, visit func(line []byte) error) error {
	in := bufio.NewReaderSize(r, maxAnswerLine)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errCutOff
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("a line of the answer is longer than %d bytes", maxAnswerLine)
		case err != nil:
			return fmt.Errorf("reading the server's response: %w", err)
		}
		if err := visit(line[:len(line)-1]); err != nil {
			return err
		}
	}
}
