// Command calltool calls a tool and answers what the server asks on the way, at
// the terminal; or it watches a resource. See docs/guide/clients.md.
//
//	calltool call booking book '{"show":"Cats"}'
//	calltool watch http://127.0.0.1:8080/mcp note:///1
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := &person{in: bufio.NewScanner(os.Stdin), out: os.Stdout}
	if err := run(ctx, p, os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, p *person, args []string) error {
	if len(args) < 3 {
		return errors.New("usage: calltool call SERVER TOOL [ARGUMENTS], or calltool watch SERVER URI")
	}
	switch args[0] {
	case "call":
		return call(ctx, p, args[1], args[2], append(args[3:], "{}")[0])
	case "watch":
		return watch(ctx, p, args[1], args[2])
	default:
		return fmt.Errorf("%q: write call or watch", args[0])
	}
}

func dialer(target string) transport.Dialer {
	if strings.Contains(target, "://") {
		return streamable.URL(target)
	}
	words := strings.Fields(target)
	return stdio.Command(words[0], words[1:]...)
}

func call(ctx context.Context, p *person, target, tool, arguments string) error {
	c, err := client.Connect(ctx, dialer(target), &client.Options{
		OnElicit:    p.form,
		OnElicitURL: p.page,
		OnSample:    p.model,
		OnRoots:     workingDirectory,
		Logger:      slog.Default(),
	})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	result, err := c.CallTool(ctx, tool, mcp.RawValue(arguments), &client.CallOptions{
		OnProgress: func(progress, total float64, message string) {
			p.say("%v of %v %s", progress, total, host.EscapeLine(message))
		},
	})
	if err != nil {
		return err
	}
	for _, content := range result.Content {
		p.say("%s", host.Escape(host.ContentText(content)))
	}
	return nil
}

// watch prints a resource each time it changes.
func watch(ctx context.Context, p *person, target, uri string) error {
	changed := make(chan struct{}, 1)
	c, err := client.Connect(ctx, dialer(target), &client.Options{
		OnResourceUpdated: func(context.Context, string) {
			select {
			case changed <- struct{}{}:
			default: // it is read soon
			}
		},
	})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	s, err := c.Subscribe(ctx, uri)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for {
		r, err := c.ReadResource(ctx, uri, nil)
		if err != nil {
			return err
		}
		p.say("%s", host.Escape(r.Contents[0].Text))
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A person sits at a terminal.
type person struct {
	asking sync.Mutex // handlers are called at once; questions come one at a time
	in     *bufio.Scanner

	writing sync.Mutex
	out     io.Writer
}

func (p *person) say(format string, args ...any) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// next asks a question and reads a line, which is in p.in.Text.
func (p *person) next(format string, args ...any) bool {
	p.say(format, args...)
	return p.in.Scan()
}

// form asks for each field. What is left empty gets the form's default.
func (p *person) form(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.say("%s asks: %s", asker(r), host.EscapeLine(r.Params.Message))
	values := map[string]mcp.RawValue{}
	for _, field := range r.Form().Properties {
		if !p.next("%s (%s)?", host.EscapeLine(field.Name), field.Schema.Type) {
			return client.CancelElicit() // no person is there
		}
		line := p.in.Text()
		switch {
		case line == "":
		case field.Schema.Type == "string":
			quoted, err := json.Marshal(line)
			if err != nil {
				return nil, err
			}
			values[field.Name] = quoted
		default: // numbers, true and false are JSON as they are
			values[field.Name] = mcp.RawValue(line)
		}
	}
	if _, err := r.Complete(values); err != nil { // the client would refuse it too
		p.say("That does not fit: %v", err)
		return client.CancelElicit()
	}
	return client.Accept(values)
}

// page shows where the server wants the person to go. It opens nothing.
func (p *person) page(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.say("%s asks: %s\nIt wants you to visit %s, at %s", asker(r), host.EscapeLine(r.Params.Message),
		host.EscapeLine(r.Page.URL), host.EscapeLine(r.Page.Host))
	for _, warning := range r.Page.Warnings {
		p.say("Beware: %s", warning)
	}
	if p.next("Will you (y/n)?") && p.in.Text() == "y" {
		return client.Accept(nil)
	}
	return client.Decline()
}

// model answers in the place of a language model: the person does.
func (p *person) model(_ context.Context, m *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	for _, message := range m.Messages {
		for _, content := range message.Content {
			p.say("The server asks your model: %s", host.Escape(host.ContentText(content)))
		}
	}
	if !p.next("Your answer, or nothing to refuse?") || p.in.Text() == "" {
		return nil, client.ErrRefused
	}
	return &mcp.CreateMessageResult{
		Role: mcp.RoleAssistant, Model: "a person", StopReason: mcp.StopEndTurn,
		Content: mcp.Contents{mcp.Text(p.in.Text())},
	}, nil
}

// asker is what the server calls itself.
func asker(r *client.ElicitRequest) string {
	if r.Server == nil {
		return "A server without a name"
	}
	return host.EscapeLine(r.Server.Name)
}

// workingDirectory is what servers are told that the person works in.
func workingDirectory(context.Context) ([]mcp.Root, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	root, err := host.Root(dir)
	if err != nil {
		return nil, err
	}
	return []mcp.Root{root}, nil
}
