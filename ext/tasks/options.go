package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/parley-mcp/parley/server"
)

// A Mode says when the calls of a tool become tasks. Only clients that declared the
// extension with the request get tasks.
type Mode uint8

// The modes.
const (
	// Never: calls are answered as if there were no tasks.
	Never Mode = iota
	// May: calls become tasks for clients that know tasks, and are answered as
	// ordinary ones for others.
	May
	// Must: calls become tasks, and other clients are refused with "missing client
	// capability" (-32021).
	Must
)

// A Tool says how calls of one tool become tasks.
type Tool struct {
	// Mode says whether they do. Default Never.
	Mode Mode
	// After is how long a call of a tool with the mode May runs as an ordinary one
	// first: it becomes a task when it takes longer, or asks its client something. Its log
	// messages do not reach the client.
	// Default: it becomes a task at once.
	After time.Duration
	// Begins says that the handler calls [Begin], and that the call is an ordinary one
	// until then. After is then ignored. Default: the handler does not.
	Begins bool
	// Repeatable says that after a crash the handler may be run again from the top,
	// by any process, with the answers and results of server.Once that it had: what it
	// does outside of Once is then done again. Default: a task whose process crashed
	// has failed, and is never run again.
	Repeatable bool
	// TTL and PollInterval take the place of those of Options.
	TTL, PollInterval time.Duration
}

// Options are the optional parts of Enable. The zero value, and nil, work, but make no
// task of any call.
type Options struct {
	// Tools says how calls of tools become tasks, by name. Default none.
	Tools map[string]Tool
	// Others is for the tools that are not among Tools. Default: Never.
	Others Tool
	// TTL is how long a task is kept after its creation, whether it has ended or not;
	// negative is without end. Default 24 hours, which is also how long a detached call
	// may run (server.Limits.MaxDetachedTime).
	TTL time.Duration
	// PollInterval is what clients are told to wait between two looks at a task.
	// Default 1 second.
	PollInterval time.Duration
	// MaxKept bounds the tasks of one caller that are kept, ended ones too, and those of
	// the anonymous callers of one address tenfold; negative is without bound. How many
	// run at once is server.Limits.MaxDetached. Beyond either, a call that may become a
	// task stays an ordinary one, unless its handler asks (After) or has begun one; the
	// error is a [*LimitError]. Default 1,000.
	MaxKept int
	// MaxAllKept bounds the tasks that are kept in all; negative is without bound.
	// Anonymous callers get no more when half of it is reached. Default 100,000.
	MaxAllKept int
	// MaxResult bounds the size of a result, and of an error, in bytes; negative is
	// without bound. A task with a longer one has failed, with a [*SizeError] in the log.
	// Default 1 MiB.
	MaxResult int
	// MaxQuestions bounds the questions of one task; negative is without bound. One more
	// fails with a [*SizeError]. Default 100.
	MaxQuestions int
	// MaxAskBytes bounds the size of what one task asks, and of the answers that one
	// request brings, in bytes each; negative is without bound. Default 1 MiB.
	MaxAskBytes int
	// Lease is how long a task belongs to its process without a sign of life, in a
	// store that survives the process: so long after a crash it is taken by another
	// one. At least 100 milliseconds. Default 1 minute.
	Lease time.Duration
	// MaxAttempts bounds how often a repeatable task loses its process by a crash, so that
	// one that ends its process does not do so for ever; negative is without bound.
	// Default 10.
	MaxAttempts int
	// Values adds values to the context of a handler that is run again in another process,
	// such as the user that middleware found; c has the caller. It is derived from ctx. In
	// the process of the request the handler has those of the request. Default: none.
	Values func(ctx context.Context, c *server.Call) context.Context
	// Log gets what goes wrong in the background. Default slog.Default().
	Log *slog.Logger
}

const (
	anonymousFactor = 10 // ruling 30: anonymous callers of one address are many people
	minLease        = 100 * time.Millisecond
	endless         = 365 * 24 * time.Hour // the lease of a task that does not survive its process
)

func (o *Options) filled() (Options, error) {
	var f Options
	if o != nil {
		f = *o
	}
	if f.TTL = cmp.Or(f.TTL, 24*time.Hour); f.TTL < 0 {
		f.TTL = 0
	}
	f.PollInterval = cmp.Or(f.PollInterval, time.Second)
	f.Lease = cmp.Or(f.Lease, time.Minute)
	f.MaxKept = bound(f.MaxKept, 1000)
	f.MaxAllKept = bound(f.MaxAllKept, 100_000)
	f.MaxResult = bound(f.MaxResult, 1<<20)
	f.MaxQuestions = bound(f.MaxQuestions, 100)
	f.MaxAskBytes = bound(f.MaxAskBytes, 1<<20)
	f.MaxAttempts = bound(f.MaxAttempts, 10)
	if f.Log == nil {
		f.Log = slog.Default()
	}
	if f.Lease < minLease {
		return f, fmt.Errorf("Options.Lease is %v; it is at least %v", f.Lease, minLease)
	}
	if f.PollInterval < time.Millisecond {
		return f, fmt.Errorf("Options.PollInterval is %v; it is at least 1ms", f.PollInterval)
	}
	tools := make(map[string]Tool, len(f.Tools))
	for name, tool := range f.Tools {
		own, err := tool.filled(&f)
		if err != nil {
			return f, fmt.Errorf("Options.Tools[%q]: %w", name, err)
		}
		tools[name] = own
	}
	f.Tools = tools
	var err error
	if f.Others, err = f.Others.filled(&f); err != nil {
		return f, fmt.Errorf("Options.Others: %w", err)
	}
	return f, nil
}

// bound is an option that bounds a number: 0 has the default, negative means none,
// which is then 0.
func bound(n, otherwise int) int {
	return max(cmp.Or(n, otherwise), 0)
}

func (t Tool) filled(o *Options) (Tool, error) {
	switch {
	case t.Mode > Must:
		return t, fmt.Errorf("there is no mode %d", t.Mode)
	case t.After < 0:
		return t, fmt.Errorf("its After is negative, %v", t.After)
	case t.After > 0 && t.Mode != May:
		return t, errors.New("its After is for the mode May")
	}
	if t.TTL = cmp.Or(t.TTL, o.TTL); t.TTL < 0 {
		t.TTL = 0
	}
	if t.PollInterval = cmp.Or(t.PollInterval, o.PollInterval); t.PollInterval < time.Millisecond {
		return t, fmt.Errorf("its PollInterval is %v; it is at least 1ms", t.PollInterval)
	}
	return t, nil
}

// over reports whether n is more than a bound, of which 0 is none.
func over(n, most int) bool { return most > 0 && n > most }

// A SizeError says that a task has or asks more than it may.
type SizeError struct {
	// What is too much: "result", "questions" or "bytes of questions".
	What string
	// Limit is the option: "MaxResult", "MaxQuestions" or "MaxAskBytes".
	Limit string
	// Most is its value.
	Most int
}

// Error says what is too much, and what helps.
func (e *SizeError) Error() string {
	if e.What == "result" {
		return fmt.Sprintf("the result of the task has more than %d bytes (tasks.Options.%s); give a link to a resource instead", e.Most, e.Limit)
	}
	return fmt.Sprintf("a task asks more than %d %s (tasks.Options.%s)", e.Most, e.What, e.Limit)
}
