package shape

import (
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

func callToolResult(s *Shape, d *draft[mcp.CallToolResult]) error {
	content, changed, err := s.contents(d.v.Content)
	if err != nil {
		return err
	}
	if changed {
		d.edit().Content = content
	}
	if value := d.v.StructuredContent; value != nil && !s.saysStructured(value) {
		r := d.edit()
		r.StructuredContent = nil
		if len(r.Content) == 0 {
			r.Content = mcp.Contents{mcp.Text(string(value))}
		}
	}
	return nil
}

// says reports whether the revision knows all of a tool's result.
func (s *Shape) says(r *mcp.CallToolResult) bool {
	return s.plainContent() &&
		(s.facts.ResultType || r.ResultType == "") &&
		(s.facts.MetaVersion || r.Meta.ServerInfo == nil && r.Meta.SubscriptionID.IsZero()) &&
		(r.StructuredContent == nil || s.saysStructured(r.StructuredContent))
}

func getPromptResult(s *Shape, d *draft[mcp.GetPromptResult]) error {
	messages, changed, err := edited(s, d.v.Messages, func(s *Shape, d *draft[mcp.PromptMessage]) error {
		c, changed, err := s.content(d.v.Content)
		if changed {
			d.edit().Content = c
		}
		return err
	})
	if changed {
		d.edit().Messages = messages
	}
	return err
}

func readResourceResult(s *Shape, d *draft[mcp.ReadResourceResult]) error {
	contents, changed, err := edited(s, d.v.Contents, resourceContents)
	if changed {
		d.edit().Contents = contents
	}
	return err
}

func resourceContents(s *Shape, d *draft[mcp.ResourceContents]) error {
	dropMeta(d, !s.facts.MetaEverywhere, func(c *mcp.ResourceContents) *mcp.Meta { return &c.Meta })
	return nil
}

// plainContent says that all content passes unchanged, so that it need not be
// decoded.
func (s *Shape) plainContent() bool {
	f := s.facts
	return f.Audio && f.ResourceLinks && f.MetaEverywhere && f.LastModified && f.Icons
}

// contents translates a list of content.
func (s *Shape) contents(list mcp.Contents) (mcp.Contents, bool, error) {
	if s.plainContent() {
		return list, false, nil
	}
	return edited(s, list, func(s *Shape, d *draft[mcp.Content]) error {
		c, changed, err := s.content(*d.v)
		if changed {
			*d.edit() = c
		}
		return err
	})
}

// content translates one block of content, and reports whether it is another
// one then.
func (s *Shape) content(c mcp.Content) (mcp.Content, bool, error) {
	switch c := c.(type) {
	case *mcp.TextContent:
		d := draft[mcp.TextContent]{v: c}
		dropMeta(&d, !s.facts.MetaEverywhere, func(c *mcp.TextContent) *mcp.Meta { return &c.Meta })
		annotations(s, &d, func(c *mcp.TextContent) **mcp.Annotations { return &c.Annotations })
		return d.v, d.copied, nil
	case *mcp.ImageContent:
		d := draft[mcp.ImageContent]{v: c}
		dropMeta(&d, !s.facts.MetaEverywhere, func(c *mcp.ImageContent) *mcp.Meta { return &c.Meta })
		annotations(s, &d, func(c *mcp.ImageContent) **mcp.Annotations { return &c.Annotations })
		return d.v, d.copied, nil
	case *mcp.AudioContent:
		return s.audio(c)
	case *mcp.ResourceLink:
		return s.link(c)
	case *mcp.EmbeddedResource:
		return s.embedded(c)
	case *mcp.ToolUseContent:
		return c, false, s.checkToolContent()
	case *mcp.ToolResultContent:
		return s.toolResult(c)
	}
	return c, false, nil // nil: the encoder says so
}

// audioURI stands for the URI that an embedded resource must have and that sound
// has not.
const audioURI = "about:audio"

func (s *Shape) audio(c *mcp.AudioContent) (mcp.Content, bool, error) {
	if !s.facts.Audio {
		blob := c.Data
		if blob == nil {
			blob = []byte{}
		}
		e := mcp.Embed(mcp.ResourceContents{URI: audioURI, MIMEType: c.MIMEType, Blob: blob})
		e.Annotations, e.Meta = c.Annotations, c.Meta
		e2, _, err := s.embedded(e)
		return e2, true, err
	}
	d := draft[mcp.AudioContent]{v: c}
	dropMeta(&d, !s.facts.MetaEverywhere, func(c *mcp.AudioContent) *mcp.Meta { return &c.Meta })
	annotations(s, &d, func(c *mcp.AudioContent) **mcp.Annotations { return &c.Annotations })
	return d.v, d.copied, nil
}

func (s *Shape) link(c *mcp.ResourceLink) (mcp.Content, bool, error) {
	if !s.facts.ResourceLinks {
		t := mcp.Text(linkText(c))
		t.Annotations, t.Meta = c.Annotations, c.Meta
		t2, _, err := s.content(t)
		return t2, true, err
	}
	d := draft[mcp.Resource]{v: &c.Resource}
	if err := resource(s, &d); err != nil || !d.copied {
		return c, false, err
	}
	return &mcp.ResourceLink{Resource: *d.v}, true, nil
}

// linkText says in words what a link says.
func linkText(c *mcp.ResourceLink) string {
	var b strings.Builder
	b.WriteString("Resource ")
	name := c.Title
	if name == "" {
		name = c.Name
	}
	if name != "" {
		b.WriteString(name + " ")
	}
	b.WriteString("<" + c.URI + ">")
	if c.Description != "" {
		b.WriteString(": " + c.Description)
	}
	return b.String()
}

func (s *Shape) embedded(c *mcp.EmbeddedResource) (mcp.Content, bool, error) {
	d := draft[mcp.EmbeddedResource]{v: c}
	dropMeta(&d, !s.facts.MetaEverywhere, func(c *mcp.EmbeddedResource) *mcp.Meta { return &c.Meta })
	annotations(s, &d, func(c *mcp.EmbeddedResource) **mcp.Annotations { return &c.Annotations })
	inner := draft[mcp.ResourceContents]{v: &d.v.Resource}
	if err := resourceContents(s, &inner); err != nil {
		return nil, false, err
	}
	if inner.copied {
		d.edit().Resource = *inner.v
	}
	return d.v, d.copied, nil
}
