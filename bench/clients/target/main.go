// Command target is what the clients are measured against: a server that answers
// with prebuilt bytes. It is the same for all of them, it costs little, and what
// it costs is not counted, since it is a process of its own.
//
//	target -stdio
//	target -http 127.0.0.1:0   started by the driver, whom it tells the address
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/parley-mcp/parley/bench/clients/answers"
	"github.com/parley-mcp/parley/bench/control"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "target:", err)
		os.Exit(1) // this is main
	}
}

func run() error {
	pipe := flag.Bool("stdio", false, "answer lines of standard input")
	addr := flag.String("http", "", "answer HTTP at this `address`")
	flag.Parse()
	switch {
	case *pipe && *addr == "":
		return serveLines(os.Stdin, os.Stdout)
	case *addr != "" && !*pipe:
		l, err := net.Listen("tcp", *addr) //nolint:noctx // it ends with the process
		if err != nil {
			return err
		}
		go acceptAll(l)
		return control.Serve(l.Addr().String(), nil)
	}
	return errors.New("one of -stdio and -http")
}

// serveLines answers each line with one, and writes when nothing more is there
// to be read.
func serveLines(from io.Reader, to io.Writer) error {
	r, w := bufio.NewReaderSize(from, 64<<10), bufio.NewWriterSize(to, 64<<10)
	var answer []byte
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var ok bool
		if answer, ok = answers.Append(answer[:0], line); ok {
			if _, err := w.Write(append(answer, '\n')); err != nil {
				return err
			}
		}
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

func acceptAll(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			if err := errors.Join(serveConn(conn), conn.Close()); err != nil {
				fmt.Fprintln(os.Stderr, "target:", err)
			}
		}()
	}
}
