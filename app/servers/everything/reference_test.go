package everything_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/servers/everything"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// What the reference server has under the same names, in every revision.
func TestReferenceTools(t *testing.T) {
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		for _, test := range []struct{ tool, args, want string }{
			{"get-sum", `{"a":0.5,"b":3}`, "The sum of 0.5 and 3 is 3.5."},
			{"get-structured-content", `{"location":"Chicago"}`, `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}`},
			{"get-resource-reference", `{"resourceId":7}`, "Returning resource reference for Resource 7:|Resource 7: This is a plaintext resource created at "},
			{"gzip-file-as-resource", `{"data":"https://example.com/"}`, "failed|only data: URLs are taken"},
			{"gzip-file-as-resource", `{"data":"data:;base64,%%"}`, "failed|the data: URL has broken base64"},
			{"gzip-file-as-resource", `{"data":"data:,%zz"}`, "failed|the data: URL has a broken escape"},
		} {
			if got := call(t, c, test.tool, test.args); !strings.HasPrefix(got, test.want) {
				t.Errorf("%s %s: %q, want %q", test.tool, test.args, got, test.want)
			}
		}
		for uri, want := range map[string]string{
			"demo://resource/dynamic/text/12": "Resource 12: This is a plaintext resource created at ",
			"demo://resource/dynamic/blob/12": "Resource 12: This is a base64 blob created at ",
		} {
			res, err := c.ReadResource(t.Context(), uri, nil)
			if err != nil || len(res.Contents) != 1 || !strings.HasPrefix(res.Contents[0].Text+string(res.Contents[0].Blob), want) {
				t.Errorf("%s: %+v, %v", uri, res, err)
			}
		}
		for _, uri := range []string{"demo://resource/dynamic/text/0", "demo://resource/dynamic/blob/x", "demo://resource/session/x/y"} {
			if res, err := c.ReadResource(t.Context(), uri, nil); err == nil {
				t.Errorf("%s: %+v", uri, res)
			}
		}
	})
}

func TestReferencePrompts(t *testing.T) {
	c := mcptest.Client(t, everything.New("1.0.0", nil))
	for _, test := range []struct {
		name string
		args map[string]string
		want string
	}{
		{"simple-prompt", nil, "This is a simple prompt without arguments."},
		{"args-prompt", map[string]string{"city": "Oslo"}, "What's weather in Oslo?"},
		{"args-prompt", map[string]string{"city": "Oslo", "state": "5"}, "What's weather in Oslo, 5?"},
		{"completable-prompt", map[string]string{"department": "Sales", "name": "Eve"}, "Please promote Eve to the head of the Sales team."},
		{"resource-prompt", map[string]string{"resourceType": "Text", "resourceId": "4"}, "This prompt includes the Text resource with id: 4. Please analyze the following resource:"},
	} {
		res, err := c.GetPrompt(t.Context(), test.name, test.args, nil)
		if err != nil || len(res.Messages) == 0 || host.ContentText(res.Messages[0].Content) != test.want {
			t.Errorf("%s: %+v, %v", test.name, res, err)
		}
	}
	if res, err := c.GetPrompt(t.Context(), "resource-prompt", map[string]string{"resourceType": "Text", "resourceId": "0"}, nil); err == nil {
		t.Errorf("%+v", res)
	}
	got, err := c.Complete(t.Context(), &mcp.CompleteParams{
		Ref: mcp.PromptRef("completable-prompt"), Argument: mcp.CompletionArgument{Name: "name", Value: "A"},
		Context: &mcp.CompletionContext{Arguments: map[string]string{"department": "Engineering"}},
	})
	if err != nil || !cmp.Equal(got.Values, []string{"Alice"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A compressed file comes at once or by a link, and the oldest is forgotten.
func TestCompress(t *testing.T) {
	c := mcptest.Client(t, everything.New("1.0.0", nil))
	unpack := func(data []byte) string {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	get := func(args string) mcp.Content {
		res, err := c.CallTool(t.Context(), "gzip-file-as-resource", mcp.RawValue(args), nil)
		if err != nil || res.IsError || len(res.Content) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		return res.Content[0]
	}
	embedded, ok := get(`{"data":"data:text/plain;base64,aGVsbG8=","outputType":"resource"}`).(*mcp.EmbeddedResource)
	if !ok || unpack(embedded.Resource.Blob) != "hello" {
		t.Errorf("%+v", embedded)
	}
	link, ok := get(`{"name":"a b.gz","data":"data:,a%20b"}`).(*mcp.ResourceLink)
	if !ok || link.Name != "a b.gz" {
		t.Fatalf("%+v", link)
	}
	res, err := c.ReadResource(t.Context(), link.URI, nil)
	if err != nil || unpack(res.Contents[0].Blob) != "a b" {
		t.Errorf("%+v, %v", res, err)
	}
	for range 20 {
		get(`{}`)
	}
	if res, err := c.ReadResource(t.Context(), link.URI, nil); err == nil {
		t.Errorf("it was kept: %+v", res)
	}
}

// Values of variables that may be secret are not shown.
func TestEnvironment(t *testing.T) {
	t.Setenv("SOME_API_KEY", "sk-secret")
	t.Setenv("LANG", "eo")
	got := call(t, mcptest.Client(t, everything.New("1.0.0", nil)), "get-env", `{}`)
	if strings.Contains(got, "sk-secret") || !strings.Contains(got, `"SOME_API_KEY": "(not shown)"`) || !strings.Contains(got, `"LANG": "eo"`) {
		t.Error(got)
	}
}
