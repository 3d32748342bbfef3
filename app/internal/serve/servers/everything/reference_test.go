package everything_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
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

// What is about asking: the model and the person, in a call and as a task, and pages with and
// without the error that asks for another one first.
func TestReferenceAsking(t *testing.T) {
	var pages []string
	o := &client.Options{
		URLWait: time.Nanosecond,
		OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(map[string]any{"name": "Ada", "favoriteColor": "Blue"})
		},
		OnElicitURL: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			pages = append(pages, r.Params.URL)
			return client.Accept(nil)
		},
		OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.Contents{mcp.Text("forty-two")}}, nil
		},
	}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if got := call(t, c, "trigger-sampling-request-async", `{"prompt":"six times seven?"}`); !strings.HasPrefix(got, "[SYNC] ") || !strings.Contains(got, "forty-two") {
			t.Errorf("sampling: %s", got)
		}
		if era.Version < "2025-06-18" {
			return
		}
		if got := call(t, c, "trigger-elicitation-request-async", `{}`); !strings.HasPrefix(got, "[SYNC] ") || !strings.Contains(got, `"Ada"`) {
			t.Errorf("a form: %s", got)
		}
		if era.Version < "2025-11-25" {
			return
		}
		for _, test := range []struct {
			args, want string
			pages      []string
		}{
			{`{}`, "The person agreed to go there.", []string{"https://example.com/parley/demonstration"}},
			{`{"url":"http://example.com/a","elicitationId":"7"}`, "The person agreed to go there.", []string{"http://example.com/a"}},
			{`{"url":"javascript:alert(1)"}`, "failed|url must be the address of a page, such as https://example.com/", nil},
			{`{"url":"https://example.com/b","errorPath":true}`, "The person agreed to go there.", []string{"https://example.com/parley/first", "https://example.com/b"}},
			{`{"url":"https://example.com/b","errorPath":true}`, "The person agreed to go there.", []string{"https://example.com/parley/first", "https://example.com/b"}},
		} {
			pages = nil
			got := call(t, c, "trigger-url-elicitation", test.args)
			if c.Modern() && len(test.pages) == 2 { // no error for it
				test.pages = test.pages[1:]
			}
			if got != test.want || !slices.Equal(pages, test.pages) {
				t.Errorf("%s: %s, pages %q, want %s, %q", test.args, got, pages, test.want, test.pages)
			}
		}
	})
}

// A client that knows tasks gets the two as tasks.
func TestReferenceAskingTasks(t *testing.T) {
	for _, test := range []struct {
		tool, args string
		answer     func() (*mcp.ElicitResult, error)
		want       string
	}{
		{
			"trigger-sampling-request-async", `{"prompt":"six times seven?"}`, nil,
			"[COMPLETED] Async sampling completed!\n\n**Result:**\n{\n",
		},
		{
			"trigger-elicitation-request-async", `{}`,
			func() (*mcp.ElicitResult, error) {
				return client.Accept(map[string]any{"name": "Ada", "favoriteColor": "Blue"})
			},
			"[COMPLETED] User provided the requested information!\n- Name: Ada\n- Favorite Color: Blue\n- Agreed to terms: false",
		},
		{
			"trigger-elicitation-request-async", `{}`,
			client.Decline,
			"[DECLINED] User declined to provide the requested information.",
		},
		{
			"trigger-elicitation-request-async", `{}`,
			client.CancelElicit,
			"[CANCELLED] User cancelled the elicitation dialog.",
		},
	} {
		c := mcptest.Client(t, everything.New("1.0.0", nil), &client.Options{
			Extensions: []client.Extension{tasks.Client(nil)},
			OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
				return test.answer()
			},
			OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.Contents{mcp.Text("forty-two")}}, nil
			},
		})
		if got := call(t, c, test.tool, test.args); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s, want %s", test.tool, got, test.want)
		}
	}
}

// While logging is simulated each call of a tool gets a message, and sessions get one every five
// seconds besides; afterwards nobody does.
func TestSimulatedLogging(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				heard := 0
				c := mcptest.Client(t, everything.New("1.0.0", nil), &client.Options{
					Versions: []string{version}, LogLevel: mcp.LogDebug,
					OnLog: func(context.Context, *mcp.LogParams) {
						mu.Lock()
						defer mu.Unlock()
						heard++
					},
				})
				count := func(what string, want int) {
					t.Helper()
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					if heard != want {
						t.Errorf("%s: %d messages, want %d", what, heard, want)
					}
					heard = 0
				}
				inSession := 0
				if !c.Modern() {
					inSession = 4
				}
				call(t, c, "echo", `{"message":"hi"}`)
				count("before", 0)
				call(t, c, "toggle-simulated-logging", `{}`)
				count("the call that begins it", 1)
				time.Sleep(22 * time.Second)
				count("twenty seconds", inSession)
				call(t, c, "echo", `{"message":"hi"}`)
				count("a call", 1)
				call(t, c, "toggle-simulated-logging", `{}`)
				time.Sleep(time.Minute)
				call(t, c, "echo", `{"message":"hi"}`)
				count("afterwards", 0)
			})
		})
	}
}

// The documents can be read, and one of them is what a model is told.
func TestDocuments(t *testing.T) {
	c := mcptest.Client(t, everything.New("1.0.0", nil))
	for _, name := range []string{"architecture", "extension", "features", "how-it-works", "instructions", "startup", "structure"} {
		res, err := c.ReadResource(t.Context(), "demo://resource/static/document/"+name+".md", nil)
		if err != nil || len(res.Contents) != 1 || res.Contents[0].MIMEType != "text/markdown" || len(res.Contents[0].Text) < 200 {
			t.Errorf("%s: %+v, %v", name, res, err)
		} else if name == "instructions" && res.Contents[0].Text != c.Instructions() {
			t.Errorf("the model is told %q", c.Instructions())
		}
	}
	features, err := c.ReadResource(t.Context(), "demo://resource/static/document/features.md", nil)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`[a-z]+(-[a-z]+)*`").FindAllString(features.Contents[0].Text, -1)
	if len(named) < 20 {
		t.Errorf("it names %d things", len(named))
	}
	for _, name := range named {
		if name = strings.Trim(name, "`"); name == "completable-prompt" || name == "briefing" {
			continue // prompts
		}
		if _, err := c.Tool(t.Context(), name); err != nil {
			t.Errorf("the document about features names %s: %v", name, err)
		}
	}
}
