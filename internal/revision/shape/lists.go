package shape

import (
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

func toolsResult(s *Shape, d *draft[mcp.ListToolsResult]) error {
	tools, changed, err := edited(s, d.v.Tools, tool)
	if changed {
		d.edit().Tools = tools
	}
	return err
}

func tool(s *Shape, d *draft[mcp.Tool]) error {
	zero(d, !s.facts.Titles, func(t *mcp.Tool) *string { return &t.Title })
	zero(d, !s.facts.ToolAnnotations, func(t *mcp.Tool) **mcp.ToolAnnotations { return &t.Annotations })
	dropIcons(d, !s.facts.Icons, func(t *mcp.Tool) *[]mcp.Icon { return &t.Icons })
	dropMeta(d, !s.facts.MetaEverywhere, func(t *mcp.Tool) *mcp.Meta { return &t.Meta })
	if d.v.OutputSchema != nil && !s.saysSchema(d.v.OutputSchema) {
		d.edit().OutputSchema = nil
	}
	return nil
}

// saysSchema reports whether the revision knows output schemas like this one.
func (s *Shape) saysSchema(schema mcp.RawValue) bool {
	if !s.facts.StructuredOutput || s.facts.StructuredAny {
		return s.facts.StructuredOutput
	}
	object, err := wire.ParseObject(schema, wire.Limits{})
	if err != nil {
		return false
	}
	kind, _ := object.Member("type")
	return string(kind) == `"object"`
}

// saysStructured reports whether the revision knows structured content like
// this.
func (s *Shape) saysStructured(value mcp.RawValue) bool {
	if !s.facts.StructuredOutput || s.facts.StructuredAny {
		return s.facts.StructuredOutput
	}
	return first(value) == '{'
}

// first is the first byte of a JSON value, which says its kind; 0 if there is
// none.
func first(value mcp.RawValue) byte {
	for _, c := range value {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func resourcesResult(s *Shape, d *draft[mcp.ListResourcesResult]) error {
	resources, changed, err := edited(s, d.v.Resources, resource)
	if changed {
		d.edit().Resources = resources
	}
	return err
}

func resource(s *Shape, d *draft[mcp.Resource]) error {
	described(s, d, func(r *mcp.Resource) description {
		return description{&r.Title, &r.Icons, &r.Meta, &r.Annotations}
	})
	return nil
}

func templatesResult(s *Shape, d *draft[mcp.ListResourceTemplatesResult]) error {
	templates, changed, err := edited(s, d.v.ResourceTemplates, template)
	if changed {
		d.edit().ResourceTemplates = templates
	}
	return err
}

func template(s *Shape, d *draft[mcp.ResourceTemplate]) error {
	described(s, d, func(r *mcp.ResourceTemplate) description {
		return description{&r.Title, &r.Icons, &r.Meta, &r.Annotations}
	})
	return nil
}

func promptsResult(s *Shape, d *draft[mcp.ListPromptsResult]) error {
	prompts, changed, err := edited(s, d.v.Prompts, prompt)
	if changed {
		d.edit().Prompts = prompts
	}
	return err
}

func prompt(s *Shape, d *draft[mcp.Prompt]) error {
	zero(d, !s.facts.Titles, func(p *mcp.Prompt) *string { return &p.Title })
	dropIcons(d, !s.facts.Icons, func(p *mcp.Prompt) *[]mcp.Icon { return &p.Icons })
	dropMeta(d, !s.facts.MetaEverywhere, func(p *mcp.Prompt) *mcp.Meta { return &p.Meta })
	arguments, changed, err := edited(s, d.v.Arguments, func(s *Shape, d *draft[mcp.PromptArgument]) error {
		zero(d, !s.facts.Titles, func(a *mcp.PromptArgument) *string { return &a.Title })
		return nil
	})
	if changed {
		d.edit().Arguments = arguments
	}
	return err
}

func rootsResult(s *Shape, d *draft[mcp.ListRootsResult]) error {
	roots, changed, err := edited(s, d.v.Roots, func(s *Shape, d *draft[mcp.Root]) error {
		dropMeta(d, !s.facts.MetaEverywhere, func(r *mcp.Root) *mcp.Meta { return &r.Meta })
		return nil
	})
	if changed {
		d.edit().Roots = roots
	}
	return err
}

// A description is where a thing has what not all revisions know.
type description struct {
	title *string
	icons *[]mcp.Icon
	meta  *mcp.Meta
	notes **mcp.Annotations
}

// described translates the description that find finds.
func described[T any](s *Shape, d *draft[T], find func(*T) description) {
	zero(d, !s.facts.Titles, func(v *T) *string { return find(v).title })
	dropIcons(d, !s.facts.Icons, func(v *T) *[]mcp.Icon { return find(v).icons })
	dropMeta(d, !s.facts.MetaEverywhere, func(v *T) *mcp.Meta { return find(v).meta })
	annotations(s, d, func(v *T) **mcp.Annotations { return find(v).notes })
}

// annotations translates the annotations that field finds.
func annotations[T any](s *Shape, d *draft[T], field func(*T) **mcp.Annotations) {
	a := *field(d.v)
	if s.facts.LastModified || a == nil || a.LastModified == "" {
		return
	}
	c := *a
	c.LastModified = ""
	*field(d.edit()) = &c
}
