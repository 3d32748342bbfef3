package everything_test

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

func build(_ testing.TB, o *server.Options) *server.Server {
	return everything.New("1.0.0", &everything.Options{Server: o})
}

// call calls a tool and returns its text.
func call(t *testing.T, c *client.Client, tool, args string) string {
	t.Helper()
	res, err := c.CallTool(t.Context(), tool, mcp.RawValue(args), nil)
	if err != nil {
		t.Errorf("%s: %v", tool, err)
		return ""
	}
	var lines []string
	if res.IsError {
		lines = append(lines, "failed")
	}
	for _, content := range res.Content {
		lines = append(lines, host.ContentText(content))
	}
	return strings.Join(lines, "|")
}

// Proves: PART-REF, FLOW-TOOL-P. Every tool answers in every revision.
func TestTools(t *testing.T) {
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		for _, test := range []struct{ tool, args, want string }{
			{"echo", `{"message":"hi"}`, "hi"},
			{"add", `{"a":2,"b":3}`, "5"},
			{"add", `{"a":0.1,"b":-3}`, "-2.9"},
			{"fail", `{}`, "failed|this tool failed: asked to"},
			{"measure-shape", `{"radius":2}`, `a shape of {"radius":2}`},
			{"log-messages", `{}`, "logged 8 messages; the client gets those of the level it asked for"},
			{"get-annotated-message", `{"messageType":"success"}`, "Operation completed successfully"},
			{"trigger-long-running-operation", `{"duration":0,"steps":2}`, "done: 0 seconds in 2 steps"},
		} {
			if got := call(t, c, test.tool, test.args); got != test.want {
				t.Errorf("%s %s: %q, want %q", test.tool, test.args, got, test.want)
			}
		}
		for tool, part := range map[string]string{
			"get-tiny-image":     "[image, image/png, ",
			"get-tiny-audio":     "audio/wav, ",
			"get-resource-links": "demo://resource/dynamic/text/2",
		} {
			if got := call(t, c, tool, `{}`); !strings.Contains(got, part) {
				t.Errorf("%s: %q does not hold %q", tool, got, part)
			}
		}
	})
}

// Proves: SEC-TOOL-1. Arguments that do not fit are refused, whatever the
// schema was made of.
func TestToolArgumentsAreChecked(t *testing.T) {
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		for _, bad := range [][2]string{
			{"add", `{"a":"2","b":3}`},
			{"add", `{"a":2}`},
			{"measure-shape", `{"width":1}`},
			{"measure-shape", `{"radius":1,"width":1,"height":1}`},
			{"weather", `{"city":""}`},
		} {
			res, err := c.CallTool(t.Context(), bad[0], mcp.RawValue(bad[1]), nil)
			var answered *jsonrpc.Error
			failed := err == nil && res.IsError
			refused := errors.As(err, &answered) && answered.Code == mcp.CodeInvalidParams
			if !failed && !refused {
				t.Errorf("%s %s: %+v, %v", bad[0], bad[1], res, err)
			}
		}
	})
}

// Proves: FLOW-PROGRESS, FLOW-LOG.
func TestProgressAndLogs(t *testing.T) {
	told := make(chan mcp.LogLevel, 64)
	o := &client.Options{
		LogLevel: mcp.LogError,
		OnLog:    func(_ context.Context, p *mcp.LogParams) { told <- p.Level },
	}
	mcptest.EachEra(t, build, o, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		var steps []float64
		_, err := c.CallTool(t.Context(), "trigger-long-running-operation", mcp.RawValue(`{"duration":0,"steps":3}`), &client.CallOptions{
			OnProgress: func(done, total float64, _ string) { steps = append(steps, done/total) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]float64{1.0 / 3, 2.0 / 3, 1}, steps); diff != "" {
			t.Error(diff)
		}
		call(t, c, "log-messages", `{}`)
		var levels []mcp.LogLevel
		for !slices.Contains(levels, mcp.LogEmergency) {
			levels = append(levels, <-told)
		}
		if diff := cmp.Diff([]mcp.LogLevel{mcp.LogError, mcp.LogCritical, mcp.LogAlert, mcp.LogEmergency}, levels); diff != "" {
			t.Error(diff)
		}
	})
}

// Proves: FLOW-ELICIT-P, FLOW-SAMPLE-P, FLOW-ROOTS.
func TestAsking(t *testing.T) {
	accept := map[string]string{
		"Drop the table":   `{"sure":true}`,
		"Why is":           `{"reason":"too old"}`,
		"Please introduce": `{"name":"Ada","subscribe":true,"colour":"blue"}`,
	}
	o := &client.Options{
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			for begin, content := range accept {
				if strings.HasPrefix(r.Params.Message, begin) {
					return client.Accept(mcp.RawValue(content))
				}
			}
			return client.Decline()
		},
		OnElicitURL: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Accept(nil) },
		OnSample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.Contents{mcp.Text("42")}}, nil
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///work", Name: "work"}}, nil },
	}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		asks := map[string][2]string{
			"trigger-sampling-request": {`{"prompt":"what?"}`, "The model m says: 42"},
			"get-roots-list":           {`{}`, "file:///work work"},
		}
		if era.Version >= "2025-06-18" {
			asks["drop-table"] = [2]string{`{"table":"t"}`, "dropped t, because: too old (ticket 1001)"}
			asks["trigger-elicitation-request"] = [2]string{`{}`, "Name: Ada; colour: blue; newsletter: true"}
		}
		if era.Version >= "2025-11-25" { // older clients open no pages
			asks["trigger-url-elicitation"] = [2]string{`{}`, "The person agreed to go there."}
		}
		for tool, want := range asks {
			if got := call(t, c, tool, want[0]); got != want[1] {
				t.Errorf("%s: %q, want %q", tool, got, want[1])
			}
		}
	})
}

// Proves: FLOW-RES.
func TestResources(t *testing.T) {
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		var uris []string
		for r, err := range c.Resources(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			uris = append(uris, r.URI)
		}
		if diff := cmp.Diff([]string{
			"demo://image",
			"demo://resource/static/document/architecture.md", "demo://resource/static/document/extension.md",
			"demo://resource/static/document/features.md", "demo://resource/static/document/how-it-works.md",
			"demo://resource/static/document/instructions.md", "demo://resource/static/document/startup.md",
			"demo://resource/static/document/structure.md",
			"demo://text", "demo://ticks",
			"skill://greeting-style/SKILL.md", "skill://table-review/SKILL.md", "skill://table-review/references/checklist.md",
			"ui://everything/palette.html",
		}, uris); diff != "" {
			t.Error(diff)
		}
		for uri, want := range map[string]string{
			"demo://text": "This text does not change.\n", "demo://cities/Japan/Kyoto": "Kyoto in Japan is known for temples.\n",
		} {
			res, err := c.ReadResource(t.Context(), uri, nil)
			if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != want {
				t.Errorf("%s: %+v, %v", uri, res, err)
			}
		}
		res, err := c.ReadResource(t.Context(), "demo://image", nil)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := png.Decode(bytes.NewReader(res.Contents[0].Blob)); err != nil || p.Bounds().Dx() != 16 {
			t.Errorf("the image: %v, %v", p, err)
		}
		for _, bad := range []string{"demo://nothing", "demo://cities/Japan/Paris", "demo://cities/Japan/..%2f..%2ftext"} {
			if res, err := c.ReadResource(t.Context(), bad, nil); err == nil {
				t.Errorf("%s: %+v", bad, res)
			}
		}
	})
}

// Proves: FLOW-PROMPT, FLOW-COMPLETE.
func TestPromptsAndCompletion(t *testing.T) {
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for _, test := range []struct {
			name string
			args map[string]string
			want []string
		}{
			{"simple", nil, []string{"Please tell me what you can do with the tools you have."}},
			{"greeting", map[string]string{"name": "Ada", "style": "formal"}, []string{"Please greet Ada formally.", "Good day, "}},
			{"briefing", map[string]string{"country": "Peru", "city": "Lima"}, []string{"Lima in Peru is known for fog.\n", "Please write a briefing about Lima."}},
		} {
			res, err := c.GetPrompt(t.Context(), test.name, test.args, nil)
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			var got []string
			for _, m := range res.Messages {
				got = append(got, host.ContentText(m.Content))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: %s", test.name, diff)
			}
		}
		if res, err := c.GetPrompt(t.Context(), "briefing", map[string]string{"country": "Peru", "city": "Paris"}, nil); err == nil {
			t.Errorf("an unknown city: %+v", res)
		}
		for _, test := range []struct {
			p    mcp.CompleteParams
			want []string
		}{
			{mcp.CompleteParams{Ref: mcp.PromptRef("greeting"), Argument: mcp.CompletionArgument{Name: "style", Value: "f"}}, []string{"friendly", "formal"}},
			{mcp.CompleteParams{Ref: mcp.PromptRef("briefing"), Argument: mcp.CompletionArgument{Name: "country", Value: ""}}, []string{"France", "Japan", "Peru"}},
			{mcp.CompleteParams{
				Ref: mcp.ResourceRef("demo://cities/{country}/{city}"), Argument: mcp.CompletionArgument{Name: "city", Value: "m"},
				Context: &mcp.CompletionContext{Arguments: map[string]string{"country": "Japan"}},
			}, []string{"Matsuyama"}},
		} {
			if test.p.Context != nil && era.Version < "2025-06-18" {
				test.want = []string{"Marseille", "Matsuyama"} // completion had no context
			}
			res, err := c.Complete(t.Context(), &test.p)
			if err != nil {
				t.Errorf("%+v: %v", test.p, err)
				continue
			}
			if diff := cmp.Diff(test.want, res.Values); diff != "" {
				t.Errorf("%+v: %s", test.p, diff)
			}
		}
	})
}

// Proves: FLOW-SUB, FLOW-LIST-CHANGED. What changes is told to who wants it.
func TestChanges(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := everything.New("1.0.0", &everything.Options{Tick: time.Minute})
				defer func() {
					if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				}()
				updated, changed := make(chan string, 16), make(chan struct{}, 16)
				c, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{
					Versions:          []string{version},
					OnResourceUpdated: func(_ context.Context, uri string) { updated <- uri },
					OnToolsChanged:    func(context.Context) { changed <- struct{}{} },
				})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}()
				sub, err := c.Subscribe(t.Context(), "demo://ticks")
				if err != nil {
					t.Fatal(err)
				}
				if uri := <-updated; uri != "demo://ticks" {
					t.Errorf("told about %s", uri)
				}
				if err := sub.Close(); err != nil {
					t.Error(err)
				}
				for len(changed) > 0 { // notices of the beginning
					<-changed
				}
				call(t, c, "toggle-extra-tool", `{}`)
				<-changed
				names := func() (list []string) {
					for tool, err := range c.Tools(t.Context()) {
						if err != nil {
							t.Fatal(err)
						}
						list = append(list, tool.Name)
					}
					return list
				}
				if !slices.Contains(names(), "extra") {
					t.Error("the new tool is not listed")
				}
				call(t, c, "toggle-extra-tool", `{}`)
				<-changed
				if slices.Contains(names(), "extra") {
					t.Error("the old tool is still listed")
				}
			})
		})
	}
}
