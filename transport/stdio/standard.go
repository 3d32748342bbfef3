package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/parley-mcp/parley/transport"
)

// Serve serves the client that started this process, over standard input and
// output. It returns when the client has ended the input (nil) or ctx has
// ended (its cause), and all requests have ended.
//
// Until then standard output is the protocol's alone: what the program prints
// there, with fmt.Println or from C, goes to standard error instead, so that
// it cannot corrupt the stream (spec 2026-07-28, basic/transports/stdio: the
// server "MUST NOT write anything to its stdout that is not a valid MCP
// message"). Only one Serve may run in a process at a time.
//
// The end of ctx ends Serve at once if standard streams are pipes or sockets,
// as clients make them. A terminal cannot be left while it is being read: there
// one goroutine stays behind until the next line or the end of the process.
func Serve(ctx context.Context, h transport.Handler) error {
	if err := transport.CheckHandler(h); err != nil {
		return fmt.Errorf("stdio.Serve: %w", err)
	}
	rwc, err := Standard()
	if err != nil {
		return err
	}
	return ServeConn(ctx, rwc, h, nil)
}

// Standard takes standard input and output for [ServeConn], for programs that
// want [Options], and points standard output at standard error as [Serve]
// says. Close gives both back.
func Standard() (io.ReadWriteCloser, error) {
	s, err := takeStandard()
	if err != nil {
		return nil, fmt.Errorf("taking standard input and output: %w", err)
	}
	return s, nil
}

// A standard is the pair of standard input and output.
type standard struct {
	in      io.ReadCloser
	out     *os.File
	restore func() error
	once    sync.Once
}

// Read reads from what was standard input.
func (s *standard) Read(p []byte) (int, error) { return s.in.Read(p) }

// Write writes to what was standard output.
func (s *standard) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close gives the streams back. It unblocks a Read.
func (s *standard) Close() (err error) {
	s.once.Do(func() {
		err = errors.Join(s.in.Close(), s.restore())
	})
	return err
}

// interruptible returns f such that Close makes a pending Read return.
func interruptible(f *os.File) io.ReadCloser {
	if f.SetReadDeadline(time.Time{}) == nil {
		return f // the runtime waits for it, not a thread
	}
	r, w := io.Pipe()
	go func() { // parked in Read when Close comes, until the input moves again
		_, err := io.Copy(w, f)
		_ = w.CloseWithError(err) // nil is io.EOF; never fails
	}()
	return r
}
