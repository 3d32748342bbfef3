package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A Method is a row of the table: one thing that a server can be asked.
type Method struct {
	Name string
	// Flags are the flags of the command line that it takes, those that it needs first; what
	// it can go without is in brackets.
	Flags []string
	// About says what it gives.
	About string
	// Watches says that the Watcher of the target needs to be shown what the connection
	// carries.
	Watches bool
	// Asks says that the server may ask for input before it answers.
	Asks bool

	run func(ctx context.Context, t *Target, a *Args) (*Outcome, error)
}

// An Outcome is what a method gave.
type Outcome struct {
	// Result is one JSON value, or nil where lines were emitted.
	Result mcp.RawValue
	// AppInfo is what was found about the page of the tool, or nil.
	AppInfo *AppInfo
	// Summary says for a user what the lines say.
	Summary string
	// Findings are what --strict found, FindingsText the same for a user.
	Findings     []ToolFindings
	FindingsText string
	// Failure says that Result is one, or the lines are: it is told after them.
	Failure *Error
}

// Run asks a server. It connects, and the connection has ended when it returns.
func (m *Method) Run(ctx context.Context, t *Target, a *Args) (*Outcome, error) {
	return m.run(ctx, t, a)
}

// Methods are all methods, by name.
func Methods() []*Method {
	list := make([]*Method, 0, len(methods))
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		m := methods[name]
		m.Name = name
		list = append(list, &m)
	}
	return list
}

// aliases are other names of methods.
var aliases = map[string]string{"prompts/complete": mcp.MethodComplete, "logging/tail": methodWatch}

// Lookup finds a method by its name.
func Lookup(name string) (*Method, bool) {
	if own, ok := aliases[name]; ok {
		name = own
	}
	m, ok := methods[name]
	m.Name = name
	return &m, ok
}

// The flags that rows name.
const (
	flagTool = "--tool-name"
	flagArgs = "[--tool-arg NAME=VALUE ... | --tool-args-json JSON]"
	flagURI  = "--uri"
	flagTask = "--task-id"

	flagCount  = "[--count N]"
	flagAnswer = "[--answer ANSWER ...]"
)

// methods is the table.
var methods = map[string]Method{
	mcp.MethodInitialize: {
		About: "the server, its protocol version, capabilities and instructions",
		run:   connected(initialize),
	},
	mcp.MethodDiscover: {
		About: "how the server describes itself in both eras",
		run:   discover,
	},
	mcp.MethodPing: {
		About: "whether the server answers",
		run:   connected(ping),
	},
	mcp.MethodToolsList: {
		Flags: []string{"[--strict]", "[--app-info]"}, About: "the tools",
		run: connected(listTools),
	},
	mcp.MethodToolsCall: {
		Flags: []string{flagTool, flagArgs, "[--task]", "[--app-info]", "[--load]", flagAnswer}, About: "the result of a tool",
		Asks: true, run: connected(callTool),
	},
	mcp.MethodResourcesList: {
		About: "the resources",
		run:   connected(list(mcp.MethodResourcesList, "resources")),
	},
	mcp.MethodResourcesTemplates: {
		About: "the resource templates",
		run:   connected(list(mcp.MethodResourcesTemplates, "resourceTemplates")),
	},
	mcp.MethodResourcesRead: {
		Flags: []string{flagURI, flagAnswer}, About: "the contents of a resource",
		Asks: true, run: connected(read),
	},
	mcp.MethodPromptsList: {
		About: "the prompts",
		run:   connected(list(mcp.MethodPromptsList, "prompts")),
	},
	mcp.MethodPromptsGet: {
		Flags: []string{"--prompt-name", "[--prompt-args NAME=VALUE ...]", flagAnswer}, About: "the messages of a prompt",
		Asks: true, run: connected(prompt),
	},
	mcp.MethodComplete: {
		Flags: []string{"--prompt-name NAME | --uri TEMPLATE", "--complete-arg-name", "[--complete-arg-value]", "[--prompt-args NAME=VALUE ...]"},
		About: "values of an argument",
		run:   connected(complete),
	},
	mcp.MethodSetLevel: {
		Flags: []string{"--log-level"}, About: "the server's lowest log level, in protocol versions with sessions",
		run: connected(setLevel),
	},
	mcp.MethodResourcesSubscribe: {
		Flags: []string{flagURI, flagCount}, About: "a line for each change of a resource, until Ctrl-C",
		run: subscribe,
	},
	mcp.MethodResourcesUnsubscribe: {
		Flags: []string{flagURI}, About: "the response to unsubscribing, in protocol versions with sessions",
		run: connected(unsubscribe),
	},
	mcp.MethodRootsList: {
		Flags: []string{"[--root DIRECTORY ...]"}, About: "the folders sent when the server requests roots",
		run: roots,
	},
	methodSetRoots: {
		Flags: []string{"--roots-json JSON"}, About: "the folders, after notifying the server of the change",
		run: connected(setRoots),
	},
	methodWatch: {
		Flags: []string{"[--uri URI]", "[--log-level LEVEL]", flagCount}, About: "a line for each notification, until Ctrl-C",
		Watches: true, run: watch,
	},
	methodSkillsList: {
		Flags: []string{"[--verify]"}, About: "the skills; with --verify a line for each that shows whether it matches its entry",
		run: connected(listSkills),
	},
	methodSkillsGet: {
		Flags: []string{flagURI, "[--verify]"}, About: "one skill, by the URI of its SKILL.md",
		run: connected(getSkill),
	},
	methodDirectory: {
		Flags: []string{flagURI, "[--cursor CURSOR]"}, About: "a page of the files in a folder",
		run: connected(readDirectory),
	},
	tasks.MethodGet: {
		Flags: []string{flagTask}, About: "the state of a task",
		run: connected(task(tasks.MethodGet)),
	},
	tasks.MethodUpdate: {
		Flags: []string{flagTask, "--input-responses JSON"}, About: "the response to a task's input request, in protocol versions without sessions",
		run: connected(task(tasks.MethodUpdate)),
	},
	tasks.MethodCancel: {
		Flags: []string{flagTask}, About: "the response to canceling a task",
		run: connected(task(tasks.MethodCancel)),
	},
	methodTaskResult: {
		Flags: []string{flagTask, flagAnswer}, About: "the result of a task, in the protocol version with tasks in its core",
		Asks: true, run: connected(task(methodTaskResult)),
	},
	methodTaskList: {
		About: "the tasks, in the protocol version with tasks in its core",
		run:   connected(list(methodTaskList, "tasks")),
	},
}

// Methods of this program and the Inspector, which no server knows.
const (
	methodWatch    = "watch"
	methodSetRoots = "roots/set"
)

// connected is a method that needs a connection.
func connected(run func(ctx context.Context, s *Session, a *Args) (*Outcome, error)) func(context.Context, *Target, *Args) (*Outcome, error) {
	return func(ctx context.Context, t *Target, a *Args) (*Outcome, error) {
		s, err := t.Connect(ctx)
		if err != nil {
			return nil, err
		}
		o, err := run(ctx, s, a)
		if closing := s.Close(); err == nil && closing != nil && t.Logger != nil {
			t.Logger.Warn("closing the connection", "error", closing)
		}
		return o, err
	}
}

// result makes an outcome of an answer.
func result(raw mcp.RawValue, err error) (*Outcome, error) {
	if err != nil {
		return nil, err
	}
	return &Outcome{Result: raw}, nil
}

// encoded makes an outcome of a value.
func encoded(v any) (*Outcome, error) {
	raw, err := strictjson.Marshal(v)
	if err != nil {
		return nil, Internal(err)
	}
	return &Outcome{Result: raw}, nil
}

func ping(ctx context.Context, s *Session, _ *Args) (*Outcome, error) {
	if err := s.client.Ping(ctx); err != nil {
		return nil, err
	}
	return &Outcome{Result: mcp.RawValue("{}")}, nil
}

func read(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	if a.URI == "" {
		return nil, missing(mcp.MethodResourcesRead, flagURI)
	}
	return result(s.ask(ctx, mcp.MethodResourcesRead, map[string]string{"uri": a.URI}, nil))
}

func prompt(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	if a.Prompt == "" {
		return nil, missing(mcp.MethodPromptsGet, "--prompt-name")
	}
	params := map[string]any{"name": a.Prompt}
	if len(a.PromptArgs) > 0 {
		params["arguments"] = texts(a.PromptArgs)
	}
	return result(s.ask(ctx, mcp.MethodPromptsGet, params, nil))
}

func complete(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	kind, ref := a.RefType, a.Ref
	switch {
	case kind == "" && a.Prompt != "":
		kind, ref = mcp.RefPrompt, a.Prompt
	case kind == "" && a.URI != "":
		kind, ref = mcp.RefResource, a.URI
	}
	switch {
	case kind == "" || ref == "":
		return nil, missing(mcp.MethodComplete, "--prompt-name or --uri")
	case a.ArgName == "":
		return nil, missing(mcp.MethodComplete, "--complete-arg-name")
	}
	member := "name"
	if kind == mcp.RefResource {
		member = "uri"
	}
	params := map[string]any{
		"ref":      map[string]string{"type": kind, member: ref},
		"argument": map[string]string{"name": a.ArgName, "value": a.ArgValue},
	}
	if given := texts(a.PromptArgs); len(given) > 0 {
		params["context"] = map[string]any{"arguments": given}
	}
	return result(s.ask(ctx, mcp.MethodComplete, params, nil))
}

func setLevel(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	if a.Level == "" {
		return nil, missing(mcp.MethodSetLevel, "--log-level")
	}
	return result(s.ask(ctx, mcp.MethodSetLevel, map[string]string{"level": string(a.Level)}, nil))
}

func unsubscribe(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	if a.URI == "" {
		return nil, missing(mcp.MethodResourcesUnsubscribe, flagURI)
	}
	return result(s.ask(ctx, mcp.MethodResourcesUnsubscribe, map[string]string{"uri": a.URI}, nil))
}

// missing is the error of an argument that a method needs.
func missing(method, flag string) error {
	return usage(method + " requires " + flag)
}

// notOffered reports whether nothing was sent because the server has no such thing.
func notOffered(err error) bool {
	return errors.Is(err, client.ErrNotCapable) && !errors.As(err, new(*client.CapabilityError))
}

// similar names those of a list that are like a name, for errors.
func similar(list []string, name string) string {
	name = strings.ToLower(name)
	var found []string
	for _, n := range list {
		if own := strings.ToLower(n); strings.Contains(own, name) || strings.Contains(name, own) {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "; perhaps " + strings.Join(found[:min(len(found), 5)], " or ")
}
