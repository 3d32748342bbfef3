package client

import (
	"bytes"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// plainResult reads a result of a tool that is text, with or without
// structured content, in the form in which servers write it: by its index, with
// nothing made but what the result is. It reports false for anything else, of
// which the codec says what it is; out may be half filled then. What it takes
// it reads as the codec does. The structured content aliases the message.
func (s *session) plainResult(o wire.Object, out *mcp.CallToolResult) bool {
	known := 0
	if raw, ok := o.Member("content"); ok {
		known++
		if out.Content, ok = plainTexts(raw); !ok {
			return false
		}
	}
	if raw, ok := o.Member("resultType"); ok {
		known++
		if string(raw) != plainComplete {
			return false
		}
		out.ResultType = mcp.ResultComplete
	}
	if raw, ok := o.Member("_meta"); ok {
		known++
		if raw[0] != '{' || !s.plainMeta(raw, &out.Meta) {
			return false
		}
	}
	if raw, ok := o.Member("structuredContent"); ok {
		known++
		out.StructuredContent = raw
	}
	if raw, ok := o.Member("isError"); ok {
		known++
		out.IsError = string(raw) == "true"
		if !out.IsError && string(raw) != "false" {
			return false
		}
	}
	return known == o.Len() // another member may be a twin of a known one
}

// How servers write text; the texts stand between.
var (
	textsBegin = []byte(`[{"type":"text","text":"`)
	textsNext  = []byte(`"},{"type":"text","text":"`)
	textsEnd   = []byte(`"}]`)
)

// plainTexts reads content that is text alone and nothing about it.
func plainTexts(raw wire.RawValue) (mcp.Contents, bool) {
	if string(raw) == "[]" {
		return mcp.Contents{}, true
	}
	rest, ok := bytes.CutPrefix(raw, textsBegin)
	if !ok {
		return nil, false
	}
	list := make(mcp.Contents, 0, 1)
	pos := len(raw) - len(rest) - 1 // the quotation mark
	for {
		end := closing(raw, pos)
		list = append(list, &mcp.TextContent{Text: wire.Text(raw[pos : end+1])})
		switch rest := raw[end:]; {
		case bytes.Equal(rest, textsEnd):
			return list, true
		case bytes.HasPrefix(rest, textsNext):
			pos = end + len(textsNext) - 1
		default:
			return nil, false
		}
	}
}

// closing returns where the string literal ends that begins at pos in a valid
// text.
func closing(raw wire.RawValue, pos int) int {
	for end := pos + 1; ; end++ {
		end += bytes.IndexByte(raw[end:], '"')
		slashes := end
		for raw[slashes-1] == '\\' {
			slashes--
		}
		if (end-slashes)%2 == 0 {
			return end
		}
	}
}

// A serverMeta is what the server says in _meta of each of its results, as text and
// decoded.
type serverMeta struct {
	raw  wire.RawValue
	info mcp.Implementation
}

// maxSpoken is how long _meta may be that is remembered.
const maxSpoken = 1 << 10

// plainMeta reads _meta. Most of the time it is that of the result before.
func (s *session) plainMeta(raw wire.RawValue, m *mcp.ResultMeta) bool {
	if last := s.serverMeta.Load(); last != nil && bytes.Equal(last.raw, raw) {
		info := last.info // the caller may write to what it gets
		m.ServerInfo = &info
		return true
	}
	if wire.Decode(raw, m) != nil {
		return false
	}
	if m.ServerInfo != nil && m.ServerInfo.Icons == nil && m.Extra == nil && m.SubscriptionID.IsZero() && len(raw) <= maxSpoken {
		s.serverMeta.Store(&serverMeta{bytes.Clone(raw), *m.ServerInfo})
	}
	return true
}
