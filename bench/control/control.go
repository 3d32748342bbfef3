// Package control is the channel between the driver and a process that it
// measures: lines of JSON over two pipes of their own, so that standard input
// and output stay free for the protocol that is measured.
//
// The child reads requests from file descriptor 3 and writes to 4. Its first
// line is a [Hello]; then it answers each [Request] with one line, and ends when
// the channel does.
package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// The two ends that the driver passes to a child.
const (
	requestsFD = 3
	answersFD  = 4
)

// Operations of a [Request].
const (
	OpStats = "stats" // answered with [Stats]
	OpGC    = "gc"    // collects garbage first, then the same
	OpRun   = "run"   // answered with [Ran]; for programs that measure themselves
)

// A Hello is the first line of a child: it is ready.
type Hello struct {
	// Addr is the host and port it listens on. None over stdio.
	Addr string `json:"addr,omitzero"`
}

// A Request is what the driver asks of a child.
type Request struct {
	Op string `json:"op"`
	// Calls and Concurrency belong to OpRun: how many calls to make, and how
	// many of them at once.
	Calls       int `json:"calls,omitzero"`
	Concurrency int `json:"concurrency,omitzero"`
}

// Stats are what a process has used since it began, and what it holds. Zero
// means unknown, but for CPU: runtimes other than Go's count no allocations.
type Stats struct {
	CPU        int64 `json:"cpu"`                 // user and system, in microseconds
	Mallocs    int64 `json:"mallocs,omitzero"`    // objects allocated
	TotalAlloc int64 `json:"totalAlloc,omitzero"` // bytes allocated
	Heap       int64 `json:"heap,omitzero"`       // bytes of live and not yet swept objects
	Stack      int64 `json:"stack,omitzero"`      // bytes of stacks
	Goroutines int64 `json:"goroutines,omitzero"`
}

// A Ran is what OpRun took, all calls together.
type Ran struct {
	Elapsed time.Duration `json:"elapsed"` // nanoseconds
	CPU     int64         `json:"cpu"`     // microseconds
	Mallocs int64         `json:"mallocs,omitzero"`
	Bytes   int64         `json:"bytes,omitzero"`
}

// An answer is what a child says to a request: one of the pointers, or an error.
type answer struct {
	Stats *Stats `json:"stats,omitempty"`
	Ran   *Ran   `json:"ran,omitempty"`
	Error string `json:"error,omitempty"`
}

// A Runner makes the calls of OpRun. It returns an error unless each of them
// was answered as expected.
type Runner func(calls, concurrency int) error

// Serve says hello and answers requests until the driver is gone. addr is where
// this process listens, if it does; run may be nil.
func Serve(addr string, run Runner) error {
	// Programs that this one starts get none of it.
	syscall.CloseOnExec(requestsFD)
	syscall.CloseOnExec(answersFD)
	in, out := os.NewFile(requestsFD, "requests"), os.NewFile(answersFD, "answers")
	if in == nil || out == nil {
		return errors.New("no control channel: this program is started by the driver")
	}
	defer func() { _ = out.Close() }()
	return serve(in, out, addr, run)
}

func serve(in io.Reader, out io.Writer, addr string, run Runner) error {
	enc, dec := json.NewEncoder(out), json.NewDecoder(bufio.NewReader(in))
	if err := enc.Encode(Hello{Addr: addr}); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	for {
		var req Request
		switch err := dec.Decode(&req); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("control: %w", err)
		}
		if err := enc.Encode(respond(req, run)); err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}
}

func respond(req Request, run Runner) answer {
	switch {
	case req.Op == OpGC || req.Op == OpStats:
		if req.Op == OpGC {
			runtime.GC()
			debug.FreeOSMemory()
		}
		s, err := Used()
		return answered(answer{Stats: &s}, err)
	case req.Op == OpRun && run != nil:
		r, err := measure(req, run)
		return answered(answer{Ran: &r}, err)
	}
	return answer{Error: fmt.Sprintf("no operation %q here", req.Op)}
}

func answered(a answer, err error) answer {
	if err != nil {
		return answer{Error: err.Error()}
	}
	return a
}

func measure(req Request, run Runner) (Ran, error) {
	before, err := Used()
	if err != nil {
		return Ran{}, err
	}
	start := time.Now()
	if err := run(req.Calls, req.Concurrency); err != nil {
		return Ran{}, err
	}
	elapsed := time.Since(start)
	after, err := Used()
	return Ran{
		Elapsed: elapsed,
		CPU:     after.CPU - before.CPU,
		Mallocs: after.Mallocs - before.Mallocs,
		Bytes:   after.TotalAlloc - before.TotalAlloc,
	}, err
}

// Used tells what this process has used so far.
func Used() (Stats, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return Stats{}, fmt.Errorf("control: usage: %w", err)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return Stats{
		CPU:        (usage.Utime.Nano() + usage.Stime.Nano()) / 1000,
		Mallocs:    int64(mem.Mallocs),
		TotalAlloc: int64(mem.TotalAlloc),
		Heap:       int64(mem.HeapAlloc),
		Stack:      int64(mem.StackInuse),
		Goroutines: int64(runtime.NumGoroutine()),
	}, nil
}
