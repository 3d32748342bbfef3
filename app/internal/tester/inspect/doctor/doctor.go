package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/lists"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport"
)

// clientName is what the doctor says it is.
const clientName = "parley-doctor"

// A Target is the server to examine.
type Target struct {
	// Name is what the program calls it.
	Name string
	// Dialer connects to it; Watch sees what its connections carry, and is nil where nothing does.
	Dialer transport.Dialer
	Watch  *Watch
	// Versions are the revisions to try, the newest first.
	Versions []string
}

// Options bound the examination. The zero value, and nil, give the defaults.
type Options struct {
	// Timeout is how long each request may take. Default: 10 s.
	Timeout time.Duration
	// Revision is how long the examination of one revision may take. Default: 2 min.
	Revision time.Duration
	// ConnectTimeout is how long the first answer may take. Default: 30 s.
	ConnectTimeout time.Duration
	// Lists bound the lists.
	Lists *lists.Limits
	// Logger is told what goes on. Default: none.
	Logger *slog.Logger
}

// An UnreachableError says that the server answered in no revision.
type UnreachableError struct {
	// Report has what was found all the same.
	Report *Report
	// Err is why the newest revision could not be used.
	Err error
}

// Error has the reason.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnreachableError) Unwrap() error { return e.Err }

// maxSilent is in how many revisions a server may be silent from the beginning.
const maxSilent = 2

// Examine examines a server. The error is an UnreachableError, or that of ctx.
func Examine(ctx context.Context, t Target, o *Options) (*Report, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	opts.Revision = cmp.Or(opts.Revision, 2*time.Minute)
	opts.ConnectTimeout = cmp.Or(opts.ConnectTimeout, 30*time.Second)
	if t.Watch == nil {
		t.Watch = &Watch{}
	}
	e := &examination{target: t, opts: opts, found: newCollector(), report: &Report{Server: t.Name}, dialects: dialects{}}
	var unreached error
	silent := 0
	for _, version := range t.Versions {
		err := e.revision(ctx, version)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		unreached = cmp.Or(unreached, err)
		if errors.Is(err, client.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
			silent++
		}
		if silent == maxSilent && e.report.spoken() == 0 {
			break
		}
	}
	e.oldDialects()
	e.compareEras(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := e.report
	r.Findings, r.More = e.found.findings(), e.found.more
	if r.spoken() == 0 {
		return r, &UnreachableError{r, cmp.Or(unreached, error(client.ErrUnsupportedVersion))}
	}
	return r, nil
}

// An examination is one run of Examine.
type examination struct {
	target Target
	opts   Options
	found  *collector
	report *Report
	offers []*offer // of the revisions that are spoken
	ids    int

	dialects dialects
}

// An offer is what a server offers in one revision.
type offer struct {
	version      string
	capabilities *mcp.ServerCapabilities
	tools        []*tool
	prompts      []*mcp.Prompt
	types        map[string]string   // MIME types of resources and templates, by URI
	listed       map[string][]string // the names or URIs of lists that were read to their end, by method
}

// revision examines the server in one revision. The error says that it could not be connected
// to.
func (e *examination) revision(ctx context.Context, version string) error {
	// Closing a connection is bounded by itself.
	limited, cancel := context.WithTimeout(ctx, e.opts.Revision)
	defer cancel()
	h := &holder{Dialer: e.target.Dialer}
	c, err := client.Connect(limited, h, contract.Declare(e.options(version)))
	state := Revision{Version: version, Spoken: err == nil}
	if err != nil {
		if !errors.Is(err, client.ErrUnsupportedVersion) && ctx.Err() == nil {
			e.found.add("MCP-CONN-008", "connecting", reasonOf(err), "", version)
		}
		e.noticed(version)
		e.report.Revisions = append(e.report.Revisions, state)
		return err
	}
	x := &subject{examination: e, c: c, holder: h, version: version, offer: &offer{version: version, capabilities: c.Capabilities(), types: make(map[string]string), listed: make(map[string][]string)}}
	x.examine(limited, &state)
	if limited.Err() != nil && ctx.Err() == nil {
		x.add("MCP-CONN-003", "the check", fmt.Sprintf("stopped after %v: the server answers slowly", e.opts.Revision))
	}
	e.leave(c, version)
	e.offers = append(e.offers, x.offer)
	e.report.Revisions = append(e.report.Revisions, state)
	return nil
}

// options are those of a client that speaks one revision, and declares nothing.
func (e *examination) options(version string) *client.Options {
	return &client.Options{
		Info: mcp.Implementation{Name: clientName, Version: "1"}, Versions: []string{version}, CallTimeout: e.opts.Timeout, MaxCallTime: e.opts.Timeout, ConnectTimeout: e.opts.ConnectTimeout,
		Retries: -1, Cache: client.NewCache(-1, -1), Extensions: []client.Extension{skills.Extension()}, Logger: e.opts.Logger,
	}
}

// leave closes a connection, and makes findings of what it has shown.
func (e *examination) leave(c *client.Client, version string) {
	if err := c.Close(); err != nil && e.opts.Logger != nil {
		e.opts.Logger.Warn("closing the connection", "error", err)
	}
	e.noticed(version)
}

// noticed makes findings of what the connections have shown.
func (e *examination) noticed(version string) {
	for _, s := range e.target.Watch.take() {
		e.found.add(s.code, s.where, s.reason, "", version)
	}
}

// A subject is the server in one revision.
type subject struct {
	*examination

	c       *client.Client
	holder  *holder
	version string
	offer   *offer
}

func (x *subject) add(id, where, reason string) { x.found.add(id, where, reason, "", x.version) }

// examine does all that is done in one revision.
func (x *subject) examine(ctx context.Context, state *Revision) {
	x.identity()
	for _, kind := range lists.All() {
		items := x.list(ctx, kind)
		switch kind {
		case lists.Tools:
			state.Tools = len(items)
			x.tools(ctx, items)
		case lists.Prompts:
			state.Prompts = len(items)
			x.prompts(items)
		case lists.Resources:
			state.Resources = len(items)
			x.resources(ctx, items)
		case lists.Templates:
			state.Templates = len(items)
			x.templates(items)
		}
	}
	x.skills(ctx)
	x.probe(ctx)
}

// reasonOf is the text of an error.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// An answerError is an error that the server answered with, in contrast to one of this side.
type answerError struct{ err *jsonrpc.Error }

func (e *answerError) Error() string { return e.err.Error() }
func (e *answerError) Unwrap() error { return e.err }

// ask asks for a page of a list.
func (x *subject) ask(ctx context.Context, method string, params any) (mcp.RawValue, error) {
	given := map[string]any{}
	if p, ok := params.(*mcp.ListParams); ok && p.Cursor != nil {
		given["cursor"] = *p.Cursor
	}
	in, err := x.raw(ctx, method, "", given)
	if err != nil {
		return nil, err
	}
	if in.Error != nil {
		return nil, &answerError{in.Error}
	}
	return in.Result.Raw(), nil
}

// failed makes a finding of a request that failed; unserved is the code for one that was
// answered with an error.
func (x *subject) failed(ctx context.Context, method, unserved string, err error) {
	var answer *answerError
	var loop *lists.LoopError
	var bound *lists.BoundError
	var shape *lists.ShapeError
	id := "MCP-CONN-001"
	switch {
	case ctx.Err() != nil:
		return // told once, at the end
	case errors.As(err, &loop):
		id = "MCP-PAGE-001"
	case errors.As(err, &bound):
		id = "MCP-PAGE-002"
	case errors.As(err, &shape):
		id = "MCP-PAGE-005"
	case errors.As(err, &answer):
		id = unserved
	case errors.Is(err, client.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		id = "MCP-CONN-003"
	case errors.Is(err, transport.ErrClosed), errors.Is(err, transport.ErrInterrupted):
		id = "MCP-CONN-002"
	}
	x.add(id, method, reasonOf(err))
}

// raw sends a request that a client would not send, and returns its answer.
func (x *subject) raw(ctx context.Context, method, target string, params map[string]any) (*jsonrpc.Incoming, error) {
	in, err := x.send(ctx, method, target, params)
	if err == nil || !errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrInterrupted) {
		return in, err
	}
	// The connection ended before: the client makes another one.
	if err := x.c.Ping(ctx); err != nil && !answered(err) {
		return nil, err
	}
	return x.send(ctx, method, target, params)
}

func answered(err error) bool { return errors.As(err, new(*jsonrpc.Error)) }

func (x *subject) send(ctx context.Context, method, target string, params map[string]any) (*jsonrpc.Incoming, error) {
	ctx, cancel := context.WithTimeout(ctx, x.opts.Timeout)
	defer cancel()
	x.ids++
	if params == nil {
		params = map[string]any{}
	}
	route := transport.Route{Carried: true, Version: x.version}
	if x.c.Modern() {
		params["_meta"] = map[string]any{
			mcp.MetaProtocolVersion: x.version, mcp.MetaClientCapabilities: map[string]any{},
			mcp.MetaClientInfo: map[string]any{"name": clientName, "version": "1"},
		}
		route.Method, route.Name = method, target
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	link := x.holder.last()
	if link == nil {
		return nil, transport.ErrClosed
	}
	return link.Do(ctx, &jsonrpc.Outgoing{ID: jsonrpc.StringID("doctor-" + strconv.Itoa(x.ids)), Method: method, Params: jsonrpc.JSON(mcp.RawValue(raw))}, route)
}

// decode reads an item of a list.
func decode(raw mcp.RawValue, into any) error { return strictjson.Unmarshal(raw, into) }
