package mcp_test

import (
	"bytes"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// The short way gives, byte for byte, what the long one gives, also the error.
func TestCallToolResultAppendJSON(t *testing.T) {
	info := &mcp.Implementation{Name: "s\"", Version: "1"}
	long := &mcp.Implementation{Name: "s", Version: "1", Title: "S"}
	text := func(s string) mcp.Contents { return mcp.Contents{mcp.Text(s)} }
	base := func(i *mcp.Implementation, resultType string) mcp.ResultBase {
		return mcp.ResultBase{Meta: mcp.ResultMeta{ServerInfo: i}, ResultType: resultType}
	}
	for name, r := range map[string]*mcp.CallToolResult{
		"empty":        {},
		"no content":   {Content: mcp.Contents{}},
		"text":         {Content: text("héllo\n\"<>&\u2028")},
		"texts":        {Content: mcp.Contents{mcp.Text("a"), mcp.Text("")}, IsError: true},
		"newest":       {ResultBase: base(info, mcp.ResultComplete), Content: text("a")},
		"title":        {ResultBase: base(long, mcp.ResultComplete), Content: text("a")},
		"structured":   {Content: text("{}"), StructuredContent: mcp.RawValue("{ \"a\":\n[1, 2]}")},
		"broken":       {Content: text("{}"), StructuredContent: mcp.RawValue("{")},
		"bad UTF-8":    {Content: text("a\xff")},
		"annotated":    {Content: mcp.Contents{&mcp.TextContent{Text: "a", Annotations: &mcp.Annotations{}}}},
		"with meta":    {Content: mcp.Contents{&mcp.TextContent{Text: "a", Meta: mcp.Meta{"k": mcp.RawValue("1")}}}},
		"image":        {Content: mcp.Contents{mcp.Text("a"), &mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}}},
		"extra":        {ResultBase: mcp.ResultBase{Meta: mcp.ResultMeta{Extra: map[string]mcp.RawValue{"x/y": mcp.RawValue("1")}}}, Content: text("a")},
		"nil":          {Content: mcp.Contents{nil}},
		"subscription": {ResultBase: mcp.ResultBase{Meta: mcp.ResultMeta{SubscriptionID: mcp.IntID(5)}}},
	} {
		want, wantErr := wire.Marshal(r)
		got, err := r.AppendJSON([]byte("before"))
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Errorf("%s: got %s, %v, want %s, %v", name, got, err, want, wantErr)
		}
	}
}

func BenchmarkCallToolResultAppendJSON(b *testing.B) {
	r := &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("the quick brown fox jumps over the lazy dog and back")}}
	r.ResultType, r.Meta.ServerInfo = mcp.ResultComplete, &mcp.Implementation{Name: "bench", Version: "1"}
	dst := make([]byte, 0, 1024)
	b.Run("short", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = r.AppendJSON(dst) // it has been seen to work
		}
	})
	b.Run("long", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = wire.Append(dst, r) // the same
		}
	})
}
