package skills

import (
	"errors"
	"fmt"
	"iter"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Bounds of a list. The bytes of each page are bounded by the client.
const (
	maxItems     = 100_000
	maxPages     = 10_000
	maxRestarts  = 2
	maxListBytes = 64 << 20 // of the items and cursors of all pages
)

// pages goes through a list of a server; size is about how many bytes an item has. If the
// server does not know a cursor any more, the list begins again, without what was given
// already. If that happens again and again, or a cursor comes a second time, the list ends,
// and report gets the reason.
func pages[T any](
	page func(cursor *string) ([]T, *string, error), key func(T) string, size func(T) int, report func(why string),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		l := &listing[T]{page: page, key: key, size: size, report: report, given: make(map[string]bool)}
		for try := 0; ; try++ {
			again, err := l.pass(func(item T) bool { return yield(item, nil) })
			if again && try < maxRestarts {
				continue
			}
			if again {
				report(fmt.Sprintf("the server refuses its own cursors; the list is incomplete: %v", err))
				return
			}
			if err != nil {
				var none T
				yield(none, err)
			}
			return
		}
	}
}

// A listing is what is known of a list while it is gone through.
type listing[T any] struct {
	page   func(cursor *string) ([]T, *string, error)
	key    func(T) string
	size   func(T) int
	report func(why string)
	given  map[string]bool
	items  int // of the pages of this pass, also those that were given before
	bytes  int
}

// pass goes through the list once. again says that a cursor was refused.
func (l *listing[T]) pass(yield func(T) bool) (again bool, err error) {
	var cursor *string
	seen := make(map[string]bool)
	l.items, l.bytes = 0, 0
	for {
		items, next, err := l.page(cursor)
		if err != nil {
			var refused *jsonrpc.Error
			return cursor != nil && errors.As(err, &refused) && refused.Code == mcp.CodeInvalidParams, err
		}
		fresh := make(map[string]bool) // a list may have an item twice, as long as it is no repetition of ours
		for _, item := range items {
			if err := l.count(1, l.size(item)); err != nil {
				return false, err
			}
			k := l.key(item)
			if l.given[k] && !fresh[k] {
				continue
			}
			l.given[k], fresh[k] = true, true
			if !yield(item) {
				return false, nil
			}
		}
		if next == nil {
			return false, nil
		}
		if seen[*next] {
			l.report("the same cursor was sent before; the list ends with this page")
			return false, nil
		}
		if len(seen) == maxPages {
			return false, fmt.Errorf("skills: %w: more than %d pages", client.ErrPages, maxPages)
		}
		if err := l.count(0, len(*next)); err != nil {
			return false, err
		}
		seen[*next], cursor = true, next
	}
}

// count counts what came, and says whether it is too much.
func (l *listing[T]) count(items, bytes int) error {
	l.items, l.bytes = l.items+items, l.bytes+bytes
	switch {
	case l.items > maxItems:
		return fmt.Errorf("skills: %w: more than %d items", client.ErrPages, maxItems)
	case l.bytes > maxListBytes:
		return fmt.Errorf("skills: %w: more than %d bytes", client.ErrPages, maxListBytes)
	}
	return nil
}
