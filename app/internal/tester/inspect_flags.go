package tester

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport/stdio"
)

// inspectFlags are the flags of the command inspect. Those that the MCP Inspector has mean
// the same.
type inspectFlags struct {
	method, era, transport, serverURL, cwd string
	env                                    []string

	tool, toolJSON, uri, prompt, level, taskID   string
	toolArgs, promptArgs, metadata, toolMetadata []string
	refType, ref, argName, argValue              string
	appInfo, advertiseApps                       bool
	format, output, outputFormat, connectTimeout string
	cursor                                       string
	verify, requireDigests                       bool
	maxSkills                                    int
	maxSkillBytes                                int64
	responses                                    string
	quiet, strict, task                          bool
	count                                        int
	timeout                                      time.Duration

	config, catalog string
	rootsJSON       string
	answers         []string
	elicit, sample  string

	auth      inspectAuth
	load      inspectLoad
	metaPairs []inspect.Pair // what metadata says
}

// add adds the flags.
func (f *inspectFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.method, "method", "", "`METHOD` to ask for, such as tools/list")
	set.StringVar(&f.era, "protocol-era", "auto", "revisions to speak: `ERA` is legacy (with a handshake), modern (without), or auto")
	set.StringVar(&f.transport, "transport", "", "`KIND` of transport to a URL: http or sse (default: whatever is there)")
	set.StringVar(&f.serverURL, "server-url", "", "`URL` of the server")
	set.StringArrayVarP(&f.env, "env", "e", nil, "`NAME=VALUE` in the environment of the server's command; may be given several times")
	set.StringVar(&f.cwd, "cwd", "", "`DIRECTORY` in which the server's command runs")
	set.StringVar(&f.config, "config", "", "take the server from this `FILE`; --server says its name, if the file has several")
	set.StringVar(&f.catalog, "catalog", "", "the same as --config: the `FILE` is read, and never written")
	set.StringVar(&f.tool, "tool-name", "", "`NAME` of the tool")
	set.StringArrayVar(&f.toolArgs, "tool-arg", nil, "argument of the tool as `NAME=VALUE`, where VALUE is JSON or else text; may be given several times")
	set.StringVar(&f.toolJSON, "tool-args-json", "", "arguments of the tool as one `JSON` object, sent as it is")
	set.StringVar(&f.uri, "uri", "", "`URI` of a resource")
	set.StringVar(&f.prompt, "prompt-name", "", "`NAME` of the prompt")
	set.StringArrayVar(&f.promptArgs, "prompt-args", nil, "argument of the prompt as `NAME=VALUE`; may be given several times")
	set.StringVar(&f.level, "log-level", "", "`LEVEL` of log messages: debug, info, notice, warning, error, critical, alert or emergency")
	set.StringVar(&f.refType, "complete-ref-type", "", "what is completed: `TYPE` is ref/prompt or ref/resource")
	set.StringVar(&f.ref, "complete-ref", "", "`NAME` of the prompt, or template of the resource, whose argument is completed")
	set.StringVar(&f.argName, "complete-arg-name", "", "`NAME` of the argument to complete")
	set.StringVar(&f.argValue, "complete-arg-value", "", "`BEGINNING` of its value")
	set.StringArrayVar(&f.metadata, "metadata", nil, "`NAME=VALUE` in _meta of each request; may be given several times")
	set.StringArrayVar(&f.toolMetadata, "tool-metadata", nil, "`NAME=VALUE` in _meta of tools/call; may be given several times")
	set.BoolVar(&f.appInfo, "app-info", false, "say of the tool, or of each tool of tools/list, which page it has; nothing is called")
	set.BoolVar(&f.strict, "strict", false, "look in the schemas of tools/list for what models or clients refuse or drop")
	set.BoolVar(&f.verify, "verify", false, "read the files of skills and compare them with their entries")
	set.BoolVar(&f.requireDigests, "require-digests", false, "with --verify, fail for a skill without digests")
	set.IntVar(&f.maxSkills, "skill-catalog-max-skills", 0, "with --verify, read this `NUMBER` of skills at most (default 256)")
	set.Int64Var(&f.maxSkillBytes, "skill-catalog-max-bytes", 0, "with --verify, read this `NUMBER` of bytes at most (default 67108864)")
	set.StringVar(&f.cursor, "cursor", "", "`CURSOR` of the page of resources/directory/read to begin at")
	set.BoolVar(&f.task, "task", false, "of a call that becomes a task, write the task instead of waiting for its end")
	set.StringVar(&f.taskID, "task-id", "", "`ID` of a task")
	set.StringVar(&f.responses, "input-responses", "", "answers to the questions of a task: a `JSON` object by the keys of these")
	set.StringArrayVar(&f.answers, "answer", nil, "`ANSWER` to what the server asks before it answers: the values of a form as a JSON object,\nthe text of a model, accept, decline or cancel; one for each question")
	set.StringVar(&f.elicit, "elicit", "", "`MODE` of questions to the person that is declared: off, form, url or both\n(default: both for methods that take --answer, else off)")
	set.StringVar(&f.sample, "sample", "", "whether questions to a model are declared: `MODE` is on or off (default: as for --elicit)")
	set.StringVar(&f.rootsJSON, "roots-json", "", "roots to set: a `JSON` array of objects with uri and perhaps name")
	set.IntVar(&f.count, "count", 0, "end after this `NUMBER` of changes or notifications (default: at Ctrl-C)")
	set.BoolVar(&f.advertiseApps, "advertise-apps", false, "declare that pages of tools can be shown")
	set.StringVar(&f.format, "format", "", "`FORMAT` of the result: text (laid out), or json (an object with the member \"result\")")
	set.StringVar(&f.output, "output", "", "`FILE` to write the result into")
	set.StringVar(&f.outputFormat, "output-format", "", "how it is written there: `FORMAT` is json, or raw (the text or bytes in it)")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "write nothing but the result, and the object of a failure")
	set.StringVar(&f.connectTimeout, "connect-timeout", "", "`TIME` that the connection may take, in ms or as in 5s; 0 is no limit (default 15s)")
	f.auth.add(set)
	f.load.add(set)
	set.DurationVar(&f.timeout, "timeout", 0, "`TIME` that a request may be without an answer (default 1m)")
}

// choice checks a flag that has few values.
func choice(flag, value string, of ...string) error {
	if value == "" || slices.Contains(of, value) {
		return nil
	}
	return kit.Usagef("--%s %q: write one of %s", flag, value, strings.Join(of, ", "))
}

// versions are the revisions of the flags, newest first.
func (f *inspectFlags) versions(pinned string) (modern, legacy []string, err error) {
	all := kit.Versions()
	if pinned != "" {
		if !slices.Contains(all, pinned) {
			return nil, nil, kit.Usagef("--protocol %q: the versions are %s", pinned, strings.Join(all, ", "))
		}
		all = []string{pinned}
	}
	for _, v := range all {
		switch stateless := client.Stateless.Has(v); {
		case stateless && f.era != "legacy":
			modern = append(modern, v)
		case !stateless && f.era != "modern":
			legacy = append(legacy, v)
		}
	}
	if len(modern)+len(legacy) == 0 {
		return nil, nil, kit.Usagef("--protocol %s is no revision of --protocol-era %s", pinned, f.era)
	}
	return modern, legacy, nil
}

// among are the members of a list that another one has.
func among(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return !slices.Contains(other, v) })
}

// adjust gives a command its environment and directory.
func (f *inspectFlags) adjust(s *host.Server, m *mask.Masker) error {
	command, ok := s.Dialer.(*stdio.CommandDialer)
	switch {
	case !ok && len(f.env) > 0:
		return kit.Usagef("-e goes with the command of a server")
	case !ok && f.cwd != "":
		return kit.Usagef("--cwd goes with the command of a server")
	case !ok && f.transport == "stdio":
		return kit.Usagef("--transport stdio goes with the command of a server")
	case ok && f.transport != "" && f.transport != "stdio":
		return kit.Usagef("--transport %s goes with a URL", f.transport)
	case !ok:
		return nil
	}
	for _, pair := range f.env {
		if name, _, found := strings.Cut(pair, "="); !found || name == "" {
			return kit.Usagef("-e: write NAME=VALUE") // the text may be a secret
		}
	}
	command.ExtraEnv = append(command.ExtraEnv, f.env...)
	connect.LearnCommand(m, command)
	if f.cwd != "" {
		command.Dir = f.cwd
	}
	return nil
}

// connectLimit is how long connecting may take: what the flag says, or the server's entry.
func (f *inspectFlags) connectLimit(s *host.Server) time.Duration {
	switch limit, _ := parseLimit(f.connectTimeout); { // it was checked
	case f.connectTimeout == "":
		return s.ConnectTimeout
	case limit == 0:
		return -1
	default:
		return limit
	}
}

// parseLimit reads a time: a number of milliseconds, or with a unit.
func parseLimit(text string) (time.Duration, bool) {
	if text == "" {
		return 0, true
	}
	if ms, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(ms * float64(time.Millisecond)), ms >= 0 && ms < 1e12
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

// check refuses what is no value of a flag, and flags that do not go together.
func (f *inspectFlags) check(set *pflag.FlagSet, method string) error {
	for _, err := range []error{
		choice("format", f.format, "text", "json"),
		choice("protocol-era", f.era, "auto", "legacy", "modern"),
		choice("transport", f.transport, "http", "sse", "stdio"),
		choice("output-format", f.outputFormat, "json", "raw"),
		choice("complete-ref-type", f.refType, mcp.RefPrompt, mcp.RefResource),
		choice("elicit", f.elicit, "off", "form", "url", "both"),
		choice("sample", f.sample, "on", "off"),
	} {
		if err != nil {
			return err
		}
	}
	if _, ok := parseLimit(f.connectTimeout); !ok {
		return kit.Usagef("--connect-timeout %q: write milliseconds, or a time such as 5s", f.connectTimeout)
	}
	switch {
	case f.level != "" && !mcp.LogLevel(f.level).Valid():
		return kit.Usagef("--log-level %q: the levels are debug, info, notice, warning, error, critical, alert, emergency", f.level)
	case f.strict && method != mcp.MethodToolsList:
		return kit.Usagef("--strict goes with --method tools/list")
	case f.strict && f.appInfo:
		return kit.Usagef("give --strict or --app-info, not both")
	case f.verify && method != "skills/list" && method != "skills/get":
		return kit.Usagef("--verify goes with --method skills/list or skills/get")
	case f.requireDigests && !f.verify:
		return kit.Usagef("--require-digests goes with --verify")
	case (set.Changed("skill-catalog-max-skills") || set.Changed("skill-catalog-max-bytes")) && (!f.verify || f.maxSkills < 0 || f.maxSkillBytes < 0):
		return kit.Usagef("--skill-catalog-max-skills and --skill-catalog-max-bytes go with --verify, and are numbers from 1 on")
	case f.verify && f.output != "":
		return kit.Usagef("--output is for results; --verify gives reports")
	case f.count < 0:
		return kit.Usagef("--count %d: write a number from 1 on", f.count)
	case f.timeout < 0:
		return kit.Usagef("--timeout: write a time such as 30s")
	case f.appInfo && method != mcp.MethodToolsCall && method != mcp.MethodToolsList:
		return kit.Usagef("--app-info goes with --method tools/call or tools/list")
	case set.Changed("tool-args-json") && len(f.toolArgs) > 0:
		return kit.Usagef("give the arguments with --tool-arg or with --tool-args-json, not both")
	case set.Changed("output") && strings.TrimSpace(f.output) == "":
		return kit.Usagef("--output: name a file")
	case f.outputFormat != "" && f.output == "":
		return kit.Usagef("--output-format goes with --output")
	case f.output != "" && f.appInfo:
		return kit.Usagef("--output is for results; --app-info gives a report")
	case f.outputFormat == "raw" && method != mcp.MethodToolsCall && method != mcp.MethodResourcesRead:
		return kit.Usagef("--output-format raw goes with tools/call and resources/read")
	}
	return nil
}

// arguments makes what the method is given of the flags.
func (f *inspectFlags) arguments(set *pflag.FlagSet, method string) (*inspect.Args, error) {
	if err := f.check(set, method); err != nil {
		return nil, err
	}
	a := &inspect.Args{
		Tool: f.tool, URI: f.uri, Prompt: f.prompt, Level: mcp.LogLevel(f.level), TaskID: f.taskID,
		RefType: f.refType, Ref: f.ref, ArgName: f.argName, ArgValue: f.argValue,
		AppInfo: f.appInfo, WithAppInfo: f.format == "json",
		Cursor: f.cursor, Verify: f.verify, RequireDigests: f.requireDigests, MaxSkills: f.maxSkills, MaxSkillBytes: f.maxSkillBytes,
		Strict: f.strict, AsTask: f.task, Count: f.count,
	}
	if f.responses != "" {
		if _, err := strictjson.ParseObject([]byte(f.responses)); err != nil {
			return nil, kit.Usagef("--input-responses: that is no JSON object: %w", err)
		}
		a.Responses = mcp.RawValue(f.responses)
	}
	if set.Changed("roots-json") {
		if err := strictjson.Unmarshal([]byte(f.rootsJSON), &a.Roots); err != nil || a.Roots == nil {
			return nil, kit.Usagef(`--roots-json: write a JSON array such as '[{"uri":"file:///home/ada","name":"home"}]'`)
		}
		if err := checkRoots(a.Roots); err != nil {
			return nil, kit.Usagef("--roots-json: %w", err)
		}
	}
	if set.Changed("tool-args-json") {
		if _, err := strictjson.ParseObject([]byte(f.toolJSON)); err != nil {
			return nil, kit.Usagef("--tool-args-json: that is no JSON object: %w", err)
		}
		a.Arguments = mcp.RawValue(f.toolJSON)
	}
	var toolMeta []inspect.Pair
	for _, pairs := range []struct {
		flag  string
		words []string
		to    *[]inspect.Pair
	}{
		{"tool-arg", f.toolArgs, &a.Pairs},
		{"prompt-args", f.promptArgs, &a.PromptArgs},
		{"metadata", f.metadata, &f.metaPairs},
		{"tool-metadata", f.toolMetadata, &toolMeta},
	} {
		for _, word := range pairs.words {
			pair, ok := inspect.ParsePair(word)
			if !ok {
				return nil, kit.Usagef("--%s %q: write it as NAME=VALUE", pairs.flag, word)
			}
			*pairs.to = append(*pairs.to, pair)
		}
	}
	a.ToolMeta = inspect.Meta(toolMeta)
	return a, nil
}
