package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/lists"
	"github.com/parley-mcp/parley/mcp"
)

// maxPageBytes is how large a page may be before that is a finding.
const maxPageBytes = 1 << 20

// list reads a list, and examines its pages.
func (x *subject) list(ctx context.Context, kind lists.Kind) []mcp.RawValue {
	if !x.c.Capabilities().Has(kind.Capability) {
		x.undeclared(ctx, kind)
		return nil
	}
	list, err := lists.Read(ctx, x.ask, kind, x.opts.Lists)
	if err != nil {
		if unknown, ok := errors.AsType[*answerError](err); !ok || unknown.err.Code != mcp.CodeMethodNotFound {
			x.failed(ctx, kind.Method, "MCP-CAP-003", err)
		} else if kind != lists.Templates { // which a server with resources need not have
			x.add("MCP-CAP-001", kind.Method, fmt.Sprintf("%q is declared, but %s returns: %v", kind.Capability, kind.Method, unknown))
		}
	} else {
		x.offer.listed[kind.Method] = keysOf(kind, list.Items)
		x.order(ctx, kind, list)
		x.cursor(ctx, kind)
		if len(list.Items) == 0 && kind != lists.Templates && kind != lists.Resources {
			x.add("MCP-CAP-004", kind.Method, fmt.Sprintf("%q is declared, but the server has no %s", kind.Capability, kind.Name))
		}
	}
	for i, p := range list.Pages {
		if p.Items == 0 && p.Next != nil {
			x.add("MCP-PAGE-003", kind.Method, fmt.Sprintf("page %d has no items, but a cursor for another page", i+1))
			break
		}
	}
	for i, p := range list.Pages {
		if p.Bytes > maxPageBytes {
			x.add("MCP-CONN-007", kind.Method, fmt.Sprintf("page %d has %d bytes", i+1, p.Bytes))
			break
		}
	}
	return list.Items
}

// order compares the order of a list with that of the same list read again.
func (x *subject) order(ctx context.Context, kind lists.Kind, first *lists.List) {
	if len(first.Items) < 2 {
		return
	}
	again, err := lists.Read(ctx, x.ask, kind, x.opts.Lists)
	if err != nil {
		x.failed(ctx, kind.Method, "MCP-CAP-003", err)
		return
	}
	before, after := keysOf(kind, first.Items), keysOf(kind, again.Items)
	if slices.Equal(before, after) || !slices.Equal(slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(after))) {
		return // another list: something has changed meanwhile
	}
	x.add("MCP-PAGE-004", kind.Method, "two requests for the list returned the same items in different order")
}

// keysOf are the names of items.
func keysOf(kind lists.Kind, items []mcp.RawValue) []string {
	keys := make([]string, 0, len(items))
	for _, raw := range items {
		var m map[string]any
		if decode(raw, &m) == nil {
			key, _ := m[kind.Key].(string)
			keys = append(keys, key)
		}
	}
	return keys
}

// cursor asks for a page with a cursor that was never given.
func (x *subject) cursor(ctx context.Context, kind lists.Kind) {
	in, err := x.raw(ctx, kind.Method, "", map[string]any{"cursor": "parley-doctor-no-such-cursor"})
	switch {
	case err != nil:
		x.failed(ctx, kind.Method+" with an unknown cursor", "", err)
	case in.Error == nil:
		x.add("MCP-PAGE-006", kind.Method, "the server returned a result for the cursor \"parley-doctor-no-such-cursor\"")
	}
}

// undeclared asks for a list that is not declared.
func (x *subject) undeclared(ctx context.Context, kind lists.Kind) {
	if kind == lists.Templates {
		return
	}
	in, err := x.raw(ctx, kind.Method, "", nil)
	if err != nil {
		x.failed(ctx, kind.Method+" (not declared)", "", err)
		return
	}
	if list, ok := in.Result.Member(kind.Member); ok && in.Error == nil && len(list) > len("[]") {
		x.add("MCP-CAP-002", kind.Method, fmt.Sprintf("%q is not declared, but %s returns a list", kind.Capability, kind.Method))
	}
}
