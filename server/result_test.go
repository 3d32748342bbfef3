package server_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Arguments that are no objects would make clients refuse the whole list.
func TestArgumentsAreObjects(t *testing.T) {
	for _, try := range []struct {
		make func() error
		want string
	}{
		{func() error { _, err := server.NewTool("a", "", nothing[[]int]); return err }, "type []int is the JSON type array"},
		{func() error { _, err := server.NewTool("a", "", nothing[string]); return err }, "make it a field of a struct"},
		{func() error { _, err := server.NewTool("a", "", nothing[any]); return err }, "can be anything"},
		{func() error { _, err := server.NewTool("a", "", nothing[mcp.RawValue]); return err }, "RawTool"},
		{func() error { _, err := server.NewTool("a", "", nothing[*int]); return err }, "integer"},
		{func() error {
			_, err := server.NewPrompt("a", "", func(context.Context, map[string]string) (string, error) { return "", nil })
			return err
		}, "RawPrompt"},
		{func() error {
			_, err := server.NewPrompt("a", "", func(context.Context, any) (string, error) { return "", nil })
			return err
		}, "RawPrompt"},
	} {
		if err := try.make(); err == nil || !strings.Contains(err.Error(), try.want) {
			t.Errorf("got %v, want %q", err, try.want)
		}
	}
	for _, err := range []error{
		func() error { _, err := server.NewTool("a", "", nothing[map[string]any]); return err }(),
		func() error { _, err := server.NewTool("a", "", nothing[*struct{ A int }]); return err }(),
		func() error { _, err := server.NewTool("a", "", nothing[mcp.None]); return err }(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

func nothing[In any](context.Context, In) (string, error) { return "", nil }

// What is a result is one by value too, and never a result of a result.
func TestResultsByValue(t *testing.T) {
	s := newServer(nil,
		server.Tool("result", "", func(context.Context, none) (mcp.CallToolResult, error) {
			return mcp.CallToolResult{Content: mcp.Contents{mcp.Text("a")}, IsError: true}, nil
		}),
		server.Tool("text", "", func(context.Context, none) (mcp.TextContent, error) { return mcp.TextContent{Text: "b"}, nil }),
		server.Prompt("p", "", func(context.Context, mcp.None) (mcp.GetPromptResult, error) { return *user("c"), nil }),
		server.Resource("test:r", "r", func(context.Context) (mcp.ReadResourceResult, error) { return *contents("d"), nil }),
	)
	each(t, bothEras, func(t *testing.T, version string) {
		l := join(t, s, version)
		if got := string(l.result(l.call("tools/list", emptyBody))); strings.Contains(got, "outputSchema") {
			t.Errorf("an output schema of a result: %s", got)
		}
		if got := l.isError(l.tool("result", emptyBody)); got != "a" {
			t.Errorf("got %q", got)
		}
		for call, want := range map[[2]string]string{
			{"tools/call", toolParams("text", emptyBody)}: `"content":[{"type":"text","text":"b"}]`,
			{"prompts/get", `{"name":"p"}`}:               `"text":"c"`,
			{"resources/read", `{"uri":"test:r"}`}:        `"text":"d"`,
		} {
			if got := string(l.result(l.call(call[0], call[1]))); !strings.Contains(got, want) || strings.Contains(got, "structured") {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// between is an argument that checks itself.
type between struct {
	From int `json:"from" uri:"from"`
	To   int `json:"to" uri:"to"`
}

func (b *between) Validate() error {
	switch {
	case b.From == 13:
		panic("unlucky")
	case b.From > b.To:
		return errors.New("from must not be after to")
	}
	return nil
}

// Arguments that check themselves are asked, and the caller reads why they are
// refused; a panic is a mistake of the program and its text stays inside.
func TestValidate(t *testing.T) {
	fn := func(context.Context, between) (string, error) { return "fine", nil }
	s := newServer(nil,
		server.Tool("value", "", fn),
		server.Tool("pointer", "", func(context.Context, *between) (string, error) { return "fine", nil }),
		server.Prompt("prompt", "", fn),
		server.Template("test:{from}-{to}", "t", fn),
	)
	l := join(t, s, v2607)
	for _, name := range []string{"value", "pointer"} {
		if got := l.text(l.tool(name, `{"from":1,"to":2}`)); got != "fine" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := l.isError(l.tool(name, `{"from":3,"to":2}`)); got != "invalid arguments: from must not be after to" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := l.fails(l.tool(name, `{"from":13,"to":2}`), mcp.CodeInternalError); strings.Contains(got, "unlucky") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for call, params := range map[string]string{"prompts/get": `{"name":"prompt","arguments":{"from":"3","to":"2"}}`, "resources/read": `{"uri":"test:3-2"}`} {
		if got := l.fails(l.call(call, params), mcp.CodeInvalidParams); !strings.Contains(got, "from must not be after to") {
			t.Errorf("%s: got %q", call, got)
		}
	}
}

// team is a type whose teams are known at run time only.
type team struct {
	Team string `json:"team" desc:"Which team."`
	Size int    `json:"size" default:"5"`
}

// A typed handler is served with a schema that was edited, and one whose types
// are described elsewhere.
func TestEditedSchemas(t *testing.T) {
	fn := func(_ context.Context, in team) (team, error) { return in, nil }
	input := mcp.RawValue(`{"type":"object","properties":{"team":{"type":"string","enum":["red","blue"]},"note":{"type":"string"}},"required":["team"]}`)
	output := mcp.RawValue(`{"type":"object","required":["team"],"properties":{"size":{"maximum":5}}}`)
	s := newServer(nil, server.Tool("t", "", fn).With(server.ToolOptions{InputSchema: input, OutputSchema: output}),
		server.RawTool(mcp.Tool{Name: "raw", InputSchema: mcp.RawValue(`{"type":"object"}`)}, func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(string(arguments))}}, nil
		}).With(server.ToolOptions{InputSchema: input}),
		server.Tool("types", "", fn).With(server.ToolOptions{Types: map[reflect.Type]mcp.RawValue{reflect.TypeFor[string](): mcp.RawValue(`{"type":"string","enum":["green"]}`)}}),
	)
	top := newServer(nil)
	top.Mount("gh", s)
	for prefix, s := range map[string]*server.Server{"": s, "gh_": top} {
		l := join(t, s, v2607)
		list := string(l.result(l.call("tools/list", emptyBody)))
		for _, want := range []string{string(input), string(output), `"enum":["green"]`} {
			if !strings.Contains(list, want) {
				t.Errorf("the list lacks %s: %s", want, list)
			}
		}
		if got := l.toolResult(l.tool(prefix+"t", `{"team":"red","note":"x"}`)); string(got.StructuredContent) != `{"team":"red","size":5}` {
			t.Errorf("got %s", got.StructuredContent)
		}
		for name, arguments := range map[string]string{"t": `{"team":"green"}`, "raw": `{"team":"green"}`, "types": `{"team":"red"}`} {
			if got := l.isError(l.tool(prefix+name, arguments)); !strings.Contains(got, "/team: must be one of") && !strings.Contains(got, "/team: value must be one of") {
				t.Errorf("%s: got %q", name, got)
			}
		}
	}
	for want, f := range map[string]server.Feature{
		`InputSchema: invalid JSON Schema: its type is "array"`: server.Tool("t", "", fn).With(server.ToolOptions{InputSchema: mcp.RawValue(`{"type":"array"}`)}),
		`OutputSchema: its result type has no`:                  server.Tool("t", "", nothing[none]).With(server.ToolOptions{OutputSchema: output}),
		`OutputSchema: invalid JSON Schema`:                     server.Tool("t", "", fn).With(server.ToolOptions{OutputSchema: mcp.RawValue(`7`)}),
		`schema given for string`:                               server.Tool("t", "", fn).With(server.ToolOptions{Types: map[reflect.Type]mcp.RawValue{reflect.TypeFor[string](): mcp.RawValue(`7`)}}),
	} {
		if err := newServer(nil).TryAdd(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A gateway hands on what it does not understand.
func TestUncheckedTool(t *testing.T) {
	def := mcp.Tool{
		Name: "t", InputSchema: mcp.RawValue(`{"$schema":"urn:own","type":"object","required":["a"]}`),
		OutputSchema: mcp.RawValue(`{"type":"object","required":["b"]}`),
	}
	if _, err := server.NewRawTool(def, nil); err == nil {
		t.Error("it can be checked too")
	}
	if _, err := server.NewUncheckedTool(mcp.Tool{Name: "t", InputSchema: mcp.RawValue(`[]`)}, nil); err == nil {
		t.Error("no object, and no error")
	}
	s := newServer(nil, server.UncheckedTool(def, func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(string(arguments))}}, nil
	}))
	l := join(t, s, v2607)
	if got := l.text(l.tool("t", `{"c":1}`)); got != `{"c":1}` {
		t.Errorf("got %q", got)
	}
	if got := string(l.result(l.call("tools/list", emptyBody))); !strings.Contains(got, string(def.InputSchema)) || !strings.Contains(got, string(def.OutputSchema)) {
		t.Errorf("got %s", got)
	}
}

var errNoRows = errors.New("no rows in SELECT secret")

// What a program says of its errors reaches the caller; what it does not know
// stays hidden, and what was made for the caller is not asked about.
func TestMapError(t *testing.T) {
	o := quiet()
	o.MapError = func(ctx context.Context, err error) error {
		switch {
		case errors.Is(err, errNoRows):
			return mcp.Errorf("no such order in %s", server.CallFrom(ctx).Method())
		case strings.Contains(err.Error(), "twice"):
			return errors.New("another hidden one")
		case errors.Is(err, server.ErrNotFound), mcp.Code(err) != mcp.CodeInternalError:
			t.Errorf("asked about %v", err)
		}
		return nil
	}
	tool := func(name string, err error) server.Feature {
		return server.Tool(name, "", func(context.Context, none) (string, error) { return "", err })
	}
	s := newServer(o, tool("rows", errNoRows), tool("unknown", errors.New("secret")), tool("twice", errors.New("secret twice")), tool("coded", mcp.NewError(-7, "own")),
		server.Resource("test:rows", "r", func(context.Context) (string, error) { return "", errNoRows }),
		server.Resource("test:gone", "r", func(context.Context) (string, error) { return "", server.ErrNotFound }),
		tool("middleware", nil),
	)
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Target() == "middleware" {
				return nil, errNoRows
			}
			return next(c)
		}
	})
	l := join(t, s, v2607)
	if got := l.isError(l.tool("rows", emptyBody)); got != "no such order in tools/call" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"unknown", "twice"} {
		if got := l.isError(l.tool(name, emptyBody)); !strings.HasPrefix(got, "internal error (ref ") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	l.fails(l.tool("coded", emptyBody), -7)
	l.fails(l.call("resources/read", `{"uri":"test:gone"}`), mcp.CodeInvalidParams)
	if got := l.fails(l.call("resources/read", `{"uri":"test:rows"}`), mcp.CodeInternalError); got != "no such order in resources/read" {
		t.Errorf("got %q", got)
	}
	if got := l.fails(l.tool("middleware", emptyBody), mcp.CodeInternalError); got != "no such order in tools/call" {
		t.Errorf("got %q", got)
	}
}

// A tool's errors that other handlers may return to the caller are hidden too, and
// so for MapError to see.
func TestMapErrorOfTools(t *testing.T) {
	o := quiet()
	o.MapError = func(_ context.Context, err error) error {
		var upstream *jsonrpc.Error
		switch {
		case errors.As(err, &upstream):
			return mcp.Errorf("upstream says %s", upstream.Message)
		case errors.Is(err, server.ErrNotFound):
			return mcp.Errorf("nothing there")
		}
		return nil
	}
	tool := func(name string, err error) server.Feature {
		return server.Tool(name, "", func(context.Context, none) (string, error) { return "", err })
	}
	s := newServer(o, tool("upstream", jsonrpc.NewError(-31001, "too many")), tool("gone", server.ErrNotFound))
	each(t, bothEras, func(t *testing.T, version string) {
		l := join(t, s, version)
		for name, want := range map[string]string{"upstream": "upstream says too many", "gone": "nothing there"} {
			if got := l.isError(l.tool(name, emptyBody)); got != want {
				t.Errorf("%s: got %q", name, got)
			}
		}
	})
}

// Middleware sees of an error what the caller will be told, so that metrics and
// logs agree with it.
func TestMiddlewareSeesMappedErrors(t *testing.T) {
	o := quiet()
	o.MapError = func(_ context.Context, err error) error {
		if errors.Is(err, errNoRows) {
			return mcp.NewError(mcp.CodeInvalidParams, "no such order")
		}
		return nil
	}
	s := newServer(o,
		server.Resource("test:rows", "r", func(context.Context) (string, error) { return "", errNoRows }),
		server.Prompt("rows", "", func(context.Context, none) (string, error) { return "", errNoRows }),
		server.Tool("rows", "", func(context.Context, none) (string, error) { return "", errNoRows }),
	)
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			if got, code := server.OutcomeOf(c, res, err), server.ErrorCode(c, err); got != server.OutcomeRefused || code != mcp.CodeInvalidParams {
				t.Errorf("%s: %v with code %d", c.Method(), got, code)
			}
			return res, err
		}
	})
	l := join(t, s, v2607)
	l.fails(l.call("resources/read", `{"uri":"test:rows"}`), mcp.CodeInvalidParams)
	l.fails(l.call("prompts/get", `{"name":"rows"}`), mcp.CodeInvalidParams)
	l.fails(l.tool("rows", emptyBody), mcp.CodeInvalidParams)
}

// The error of an ask names what the client lacks.
func TestMissingCapabilityIsNamed(t *testing.T) {
	s := newServer(nil, server.Tool("ask", "", func(ctx context.Context, _ none) (string, error) {
		_, err := server.Elicit[sure](ctx, "Sure?")
		return "", err
	}))
	l := join(t, s, v2607)
	l.caps = "{}"
	if got := l.fails(l.tool("ask", emptyBody), mcp.CodeMissingClientCapability); !strings.Contains(got, "forms (elicitation)") {
		t.Errorf("got %q", got)
	}
}

// An argument with an enum completes by it, unless the author knows better.
func TestEnumCompletes(t *testing.T) {
	prompt := server.Prompt("review", "", func(context.Context, struct {
		Style string `json:"style" enum:"terse,thorough,kind"`
		Tone  string `json:"tone" enum:"warm,cold" titles:"Warm,Cold"`
		Depth int    `json:"depth" enum:"1,2,10"`
		Code  string `json:"code"`
	},
	) (string, error) {
		return "", nil
	})
	plain, own := newServer(nil, prompt), newServer(nil, prompt.With(server.PromptOptions{Complete: map[string]server.Completer{"style": server.Choices("own")}}))
	for _, try := range []struct {
		s                     *server.Server
		argument, value, want string
	}{
		{plain, "style", "t", `["terse","thorough"]`},
		{plain, "tone", "", `["warm","cold"]`},
		{plain, "depth", "1", `["1","10"]`},
		{plain, "code", "", `[]`},
		{own, "style", "", `["own"]`},
		{own, "tone", "w", `["warm"]`},
	} {
		l := join(t, try.s, v2607)
		got := string(l.result(l.complete(`{"type":"ref/prompt","name":"review"}`, try.argument, try.value, "")))
		if !strings.Contains(got, `"values":`+try.want) {
			t.Errorf("%s %q: got %s, want %s", try.argument, try.value, got, try.want)
		}
	}
}

// A list with commas where a path was meant is found when the program starts.
func TestTemplateOfPlainList(t *testing.T) {
	_, err := server.NewTemplate("file:///{path*}", "f", func(context.Context, struct {
		Path []string `uri:"path"`
	},
	) (string, error) {
		return "", nil
	})
	if err == nil || !strings.Contains(err.Error(), "{+path}") || !strings.Contains(err.Error(), "{/path*}") {
		t.Errorf("got %v", err)
	}
}

// Content that is nil, alone or in a list, as a nil interface or a nil pointer,
// is an error of the tool with a clear text in the log.
func TestNilContent(t *testing.T) {
	text := new(logtest.Log)
	var image *mcp.ImageContent
	s := newServer(&server.Options{Logger: text.Logger()},
		server.Tool("plain", "", func(context.Context, none) (mcp.Content, error) { return nil, nil }),
		server.Tool("typed", "", func(context.Context, none) (*mcp.ImageContent, error) { return nil, nil }),
		server.Tool("boxed", "", func(context.Context, none) (mcp.Content, error) { return image, nil }),
		server.Tool("element", "", func(context.Context, none) ([]mcp.Content, error) { return []mcp.Content{mcp.Text("a"), nil}, nil }),
		server.Tool("text", "", func(context.Context, none) ([]mcp.Content, error) { return []mcp.Content{(*mcp.TextContent)(nil)}, nil }),
		server.Tool("result", "", func(context.Context, none) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{image}}, nil
		}),
		server.Tool("with", "", func(context.Context, none) (mcp.With[int], error) {
			return mcp.With[int]{Content: []mcp.Content{nil}}, nil
		}),
		server.Prompt("prompt", "", func(context.Context, none) (mcp.PromptMessage, error) { return mcp.PromptMessage{}, nil }),
	)
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, s, v)
		for name, want := range map[string]string{
			"plain": "the tool returned no content", "typed": "content 1 of 1 is nil (*mcp.ImageContent)", "boxed": "content 1 of 1 is nil (*mcp.ImageContent)",
			"element": "content 2 of 2 is nil", "text": "content 1 of 1 is nil (*mcp.TextContent)", "result": "content 1 of 1 is nil", "with": "content 1 of 1 is nil",
		} {
			if got := l.isError(l.tool(name, emptyBody)); !strings.Contains(got, "internal error") {
				t.Errorf("%s: %s", name, got)
			}
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: the log lacks %q", name, want)
			}
		}
		l.fails(l.call("prompts/get", `{"name":"prompt"}`), mcp.CodeInternalError)
		if !strings.Contains(text.String(), "prompt prompt: message 1: content 1 of 1 is nil") {
			t.Errorf("the log has %s", text)
		}
	})
}

// A slice of one type of content is content like []mcp.Content.
func TestSlicesOfContent(t *testing.T) {
	type pictures []mcp.ImageContent
	image := *mcp.Image([]byte("x"), "image/png")
	s := newServer(nil,
		server.Tool("pointers", "", func(context.Context, none) ([]*mcp.ImageContent, error) {
			return []*mcp.ImageContent{&image, &image}, nil
		}),
		server.Tool("values", "", func(context.Context, none) ([]mcp.ImageContent, error) { return []mcp.ImageContent{image, image}, nil }),
		server.Tool("named", "", func(context.Context, none) (pictures, error) { return pictures{image, image}, nil }),
		server.Tool("none", "", func(context.Context, none) ([]*mcp.ImageContent, error) { return nil, nil }),
		server.Tool("nil", "", func(context.Context, none) ([]*mcp.ImageContent, error) { return []*mcp.ImageContent{nil}, nil }),
	)
	l := join(t, s, v2511)
	for _, name := range []string{"pointers", "values", "named"} {
		got := l.toolResult(l.tool(name, emptyBody))
		if len(got.Content) != 2 || got.Content[1].Type != "image" || got.StructuredContent != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if m := l.tool("none", emptyBody); !strings.Contains(m.raw, `"content":[]`) {
		t.Errorf("none: %s", m.raw)
	}
	if got := l.isError(l.tool("nil", emptyBody)); !strings.Contains(got, "internal error") {
		t.Errorf("nil: %s", got)
	}
	if m := l.call("tools/list", emptyBody); strings.Contains(m.raw, "outputSchema") {
		t.Errorf("they have schemas: %s", m.raw)
	}
}

// Content inside of a structured result is refused when the tool is made, with
// what to write in its place. What only looks similar is not.
func TestContentInStructuredResult(t *testing.T) {
	type report struct {
		Title string
		Chart *mcp.ImageContent
	}
	type deep struct {
		Parts map[string][]struct{ C mcp.Content }
	}
	type tree struct {
		Below  []*tree
		Hidden *mcp.ImageContent `json:"-"`
		Part   mcp.ResourceContents
		Calls  []*mcp.CallToolResult
		Raw    any
	}
	const advice = "mcp.With[T]"
	panics(t, advice, func() { server.Tool("t", "", func(context.Context, none) (report, error) { return report{}, nil }) })
	panics(t, advice, func() { server.Tool("t", "", func(context.Context, none) (*deep, error) { return nil, nil }) })
	panics(t, advice, func() {
		server.Tool("t", "", func(context.Context, none) (mcp.With[report], error) { return mcp.With[report]{}, nil })
	})
	panics(t, advice, func() {
		server.Tool("t", "", func(context.Context, none) (struct{ mcp.Contents }, error) { return struct{ mcp.Contents }{}, nil })
	})
	_, err := server.NewTool("t", "", func(context.Context, none) (report, error) { return report{}, nil })
	if err == nil || !strings.Contains(err.Error(), "report.Chart, *mcp.ImageContent") {
		t.Errorf("got %v", err)
	}
	if _, err := server.NewTool("t", "", func(context.Context, none) (*tree, error) { return nil, nil }); err != nil {
		t.Error(err)
	}
}
