// Package calling is what the programs that measure a client have in common:
// their flags, and making calls when the driver says so.
package calling

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/bench/control"
	"github.com/parley-mcp/parley/bench/fixture"
)

const connectTime = 20 * time.Second

// A Target is the server to connect to: one of URL and Command.
type Target struct {
	URL     string
	Command string // a program, to be started with -stdio
	Version string // the revision to speak
}

// A Client makes calls, and is closed once no more are made.
type Client struct {
	Run   control.Runner
	Close func() error
}

// Main connects to the target that the command line names and makes calls until
// the driver is gone.
func Main(connect func(ctx context.Context, t Target) (*Client, error)) {
	if err := run(connect); err != nil {
		fmt.Fprintln(os.Stderr, os.Args[0]+":", err)
		os.Exit(1) // it stands for the mains
	}
}

func run(connect func(ctx context.Context, t Target) (*Client, error)) error {
	var t Target
	flag.StringVar(&t.URL, "http", "", "the `URL` of the target")
	flag.StringVar(&t.Command, "stdio", "", "the target, a `program`")
	legacy := flag.Bool("legacy", false, "speak "+fixture.Legacy)
	flag.Parse()
	if (t.URL == "") == (t.Command == "") {
		return errors.New("one of -http and -stdio")
	}
	t.Version = fixture.Modern
	if *legacy {
		t.Version = fixture.Legacy
	}
	// The channel to the driver is not for a target that this process starts.
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	c, err := connect(ctx, t)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return errors.Join(control.Serve("", c.Run), c.Close())
}

// Each makes calls one by one, in as many goroutines as the driver wants.
func Each(call func(ctx context.Context) error) control.Runner {
	return func(calls, concurrency int) error {
		// An error ends the calls of all.
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		var wg sync.WaitGroup
		for i := range concurrency {
			share := calls / concurrency
			if i < calls%concurrency {
				share++
			}
			wg.Go(func() {
				for range share {
					if ctx.Err() != nil {
						return
					}
					if err := call(ctx); err != nil {
						cancel(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return context.Cause(ctx)
	}
}

// Check says what is wrong with the text of an answer, if anything is.
func Check(text string) error {
	if text != fixture.Text {
		return fmt.Errorf("an answer says %.100q", text)
	}
	return nil
}

// HTTP is how all clients reach their target: as by default, but that
// connections of concurrent calls are kept.
func HTTP() *http.Client {
	t := &http.Transport{MaxIdleConnsPerHost: 256}
	return &http.Client{Transport: t}
}
