package inspect

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/lists"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// The bounds of one list, all its pages together.
const (
	maxItems     = 10_000
	maxPages     = 10_000
	maxListBytes = 16 << 20
)

// list is a method that gives all pages of a list as one. A server that does not offer what is
// listed has none of it.
func list(method, member string) func(context.Context, *Session, *Args) (*Outcome, error) {
	return func(ctx context.Context, s *Session, _ *Args) (*Outcome, error) {
		items, err := s.list(ctx, method, member)
		if err != nil && !notOffered(err) {
			return nil, err
		}
		return encoded(map[string][]mcp.RawValue{member: items})
	}
}

// list asks for all pages of a list, and returns its items as they came.
func (s *Session) list(ctx context.Context, method, member string) ([]mcp.RawValue, error) {
	items := []mcp.RawValue{}
	seen := make(map[string]bool) // cursors
	params := make(map[string]string)
	for size := 0; ; {
		raw, err := s.ask(ctx, method, params, nil)
		if err != nil {
			return nil, err
		}
		if size += len(raw); size > maxListBytes {
			return nil, fmt.Errorf("%s: %w: more than %d bytes", method, client.ErrPages, maxListBytes)
		}
		page, err := strictjson.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", method, client.ErrMalformed, err)
		}
		listed, _ := page.Member(member)
		var more []mcp.RawValue
		if err := strictjson.Unmarshal(listed, &more); err != nil {
			return nil, fmt.Errorf("%s: %w: %s is not an array", method, client.ErrMalformed, member)
		}
		next, ok := page.Member("nextCursor")
		last := !ok || string(next) == "null"
		var cursor string
		if err := strictjson.Unmarshal(next, &cursor); err != nil && !last {
			return nil, fmt.Errorf("%s: %w: nextCursor must be a string", method, client.ErrMalformed)
		}
		if seen[cursor] && !last { // the page can be one that was read before
			more = lists.Fresh(items, more)
			s.client.Report(ctx, &client.Problem{Method: method, Place: "/nextCursor", Effect: client.Incomplete, Why: "the same cursor was sent before; the list ends with this page"})
			last = true
		}
		if items = append(items, more...); len(items) > maxItems {
			return nil, fmt.Errorf("%s: %w: more than %d items", method, client.ErrPages, maxItems)
		}
		switch {
		case last:
			return items, nil
		case len(seen) > maxPages:
			return nil, fmt.Errorf("%s: %w: more than %d pages", method, client.ErrPages, maxPages)
		}
		seen[cursor] = true
		params["cursor"] = cursor
	}
}

// member is a member of an item that is text, or "".
func member(item mcp.RawValue, name string) string {
	o, err := strictjson.ParseObject(item)
	if err != nil {
		return ""
	}
	raw, _ := o.Member(name)
	var text string
	if strictjson.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}
