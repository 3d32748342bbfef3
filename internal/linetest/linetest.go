// Package linetest writes and reads messages by hand, one on a line.
package linetest

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// A Conn is the client's end of a connection in memory.
type Conn struct {
	net.Conn
	// Served is closed when serving the other end has ended.
	Served <-chan struct{}

	tb    testing.TB
	lines chan string
	err   error // of serving, once Served is closed
}

// Dial has serve serve the other end of a connection, with a context that does not end, and waits
// for it when the test ends.
func Dial(tb testing.TB, serve func(ctx context.Context, far net.Conn) error) *Conn {
	tb.Helper()
	c := Unread(tb, serve)
	var reading sync.WaitGroup
	reading.Go(c.read)
	tb.Cleanup(func() {
		_ = c.Close()
		reading.Wait()
	})
	return c
}

// Unread is Dial for a client that reads nothing.
func Unread(tb testing.TB, serve func(ctx context.Context, far net.Conn) error) *Conn {
	tb.Helper()
	near, far := net.Pipe()
	served := make(chan struct{})
	c := &Conn{Conn: near, tb: tb, lines: make(chan string, 1<<14), Served: served}
	go func() {
		defer close(served)
		c.err = serve(context.WithoutCancel(tb.Context()), far)
	}()
	tb.Cleanup(func() {
		_ = near.Close()
		<-served
	})
	return c
}

// Err waits until serving the other end has ended and returns its error.
func (c *Conn) Err() error {
	<-c.Served
	return c.err
}

func (c *Conn) read() {
	defer close(c.lines)
	r := bufio.NewReaderSize(c.Conn, 1<<16)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		c.lines <- strings.TrimSuffix(line, "\n")
	}
}

// WriteLine writes one line.
func (c *Conn) WriteLine(line string) {
	c.tb.Helper()
	if _, err := io.WriteString(c.Conn, line+"\n"); err != nil {
		c.tb.Fatalf("writing %.200s: %v", line, err)
	}
}

// ReadLine returns the next line.
func (c *Conn) ReadLine() string {
	c.tb.Helper()
	line, ok := <-c.lines
	if !ok {
		c.tb.Fatal("the server closed the connection")
	}
	return line
}

// Lines gives the lines as they come, until the server closes the connection.
func (c *Conn) Lines() <-chan string { return c.lines }

// Silent fails the test if a line comes, or the end, before all is at rest. It is for bubbles of synctest.
func (c *Conn) Silent() {
	c.tb.Helper()
	synctest.Wait()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.tb.Error("the server closed the connection")
			return
		}
		c.tb.Errorf("unexpected message %s", line)
	default:
	}
}
