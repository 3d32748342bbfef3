// Package lists reads the lists of a server (tools, prompts, resources, templates) page by page
// as they come: every item as it was sent, whether or not a client could use it, and what
// is wrong with the pages. It is bounded in pages, items and bytes.
package lists

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A Kind is one of the lists.
type Kind struct {
	// Name is the list for people, such as "tools".
	Name string
	// Method asks for a page; Member of the result has the items.
	Method, Member string
	// Key is the member of an item that identifies it.
	Key string
	// Capability is what a server declares that has such a list.
	Capability string
}

// The lists.
var (
	Tools     = Kind{"tools", mcp.MethodToolsList, "tools", "name", mcp.CapTools}
	Prompts   = Kind{"prompts", mcp.MethodPromptsList, "prompts", "name", mcp.CapPrompts}
	Resources = Kind{"resources", mcp.MethodResourcesList, "resources", "uri", mcp.CapResources}
	Templates = Kind{"resource templates", mcp.MethodResourcesTemplates, "resourceTemplates", "uriTemplate", mcp.CapResources}
)

// All are the lists in their order.
func All() []Kind { return []Kind{Tools, Prompts, Resources, Templates} }

// Limits bound one list. The zero value, and nil, give the defaults.
type Limits struct {
	// Pages, Items and Bytes are the most of each. Defaults: 1,000, 10,000 and 16 MiB.
	Pages, Items, Bytes int
}

// Ask sends a request and returns its result as it came.
type Ask func(ctx context.Context, method string, params any) (mcp.RawValue, error)

// Of asks by a client.
func Of(c *client.Client) Ask {
	return func(ctx context.Context, method string, params any) (mcp.RawValue, error) {
		var raw mcp.RawValue
		err := c.Request(ctx, method, params, &raw, &client.CallOptions{NoCache: true})
		return raw, err
	}
}

// A Page is one page of a list.
type Page struct {
	// Items is how many items it has, Bytes how long its result is.
	Items, Bytes int
	// Next is the cursor of the next page, or nil.
	Next *string
}

// A List is what was read.
type List struct {
	// Items are the items as they came.
	Items []mcp.RawValue
	// Pages are the pages in their order.
	Pages []Page
}

// A LoopError says that a cursor led to itself.
type LoopError struct {
	// Cursor was given before, by the page with the number First, from 1.
	Cursor string
	First  int
	method string
}

// Error names the cursor.
func (e *LoopError) Error() string {
	return fmt.Sprintf("%s: the cursor %.80q came a second time: the pages go round in a circle", e.method, e.Cursor)
}

// Is makes the error a [client.ErrPages].
func (e *LoopError) Is(target error) bool { return target == client.ErrPages }

// A BoundError says that a list is over one of the Limits.
type BoundError struct {
	// Most is the limit, Of what it counts: "pages", "items" or "bytes".
	Most   int
	Of     string
	method string
}

// Error names the limit.
func (e *BoundError) Error() string {
	return fmt.Sprintf("%s: the list has more than %d %s", e.method, e.Most, e.Of)
}

// Is makes the error a [client.ErrPages].
func (e *BoundError) Is(target error) bool { return target == client.ErrPages }

// A ShapeError says that a page is not what the protocol says.
type ShapeError struct {
	// Reason is what is wrong with it.
	Reason string
	method string
}

// Error has the reason.
func (e *ShapeError) Error() string { return e.method + ": " + e.Reason }

// Is makes the error a [client.ErrMalformed].
func (e *ShapeError) Is(target error) bool { return target == client.ErrMalformed }

// Read reads a list to its end. What was read before an error is returned with it: the error
// is that of ask, a LoopError, a BoundError or a ShapeError.
func Read(ctx context.Context, ask Ask, kind Kind, o *Limits) (*List, error) {
	var limits Limits
	if o != nil {
		limits = *o
	}
	limits = Limits{cmp.Or(limits.Pages, 1000), cmp.Or(limits.Items, 10_000), cmp.Or(limits.Bytes, 16<<20)}
	list := &List{}
	seen := make(map[string]int)
	total := 0
	var cursor *string
	for {
		if len(list.Pages) == limits.Pages {
			return list, &BoundError{limits.Pages, "pages", kind.Method}
		}
		raw, err := ask(ctx, kind.Method, &mcp.ListParams{Cursor: cursor})
		if err != nil {
			return list, err
		}
		items, next, err := page(kind, raw)
		if err != nil {
			return list, err
		}
		list.Pages = append(list.Pages, Page{len(items), len(raw), next})
		list.Items = append(list.Items, items...)
		total += len(raw)
		switch {
		case len(list.Items) > limits.Items:
			return list, &BoundError{limits.Items, "items", kind.Method}
		case total > limits.Bytes:
			return list, &BoundError{limits.Bytes, "bytes", kind.Method}
		case next == nil:
			return list, nil
		}
		if first, again := seen[*next]; again {
			before := list.Items[:len(list.Items)-len(items)]
			list.Items = append(before, Fresh(before, items)...)
			return list, &LoopError{*next, first, kind.Method}
		}
		seen[*next] = len(list.Pages)
		cursor = next
	}
}

// Fresh returns the items of a page that are not among the items before it, compared as text. It
// writes to page.
func Fresh(before, page []mcp.RawValue) []mcp.RawValue {
	known := make(map[string]bool, len(before))
	for _, item := range before {
		known[string(item)] = true
	}
	return slices.DeleteFunc(page, func(item mcp.RawValue) bool { return known[string(item)] })
}

// page reads one page.
func page(kind Kind, raw mcp.RawValue) (items []mcp.RawValue, next *string, err error) {
	wrong := func(format string, args ...any) ([]mcp.RawValue, *string, error) {
		return nil, nil, &ShapeError{fmt.Sprintf(format, args...), kind.Method}
	}
	o, err := strictjson.ParseObject(raw)
	if err != nil {
		return wrong("the result is no object: %v", err)
	}
	list, ok := o.Member(kind.Member)
	if !ok {
		return wrong("the result has no member %q", kind.Member)
	}
	if err := json.Unmarshal(list, &items); err != nil || bytes.Equal(list, []byte("null")) {
		return wrong("the member %q is no list", kind.Member)
	}
	for i, item := range items {
		object, err := strictjson.ParseObject(item)
		if err != nil {
			return wrong("item %d of %q is no object", i+1, kind.Member)
		}
		var key string
		if value, ok := object.Member(kind.Key); !ok || json.Unmarshal(value, &key) != nil || bytes.Equal(value, []byte("null")) {
			return wrong("item %d of %q has no text %q", i+1, kind.Member, kind.Key)
		}
	}
	if value, ok := o.Member("nextCursor"); ok {
		if err := json.Unmarshal(value, &next); err != nil {
			return wrong("nextCursor is no text")
		}
	}
	return items, next, nil
}
