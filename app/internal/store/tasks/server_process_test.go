package tasks_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	store "github.com/parley-mcp/parley/app/internal/store/tasks"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// serveEnv tells the test binary to serve tools whose calls become tasks of a database,
// filesEnv in which folder its files are, and leaseEnv how long a lease is.
const (
	serveEnv = "PARLEY_TEST_SERVE"
	filesEnv = "PARLEY_TEST_FILES"
	leaseEnv = "PARLEY_TEST_LEASE"
)

// shutdownTime bounds the shutdown of a server process; none takes nearly as long, on a busy machine either.
const shutdownTime = 5 * time.Minute

// serve serves on a port of its own until standard input ends, which it also does when
// the test has ended in any way. What happens is printed, one event a line: see [event].
func serve(ctx context.Context, dsn, files string) (err error) {
	lease, err := time.ParseDuration(os.Getenv(leaseEnv))
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, dsn, &store.Options{Connections: 8})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	h := &handlers{files: files}
	s := server.New("tests", "1", &server.Options{ExposeErrors: true})
	s.Add(
		server.Tool("steady", "Asks and takes some time.", h.work),
		server.Tool("fragile", "Asks and takes some time.", h.work),
		server.Tool("gated", "Waits for a file.", h.gated),
		server.Tool("stubborn", "Waits for a file and ignores the end of its context.", h.stubborn),
		server.Tool("brittle", "Is stubborn, and not repeatable.", h.stubborn),
	)
	repeatable := tasks.Tool{Mode: tasks.Must, Repeatable: true}
	tasks.Enable(s, db, &tasks.Options{
		Tools:  map[string]tasks.Tool{"steady": repeatable, "gated": repeatable, "stubborn": repeatable},
		Others: tasks.Tool{Mode: tasks.Must},
		Lease:  lease, PollInterval: 200 * time.Millisecond, MaxAttempts: -1,
		MaxKept: -1, MaxAllKept: -1, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	s.Start()
	endpoint := streamable.NewHandler(s, nil)
	web := &http.Server{Handler: endpoint, ReadHeaderTimeout: time.Minute}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	say("listening", 0, listener.Addr())
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	_, _ = io.Copy(io.Discard, os.Stdin) // until its end, or what is the same here
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	err = errors.Join(endpoint.Shutdown(ctx), s.Shutdown(ctx), web.Close())
	if failure := <-failed; !errors.Is(failure, http.ErrServerClosed) {
		err = errors.Join(err, failure)
	}
	return err
}

// handlers are those of the tools. Each takes the number of its call, which no other call
// has, and holds a lock for it while it runs.
type handlers struct{ files string }

type job struct {
	N int `json:"n"`
}

func say(what string, n int, value any) {
	fmt.Printf("%s %d %d %q\n", what, n, os.Getpid(), fmt.Sprint(value)) // one write
}

// begin says that a handler has started. A conflict is that another one runs for the same
// call, in this or another process: the lock goes with the process that has it.
func (h *handlers) begin(ctx context.Context, n int) (end func(), err error) {
	f, err := os.OpenFile(filepath.Join(h.files, "lock"+strconv.Itoa(n)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	say("start", n, "")
	if err := lock(f); err != nil {
		say("conflict", n, err)
	}
	said := make(chan struct{})
	unfollow := context.AfterFunc(ctx, func() {
		defer close(said)
		say("stopped", n, context.Cause(ctx))
	})
	return func() {
		if !unfollow() {
			<-said
		}
		say("end", n, "")
		_ = f.Close() // it holds nothing
	}, nil
}

func done(n int) string { return fmt.Sprintf("done %d", n) }

// asks reports whether the call with a number asks something.
func asks(n int) bool { return n%2 == 0 }

type naming struct {
	Name string `json:"name"`
}

// work takes a ticket, says how far it is, takes 30 to 300 ms, and may ask.
func (h *handlers) work(ctx context.Context, in job) (string, error) {
	end, err := h.begin(ctx, in.N)
	if err != nil {
		return "", err
	}
	defer end()
	ticket, err := server.Once(ctx, "ticket", func() (string, error) { return rand.Text(), nil })
	if err != nil {
		return "", err
	}
	say("ticket", in.N, ticket)
	for step := range 3 {
		if err := server.Progress(ctx, float64(step+1), 3, "working"); err != nil {
			return "", err
		}
		select {
		case <-time.After(time.Duration(10+mathrand.IntN(90)) * time.Millisecond):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if step != 1 || !asks(in.N) {
			continue
		}
		who, err := server.Elicit[naming](ctx, strconv.Itoa(in.N))
		if err != nil {
			return "", err
		}
		if who.Value.Name != nameOf(strconv.Itoa(in.N)) {
			return "", mcp.Errorf("the answer is %q", who.Value.Name)
		}
	}
	// This is written under the lease: a run that has lost it learns so here at the latest.
	if _, err := server.Once(ctx, rand.Text(), func() (bool, error) { return true, nil }); err != nil {
		return "", err
	}
	return done(in.N), nil
}

// nameOf is the answer to a question.
func nameOf(question string) string { return "name of " + question }

// pass waits until the gate of a call is open, or its context ends.
func (h *handlers) pass(ctx context.Context, n int) error {
	for {
		if _, err := os.Stat(gate(h.files, n)); err == nil {
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// gate is the file that opens the gate of a call.
func gate(files string, n int) string { return filepath.Join(files, "gate"+strconv.Itoa(n)) }

func (h *handlers) gated(ctx context.Context, in job) (string, error) {
	end, err := h.begin(ctx, in.N)
	if err != nil {
		return "", err
	}
	defer end()
	if err := h.pass(ctx, in.N); err != nil {
		return "", err
	}
	return done(in.N), server.Progress(ctx, 1, 1, "passed")
}

// stubborn goes on when its context has ended, and does all that may write. Its result
// says which process it is of.
func (h *handlers) stubborn(ctx context.Context, in job) (string, error) {
	end, err := h.begin(ctx, in.N)
	if err != nil {
		return "", err
	}
	defer end()
	process := strconv.Itoa(os.Getpid())
	_ = server.Progress(ctx, 1, 3, "begun by "+process)
	if err := h.pass(context.WithoutCancel(ctx), in.N); err != nil {
		return "", err
	}
	_ = server.Progress(ctx, 2, 3, "passed by "+process)
	ticket, err := server.Once(ctx, "late", func() (string, error) { return process, nil })
	say("late", in.N, fmt.Sprint(ticket, " ", err))
	return fmt.Sprintf("done %d by %s", in.N, process), nil
}
