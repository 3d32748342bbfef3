// Command payer pays an order at a shop whose connection may break at any
// moment, and does not pay it twice. See docs/guide/clients.md.
//
//	payer http://127.0.0.1:8080/mcp 17
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// An order is what both tools of the shop take.
type order struct {
	Order string `json:"order"`
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: payer URL ORDER")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, streamable.URL(os.Args[1]), &client.Options{
		Middleware: []client.Middleware{logged},
		Logger:     slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := pay(ctx, c, order{os.Args[2]}); err != nil {
		log.Print(explain(err))
	}
}

// logged is middleware: it writes a line for each request.
func logged(next client.Func) client.Func {
	return func(ctx context.Context, r *client.Request) (client.Result, error) {
		start := time.Now()
		result, err := next(ctx, r)
		slog.InfoContext(ctx, r.Method(), "target", r.Target(), "attempts", r.Attempts(), "took", time.Since(start), "error", err)
		return result, err
	}
}

// pay pays an order. If the connection breaks under the call, it looks whether
// the order is paid before it pays again.
func pay(ctx context.Context, c *client.Client, o order) error {
	_, err := client.Call[mcp.None](ctx, c, "pay", o)
	if !errors.Is(err, transport.ErrInterrupted) {
		return err
	}
	paid, lookErr := client.Call[bool](ctx, c, "is_paid", o) // over another connection
	switch {
	case lookErr != nil:
		return errors.Join(err, lookErr) // it might be paid: check by hand
	case paid:
		return nil
	}
	_, err = client.Call[mcp.None](ctx, c, "pay", o)
	return err
}

// explain says of an error what it means for the order.
func explain(err error) string {
	if busy, ok := errors.AsType[*client.RetryError](err); ok {
		return fmt.Sprintf("not paid: the shop is busy, try again in %v", busy.RetryAfter)
	}
	if failed, ok := errors.AsType[*client.ToolError](err); ok {
		return "not paid: " + failed.Error()
	}
	switch {
	case errors.Is(err, transport.ErrInterrupted), errors.Is(err, client.ErrTimeout):
		return "it may have been paid: " + err.Error()
	case errors.Is(err, transport.ErrClosed):
		return "not paid, nothing was sent: " + err.Error()
	default:
		return "not paid: " + err.Error()
	}
}
