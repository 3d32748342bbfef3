package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// maxRestarts is how often a list is begun anew because a cursor went stale.
const maxRestarts = 2

// A listing says how to page through one kind of list: R is a page, T an item.
type listing[R, T any] struct {
	method string
	member string                                      // of the result
	items  func(*R) ([]T, *string)                     // the items and the next cursor
	key    func(*T) string                             // what identifies an item
	usable func(ctx context.Context, i int, t *T) bool // of the i-th item of a page, -1 if that is not known; nil: all are
}

// Tools lists the server's tools, page by page as the loop goes on. If a schema cannot be used (it is
// missing, of an unknown dialect, not a schema, or beyond bounds), the tool is listed and can be called, and
// arguments or results are not checked. If a header annotation is wrong and the transport has headers, the
// tool is left out. Each is a [Problem]. An error ends the list.
func (c *Client) Tools(ctx context.Context) iter.Seq2[*mcp.Tool, error] {
	return pages(ctx, c, &listing[mcp.ListToolsResult, mcp.Tool]{
		method: mcp.MethodToolsList,
		member: "tools",
		items:  func(r *mcp.ListToolsResult) ([]mcp.Tool, *string) { return r.Tools, r.NextCursor },
		key:    func(t *mcp.Tool) string { return t.Name },
		usable: c.usableTool,
	})
}

// Resources lists the server's resources, as [Client.Tools] does tools.
func (c *Client) Resources(ctx context.Context) iter.Seq2[*mcp.Resource, error] {
	return pages(ctx, c, &listing[mcp.ListResourcesResult, mcp.Resource]{
		method: mcp.MethodResourcesList,
		member: "resources",
		items:  func(r *mcp.ListResourcesResult) ([]mcp.Resource, *string) { return r.Resources, r.NextCursor },
		key:    func(r *mcp.Resource) string { return r.URI },
	})
}

// ResourceTemplates lists the server's resource templates.
func (c *Client) ResourceTemplates(ctx context.Context) iter.Seq2[*mcp.ResourceTemplate, error] {
	return pages(ctx, c, &listing[mcp.ListResourceTemplatesResult, mcp.ResourceTemplate]{
		method: mcp.MethodResourcesTemplates,
		member: "resourceTemplates",
		items: func(r *mcp.ListResourceTemplatesResult) ([]mcp.ResourceTemplate, *string) {
			return r.ResourceTemplates, r.NextCursor
		},
		key: func(t *mcp.ResourceTemplate) string { return t.URITemplate },
	})
}

// Prompts lists the server's prompts.
func (c *Client) Prompts(ctx context.Context) iter.Seq2[*mcp.Prompt, error] {
	return pages(ctx, c, &listing[mcp.ListPromptsResult, mcp.Prompt]{
		method: mcp.MethodPromptsList,
		member: "prompts",
		items:  func(r *mcp.ListPromptsResult) ([]mcp.Prompt, *string) { return r.Prompts, r.NextCursor },
		key:    func(p *mcp.Prompt) string { return p.Name },
	})
}

// Tool returns the tool called name, or [ErrNoTool].
func (c *Client) Tool(ctx context.Context, name string) (*mcp.Tool, error) {
	for t, err := range c.Tools(ctx) {
		if err != nil {
			return nil, err
		}
		if t.Name == name {
			return t, nil
		}
	}
	if e := c.tools.lookup(name); e != nil && e.err != nil {
		return nil, fmt.Errorf("tool %q: %w: %w", name, ErrNoTool, e.err)
	}
	return nil, fmt.Errorf("tool %q: %w", name, ErrNoTool)
}

// routes says whether arguments are repeated in headers: the transport must have
// them and the revision must know of it.
func (c *Client) routes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.routed && c.last.facts.RouteHeaders
}

// errEnough says that the loop was left.
var errEnough = errors.New("enough")

// pages is the loop over a list, which is refused if it is longer than MaxItems. A cursor that was already
// sent ends the list (ruling 39). If the server does not know a cursor any more, all pages are dropped and
// the list begins again, without the items that were given already (ruling 21); if that happens again and
// again, the list ends.
func pages[R, T any](ctx context.Context, c *Client, l *listing[R, T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		given := make(map[string]bool)
		var err error
		for try := 0; ; try++ {
			err = onePass(ctx, c, l, given, yield)
			var refusal *jsonrpc.Error
			var stale *staleCursorError
			if !errors.As(err, &stale) || !errors.As(err, &refusal) {
				break
			}
			if try == maxRestarts {
				err = nil
				c.Report(ctx, &Problem{Method: l.method, Place: "/nextCursor", Effect: Incomplete, Why: fmt.Sprintf("the server refuses its own cursors; the list is incomplete: %v", refusal)})
				break
			}
			c.opts.Cache.drop(c.server, l.method, "")
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// A staleCursorError says that the server does not know a cursor any more.
type staleCursorError struct{ err error }

func (e *staleCursorError) Error() string { return e.err.Error() }
func (e *staleCursorError) Unwrap() error { return e.err }

// A pass is one way through a list from its beginning.
type pass[R, T any] struct {
	c     *Client
	l     *listing[R, T]
	given map[string]bool // in this pass and earlier ones
	here  map[string]bool // in this pass
	yield func(*T, error) bool
	items int
	bytes int
}

// onePass goes through a list from its beginning, leaves out what was given
// already, and notes what it gives.
func onePass[R, T any](ctx context.Context, c *Client, l *listing[R, T], given map[string]bool, yield func(*T, error) bool) error {
	before, whole := c.problems.forget(l.method), false
	defer func() {
		if !whole {
			c.problems.restore(before)
		}
	}()
	s := &pass[R, T]{c: c, l: l, given: given, here: make(map[string]bool), yield: yield}
	seen := make(map[string]bool) // the cursors
	var cursor *string
	for {
		p, err := onePage(ctx, c, l, cursor)
		if err != nil {
			return err
		}
		circle := p.next != nil && seen[*p.next]
		if err := s.page(ctx, p, circle); err != nil {
			return err
		}
		switch whole = circle || p.next == nil; {
		case circle:
			c.Report(ctx, &Problem{Method: l.method, Place: "/nextCursor", Effect: Incomplete, Why: "the same cursor was sent before; the list ends with this page"})
			return nil
		case whole:
			return nil
		case len(seen) > c.opts.MaxItems:
			return fmt.Errorf("%s: %w: more than %d pages", l.method, ErrPages, c.opts.MaxItems)
		}
		seen[*p.next] = true
		cursor = p.next
	}
}

// page gives the items of a page. If its cursor leads back, the page can be one that was read before.
func (s *pass[R, T]) page(ctx context.Context, p *page[T], circle bool) error {
	if s.bytes += p.size; s.bytes > s.c.opts.MaxListBytes {
		return fmt.Errorf("%s: %w: more than %d bytes", s.l.method, ErrPages, s.c.opts.MaxListBytes)
	}
	for i := range p.items {
		if s.items++; s.items > s.c.opts.MaxItems {
			return fmt.Errorf("%s: %w: more than %d items", s.l.method, ErrPages, s.c.opts.MaxItems)
		}
		item := &p.items[i]
		if p.mended { // the items have other places now
			i = -1
		}
		key := s.l.key(item)
		if wrong := wrongKey(key, s.here[key]); wrong != "" {
			if !circle || key == "" { // the items of a page that was read before are here already
				s.c.Report(ctx, &Problem{Method: s.l.method, Subject: key, Place: place(s.l.member, i), Effect: Omitted, Why: wrong})
			}
			continue
		}
		s.here[key] = true
		if s.given[key] {
			continue
		}
		s.given[key] = true
		if s.l.usable != nil && !s.l.usable(ctx, i, item) {
			continue
		}
		if !s.yield(item, nil) {
			return errEnough
		}
	}
	return nil
}

// place is the JSON pointer to the i-th item of a list, or "" for -1.
func place(member string, i int) string {
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("/%s/%d", member, i)
}

// wrongKey says why an item is left out that nobody could ask for by its name or URI, or returns "".
func wrongKey(key string, twice bool) string {
	switch {
	case key == "":
		return "it has no name or URI"
	case twice:
		return "another one has the same name or URI"
	}
	return ""
}

// A page is one page of a list.
type page[T any] struct {
	next   *string
	items  []T
	size   int  // in bytes
	mended bool // items were left out
}

// onePage asks for one page. The empty string is a cursor; nil is the
// beginning.
func onePage[R, T any](ctx context.Context, c *Client, l *listing[R, T], cursor *string) (*page[T], error) {
	k, err := c.newCall(l.method, "", &mcp.ListParams{Cursor: cursor}, nil)
	if err != nil {
		return nil, err
	}
	var r R
	if err := k.do(ctx, &r); err != nil {
		var refusal *jsonrpc.Error
		if !errors.As(err, &refusal) {
			return nil, err
		}
		switch {
		case cursor == nil && refusal.Code == mcp.CodeMethodNotFound:
			if l.method != mcp.MethodResourcesTemplates { // which no capability promises
				c.Report(ctx, &Problem{Method: l.method, Effect: Incomplete, Why: fmt.Sprintf("the server offers it, and does not know the method: %v", refusal)})
			}
			return new(page[T]), nil
		case cursor != nil && refusal.Code == mcp.CodeInvalidParams:
			err = &staleCursorError{err}
		}
		return nil, err
	}
	items, next := l.items(&r)
	return &page[T]{next, items, int(k.size), k.mended}, nil
}
