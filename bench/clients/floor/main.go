// Command floor is the least that a client can do: send prebuilt bytes with
// net/http, or write prebuilt lines and let many wait for theirs, and look at
// what comes back.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"

	"github.com/parley-mcp/parley/bench/clients/calling"
	"github.com/parley-mcp/parley/bench/fixture"
)

const request = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + fixture.Echo + `","arguments":{"text":"` + fixture.Text + `"},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + fixture.Modern + `","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}}}`

var line = []byte(request + "\n")

func main() { calling.Main(connect) }

func connect(ctx context.Context, t calling.Target) (*calling.Client, error) {
	if t.URL != "" {
		c := calling.HTTP()
		return &calling.Client{
			Run:   calling.Each(func(ctx context.Context) error { return post(ctx, c, t.URL) }),
			Close: func() error { c.CloseIdleConnections(); return nil },
		}, nil
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), t.Command, "-stdio") // it ends with its input
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &calling.Client{
		Run:   calling.Each(newPipe(in, out).call),
		Close: func() error { return errors.Join(in.Close(), cmd.Wait()) },
	}, nil
}

func post(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(request)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	return check(body)
}

// A pipe lets many wait for their answers, which come in the order of the
// requests.
type pipe struct {
	mu      sync.Mutex
	to      io.Writer
	waiting chan chan error // in that order
	idle    sync.Pool       // of chan error
}

const mostAtOnce = 1024

func newPipe(to io.Writer, from io.Reader) *pipe {
	p := &pipe{to: to, waiting: make(chan chan error, mostAtOnce)}
	p.idle.New = func() any { return make(chan error, 1) }
	go func() {
		r := bufio.NewReaderSize(from, 64<<10)
		for answered := range p.waiting {
			answer, err := r.ReadSlice('\n')
			if err == nil {
				err = check(answer)
			}
			answered <- err
		}
	}()
	return p
}

// call writes a line and waits until one has been read for it.
func (p *pipe) call(context.Context) error {
	answered := p.idle.Get().(chan error)
	defer p.idle.Put(answered)
	p.mu.Lock()
	p.waiting <- answered
	_, err := p.to.Write(line)
	p.mu.Unlock()
	return errors.Join(err, <-answered)
}

func check(answer []byte) error {
	if !bytes.Contains(answer, []byte(fixture.Text)) {
		return fmt.Errorf("an answer says %.100q", answer)
	}
	return nil
}
