package server

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// argumentsOf makes the schema of a tool's arguments.
//
// spec 2026-07-28, schema: Tool.inputSchema has the type "object".
func argumentsOf(t reflect.Type, types map[reflect.Type]mcp.RawValue) (*schema.Compiled, error) {
	in, err := schema.For(t, &schema.Options{Types: types})
	if err != nil {
		return nil, err
	}
	switch in.Type() {
	case "object":
		return in, nil
	case "":
		return nil, fmt.Errorf("type %s can be anything, but arguments are an object; use a struct, mcp.None for none, "+
			"map[string]any for any members, or RawTool with a schema of your own", t)
	}
	return nil, fmt.Errorf("type %s is the JSON type %s, but arguments are an object; make it a field of a struct", t, in.Type())
}

// A validator checks what its schema cannot say. Arguments of tools and prompts
// and variables of templates are asked, after they have been decoded.
type validator interface{ Validate() error }

// validatorOf returns a function that validates the value of type t at a pointer, or nil if such values are
// not validators.
func validatorOf(t reflect.Type) func(at any) error {
	switch v := reflect.TypeFor[validator](); {
	case reflect.PointerTo(t).Implements(v): // that of a value too
		return func(at any) error { return at.(validator).Validate() } // as was just found
	case t.Kind() == reflect.Pointer && t.Implements(v):
		return func(at any) error { return reflect.ValueOf(at).Elem().Interface().(validator).Validate() } // as above
	}
	return nil
}

// withContent is mcp.With of any type.
type withContent interface {
	Parts() (value any, content []mcp.Content)
	ValueType() reflect.Type
}

// outputOf returns how results of type Out become tool results, and the type that
// their schema is made of; nil: none. The function is given memory for a result
// with one text.
func outputOf[Out any]() (conv func(Out, *textResult) (*mcp.CallToolResult, error), result reflect.Type) {
	if reflect.TypeFor[Out]() == reflect.TypeFor[string]() { // as an argument of the function below it would be copied
		return func(v Out, r *textResult) (*mcp.CallToolResult, error) { return r.of(any(v).(string)), nil }, nil
	}
	of, result := resultOf(reflect.TypeFor[Out]())
	return func(v Out, r *textResult) (*mcp.CallToolResult, error) { return of(v, r) }, result
}

// resultOf is outputOf for all types but string.
func resultOf(t reflect.Type) (conv func(any, *textResult) (*mcp.CallToolResult, error), result reflect.Type) {
	if w, ok := reflect.Zero(t).Interface().(withContent); ok {
		return func(v any, r *textResult) (*mcp.CallToolResult, error) {
			return r.structured(v.(withContent).Parts()) // as was just found
		}, w.ValueType()
	}
	switch t {
	case reflect.TypeFor[mcp.Content](), reflect.TypeFor[[]mcp.Content](), reflect.TypeFor[mcp.Contents](),
		reflect.TypeFor[mcp.None](), reflect.TypeFor[*mcp.CallToolResult](), reflect.TypeFor[mcp.CallToolResult]():
		return func(v any, _ *textResult) (*mcp.CallToolResult, error) { return plain(v) }, nil
	}
	switch {
	case isContent(t):
		return func(v any, _ *textResult) (*mcp.CallToolResult, error) {
			c, ok := v.(mcp.Content)
			if !ok && v != nil {
				at := reflect.New(t)
				at.Elem().Set(reflect.ValueOf(v))
				c = at.Interface().(mcp.Content) // isContent has found it
			}
			return &mcp.CallToolResult{Content: mcp.Contents{c}}, nil
		}, nil
	case t.Kind() == reflect.Slice && isContent(t.Elem()):
		return func(v any, _ *textResult) (*mcp.CallToolResult, error) { return contentList(reflect.ValueOf(v)), nil }, nil
	}
	return func(v any, r *textResult) (*mcp.CallToolResult, error) { return r.structured(v, nil) }, t
}

var contentType = reflect.TypeFor[mcp.Content]()

// isContent reports whether t is a type of content, or a pointer to one.
func isContent(t reflect.Type) bool {
	return t.Implements(contentType) || reflect.PointerTo(t).Implements(contentType)
}

// contentList makes a result of a slice of one type of content.
func contentList(list reflect.Value) *mcp.CallToolResult {
	out := &mcp.CallToolResult{Content: make(mcp.Contents, list.Len())}
	for i := range list.Len() {
		e := list.Index(i)
		if !e.Type().Implements(contentType) {
			e = e.Addr()
		}
		out.Content[i], _ = e.Interface().(mcp.Content) // a nil one is found with those of other results
	}
	return out
}

// contentIn returns the way to content inside of a type whose values become
// structured results, or "". A whole result or message of the protocol is data:
// a tool was called, and reports it.
func contentIn(t reflect.Type, seen map[reflect.Type]bool) string {
	if isContent(t) || t == reflect.TypeFor[mcp.Contents]() {
		return t.String()
	}
	if seen[t] || t.PkgPath() == contentType.PkgPath() {
		return ""
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return contentIn(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if !f.IsExported() && !f.Anonymous || f.Tag.Get("json") == "-" {
				continue
			}
			if way := contentIn(f.Type, seen); way != "" {
				return t.String() + "." + f.Name + ", " + way
			}
		}
	}
	return ""
}

// checkResult refuses content where it would be JSON that a model cannot see as
// what it is.
func checkResult(t reflect.Type) error {
	way := contentIn(t, map[reflect.Type]bool{})
	if way == "" {
		return nil
	}
	return fmt.Errorf("a structured result cannot hold content (%s): clients would take it for data; "+
		"return []mcp.Content, or mcp.With[T] for data T with content beside it", way)
}

// plain makes a result without structured content.
func plain(v any) (*mcp.CallToolResult, error) {
	switch v := v.(type) {
	case []mcp.Content:
		return &mcp.CallToolResult{Content: v}, nil
	case mcp.Contents:
		return &mcp.CallToolResult{Content: v}, nil
	case mcp.None:
		return &mcp.CallToolResult{Content: mcp.Contents{}}, nil
	case *mcp.CallToolResult:
		if v == nil {
			return nil, errors.New("the tool returned no result")
		}
		own := *v // the author's value may be shared between calls
		return &own, nil
	case mcp.CallToolResult:
		return &v, nil
	case mcp.Content:
		return &mcp.CallToolResult{Content: mcp.Contents{v}}, nil
	}
	return nil, errors.New("the tool returned no content")
}

// A textResult is the memory of a result with one text.
type textResult struct {
	result  mcp.CallToolResult
	content [1]mcp.Content
	text    mcp.TextContent
}

// of makes the result.
func (r *textResult) of(text string) *mcp.CallToolResult {
	r.text.Text = text
	r.content[0] = &r.text
	r.result.Content = r.content[:]
	return &r.result
}

// structured makes a result with structured content and, where there is no other content, the same as
// text for clients of revisions that do not know it.
func (r *textResult) structured(v any, content []mcp.Content) (*mcp.CallToolResult, error) {
	raw, err := wire.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	res := &r.result
	if res.Content = content; len(content) == 0 {
		res = r.of(string(raw))
	}
	res.StructuredContent = raw
	return res, nil
}

// checkContents refuses content that is nil, or a nil pointer.
func checkContents(list []mcp.Content) error {
	for i, c := range list {
		if text, ok := c.(*mcp.TextContent); ok && text != nil {
			continue
		}
		if c == nil || reflect.ValueOf(c).IsNil() {
			return fmt.Errorf("content %d of %d is nil (%T)", i+1, len(list), c)
		}
	}
	return nil
}
