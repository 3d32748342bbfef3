package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// A ResultType is a type of results of an extension, in the revisions in which
// results have a type. Servers that offer the extension may answer with it in the
// place of the final result. It is not used for requests whose CallOptions.ResultTypes
// name it. Any other foreign type, and this one in answer to another method, is an
// [ErrResultType].
type ResultType struct {
	// Name is the resultType, for example "task". It is none of the core's, and
	// unique among the extensions of a client.
	Name string
	// Methods are the requests that may be answered with it, such as tools/call.
	Methods []string
	// Settle returns the final result of the request, which its caller, middleware
	// and observers get as if the server had given it, or the error of the request;
	// a *jsonrpc.Error for one that the server would have given. result is what the
	// server answered; it must not be written to.
	//
	// Settle may call r.Client() in ctx, have questions answered by Client.Answer, and
	// wait as long as ctx lasts: the request may be silent meanwhile, and
	// Options.MaxCallTime goes on, without the time that persons take. When ctx ends,
	// its cause is the error, as soon as Settle has returned, which it must. A panic
	// is an [ErrPanicked]. Nothing that is settled is cached or sent again.
	Settle func(ctx context.Context, r *Request, result mcp.RawValue) (mcp.RawValue, error)
}

// A foreignResult is a type of results with the extension that it belongs to.
type foreignResult struct {
	ResultType

	ext *Extension
}

// addResult adds a type of results of an extension.
func (x *extensions) addResult(e *Extension, t ResultType) error {
	switch {
	case t.Name == "", t.Name == mcp.ResultComplete, t.Name == mcp.ResultInputRequired:
		return fmt.Errorf("%q is no type of results of an extension", t.Name)
	case x.results[t.Name] != nil:
		return fmt.Errorf("result type %s exists already", t.Name)
	case len(t.Methods) == 0:
		return fmt.Errorf("result type %s: no Methods may be answered with it", t.Name)
	case t.Settle == nil:
		return fmt.Errorf("result type %s: Settle is missing", t.Name)
	}
	if x.results == nil {
		x.results = make(map[string]*foreignResult)
	}
	x.results[t.Name] = &foreignResult{t, e}
	return nil
}

// resultType is the type of a result: an absent one is "complete" (spec 2026-07-28,
// basic/index).
func resultType(result wire.Object) (string, error) {
	raw, ok := result.Member("resultType")
	switch {
	case !ok, string(raw) == plainComplete, raw[0] == 'n':
		return mcp.ResultComplete, nil
	case raw[0] != '"':
		return "", fmt.Errorf("%w: resultType is not a string", ErrResultType)
	}
	return wire.Text(raw), nil
}

// settleForeign has an extension turn an answer into one with the final result.
func (k *call) settleForeign(ctx context.Context, typ string, in *jsonrpc.Incoming) error {
	t := k.c.extensions.results[typ]
	switch {
	case t == nil:
		return fmt.Errorf("%w: %.64q", ErrResultType, typ)
	case !slices.Contains(t.Methods, k.method):
		// spec 2026-07-28, extensions/tasks: a task in answer to another request
		// MUST be taken as invalid.
		return fmt.Errorf("%w: %q is no answer to %s", ErrResultType, typ, k.method)
	case !t.ext.offered(k.c.known()):
		return fmt.Errorf("%w: %q is of the extension %q, which the server does not offer", ErrResultType, typ, t.ext.ID)
	}
	final, err := k.settleBy(ctx, t.ext, t.Settle, in)
	if err != nil {
		return fmt.Errorf("result of type %q: %w", typ, err)
	}
	switch became, err := resultType(final); {
	case err != nil:
		return err
	case became != mcp.ResultComplete:
		return fmt.Errorf("%w: %q came to another one, %.64q", ErrResultType, typ, became)
	}
	in.Result = final
	return nil
}
