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
	set.StringVar(&f.method, "method", "", "`METHOD` to send, such as tools/list")
	set.StringVar(&f.era, "protocol-era", "auto", "`ERA` of protocol versions: legacy (with an initialize handshake), modern (stateless) or auto")
	set.StringVar(&f.transport, "transport", "", "`KIND` of transport to a URL: http or sse (default: detect)")
	set.StringVar(&f.serverURL, "server-url", "", "`URL` of the server")
	set.StringArrayVarP(&f.env, "env", "e", nil, "`NAME=VALUE` in the environment of the server's command (repeatable)")
	set.StringVar(&f.cwd, "cwd", "", "`DIRECTORY` in which the server's command runs")
	set.StringVar(&f.config, "config", "", "use a server from this `FILE`; if it has several, name one with --server")
	set.StringVar(&f.catalog, "catalog", "", "the same as --config: `FILE` is read and never written")
	set.StringVar(&f.tool, "tool-name", "", "`NAME` of the tool")
	set.StringArrayVar(&f.toolArgs, "tool-arg", nil, "tool argument as `NAME=VALUE`, where VALUE is JSON or otherwise a string (repeatable)")
	set.StringVar(&f.toolJSON, "tool-args-json", "", "tool arguments as one `JSON` object, sent unchanged")
	set.StringVar(&f.uri, "uri", "", "`URI` of a resource")
	set.StringVar(&f.prompt, "prompt-name", "", "`NAME` of the prompt")
	set.StringArrayVar(&f.promptArgs, "prompt-args", nil, "prompt argument as `NAME=VALUE` (repeatable)")
	set.StringVar(&f.level, "log-level", "", "`LEVEL` of log messages: debug, info, notice, warning, error, critical, alert or emergency")
	set.StringVar(&f.refType, "complete-ref-type", "", "`TYPE` of reference to complete: ref/prompt or ref/resource")
	set.StringVar(&f.ref, "complete-ref", "", "`NAME` of the prompt, or resource template, whose argument to complete")
	set.StringVar(&f.argName, "complete-arg-name", "", "`NAME` of the argument to complete")
	set.StringVar(&f.argValue, "complete-arg-value", "", "`PREFIX` of its value")
	set.StringArrayVar(&f.metadata, "metadata", nil, "`NAME=VALUE` in _meta of each request (repeatable)")
	set.StringArrayVar(&f.toolMetadata, "tool-metadata", nil, "`NAME=VALUE` in _meta of tools/call (repeatable)")
	set.BoolVar(&f.appInfo, "app-info", false, "show the app of the tool, or of each tool in tools/list, without calling it")
	set.BoolVar(&f.strict, "strict", false, "check the schemas in tools/list for keywords that models or clients reject or drop")
	set.BoolVar(&f.verify, "verify", false, "read the files of skills and compare them with their entries")
	set.BoolVar(&f.requireDigests, "require-digests", false, "with --verify, fail for a skill without digests")
	set.IntVar(&f.maxSkills, "skill-catalog-max-skills", 0, "with --verify, read at most this `NUMBER` of skills (default 256)")
	set.Int64Var(&f.maxSkillBytes, "skill-catalog-max-bytes", 0, "with --verify, read at most this `NUMBER` of bytes (default 67108864)")
	set.StringVar(&f.cursor, "cursor", "", "`CURSOR` of the first page of resources/directory/read")
	set.BoolVar(&f.task, "task", false, "if the call becomes a task, print the task instead of waiting for it to end")
	set.StringVar(&f.taskID, "task-id", "", "`ID` of a task")
	set.StringVar(&f.responses, "input-responses", "", "responses to a task's input requests, as a `JSON` object with their keys")
	set.StringArrayVar(&f.answers, "answer", nil, "`ANSWER` to an input request: form values as a JSON object, the text of a model,\naccept, decline or cancel (repeatable, one for each request)")
	set.StringVar(&f.elicit, "elicit", "", "elicitation `MODE` to declare: off, form, url or both\n(default: both for methods that accept --answer, otherwise off)")
	set.StringVar(&f.sample, "sample", "", "`MODE` of sampling to declare: on or off (default: as for --elicit)")
	set.StringVar(&f.rootsJSON, "roots-json", "", "roots to set, as a `JSON` array of objects with uri and optional name")
	set.IntVar(&f.count, "count", 0, "stop after this `NUMBER` of changes or notifications (default: at Ctrl-C)")
	set.BoolVar(&f.advertiseApps, "advertise-apps", false, "declare support for MCP Apps")
	set.StringVar(&f.format, "format", "", "`FORMAT` of the result: text (indented), or json (an object with the field \"result\")")
	set.StringVar(&f.output, "output", "", "`FILE` to write the result to")
	set.StringVar(&f.outputFormat, "output-format", "", "`FORMAT` of the output file: json, or raw (the text or bytes in the result)")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "print only the result, or the error object")
	set.StringVar(&f.connectTimeout, "connect-timeout", "", "connection timeout as `TIME`, in ms or as in 5s; 0 is no limit (default 15s)")
	f.auth.add(set)
	f.load.add(set)
	set.DurationVar(&f.timeout, "timeout", 0, "request timeout as `TIME` (default 1m)")
}

// choice checks a flag that has few values.
func choice(flag, value string, of ...string) error {
	if value == "" || slices.Contains(of, value) {
		return nil
	}
	return kit.Usagef("--%s %q: must be one of %s", flag, value, strings.Join(of, ", "))
}

// versions are the revisions of the flags, newest first.
func (f *inspectFlags) versions(pinned string) (modern, legacy []string, err error) {
	all := kit.Versions()
	if pinned != "" {
		if !slices.Contains(all, pinned) {
			return nil, nil, kit.Usagef("--protocol %q: must be one of %s", pinned, strings.Join(all, ", "))
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
		return nil, nil, kit.Usagef("--protocol %s is not a version of --protocol-era %s", pinned, f.era)
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
		return kit.Usagef("-e requires the command of a server")
	case !ok && f.cwd != "":
		return kit.Usagef("--cwd requires the command of a server")
	case !ok && f.transport == "stdio":
		return kit.Usagef("--transport stdio requires the command of a server")
	case ok && f.transport != "" && f.transport != "stdio":
		return kit.Usagef("--transport %s requires a URL", f.transport)
	case !ok:
		return nil
	}
	for _, pair := range f.env {
		if name, _, found := strings.Cut(pair, "="); !found || name == "" {
			return kit.Usagef("-e: must be NAME=VALUE") // the text may be a secret
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
		return kit.Usagef("--connect-timeout %q: must be milliseconds, or a time such as 5s", f.connectTimeout)
	}
	switch {
	case f.level != "" && !mcp.LogLevel(f.level).Valid():
		return kit.Usagef("--log-level %q: must be one of debug, info, notice, warning, error, critical, alert, emergency", f.level)
	case f.strict && method != mcp.MethodToolsList:
		return kit.Usagef("--strict requires --method tools/list")
	case f.strict && f.appInfo:
		return kit.Usagef("--strict and --app-info cannot be used together")
	case f.verify && method != "skills/list" && method != "skills/get":
		return kit.Usagef("--verify requires --method skills/list or skills/get")
	case f.requireDigests && !f.verify:
		return kit.Usagef("--require-digests requires --verify")
	case (set.Changed("skill-catalog-max-skills") || set.Changed("skill-catalog-max-bytes")) && (!f.verify || f.maxSkills < 0 || f.maxSkillBytes < 0):
		return kit.Usagef("--skill-catalog-max-skills and --skill-catalog-max-bytes require --verify, and must be at least 1")
	case f.verify && f.output != "":
		return kit.Usagef("--output cannot be used with --verify, which prints a report")
	case f.count < 0:
		return kit.Usagef("--count %d: must be at least 1", f.count)
	case f.timeout < 0:
		return kit.Usagef("--timeout: must be a time such as 30s")
	case f.appInfo && method != mcp.MethodToolsCall && method != mcp.MethodToolsList:
		return kit.Usagef("--app-info requires --method tools/call or tools/list")
	case set.Changed("tool-args-json") && len(f.toolArgs) > 0:
		return kit.Usagef("--tool-arg and --tool-args-json cannot be used together")
	case set.Changed("output") && strings.TrimSpace(f.output) == "":
		return kit.Usagef("--output: must be a file name")
	case f.outputFormat != "" && f.output == "":
		return kit.Usagef("--output-format requires --output")
	case f.output != "" && f.appInfo:
		return kit.Usagef("--output cannot be used with --app-info, which prints a report")
	case f.outputFormat == "raw" && method != mcp.MethodToolsCall && method != mcp.MethodResourcesRead:
		return kit.Usagef("--output-format raw requires tools/call or resources/read")
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
			return nil, kit.Usagef("--input-responses: must be a JSON object: %w", err)
		}
		a.Responses = mcp.RawValue(f.responses)
	}
	if set.Changed("roots-json") {
		if err := strictjson.Unmarshal([]byte(f.rootsJSON), &a.Roots); err != nil || a.Roots == nil {
			return nil, kit.Usagef(`--roots-json: must be a JSON array such as '[{"uri":"file:///home/ada","name":"home"}]'`)
		}
		if err := checkRoots(a.Roots); err != nil {
			return nil, kit.Usagef("--roots-json: %w", err)
		}
	}
	if set.Changed("tool-args-json") {
		if _, err := strictjson.ParseObject([]byte(f.toolJSON)); err != nil {
			return nil, kit.Usagef("--tool-args-json: must be a JSON object: %w", err)
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
				return nil, kit.Usagef("--%s %q: must be NAME=VALUE", pairs.flag, word)
			}
			*pairs.to = append(*pairs.to, pair)
		}
	}
	a.ToolMeta = inspect.Meta(toolMeta)
	return a, nil
}
