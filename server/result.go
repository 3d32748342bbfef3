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

// validatorOf returns what asks values of T, or nil if they are no validators.
func validatorOf[T any]() func(v *T) error {
	switch t, v := reflect.TypeFor[T](), reflect.TypeFor[validator](); {
	case reflect.PointerTo(t).Implements(v): // that of a value too
		return func(v *T) error { return any(v).(validator).Validate() }
	case t.Kind() == reflect.Pointer && t.Implements(v):
		return func(v *T) error { return any(*v).(validator).Validate() }
	}
	return nil
}

// withContent is mcp.With of any type.
type withContent interface {
	Parts() (value any, content []mcp.Content)
	ValueType() reflect.Type
}

// outputOf says how results of type Out become tool results, and the type that
// their schema is made of; nil: none. The function is given memory for a result
// with one text.
func outputOf[Out any]() (conv func(Out, *textResult) (*mcp.CallToolResult, error), result reflect.Type) {
	t := reflect.TypeFor[Out]()
	if w, ok := reflect.New(t).Elem().Interface().(withContent); ok {
		return func(v Out, r *textResult) (*mcp.CallToolResult, error) { return r.structured(any(v).(withContent)) }, w.ValueType()
	}
	switch t {
	case reflect.TypeFor[string]():
		return func(v Out, r *textResult) (*mcp.CallToolResult, error) { return r.of(any(v).(string)), nil }, nil
	case reflect.TypeFor[mcp.Content](), reflect.TypeFor[[]mcp.Content](), reflect.TypeFor[mcp.Contents](),
		reflect.TypeFor[mcp.None](), reflect.TypeFor[*mcp.CallToolResult](), reflect.TypeFor[mcp.CallToolResult]():
		return func(v Out, _ *textResult) (*mcp.CallToolResult, error) { return plain(any(v)) }, nil
	}
	content := reflect.TypeFor[mcp.Content]()
	switch {
	case t.Implements(content):
		return func(v Out, _ *textResult) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{any(v).(mcp.Content)}}, nil
		}, nil
	case reflect.PointerTo(t).Implements(content):
		return func(v Out, _ *textResult) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{any(&v).(mcp.Content)}}, nil
		}, nil
	}
	return func(v Out, r *textResult) (*mcp.CallToolResult, error) { return r.json(v) }, t
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

// json makes a result with structured content, and the same as text for
// clients of revisions that do not know it.
func (r *textResult) json(v any) (*mcp.CallToolResult, error) {
	raw, err := wire.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	res := r.of(string(raw))
	res.StructuredContent = raw
	return res, nil
}

func (r *textResult) structured(w withContent) (*mcp.CallToolResult, error) {
	v, content := w.Parts()
	res, err := r.json(v)
	if err == nil && len(content) > 0 {
		res.Content = content
	}
	return res, err
}
