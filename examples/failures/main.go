// Command failures has a tool for each way to fail. See docs/guide/errors.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// errNoMoney is an error for the model. Code can detect it with errors.Is.
var errNoMoney = mcp.Errorf("there is not enough money in the account")

type amount struct {
	Euro int `json:"euro" min:"1" max:"100"`
}

// withdraw fails with an error for the model.
func withdraw(_ context.Context, in amount) (string, error) {
	if in.Euro > 50 {
		return "", fmt.Errorf("withdraw %d euro: %w", in.Euro, errNoMoney)
	}
	return "done", nil
}

// load fails with an error for the operator only.
func load(context.Context, mcp.None) (string, error) {
	return "", fmt.Errorf("open /srv/private/accounts.db: %w", fs.ErrPermission)
}

// crash panics because of a bug. The server keeps running.
func crash(context.Context, mcp.None) (string, error) {
	var names []string
	return names[0], nil
}

// refuse returns a protocol error, for the calling program and not for its model.
func refuse(context.Context, mcp.None) (string, error) {
	return "", mcp.NewError(mcp.CodeInvalidParams, "the account is closed")
}

// either returns its own error for the model if load fails in a known way.
func either(context.Context, mcp.None) (string, error) {
	_, err := load(context.Background(), mcp.None{})
	if errors.Is(err, fs.ErrPermission) {
		return "", mcp.Errorf("the accounts cannot be read; tell the operator")
	}
	return "", err
}

// mapped decides which internal errors callers can see. It is Options.MapError.
func mapped(_ context.Context, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return mcp.Errorf("the server may not read this; tell the operator")
	}
	return nil
}

func newServer(o *server.Options) *server.Server {
	s := server.New("failures", "1.0.0", o)
	s.Add(
		server.Tool("withdraw", "Takes money.", withdraw),
		server.Tool("load", "Loads the accounts.", load),
		server.Tool("crash", "Crashes.", crash),
		server.Tool("refuse", "Refuses.", refuse),
		server.Tool("either", "Says what it can.", either),
	)
	return s
}

func main() {
	if err := stdio.Serve(context.Background(), newServer(nil)); err != nil {
		log.Fatal(err)
	}
}
