package tester

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A formArgument is an argument of a tool that is asked for at the terminal.
type formArgument struct {
	name     string
	required bool
	field    *ui.Field // nil for what is written as JSON
}

// formOf plans the form of a tool's arguments, in the order of its schema.
func formOf(schema mcp.RawValue) []formArgument {
	var s struct {
		Required []string `json:"required"`
	}
	if strictjson.Unmarshal(schema, &s) != nil {
		s.Required = nil
	}
	required := make(map[string]bool, len(s.Required))
	for _, name := range s.Required {
		required[name] = true
	}
	o, err := strictjson.ParseObject(schema)
	if err != nil {
		return nil
	}
	properties, _ := o.Object("properties")
	var list []formArgument
	for name, raw := range properties.All() {
		list = append(list, formArgument{name, required[name], fieldOf(name, raw, required[name])})
	}
	return list
}

// fieldOf is the field of an argument whose schema is one of those that forms have; else nil.
func fieldOf(name string, raw mcp.RawValue, required bool) *ui.Field {
	var s mcp.PrimitiveSchema
	if strictjson.Unmarshal(raw, &s) != nil || s.Kind() == mcp.FieldUnknown {
		return nil
	}
	form := &mcp.ElicitSchema{Properties: mcp.Properties{{Name: name, Schema: s}}}
	if required {
		form.Required = []string{name}
	}
	return &ui.NewForm(form).Fields[0]
}

// fillArguments asks the user for the arguments of a tool, one after another.
func (in *inspector) fillArguments(ctx context.Context, schema mcp.RawValue) (mcp.RawValue, error) {
	values := make(map[string]mcp.RawValue)
	for _, a := range formOf(schema) {
		value, err := in.askArgument(ctx, &a, nil)
		if errors.Is(err, io.EOF) {
			in.Note("")
			err = kit.Usagef("the input ended before all arguments were given; pass them with --tool-arg")
		}
		if err != nil {
			return nil, err
		}
		if value != nil {
			values[a.name] = value
		}
	}
	return strictjson.Marshal(values)
}

// A leftError says that a form was left with a word.
type leftError struct{ word string }

func (e *leftError) Error() string { return "the form was left: " + e.word }

// askArgument asks for one argument until there is one that fits. It is nil if it is left out.
// The error is a *leftError if one of the words of leave was typed, and io.EOF at the end of the
// input.
func (in *inspector) askArgument(ctx context.Context, a *formArgument, leave map[string]string) (mcp.RawValue, error) {
	label, hint := host.EscapeLine(a.name), "JSON"
	if a.field != nil {
		label, hint = a.field.Label, a.field.Hint()
		if a.field.Help != "" {
			in.Note("%s: %s", label, a.field.Help)
		}
		for i, o := range a.field.Options {
			in.Note("  %d %s", i+1, o.Title)
		}
	} else if !a.required {
		hint += "; press Enter to omit it"
	}
	if hint != "" {
		label += " (" + hint + ")"
	}
	for {
		in.NotePart("%s: ", label)
		line, err := in.Streams.Keyboard().Line(ctx)
		switch {
		case err != nil:
			return nil, err
		case leave[strings.TrimSpace(line)] != "":
			return nil, &leftError{leave[strings.TrimSpace(line)]}
		case line == "" && !a.required:
			return nil, nil // the server knows its default
		}
		value, err := a.parse(line)
		if err == nil {
			return value, nil
		}
		in.Note("  %s", kit.ErrorText(err))
	}
}

// parse reads what was typed.
func (a *formArgument) parse(line string) (mcp.RawValue, error) {
	if a.field != nil {
		value, err := a.field.Parse(line)
		if err == nil && value == nil {
			value = a.field.Default
		}
		if err == nil && value == nil {
			err = errors.New("it is required")
		}
		return value, err
	}
	if err := strictjson.Valid([]byte(line)); err != nil {
		return nil, errors.New(`invalid JSON; write for example {"a": 1}, ["b"] or "text"`)
	}
	return mcp.RawValue(line), nil
}
