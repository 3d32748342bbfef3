package shape

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

func elicitParams(s *Shape, d *draft[mcp.ElicitParams]) error {
	switch {
	case !s.facts.ElicitForm:
		return s.cannot("elicitation")
	case d.v.IsURL() && !s.facts.ElicitURL:
		return s.cannot("elicitation by URL")
	}
	zero(d, !s.facts.ElicitModes, func(p *mcp.ElicitParams) *string { return &p.Mode })
	zero(d, !s.facts.ElicitID, func(p *mcp.ElicitParams) *string { return &p.ElicitationID })
	if d.v.RequestedSchema == nil || s.facts.FormEnums && s.facts.FormDefaults {
		return nil
	}
	schema := draft[mcp.ElicitSchema]{v: d.v.RequestedSchema}
	if err := form(s, &schema); err != nil {
		return err
	}
	if schema.copied {
		d.edit().RequestedSchema = schema.v
	}
	return nil
}

func form(s *Shape, d *draft[mcp.ElicitSchema]) error {
	zero(d, true, func(f *mcp.ElicitSchema) *string { return &f.Schema })
	if slices.ContainsFunc(d.v.Properties, s.unfit) {
		if err := dropUnfit(s, d); err != nil {
			return err
		}
	}
	fields, changed, err := edited(s, d.v.Properties, field)
	if changed {
		d.edit().Properties = fields
	}
	return err
}

// unfit reports whether the revision has no such field: a multiple choice,
// where there are only choices of one.
func (s *Shape) unfit(p mcp.Property) bool {
	return !s.facts.FormEnums && p.Schema.Kind() == mcp.FieldChoices
}

// dropUnfit leaves the optional fields out that the revision cannot say. One
// that must be filled is an error (ruling 34).
func dropUnfit(s *Shape, d *draft[mcp.ElicitSchema]) error {
	fit := make(mcp.Properties, 0, len(d.v.Properties))
	for _, p := range d.v.Properties {
		switch {
		case !s.unfit(p):
			fit = append(fit, p)
		case slices.Contains(d.v.Required, p.Name):
			return s.cannot(fmt.Sprintf("the required multiple choice %q of a form (a choice of one would fit, or make the field optional)", p.Name))
		}
	}
	d.edit().Properties = fit
	return nil
}

// field translates one field of a form for revisions in which a choice is an
// enum, whose titles are enumNames, and only booleans have defaults.
func field(s *Shape, d *draft[mcp.Property]) error {
	if !s.facts.FormEnums {
		if schema := &d.v.Schema; schema.OneOf != nil {
			options := schema.OneOf
			values, names := make([]string, len(options)), make([]string, len(options))
			for i, option := range options {
				values[i], names[i] = option.Const, option.Title
			}
			to := &d.edit().Schema
			to.OneOf, to.Enum = nil, values
			to.EnumNames = names
		}
	}
	if !s.facts.FormDefaults && d.v.Schema.Default != nil && d.v.Schema.Kind() != mcp.FieldBoolean {
		d.edit().Schema.Default = nil
	}
	return nil
}

func createMessageParams(s *Shape, d *draft[mcp.CreateMessageParams]) error {
	if !s.facts.SamplingTools && (len(d.v.Tools) > 0 || d.v.ToolChoice != nil) {
		return s.cannot("sampling with tools")
	}
	if !s.facts.SamplingTools && d.v.Tools != nil {
		d.edit().Tools = nil
	}
	tools, changed, err := edited(s, d.v.Tools, tool)
	if err != nil {
		return err
	}
	if changed {
		d.edit().Tools = tools
	}
	messages, changed, err := edited(s, d.v.Messages, samplingMessage)
	if changed {
		d.edit().Messages = messages
	}
	return err
}

func samplingMessage(s *Shape, d *draft[mcp.SamplingMessage]) error {
	content, changed, err := s.sampled(d.v.Content)
	if err != nil {
		return err
	}
	switch {
	case !s.facts.SamplingLists:
		// A new message: one that was decoded from a list would be a list.
		m := d.v
		*d.edit() = mcp.SamplingMessage{Role: m.Role, Content: content, Meta: m.Meta}
	case changed:
		d.edit().Content = content
	}
	dropMeta(d, !s.facts.SamplingMeta, func(m *mcp.SamplingMessage) *mcp.Meta { return &m.Meta })
	return nil
}

func createMessageResult(s *Shape, d *draft[mcp.CreateMessageResult]) error {
	content, changed, err := s.sampled(d.v.Content)
	if err != nil {
		return err
	}
	switch {
	case !s.facts.SamplingLists:
		r := d.v
		*d.edit() = mcp.CreateMessageResult{
			Role: r.Role, Content: content, Model: r.Model, StopReason: r.StopReason, Meta: r.Meta,
		}
	case changed:
		d.edit().Content = content
	}
	return nil
}

// sampled translates the content of a sampling message.
func (s *Shape) sampled(list mcp.Contents) (mcp.Contents, bool, error) {
	if !s.facts.Audio {
		for _, c := range list {
			if _, ok := c.(*mcp.AudioContent); ok {
				return nil, false, s.cannot("audio in sampling")
			}
		}
	}
	if !s.facts.SamplingLists && len(list) != 1 {
		one, err := s.reduce(list)
		if err != nil {
			return nil, false, err
		}
		list = mcp.Contents{one}
	}
	return edited(s, list, func(s *Shape, d *draft[mcp.Content]) error {
		c, changed, err := s.content(*d.v)
		if changed {
			*d.edit() = c
		}
		return err
	})
}

// reduce makes one block of several, which is possible for texts that are meant
// for the same audience.
func (s *Shape) reduce(list mcp.Contents) (mcp.Content, error) {
	if len(list) == 0 {
		return nil, s.cannot("a sampling message without content")
	}
	texts := make([]string, len(list))
	var first *mcp.TextContent
	for i, c := range list {
		text, ok := c.(*mcp.TextContent)
		if ok && first == nil {
			first = text
		}
		if !ok || !reflect.DeepEqual(text.Annotations, first.Annotations) {
			return nil, s.cannot("a sampling message of several blocks that are not all text")
		}
		texts[i] = text.Text
	}
	one := mcp.Text(strings.Join(texts, "\n"))
	one.Annotations = first.Annotations
	return one, nil
}

func (s *Shape) checkToolContent() error {
	if !s.facts.SamplingTools {
		return s.cannot("tool use in sampling")
	}
	return nil
}

func (s *Shape) toolResult(c *mcp.ToolResultContent) (mcp.Content, bool, error) {
	if err := s.checkToolContent(); err != nil {
		return nil, false, err
	}
	d := draft[mcp.ToolResultContent]{v: c}
	content, changed, err := s.contents(c.Content)
	if err != nil {
		return nil, false, err
	}
	if changed {
		d.edit().Content = content
	}
	if value := c.StructuredContent; value != nil && !s.saysStructured(value) {
		d.edit().StructuredContent = nil
	}
	return d.v, d.copied, nil
}
