package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"

	"github.com/parley-mcp/parley/bench/clients/answers"
)

// serveConn answers the requests of one connection, one after the other.
func serveConn(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 64<<10)
	var body, answer, out []byte
	for {
		post, length, err := readHead(r)
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return nil
		}
		if err != nil {
			return err
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		out = out[:0]
		if !post {
			out = append(out, "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n"...)
		} else {
			var ok bool
			answer, ok = answers.Append(answer[:0], body)
			out = appendResponse(out, answer, ok)
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
	}
}

func appendResponse(out, answer []byte, ok bool) []byte {
	if !ok {
		return append(out, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"...)
	}
	out = append(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
	out = strconv.AppendInt(out, int64(len(answer)), 10)
	return append(append(out, "\r\n\r\n"...), answer...)
}

// readHead reads the head of a request and tells whether it is a POST, and the
// length of its body. io.EOF means that there is no further request.
func readHead(r *bufio.Reader) (post bool, length int, err error) {
	first, err := r.ReadSlice('\n')
	if err != nil {
		if len(first) > 0 {
			err = within(err)
		}
		return false, 0, err
	}
	post = bytes.HasPrefix(first, []byte("POST "))
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return false, 0, fmt.Errorf("head: %w", within(err))
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return post, length, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 {
				return false, 0, fmt.Errorf("a length of %q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return false, 0, fmt.Errorf("a body in chunks, which no client here sends: %q", value)
		}
	}
}

// within is what an error means in the middle of a request.
func within(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
