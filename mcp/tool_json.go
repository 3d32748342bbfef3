package mcp

import (
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/wire"
)

// AppendJSON appends the JSON encoding of the result. Most results are texts,
// and are written directly: it takes a tenth of the time.
func (r *CallToolResult) AppendJSON(dst []byte) ([]byte, error) {
	if !r.simple() {
		return wire.Append(dst, r)
	}
	out := append(dst, '{')
	if info := r.Meta.ServerInfo; info != nil {
		out = append(out, `"_meta":{"`+MetaServerInfo+`":{"name":`...)
		out = wire.AppendString(out, info.Name)
		out = append(out, `,"version":`...)
		out = wire.AppendString(out, info.Version)
		out = append(out, "}},"...)
	}
	if r.ResultType != "" {
		out = append(out, `"resultType":`...)
		out = wire.AppendString(out, r.ResultType)
		out = append(out, ',')
	}
	out = append(out, `"content":[`...)
	for i, c := range r.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"type":"text","text":`...)
		out = wire.AppendString(out, c.(*TextContent).Text)
		out = append(out, '}')
	}
	out = append(out, ']')
	if r.StructuredContent != nil {
		out = append(out, `,"structuredContent":`...)
		var err error
		if out, err = wire.Append(out, r.StructuredContent); err != nil {
			return dst, err
		}
	}
	if r.IsError {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}'), nil
}

// simple reports whether the result has nothing but texts, and no more
// metadata than the server's name and version.
func (r *CallToolResult) simple() bool {
	m := &r.Meta
	if !m.SubscriptionID.IsZero() || len(m.Extra) > 0 || !utf8.ValidString(r.ResultType) {
		return false
	}
	if i := m.ServerInfo; i != nil && (i.Title != "" || i.Description != "" || i.WebsiteURL != "" || i.Icons != nil ||
		!utf8.ValidString(i.Name) || !utf8.ValidString(i.Version)) {
		return false
	}
	for _, c := range r.Content {
		t, ok := c.(*TextContent)
		if !ok || t == nil || t.Annotations != nil || t.Meta != nil || !utf8.ValidString(t.Text) {
			return false
		}
	}
	return true
}
