package panel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A fieldState is what the person has filled into a field.
type fieldState struct {
	field *ui.Field
	// input is the text of a field that is typed.
	input input
	// options are what can be chosen: those of the form, or yes and no.
	options []ui.Option
	chosen  []bool
	// option is the one that the cursor is at.
	option int
	// touched says that the person has chosen something, or taken a choice back.
	touched bool
	// problem says what is wrong, escaped, or is empty.
	problem string
}

// newField begins with the default of a field. A default that is none of the options
// chooses nothing.
func newField(f *ui.Field) fieldState {
	s := fieldState{field: f}
	switch f.Kind {
	case ui.KindBoolean:
		s.options = []ui.Option{{Value: "true", Title: "yes"}, {Value: "false", Title: "no"}}
	case ui.KindChoice, ui.KindChoices:
		s.options = f.Options
	default:
		return s
	}
	s.chosen = make([]bool, len(s.options))
	for i, o := range s.options {
		s.chosen[i] = slices.Contains(defaultValues(f), o.Value)
	}
	return s
}

// defaultValues are the options that a field has chosen at first.
func defaultValues(f *ui.Field) []string {
	if f.Default == nil || f.Check(f.Default) != nil {
		return nil
	}
	var list []string
	if strictjson.Unmarshal(f.Default, &list) == nil {
		return list
	}
	var one string
	if strictjson.Unmarshal(f.Default, &one) == nil {
		return []string{one}
	}
	return []string{string(f.Default)}
}

// typed reports whether the field is a line to type.
func (s *fieldState) typed() bool { return s.chosen == nil }

// toggle chooses the option at the cursor, or takes that back.
func (s *fieldState) toggle() {
	if s.option >= len(s.options) {
		return
	}
	s.touched, s.problem = true, ""
	now := !s.chosen[s.option]
	if s.field.Kind != ui.KindChoices {
		clear(s.chosen)
		now = now || s.field.Required
	}
	s.chosen[s.option] = now
}

// letter takes a key for a field with options: space at the option of the cursor, y and n for
// yes and no.
func (s *fieldState) letter(key string) {
	if s.field.Kind == ui.KindBoolean {
		if i := slices.Index([]string{"y", "n"}, key); i >= 0 {
			s.option, s.touched, s.problem = i, true, ""
			clear(s.chosen)
			s.chosen[i] = true
			return
		}
	}
	if key == "space" {
		s.toggle()
	}
}

// picked are the values of the chosen options, in the order of the options.
func (s *fieldState) picked() []string {
	list := []string{}
	for i, yes := range s.chosen {
		if yes {
			list = append(list, s.options[i].Value)
		}
	}
	return list
}

// errNothing says that nothing was chosen where something must be.
var errNothing = errors.New("it is required: choose with the space key")

// value is the field as JSON, or nil if it is left out. The error is a sentence without
// its end.
func (s *fieldState) value() (mcp.RawValue, error) {
	if s.typed() {
		return s.field.Parse(s.input.text)
	}
	picked := s.picked()
	if len(picked) == 0 {
		switch {
		case s.field.Kind == ui.KindChoices && s.touched && s.field.Default != nil:
			// The default was taken back: an empty list, if that fits.
		case s.field.Required:
			return nil, errNothing
		default:
			return nil, nil
		}
	}
	var v any = picked
	switch s.field.Kind {
	case ui.KindBoolean:
		v = picked[0] == "true"
	case ui.KindChoice:
		v = picked[0]
	default:
	}
	raw, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing the value as JSON: %w", err)
	}
	return raw, s.field.Check(raw)
}
