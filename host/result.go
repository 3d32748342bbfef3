package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
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

// complete returns a text without a character at its end that is there in part.
func complete(s string) string {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if utf8.RuneStart(s[len(s)-i]) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}

// result makes the record of how a call ended. A result longer than the model is
// given goes whole into the store, from where the model reads it by pages. The
// record is never nil; the error is that of the store, or of Info of the model.
func (s *Session) result(ctx context.Context, call string, r *mcp.CallToolResult, failure error) (*ResultRecord, error) {
	rec := &ResultRecord{Call: call, Outcome: OutcomeDone}
	limit := s.host.opts.MaxResultBytes
	if failure != nil {
		rec.Outcome, rec.Why = OutcomeFailed, bounded(failure.Error(), maxWhy)
		text := bounded(failure.Error(), limit)
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, ErrCancelled):
			rec.Outcome, rec.Why = OutcomeCancelled, "the person cancelled the call; it may have had effects"
			text = rec.Why
		case cause != nil:
			rec.Outcome, rec.Why = OutcomeInterrupted, "the run ended while the call was under way; it may have had effects"
			text = rec.Why
		}
		rec.Content = mcp.Contents{mcp.Text(text)}
		return rec, nil
	}
	rec.Failed = r.IsError
	if len(r.StructuredContent) <= limit {
		rec.Structured = r.StructuredContent
	}
	info, err := s.describe() // without it, the model takes no images
	whole, media := split(r, info.MaxImage)
	rec.Content = media
	whole = strings.ToValidUTF8(whole, "\uFFFD")
	text, isCut := cut(whole, limit)
	if !isCut {
		if whole != "" || len(media) == 0 {
			rec.Content = append(mcp.Contents{mcp.Text(whole)}, media...)
		}
		return rec, err
	}
	rec.Whole, rec.Size = call, int64(len(whole))
	if putErr := s.host.opts.Store.PutBlob(context.WithoutCancel(ctx), s.info.ID, call, []byte(whole)); putErr != nil {
		err = errors.Join(err, fmt.Errorf("keeping a long result: %w", putErr))
	}
	text, _ = cut(text, limit/2) // the rest is for the pages
	note := fmt.Sprintf("\n[host: these are the first %d of %d bytes; read on with %s, call %q, offset %d]", len(text), len(whole), readTool, call, len(text))
	rec.Content = append(mcp.Contents{mcp.Text(text + note)}, media...)
	return rec, err
}

// split makes of a result its text, in which what is no text is named, and the
// images that the model takes. What an image says it is must be what it is.
func split(r *mcp.CallToolResult, maxImage int) (string, mcp.Contents) {
	var parts []string
	var media mcp.Contents
	for _, c := range r.Content {
		if len(media) < maxImages && takes(c, maxImage) {
			media = append(media, c)
			continue
		}
		parts = append(parts, ContentText(c))
	}
	if untold := r.Untold(); untold != nil {
		parts = append(parts, string(untold))
	}
	return strings.Join(parts, "\n"), media
}

// takes reports whether a model that takes images of some size takes c as it is: an
// image that is what it says it is.
func takes(c mcp.Content, maxImage int) bool {
	image, ok := c.(*mcp.ImageContent)
	return ok && len(image.Data) <= maxImage && http.DetectContentType(image.Data) == image.MIMEType
}

// maxImages bounds the images of one result.
const maxImages = 16

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
