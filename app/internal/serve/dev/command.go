package dev

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// maxDials is how many connections a client makes to find out what a server speaks: old servers end
// when they meet what they do not know.
const maxDials = 3

// maxLines is how many lines of standard error are remembered, so that they are shown once.
const maxLines = 1000

// A startDialer connects to the processes of one generation. A start makes as many connections as the
// start before needed: a command that does not build is not run again, to find out whether the server
// is an old one.
type startDialer struct {
	transport.Dialer

	mu    sync.Mutex
	most  int // connections while it starts; 0 means any number, after that
	count int
	ended error // why the last connection did
	lines map[string]bool
}

// Dial starts a process.
func (d *startDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	d.mu.Lock()
	if d.most > 0 && d.count == d.most && d.ended != nil {
		err := d.ended
		d.mu.Unlock()
		return nil, err
	}
	d.count++
	d.mu.Unlock()
	return d.Dialer.Dial(ctx, &startInbox{in, d})
}

// started notes that the server serves, and returns how many connections that took.
func (d *startDialer) started() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.most, d.lines = 0, nil
	return d.count
}

// A startInbox notes why a connection ended.
type startInbox struct {
	transport.Inbox
	d *startDialer
}

// Closed takes the reason.
func (in *startInbox) Closed(err error) {
	in.d.mu.Lock()
	if err == nil {
		err = transport.ErrClosed
	}
	in.d.ended = err
	in.d.mu.Unlock()
	in.Inbox.Closed(err)
}

// Receive takes a message.
func (in *startInbox) Receive(m *jsonrpc.Incoming) { in.Inbox.Receive(m) }

// filter passes on the lines of standard error, those of further attempts of one start only if the
// attempts before did not say the same.
func (d *startDialer) filter(w io.Writer) io.Writer { return &stderr{w, d} }

type stderr struct {
	w io.Writer
	d *startDialer
}

// Write takes one line.
func (s *stderr) Write(line []byte) (int, error) {
	if s.d.said(strings.TrimSpace(string(line))) {
		return len(line), nil
	}
	return s.w.Write(line)
}

// said reports whether an attempt before said a line, and keeps the lines of the first one.
func (d *startDialer) said(line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.most == 0:
		return false
	case d.count > 1:
		return d.lines[line]
	case d.lines == nil:
		d.lines = make(map[string]bool)
	}
	if len(d.lines) < maxLines {
		d.lines[line] = true
	}
	return false
}
