// Package shape translates messages between the newest revision, which is what
// handlers and package mcp speak, and the revision of the peer.
//
// The law is: what is decoded with Up and encoded after Down is the same JSON
// value as before, for every message of every revision. What a revision does
// not know is left out, or said otherwise where it must not be lost: audio as an
// embedded resource, a resource link as text. What it cannot say at all is a
// [UnsupportedError].
package shape

import (
	"fmt"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// Shape translates for one revision. It is made once and may be used by many
// goroutines at once.
type Shape struct {
	facts *revision.Facts
	// params and results translate newest-shape values down, by method. They
	// are nil for a revision that differs in nothing.
	params, results map[string]down
}

// down translates a value, or returns it itself if nothing differs. It never
// writes to what it was given.
type down func(s *Shape, v any) (any, error)

// UnsupportedError is the error for a message that the peer's revision has no words
// for.
type UnsupportedError struct {
	// Feature is what cannot be said, for a person.
	Feature string
	// Version is the peer's revision.
	Version string
}

// Error says what a revision cannot express.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s cannot be sent to a peer of revision %s", e.Feature, e.Version)
}

// shapes holds the translations for each revision.
var shapes = func() map[*revision.Facts]*Shape {
	all := make(map[*revision.Facts]*Shape)
	for _, f := range revision.All() {
		s := &Shape{facts: f}
		if f != revision.Newest() {
			s.params, s.results = downParams, downResults
		}
		all[f] = s
	}
	return all
}()

// For returns the translations for a revision.
func For(f *revision.Facts) *Shape { return shapes[f] }

// Facts returns the revision.
func (s *Shape) Facts() *revision.Facts { return s.facts }

// DownParams translates the params of a request or notification that is about
// to be sent: v is a pointer to the type of the method's row, or nil. It returns
// v itself if nothing differs, else a copy; v is never written to. The error is
// a [*UnsupportedError].
func (s *Shape) DownParams(method string, v any) (any, error) { return s.down(s.params, method, v) }

// DownResult translates a result in the same way.
func (s *Shape) DownResult(method string, v any) (any, error) {
	if r, ok := v.(*mcp.CallToolResult); ok && r != nil && s.says(r) {
		return v, nil // most results, with nothing made for them
	}
	return s.down(s.results, method, v)
}

func (s *Shape) down(table map[string]down, method string, v any) (any, error) {
	f := table[method]
	if f == nil || v == nil {
		return v, nil
	}
	return f(s, v)
}

// UpParams decodes the params of a request or notification of the peer into v, a
// pointer to the type of the method's row. A nil raw is an empty object. Members
// whose names differ from known ones in letter case only are refused.
func (s *Shape) UpParams(method string, raw wire.RawValue, v any) error {
	return s.up(method, raw, v)
}

// UpResult decodes a result of the peer into v, a pointer to the result type of
// the method's row.
func (s *Shape) UpResult(method string, raw wire.RawValue, v any) error {
	return s.up(method, raw, v)
}
