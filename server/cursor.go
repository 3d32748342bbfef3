package server

import (
	"cmp"
	"slices"

	"github.com/parley-mcp/parley/mcp"
)

// SealCursor makes a cursor of a position in a list of an extension's method. It
// is opaque to the client and good for the same server, method, target and caller
// (see Options.StateKeys). It does not expire. A position is text of the
// author's, such as the key of the last item of the page.
//
// spec 2026-07-28, server/utilities/pagination.
func (c *Call) SealCursor(position string) string { return c.seal([]byte(position), c.positionBound()) }

// OpenCursor returns the position of a cursor of SealCursor. The error, which
// may be returned to the client, is -32602 for any other cursor.
func (c *Call) OpenCursor(cursor string) (position string, err error) {
	plain, err := c.srv.seal.open(cursor, c.positionBound())
	if err != nil {
		return "", mcp.NewError(mcp.CodeInvalidParams, "invalid cursor for %s: it is unknown; start again without a cursor", c.Method())
	}
	return string(plain), nil
}

// positionBound is what a position is good for.
func (c *Call) positionBound() []byte {
	return binding("position", c.srv.info.Name, c.Method(), c.target, c.Principal().Identity())
}

// Paginate returns a page of a list of an extension's method, in the order of the keys
// of the items, and the cursor of the next page. cursor is that of the request; nil
// begins at the start, and "" is a cursor. A page has at most Limits.PageSize items.
// key is the unique name of an item. The list may change between pages: what is
// added before the cursor is not seen. The error is that of [Call.OpenCursor].
//
// spec 2026-07-28, server/utilities/pagination.
func Paginate[T any](c *Call, list []T, key func(T) string, cursor *string) (items []T, next mcp.Page, err error) {
	byKey := func(a, b T) int { return cmp.Compare(key(a), key(b)) }
	if !slices.IsSortedFunc(list, byKey) {
		list = slices.SortedFunc(slices.Values(list), byKey)
	}
	if cursor != nil {
		last, err := c.OpenCursor(*cursor)
		if err != nil {
			return nil, next, err
		}
		from, found := slices.BinarySearchFunc(list, last, func(item T, last string) int { return cmp.Compare(key(item), last) })
		if found {
			from++
		}
		list = list[from:]
	}
	if over(len(list), c.srv.limits.PageSize) {
		list = list[:c.srv.limits.PageSize]
		sealed := c.SealCursor(key(list[len(list)-1]))
		next.NextCursor = &sealed
	}
	return list, next, nil
}
