package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// maxRestarts is how often a list is begun anew because a cursor went stale.
const maxRestarts = 2

// A listing says how to page through one kind of list: R is a page, T an item.
type listing[R, T any] struct {
	method string
	items  func(*R) ([]T, *string)                     // the items and the next cursor
	key    func(*T) string                             // what identifies an item
	usable func(ctx context.Context, i int, t *T) bool // of the i-th item of a page; nil: all are
}

// Tools lists the server's tools, page by page as the loop goes on. Tools
// whose schemas cannot be used (an unknown dialect, no schema at all, arguments
// that are no object, beyond bounds) are left out, and each is a [Problem]. An
// error ends the list.
func (c *Client) Tools(ctx context.Context) iter.Seq2[*mcp.Tool, error] {
	return pages(ctx, c, &listing[mcp.ListToolsResult, mcp.Tool]{
		method: mcp.MethodToolsList,
		items:  func(r *mcp.ListToolsResult) ([]mcp.Tool, *string) { return r.Tools, r.NextCursor },
		key:    func(t *mcp.Tool) string { return t.Name },
		usable: func(ctx context.Context, i int, t *mcp.Tool) bool {
			err := c.tools.learn(t, c.routes(), c.opts.MaxListBytes)
			if err != nil {
				c.problem(ctx, &Problem{
					Method: mcp.MethodToolsList, Subject: t.Name, Place: fmt.Sprintf("/tools/%d", i),
					Why: fmt.Sprintf("the tool was left out: %v", err),
				})
			}
			return err == nil
		},
	})
}

// Resources lists the server's resources, as [Client.Tools] does tools.
func (c *Client) Resources(ctx context.Context) iter.Seq2[*mcp.Resource, error] {
	return pages(ctx, c, &listing[mcp.ListResourcesResult, mcp.Resource]{
		method: mcp.MethodResourcesList,
		items:  func(r *mcp.ListResourcesResult) ([]mcp.Resource, *string) { return r.Resources, r.NextCursor },
		key:    func(r *mcp.Resource) string { return r.URI },
	})
}

// ResourceTemplates lists the server's resource templates.
func (c *Client) ResourceTemplates(ctx context.Context) iter.Seq2[*mcp.ResourceTemplate, error] {
	return pages(ctx, c, &listing[mcp.ListResourceTemplatesResult, mcp.ResourceTemplate]{
		method: mcp.MethodResourcesTemplates,
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

// pages is the loop over a list. A page is refused if its cursor has led here
// before, and the list if it is longer than MaxItems. When the server does not
// know a cursor any more, all pages are dropped and the list begins again,
// without the items that were given already (ruling 21).
func pages[R, T any](ctx context.Context, c *Client, l *listing[R, T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		given := make(map[string]int)
		var err error
		for try := 0; ; try++ {
			err = onePass(ctx, c, l, given, yield)
			var refusal *jsonrpc.Error
			var stale *staleCursorError
			if !errors.As(err, &stale) || !errors.As(err, &refusal) {
				break
			}
			if try == maxRestarts {
				err = fmt.Errorf("%s: %w: cursors go stale again and again: %w", l.method, ErrPages, refusal)
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

// onePass goes through a list from its beginning, leaves out what was given
// already, and counts what it gives.
func onePass[R, T any](ctx context.Context, c *Client, l *listing[R, T], given map[string]int, yield func(*T, error) bool) error {
	c.problems.forget(l.method)
	skip := maps.Clone(given)
	seen := make(map[string]bool)
	var cursor *string
	for n, bytes := 0, 0; ; {
		next, items, size, err := onePage(ctx, c, l, cursor)
		if err != nil {
			return err
		}
		if bytes += size; bytes > c.opts.MaxListBytes {
			return fmt.Errorf("%s: %w: more than %d bytes", l.method, ErrPages, c.opts.MaxListBytes)
		}
		for i := range items {
			if n++; n > c.opts.MaxItems {
				return fmt.Errorf("%s: %w: more than %d items", l.method, ErrPages, c.opts.MaxItems)
			}
			item := &items[i]
			key := l.key(item)
			if skip[key] > 0 {
				skip[key]--
				continue
			}
			given[key]++
			if l.usable != nil && !l.usable(ctx, i, item) {
				continue
			}
			if !yield(item, nil) {
				return errEnough
			}
		}
		if next == nil {
			return nil
		}
		switch {
		case seen[*next]:
			return fmt.Errorf("%s: %w: the cursors go round in circles", l.method, ErrPages)
		case len(seen) > c.opts.MaxItems:
			return fmt.Errorf("%s: %w: more than %d pages", l.method, ErrPages, c.opts.MaxItems)
		}
		seen[*next] = true
		cursor = next
	}
}

// onePage asks for one page. The empty string is a cursor; nil is the
// beginning. The size is that of the page in bytes.
func onePage[R, T any](ctx context.Context, c *Client, l *listing[R, T], cursor *string) (next *string, items []T, size int, err error) {
	k, err := c.newCall(l.method, "", &mcp.ListParams{Cursor: cursor}, nil)
	if err != nil {
		return nil, nil, 0, err
	}
	var page R
	if err := k.do(ctx, &page); err != nil {
		var refusal *jsonrpc.Error
		if cursor != nil && errors.As(err, &refusal) && refusal.Code == mcp.CodeInvalidParams {
			err = &staleCursorError{err}
		}
		return nil, nil, 0, err
	}
	items, next = l.items(&page)
	return next, items, int(k.size), nil
}
