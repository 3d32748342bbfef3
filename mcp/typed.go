package mcp

import "reflect"

// None is the type for handlers that take or give nothing.
type None struct{}

// With is a tool's result that is a value together with content of its own: the
// value becomes StructuredContent, Content is what the model reads instead of
// the value's JSON text.
type With[T any] struct {
	// Value is the structured result.
	Value T
	// Content is what the model reads.
	Content []Content
}

// Parts returns the value and the content, for code that does not know T.
func (w With[T]) Parts() (value any, content []Content) { return w.Value, w.Content }

// ValueType returns the type of the value.
func (With[T]) ValueType() reflect.Type { return reflect.TypeFor[T]() }
