package tester

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// secretFlags say what is secret in what a command shows or stores of a connection.
type secretFlags struct {
	env    []string
	public []string
}

func (s *secretFlags) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.env, "secret-env", nil, "also mask the value of environment variable `NAME` (repeatable)")
	f.StringArrayVar(&s.public, "allow-name", nil, "do not mask fields, headers or parameters of this `NAME` (repeatable)")
}

// masker makes the Masker of this run one that masks more, since others may read what is shown: whatever
// may be a secret of the environment or the --header flags, and what a secret place once had.
func (g *group) masker(s *secretFlags) (*mask.Masker, error) {
	for _, name := range s.env {
		if _, ok := os.LookupEnv(name); !ok {
			return nil, kit.Usagef("--secret-env %q: environment variable not set", name)
		}
	}
	o := &mask.Options{Values: mask.Environment(os.Environ(), s.env), Public: s.public}
	for _, line := range g.Headers {
		name, value, _ := strings.Cut(line, ":")
		o.Headers = append(o.Headers, strings.TrimSpace(name))
		o.Values = append(o.Values, value)
	}
	m := mask.New(o)
	g.Streams.UseMasker(m)
	return m, nil
}

// masked takes the secrets out of an error.
func masked(m *mask.Masker, err error) error {
	if err == nil || errors.As(err, new(*kit.SilentError)) {
		return err
	}
	return kit.MaskError(err, m.Text)
}

// maskedLog is withLog for an error without its secrets.
func (g *group) maskedLog(m *mask.Masker, err error) error {
	err = g.Output.WithLog(masked(m, g.SignIns.Named(err)))
	if logged, ok := errors.AsType[*connect.LoggedError](err); ok {
		logged.Said = m.Text(logged.Said)
	}
	return err
}

// A toolCall is a call that a command line asks for.
type toolCall struct {
	tool string
	args []model.Pair
}

// sessionFlags say what a session of a command does with a server.
type sessionFlags struct {
	list    bool
	calls   []string
	methods []string
	timeout time.Duration // of connecting, and of each request; 0 is the default of each
}

// asked reports whether the flags say what is done.
func (s *sessionFlags) asked() bool { return s.list || len(s.calls)+len(s.methods) > 0 }

func (s *sessionFlags) flags(f *pflag.FlagSet) {
	f.BoolVar(&s.list, "list", false, "list everything before --call and --method")
	f.StringArrayVar(&s.calls, "call", nil, "call a `TOOL`; write its arguments after it as KEY=VALUE, or in the same string, as in\n--call 'echo message=hello' (repeatable) (default: list everything)")
	f.DurationVar(&s.timeout, "timeout", 0, "timeout as `TIME` for connecting, and for each request (default: from the server entry, or 1m)")
	f.StringArrayVar(&s.methods, "method", nil, "send a request of this `METHOD`, with optional params as JSON in the same string, as in\n--method 'resources/read {\"uri\":\"demo://x\"}' (repeatable)")
}

// bound gives a server the times of the flags.
func (s *sessionFlags) bound(server *host.Server) {
	if s.timeout > 0 {
		server.ConnectTimeout, server.CallTimeout = s.timeout, s.timeout
	}
}

// takeArguments takes the KEY=VALUE words in front of the server: they are those of the last
// --call.
func (s *sessionFlags) takeArguments(cmd *cobra.Command, args []string) int {
	if len(s.calls) == 0 {
		return 0
	}
	most := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		most = dash
	}
	n := 0
	for n < most && strings.Contains(args[n], "=") && !kit.IsURL(args[n]) {
		n++
	}
	return n
}

// plan reads the flags. Words are the arguments of the last --call.
func (s *sessionFlags) plan(words []string) (calls []toolCall, err error) {
	if s.timeout < 0 {
		return nil, kit.Usagef("--timeout: must be a time such as 30s")
	}
	for i, line := range s.calls {
		parts, err := kit.Fields(line)
		if err != nil || len(parts) == 0 {
			return nil, kit.Usagef("--call %q: must be a tool name and its arguments, as in --call 'echo message=hello'", line)
		}
		if i == len(s.calls)-1 {
			parts = append(parts, words...)
		}
		given, err := connect.KeyValues(parts[1:])
		if err != nil {
			return nil, err
		}
		calls = append(calls, toolCall{parts[0], given})
	}
	for _, line := range s.methods {
		if name, params, _ := strings.Cut(strings.TrimSpace(line), " "); name == "" {
			return nil, kit.Usagef("--method must not be empty; use one such as tools/list")
		} else if wrong := model.CheckObject(mcp.RawValue(params)); params != "" && wrong != nil {
			return nil, kit.Usagef("--method %s: params must be a JSON object: %w", name, wrong)
		}
	}
	return calls, nil
}

// observation reads the command line of a session that is shown or recorded: which server, which
// calls, and what is secret.
func (g *group) observation(cmd *cobra.Command, args []string, secrets *secretFlags, session *sessionFlags) (t connect.Target, calls []toolCall, m *mask.Masker, err error) {
	words, t, err := connect.TargetOf(cmd, args, session.takeArguments(cmd, args))
	if err != nil {
		return t, nil, nil, err
	}
	if calls, err = session.plan(words); err != nil {
		return t, nil, nil, err
	}
	m, err = g.masker(secrets)
	return t, calls, m, err
}

// converse does with a server what the flags ask for, or lists everything. What fails at the
// server does not end it; the first such error is returned.
func (g *group) converse(ctx context.Context, c *client.Client, name string, m *mask.Masker, s *sessionFlags, calls []toolCall) error {
	var first error
	if s.list || !s.asked() {
		first = listEverything(ctx, c)
	}
	for _, line := range s.methods {
		method, params, _ := strings.Cut(strings.TrimSpace(line), " ")
		var given any
		if params != "" {
			given = mcp.RawValue(params)
			if err := g.MethodDenial(name, method, mcp.RawValue(params)); err != nil {
				return err
			}
		}
		if err := c.Request(ctx, method, given, nil, nil); err != nil && first == nil {
			first = fmt.Errorf("%s: %w", method, err)
		}
	}
	for _, call := range calls {
		err := g.conversationCall(ctx, c, name, m, &call)
		if errors.As(err, new(*kit.UsageError)) || errors.Is(err, host.ErrConsent) {
			return err
		}
		if err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (g *group) conversationCall(ctx context.Context, c *client.Client, server string, m *mask.Masker, call *toolCall) error {
	def, err := c.Tool(ctx, call.tool)
	if err != nil {
		return err
	}
	args, err := model.Arguments(def.InputSchema, call.args)
	if err != nil {
		return kit.Usagef("--call %s: %w", call.tool, err)
	}
	if err := g.ManagedDenial(&policy.Query{Kind: policy.KindTool, Server: server, Name: call.tool, Arguments: args}); err != nil {
		return err
	}
	result, err := c.CallTool(ctx, call.tool, args, nil)
	if err == nil && result.IsError {
		g.Note("parley: the tool %s failed: %s", host.EscapeLine(call.tool), kit.OneLine(mcp.RawValue(m.Text(kit.Contents(result.Content)))))
		return &kit.SilentError{Code: kit.ExitTool}
	}
	return err
}

// listEverything reads each list that the server says it has.
func listEverything(ctx context.Context, c *client.Client) error {
	has := c.Capabilities()
	var errs []error
	if has.Tools != nil {
		errs = append(errs, drain(c.Tools(ctx)))
	}
	if has.Prompts != nil {
		errs = append(errs, drain(c.Prompts(ctx)))
	}
	if has.Resources != nil {
		errs = append(errs, drain(c.Resources(ctx)), drain(c.ResourceTemplates(ctx)))
	}
	return errors.Join(errs...)
}

// drain reads a list to its end.
func drain[T any](list func(yield func(T, error) bool)) (err error) {
	for _, e := range list {
		if e != nil {
			err = e
		}
	}
	return err
}
