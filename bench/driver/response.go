package driver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A response is what came back to one request. It is void after the next one.
type response struct {
	status  int
	session string // the Mcp-Session-Id, if there was one
	body    []byte
}

// A reader reads the responses of one connection, one after the other. It knows
// what the measured servers send, and no more: a length or chunks, no trailers.
type reader struct {
	r    *bufio.Reader
	body []byte
}

// maxBody bounds what a measured server may send.
const maxBody = 256 << 20

func newReader(r io.Reader) *reader { return &reader{r: bufio.NewReaderSize(r, 64<<10)} }

// next reads a response. The body of a stream that is to stay open is not read.
func (r *reader) next(open bool) (response, error) {
	line, err := r.line()
	if err != nil {
		return response{}, err
	}
	var res response
	rest, ok := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !ok || len(rest) < 3 {
		return res, fmt.Errorf("no HTTP response: %.80q", line)
	}
	if res.status, err = strconv.Atoi(string(rest[:3])); err != nil {
		return res, fmt.Errorf("no status: %.80q", line)
	}
	length, chunked, err := r.head(&res)
	if err != nil || open {
		return res, err
	}
	r.body = r.body[:0]
	switch {
	case chunked:
		err = r.chunks()
	case length >= 0:
		err = r.take(length)
	default:
		err = errors.New("a response without a length")
	}
	res.body = r.body
	return res, err
}

// head reads the header fields, up to the empty line.
func (r *reader) head(res *response) (length int, chunked bool, err error) {
	length = -1
	if res.status == 204 {
		length = 0
	}
	for {
		line, err := r.line()
		if err != nil || len(line) == 0 {
			return length, chunked, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "content-length"):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return length, chunked, fmt.Errorf("content-length: %w", err)
			}
		case is(name, "transfer-encoding"):
			chunked = is(value, "chunked")
		case is(name, "mcp-session-id"):
			res.session = string(value)
		}
	}
}

// is compares without regard to case; the lengths differ mostly.
func is(b []byte, s string) bool { return len(b) == len(s) && bytes.EqualFold(b, []byte(s)) }

// line reads a line and leaves out its end.
func (r *reader) line() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

func (r *reader) chunks() error {
	for {
		line, err := r.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(size), 16, 31)
		if err != nil {
			return fmt.Errorf("chunk: %w", err)
		}
		if err := r.take(int(n)); err != nil {
			return err
		}
		if line, err = r.line(); err != nil || len(line) > 0 {
			return errors.Join(err, errEndOfChunk(line))
		}
		if n == 0 {
			return nil
		}
	}
}

func errEndOfChunk(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	return fmt.Errorf("%.40q where a chunk ends", line)
}

// take reads n bytes onto the end of the body.
func (r *reader) take(n int) error {
	have := len(r.body)
	if n < 0 || have+n > maxBody {
		return fmt.Errorf("a body of more than %d bytes", maxBody)
	}
	if have+n > cap(r.body) {
		r.body = append(make([]byte, 0, max(have+n, 2*cap(r.body))), r.body...)
	}
	r.body = r.body[:have+n]
	_, err := io.ReadFull(r.r, r.body[have:])
	return err
}
