package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// A Completer suggests values for an argument of a prompt or a variable of a
// template. value is what has been typed; sofar holds the other arguments, as
// far as they are known. Suggestions must be authorized for the caller
// (SEC-COMP-1); the first 100 are sent.
type Completer func(ctx context.Context, value string, sofar map[string]string) ([]string, error)

// Choices makes a Completer of a fixed list: it suggests those that begin with
// what has been typed.
func Choices(values ...string) Completer {
	return func(_ context.Context, value string, _ map[string]string) ([]string, error) {
		var out []string
		for _, v := range values {
			if strings.HasPrefix(v, value) {
				out = append(out, v)
			}
		}
		return out, nil
	}
}

// A RawCompleter answers a completion as it was asked. The first 100 values of
// its result are sent.
type RawCompleter func(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error)

// completers are what completes the arguments of a feature.
type completers struct {
	byName map[string]Completer
	raw    RawCompleter // of the other arguments; nil: none
}

// any reports whether an argument can be completed.
func (k *completers) any() bool { return len(k.byName) > 0 || k.raw != nil }

// of is what completes one argument of the feature called ref, or nil.
func (k *completers) of(argument string, ref mcp.CompletionRef) RawCompleter {
	if complete := k.byName[argument]; complete != nil {
		return complete.raw()
	}
	if k.raw == nil {
		return nil
	}
	return func(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
		own := *p
		own.Ref = ref
		return k.raw(ctx, &own)
	}
}

// raw is f over the parameters of a request.
func (f Completer) raw() RawCompleter {
	return func(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
		var sofar map[string]string
		if p.Context != nil {
			sofar = p.Context.Arguments
		}
		values, err := f(ctx, p.Argument.Value, sofar)
		if err != nil {
			return nil, err
		}
		return &mcp.CompleteResult{Completion: mcp.Completion{Values: values, Total: new(int64(len(values)))}}, nil
	}
}

// complete serves completion/complete.
//
// spec 2026-07-28, server/utilities/completion: at most 100 values.
func (c *Call) complete(p *mcp.CompleteParams) (Result, error) {
	found, err := c.completers(&p.Ref)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(found.arguments, p.Argument.Name) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown argument %q: one of %q", clip(p.Argument.Name), found.arguments)
	}
	if over(len(p.Argument.Value), c.srv.limits.MaxArgument) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "argument %q is longer than %d bytes (Limits.MaxArgument)", p.Argument.Name, c.srv.limits.MaxArgument)
	}
	complete := found.complete.of(p.Argument.Name, found.ref)
	if complete == nil {
		return &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{}}}, nil
	}
	got, err := c.within(found.at, func(c *Call) (Result, error) { return complete(c, p) })
	res, ok := got.(*mcp.CompleteResult)
	if err != nil || !ok {
		return got, err
	}
	if res == nil {
		return nil, errors.New("the completer returned no result")
	}
	own := *res
	values := &own.Completion
	if values.HasMore = values.HasMore || len(values.Values) > mcp.MaxCompletions; values.Values == nil {
		values.Values = []string{}
	}
	values.Values = values.Values[:min(len(values.Values), mcp.MaxCompletions)]
	return &own, nil
}

// completing is what a completion refers to.
type completing struct {
	complete  *completers
	arguments []string
	at        []mountPoint
	ref       mcp.CompletionRef // as its own server knows it
}

// completers finds what a completion refers to.
func (c *Call) completers(ref *mcp.CompletionRef) (*completing, error) {
	switch ref.Type {
	case mcp.RefPrompt:
		p, ok := c.srv.allPrompts().byKey[ref.Name]
		if ok && c.seesOffered(p) {
			return &completing{&p.complete, p.names(), p.at, mcp.PromptRef(p.item.Name)}, c.granted(p.item.Scopes)
		}
		return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown prompt %q", clip(ref.Name))
	case mcp.RefResource:
		t, ok := c.srv.allTemplates().byKey[ref.URI]
		if ok && c.seesOffered(t) {
			return &completing{&t.complete, t.compiled.Variables(), t.at, mcp.ResourceRef(t.item.Name)}, c.granted(t.item.Scopes)
		}
		return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown resource template %q", clip(ref.URI))
	}
	return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown ref type %q: use %s or %s", clip(ref.Type), mcp.RefPrompt, mcp.RefResource)
}

// completes reports whether anything of the server completes.
func (s *Server) completes() bool {
	for _, p := range s.allPrompts().byKey {
		if p.complete.any() {
			return true
		}
	}
	for _, t := range s.allTemplates().byKey {
		if t.complete.any() {
			return true
		}
	}
	return false
}
