package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// An Addition is what an extension adds to the params of requests of the core, and what
// it makes of their answers, if the server offers the extension. It is for extensions
// that a client asks for by a member of params, as for a task in [CoreTasks].
type Addition struct {
	// Methods are the requests, such as tools/call. In one revision one Addition is for
	// a method.
	Methods []string
	// Revisions are those in which it is used. Default: Stateless.
	Revisions Revisions
	// Members returns what is added to the params of a request, or nothing: then the
	// request goes as it is, and Settle is not called. It is called after the middleware,
	// when there is a connection, and once unless the request goes to a server of another
	// revision in the end. It may call r.Client() in ctx. An error is that of the request,
	// of which nothing is sent; so is a member that the params have already.
	Members func(ctx context.Context, r *Request) (map[string]mcp.RawValue, error)
	// Settle returns the final result of a request to which something was added, as
	// ResultType.Settle does, with the same limits. It is not called if the answer is an
	// error, and in revisions in which results have a type not for other results than
	// complete ones.
	Settle func(ctx context.Context, r *Request, result mcp.RawValue) (mcp.RawValue, error)
}

// An addition is an Addition with the extension that it belongs to.
type addition struct {
	Addition

	ext *Extension
}

// addAddition adds an Addition of an extension.
func (x *extensions) addAddition(e *Extension, a Addition) error {
	switch {
	case len(a.Methods) == 0:
		return errors.New("an addition has no Methods")
	case a.Members == nil || a.Settle == nil:
		return fmt.Errorf("the addition to %s: Members or Settle is missing", a.Methods[0])
	}
	for _, method := range a.Methods {
		if _, core := mcp.Lookup(method); !core {
			return fmt.Errorf("an addition to %q, which is no request of the core", method)
		}
		for _, other := range x.additions {
			if slices.Contains(other.Methods, method) && other.Revisions.overlap(a.Revisions) {
				return fmt.Errorf("an addition to %s exists already", method)
			}
		}
	}
	x.additions = append(x.additions, &addition{a, e})
	return nil
}

// added is what extensions added to a request for a revision.
type added struct {
	facts   *revision.Facts
	by      *addition // nil: nothing
	members map[string]mcp.RawValue
}

// noAddition is nothing, for clients without additions.
var noAddition = new(added)

// extend has the extension add to the request what belongs there in this session.
func (k *call) extend(s *session) error {
	if len(k.c.extensions.additions) == 0 {
		k.added = noAddition
		return nil
	}
	if k.added != nil && k.added.facts == s.facts {
		return nil
	}
	own := &added{facts: s.facts}
	for _, a := range k.c.extensions.additions {
		if !slices.Contains(a.Methods, k.method) || !a.Revisions.include(s.facts) || !a.ext.offered(s) {
			continue
		}
		err := k.c.guarded("Members of "+a.ext.ID, func() (err error) {
			own.members, err = a.Members(k.ctx, k.request())
			return err
		})
		if err == nil && len(own.members) > 0 {
			own.by, err = a, k.apart(own.members)
		}
		if err != nil {
			return fmt.Errorf("extension %s: %w", a.ext.ID, err)
		}
		k.timer.Progress()
	}
	k.added = own
	return nil
}

// apart refuses members that params have already, or that are not for extensions.
func (k *call) apart(members map[string]mcp.RawValue) error {
	raw, err := wire.Marshal(k.request().Params())
	if err != nil {
		return err
	}
	there, _ := wire.ParseObject(raw, wire.Limits{}) // null has no members
	for name, value := range members {
		if _, twice := there.Member(name); twice || slices.Contains(protocolMembers, name) {
			return fmt.Errorf("the member %q of params cannot be added: it is there, or is set by the client", name)
		}
		if err := wire.Valid(value, wire.Limits{}); err != nil {
			return fmt.Errorf("the member %q of params: %w", name, err)
		}
	}
	return nil
}

// protocolMembers are members of params that only the protocol adds.
var protocolMembers = []string{"_meta", "inputResponses", "requestState"}

// settleAdded has the extension that has added to the request settle the answer.
func (k *call) settleAdded(in *jsonrpc.Incoming) error {
	if k.added == nil || k.added.by == nil || k.settled {
		return nil
	}
	by := k.added.by
	final, err := k.settleBy(k.ctx, by.ext, by.Settle, in)
	if err != nil {
		return fmt.Errorf("extension %s: %w", by.ext.ID, err)
	}
	in.Result = final
	return nil
}

// settleBy has an extension make the final result of an answer.
func (k *call) settleBy(ctx context.Context, e *Extension, settle func(context.Context, *Request, mcp.RawValue) (mcp.RawValue, error), in *jsonrpc.Incoming) (wire.Object, error) {
	k.settled = true
	k.timer.AllowIdle()
	var raw mcp.RawValue
	err := k.c.guarded("Settle of "+e.ID, func() (err error) {
		raw, err = settle(ctx, k.request(), in.Result.Raw())
		return err
	})
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrPanicked) {
			err = context.Cause(ctx)
		}
		return wire.Object{}, err
	}
	final, err := wire.ParseObject(raw, wire.Limits{})
	if err != nil {
		return wire.Object{}, fmt.Errorf("what it came to: %w: %w", ErrMalformed, err)
	}
	return final, nil
}
