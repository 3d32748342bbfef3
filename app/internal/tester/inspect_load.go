package tester

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/load"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// inspectLoad are the flags of the command inspect about a load, which the MCP Inspector has too,
// but for yesRemote.
type inspectLoad struct {
	on          bool
	concurrency int
	duration    string
	requests    int64
	rate        float64
	yesRemote   bool
}

// The names of the flags that go with --load.
const (
	loadConcurrency = "load-concurrency"
	loadDuration    = "load-duration"
	loadRequests    = "load-requests"
	loadRate        = "load-rate"
	yesRemote       = "yes-remote"
)

func (f *inspectLoad) add(set *pflag.FlagSet) {
	set.BoolVar(&f.on, "load", false, "call the tool repeatedly, many calls at once, and print the latencies")
	set.IntVar(&f.concurrency, loadConcurrency, inspect.DefaultLoadConcurrency, "with --load, `NUMBER` of concurrent calls")
	set.StringVar(&f.duration, loadDuration, "", "with --load, start calls for this `TIME`, in seconds or as in 1m (default 10, without --load-requests)")
	set.Int64Var(&f.requests, loadRequests, 0, "with --load, stop after this `NUMBER` of calls (default: no limit)")
	set.Float64Var(&f.rate, loadRate, 0, "with --load, start at most this `NUMBER` of calls per second (default: as many as possible)")
	set.BoolVar(&f.yesRemote, yesRemote, false, "with --load, also call a server that is not on this machine")
}

// options makes the options of a load. It refuses what goes without one, and not with one.
func (f *inspectLoad) options(set *pflag.FlagSet, method string) (load.Options, error) {
	o := load.Options{Clients: f.concurrency, Rate: f.rate, Requests: f.requests, Kind: kindWithMessage}
	if !f.on {
		for _, flag := range []string{loadConcurrency, loadDuration, loadRequests, loadRate, yesRemote} {
			if set.Changed(flag) {
				return o, kit.Usagef("--%s requires --load", flag)
			}
		}
		return o, nil
	}
	if method != mcp.MethodToolsCall {
		return o, kit.Usagef("--load requires --method tools/call")
	}
	for _, flag := range []string{"app-info", "output", "output-format", "task"} {
		if set.Changed(flag) {
			return o, kit.Usagef("--%s cannot be used with --load, which prints a summary", flag)
		}
	}
	var ok bool
	switch o.Duration, ok = parseSeconds(f.duration); {
	case !ok:
		return o, kit.Usagef("--load-duration %q: must be a number of seconds above 0, or a time such as 1m", f.duration)
	case set.Changed(loadConcurrency) && f.concurrency < 1:
		return o, kit.Usagef("--load-concurrency %d: must be at least 1", f.concurrency)
	case set.Changed(loadRequests) && f.requests < 1:
		return o, kit.Usagef("--load-requests %d: must be at least 1", f.requests)
	case set.Changed(loadRate) && !(f.rate > 0): // not a number is neither
		return o, kit.Usagef("--load-rate %v: must be above 0", f.rate)
	}
	if err := o.Check(); err != nil {
		return o, kit.Usagef("--load: %w", err)
	}
	return o, nil
}

// parseSeconds reads a time: a number of seconds, or with a unit. None is 0.
func parseSeconds(text string) (time.Duration, bool) {
	if text == "" {
		return 0, true
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(s * float64(time.Second)), s >= 1e-9 && s < math.MaxInt64/1e9
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}

// maxFailure bounds the text of a failure, in bytes.
const maxFailure = 1 << 10

// kindWithMessage is the kind of an error of a call, with what the server answered, but for the
// reference to one entry of its log.
func kindWithMessage(err error) string {
	kind := kindOfError(err)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && kind == fmt.Sprintf("error %d", e.Code) {
		said := connect.WithoutReference(e.Message)
		return kind + ": " + kit.Shorten(strings.ToValidUTF8(said, "\uFFFD"), maxFailure)
	}
	return kind
}

// loadInspected calls a tool as the flags of a load say, and writes the summary.
func (in *inspector) loadInspected(ctx context.Context, flags *inspectFlags, t *inspect.Target, server *host.Server, args *inspect.Args, o load.Options) error {
	if err := remoteLoad(server, flags.load.yesRemote); err != nil {
		return err
	}
	defer collectLess()()
	summary, err := t.Load(ctx, args, o)
	if err != nil {
		return err
	}
	raw, err := strictjson.Marshal(summary)
	if err != nil {
		return inspect.Internal(err)
	}
	if err := in.printOutcome(flags, mcp.MethodToolsCall, &inspect.Outcome{Result: slices.Clone(raw)}); err != nil {
		return err
	}
	if summary.Interrupted {
		return kit.ErrInterrupted
	}
	return nil
}
