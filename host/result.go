package host

import (
	"fmt"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
)

// cut shortens a text to at most limit bytes, at the border of a character.
func cut(s string, limit int) (short string, isCut bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}

// maxBlocks is how many blocks of one result the model gets.
const maxBlocks = 256

// forModel makes of a result what the model gets: text, and pictures as far as
// they fit. What does not fit is cut off, and a marker says so. What is no text
// is named.
func forModel(r *mcp.CallToolResult, limit int) mcp.Contents {
	var out mcp.Contents
	left, full := limit, false
	add := func(text string) {
		short, isCut := cut(text, left)
		left -= len(short)
		if isCut {
			full = true
			short += fmt.Sprintf("\n[cut off by the host: %d bytes of this result are the most that fit]", limit)
		}
		out = append(out, mcp.Text(short))
	}
	for i, c := range r.Content {
		if full {
			break
		}
		if i == maxBlocks {
			out = append(out, mcp.Text(fmt.Sprintf("[cut off by the host: %d more blocks of content]", len(r.Content)-i)))
			break
		}
		if image, ok := c.(*mcp.ImageContent); ok && len(image.Data)+len(image.MIMEType) <= left {
			left -= len(image.Data) + len(image.MIMEType)
			out = append(out, image)
			continue
		}
		add(ContentText(c))
	}
	if len(r.Content) == 0 && len(r.StructuredContent) > 0 {
		add(string(r.StructuredContent))
	}
	return out
}

// ContentText returns the text of a block of content, or for what is no text
// a short description of it in brackets. It is not escaped.
func ContentText(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[link to resource %s, %q]", c.URI, c.Name)
	case *mcp.EmbeddedResource:
		return ResourceText(&c.Resource)
	case *mcp.ToolUseContent:
		return fmt.Sprintf("[use of tool %s]", c.Name)
	case *mcp.ToolResultContent:
		return fmt.Sprintf("[result of tool use %s]", c.ToolUseID)
	}
	panic(fmt.Sprintf("unknown content %T", c)) // Content is sealed
}

// ResourceText returns the text of a resource, or for a blob a short
// description of it in brackets. It is not escaped.
func ResourceText(r *mcp.ResourceContents) string {
	if r.Blob == nil {
		return r.Text
	}
	return fmt.Sprintf("[resource %s, %s, %d bytes]", r.URI, r.MIMEType, len(r.Blob))
}
