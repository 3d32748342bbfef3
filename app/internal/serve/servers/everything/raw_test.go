package everything_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// patience is how long tests wait for what must come: on a busy machine, too, only a hang lasts so long.
const patience = 5 * time.Minute

// maxMessage is the longest line that the server takes: the default.
const maxMessage = 4 << 20

// newest is the stateless revision.
const newest = "2026-07-28"

// pipeEnd is one end of two pipes.
type pipeEnd struct {
	*io.PipeReader
	*io.PipeWriter
}

func (p pipeEnd) Close() error { return errors.Join(p.PipeReader.Close(), p.PipeWriter.Close()) }

// A rawClient writes lines to a server and reads messages, without a client's
// manners.
type rawClient struct {
	t        testing.TB
	in       *io.PipeWriter
	messages chan *jsonrpc.Incoming
	broken   chan error // what the server said that is no message
	done     chan error
}

// dialRaw serves a raw client. It is hung up when the test ends.
func dialRaw(t testing.TB, h transport.Handler) *rawClient {
	heard, in := io.Pipe()
	out, said := io.Pipe()
	c := &rawClient{
		t: t, in: in,
		messages: make(chan *jsonrpc.Incoming, 16), broken: make(chan error, 1), done: make(chan error, 1),
	}
	go func() { c.done <- stdio.ServeConn(context.Background(), pipeEnd{heard, said}, h, nil) }()
	go c.read(out)
	t.Cleanup(func() { // after a failure; otherwise all is over already
		_ = in.Close()
		for range c.messages {
		}
	})
	return c
}

func (c *rawClient) read(out *io.PipeReader) {
	defer close(c.messages)
	s := bufio.NewScanner(out)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		line := bytes.Clone(s.Bytes())
		all, err := parseAnswers(line)
		if err == nil && !json.Valid(line) {
			err = errors.New("not JSON")
		}
		if err != nil {
			select {
			case c.broken <- fmt.Errorf("%w: %.400q", err, line):
			default:
			}
			continue
		}
		for _, m := range all {
			c.messages <- m
		}
	}
	_ = out.CloseWithError(io.ErrClosedPipe) // a writer must not wait for us
}

// parseAnswers reads a line of the server: a message, or the answers to a batch.
func parseAnswers(line []byte) ([]*jsonrpc.Incoming, error) {
	if !jsonrpc.IsBatch(line) {
		m, err := jsonrpc.Parse(line, jsonrpc.Limits{})
		return []*jsonrpc.Incoming{m}, err
	}
	items, err := jsonrpc.ParseBatch(line, jsonrpc.Limits{}, 1000)
	if err != nil {
		return nil, err
	}
	var all []*jsonrpc.Incoming
	for _, item := range items {
		if item.Err != nil {
			return nil, item.Err
		}
		all = append(all, item.In)
	}
	return all, nil
}

// send writes a line.
func (c *rawClient) send(line []byte) {
	c.t.Helper()
	if _, err := c.in.Write(append(bytes.Clone(line), '\n')); err != nil {
		c.t.Fatalf("the server takes no more: %v", err)
	}
}

// next waits for a message.
func (c *rawClient) next() *jsonrpc.Incoming {
	c.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case m, ok := <-c.messages:
		if !ok {
			c.t.Fatal("the server has closed the connection")
		}
		return m
	case <-timer.C:
		c.t.Fatal("the server is silent")
	}
	return nil
}

// hangUp ends the client's output, and returns what the server still said.
func (c *rawClient) hangUp() []*jsonrpc.Incoming {
	c.t.Helper()
	_ = c.in.Close() // never fails
	var rest []*jsonrpc.Incoming
	for m := range c.messages {
		rest = append(rest, m)
	}
	if err := <-c.done; err != nil {
		c.t.Errorf("serving ended with %v", err)
	}
	select {
	case err := <-c.broken:
		c.t.Errorf("the server said what is no message: %v", err)
	default:
	}
	return rest
}

// handshake makes the handshake of a revision that has one.
func (c *rawClient) handshake(version string) {
	c.t.Helper()
	if version == newest {
		return
	}
	c.send([]byte(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`))
	m := c.next()
	raw, _ := m.Result.Member("protocolVersion")
	if m.ID != jsonrpc.StringID("hello") || string(raw) != `"`+version+`"` {
		c.t.Fatalf("the handshake failed: %v, version %s", m.Error, raw)
	}
	c.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

// metaOf is the _meta that requests of a revision need, as a JSON member with
// a comma after it; or nothing.
func metaOf(version string) string {
	if version != newest {
		return ""
	}
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newest + `","io.modelcontextprotocol/clientCapabilities":{}},`
}

// text is the text of a tool's result.
func text(m *jsonrpc.Incoming) string {
	if m.Error != nil {
		return m.Error.Error()
	}
	var result struct {
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(m.Result.Raw(), &result); err != nil || len(result.Content) == 0 {
		return fmt.Sprintf("no text: %s", m.Result.Raw())
	}
	return result.Content[0].Text
}
