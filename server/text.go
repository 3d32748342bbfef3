package server

import (
	"errors"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// answer translates a result for the peer's revision and sends it. Results are
// encoded by code of users, which may panic. Texts are not looked at before:
// only when one turns out not to be valid UTF-8, which JSON cannot hold, the
// result is mended and encoded again.
func (s *Server) answer(c *Call, res Result) (err error) {
	defer s.catch(c, &err)
	err = s.deliver(c, res)
	if !errors.Is(err, wire.ErrUTF8) {
		return err
	}
	res, before := validText(res), err
	err = s.deliver(c, res)
	if out, ok := res.(*mcp.CallToolResult); ok && errors.Is(err, wire.ErrUTF8) {
		instead := failed(c.notUTF8(err).Error())
		instead.ResultBase = out.ResultBase
		return s.deliver(c, instead)
	}
	s.log.WarnContext(c, "a text is not valid UTF-8; what is not was replaced by U+FFFD", "err", before)
	return err
}

// notUTF8 tells the log, and the model, which member of a structured result is
// not valid UTF-8.
func (c *Call) notUTF8(err error) error {
	c.srv.log.WarnContext(c, "a structured result is not valid UTF-8", "err", err)
	if we, ok := errors.AsType[*wire.Error](err); ok {
		err = we
	}
	return mcp.Errorf("the result cannot be sent: %v", err)
}

// validText is a copy of a result whose texts are valid UTF-8; what is not has
// become U+FFFD. Other members are left as they are, structured results above
// all: they must not change unseen.
func validText(res Result) Result {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		own := *r
		own.Content = make(mcp.Contents, len(r.Content))
		for i, c := range r.Content {
			own.Content[i] = validContent(c)
		}
		return &own
	case *mcp.GetPromptResult:
		own := *r
		own.Messages = make([]mcp.PromptMessage, len(r.Messages))
		for i, m := range r.Messages {
			own.Messages[i] = mcp.PromptMessage{Role: m.Role, Content: validContent(m.Content)}
		}
		return &own
	case *mcp.ReadResourceResult:
		own := *r
		own.Contents = make([]mcp.ResourceContents, len(r.Contents))
		for i, c := range r.Contents {
			c.Text = toValid(c.Text)
			own.Contents[i] = c
		}
		return &own
	}
	return res
}

func validContent(c mcp.Content) mcp.Content {
	switch c := c.(type) {
	case *mcp.TextContent:
		own := *c
		own.Text = toValid(c.Text)
		return &own
	case *mcp.EmbeddedResource:
		own := *c
		own.Resource.Text = toValid(c.Resource.Text)
		return &own
	}
	return c
}

func toValid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
