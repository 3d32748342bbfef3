package shape

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// The short way for results of tools gives what the table gives, in every
// revision.
func TestDownResultOfTools(t *testing.T) {
	contents := []mcp.Contents{
		nil,
		{},
		{mcp.Text("a")},
		{&mcp.TextContent{Text: "a", Meta: mcp.Meta{"k": mcp.RawValue("1")}, Annotations: &mcp.Annotations{LastModified: "2025"}}},
		{&mcp.ImageContent{Data: []byte("a"), MIMEType: "image/png"}, &mcp.AudioContent{Data: []byte("a"), MIMEType: "audio/wav"}},
		{&mcp.ResourceLink{Resource: mcp.Resource{URI: "a:b", Name: "n", Icons: []mcp.Icon{{Src: "https://a.example"}}}}},
		{mcp.Embed(mcp.ResourceContents{URI: "a:b", Text: "t", Meta: mcp.Meta{"k": mcp.RawValue("1")}})},
	}
	metas := []mcp.ResultMeta{
		{},
		{ServerInfo: &mcp.Implementation{Name: "n"}},
		{SubscriptionID: mcp.IntID(1)},
		{Extra: map[string]mcp.RawValue{"a/b": mcp.RawValue("1")}},
	}
	for _, f := range revision.All() {
		s := For(f)
		for _, c := range contents {
			for _, m := range metas {
				for _, kind := range []string{"", mcp.ResultComplete} {
					for _, structured := range []string{"", `{"a":1}`, `[1]`, `"a"`, `null`} {
						r := &mcp.CallToolResult{Content: c, ResultBase: mcp.ResultBase{Meta: m, ResultType: kind}}
						if structured != "" {
							r.StructuredContent = mcp.RawValue(structured)
						}
						want, wantErr := s.down(s.results, mcp.MethodToolsCall, r)
						got, err := s.DownResult(mcp.MethodToolsCall, r)
						if (err == nil) != (wantErr == nil) {
							t.Errorf("%s: %v, want %v", f.Version, err, wantErr)
						}
						if d := cmp.Diff(encoded(t, want), encoded(t, got)); d != "" {
							t.Errorf("%s: %s", f.Version, d)
						}
					}
				}
			}
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
