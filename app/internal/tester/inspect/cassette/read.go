package cassette

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// A FormatError says what is wrong with a file that should be a cassette.
type FormatError struct {
	// Line is where, from 1.
	Line int
	// Err says what and what to do.
	Err error
}

// Error says where it is and what.
func (e *FormatError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *FormatError) Unwrap() error { return e.Err }

// A Reader reads a cassette from the beginning, one line at a time.
type Reader struct {
	// Header is the first line.
	Header Header

	r      *bufio.Reader
	line   int
	at     int64 // of the next line
	began  int64 // of the last one
	frames int
	ended  bool
}

// NewReader reads the first line.
func NewReader(r io.Reader) (*Reader, error) {
	c := &Reader{r: bufio.NewReaderSize(r, 64<<10)}
	line, err := c.next(64 << 10)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty: it is no cassette")
	case err != nil && c.line == 1 && errors.As(err, new(*FormatError)):
		return nil, errNotOne
	case err != nil:
		return nil, err
	}
	if err := checked(line, &c.Header); err != nil || c.Header.Parley != "cassette" {
		return nil, errNotOne
	}
	if c.Header.Version < 1 || c.Header.Version > Version {
		return nil, fmt.Errorf("the cassette has version %d of the format, and this program reads up to %d: use the program that wrote it (%s), or record again",
			c.Header.Version, Version, c.Header.Program)
	}
	return c, nil
}

var errNotOne = errors.New(`the file is no cassette: its first line is not {"parley":"cassette","version":1,…}; 'parley record --out FILE' makes one`)

// next is the next line without its end.
func (c *Reader) next(limit int) ([]byte, error) {
	var line []byte
	c.line++
	c.began = c.at
	for {
		part, err := c.r.ReadSlice('\n')
		c.at += int64(len(part))
		if len(line)+len(part) > limit {
			return nil, &FormatError{c.line, fmt.Errorf("it is longer than %d bytes", limit)}
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return line, nil // an editor may have taken the last line break
		default:
			return nil, fmt.Errorf("reading the cassette: %w", err)
		}
	}
}

// Next reads the next frame. It returns io.EOF at the end.
func (c *Reader) Next() (*Frame, error) {
	line, err := c.next(MaxLine)
	if err != nil {
		return nil, err
	}
	f := new(Frame)
	if err := checked(line, f); err != nil {
		if _, more := c.r.Peek(1); errors.Is(more, io.EOF) {
			return nil, &FormatError{c.line, fmt.Errorf("the last line was cut off, or edited: %w; without it the rest can be used", err)}
		}
		return nil, &FormatError{c.line, fmt.Errorf("it is no line of a cassette: %w", err)}
	}
	c.frames++
	switch {
	case c.ended:
		return nil, &FormatError{c.line, errors.New("something follows the line that ends the recording")}
	case c.frames > MaxFrames:
		return nil, &FormatError{c.line, fmt.Errorf("the cassette has more than %d frames, which is the most", MaxFrames)}
	case f.End:
		c.ended = true
		if _, err := c.Next(); !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, io.EOF
	case f.From != Client && f.From != Server:
		return nil, &FormatError{c.line, fmt.Errorf(`"from" is %q: it is "client" or "server"`, f.From)}
	case len(f.Message) == 0 && f.Text == "":
		return nil, &FormatError{c.line, errors.New(`it has neither "message" nor "text"`)}
	}
	return f, nil
}

// Line is the number of the line of the last frame.
func (c *Reader) Line() int { return c.line }

// Complete says, at the end, that the recording was ended in good order.
func (c *Reader) Complete() bool { return c.ended }
