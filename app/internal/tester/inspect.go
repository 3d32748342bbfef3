package tester

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// inspectName is the name of the command.
const inspectName = "inspect"

// An inspector is the command inspect.
type inspector struct{ *connect.Connector }

func (in *inspector) inspectCommand() *cobra.Command {
	flags := &inspectFlags{}
	cmd := &cobra.Command{
		Use:   inspectName + " [SERVER | -- COMMAND]",
		Short: "Send one request to a server and print the unchanged result",
		Long: `Send one request to a server by method name, and print the result exactly as
received, field by field. SERVER is a name in your configuration, a URL or
"everything"; write a command with arguments after --. Without --method, list the
methods. With --load, call a tool repeatedly and print a summary of the latencies.

The result is JSON: indented, or with --json on one line. With --format json it is
the field "result" of an object, as the MCP Inspector writes it; the other flags
and the exit codes match the Inspector's too. An error is one JSON object on
standard error; at a terminal it is plain text, unless you pass --json or --format.

If the server requests input (a form, a URL to open, or a sampling request), inspect
asks at the terminal. Without a terminal, --answer answers; inspect declines any
request without an answer, and prints a note.

Exit codes: 0 success, 1 invalid command line or any other error, 2 a tool without
an app (--app-info), 3 the server requires authentication, 4 no server or no
response in time, 5 a tool that failed or does not exist, 6 schemas that models
reject (--strict), 7 a skill that breaks a rule, 8 a skill that could not be read
completely, 9 a skill without digests (--verify), 70 an internal error.`,
		Example: `  parley inspect
  parley inspect --method tools/list everything
  parley inspect --method tools/call --tool-name add --tool-arg a=2 --tool-arg b=3 everything
  parley inspect --method tools/call --tool-name echo --tool-arg message=hi --load everything
  parley inspect --method server/discover https://example.com/mcp
  parley inspect --method resources/read --uri demo://text --json -- ./server --stdio`,
		Args: cobra.ArbitraryArgs, // they are checked where errors are told
		RunE: func(cmd *cobra.Command, args []string) error {
			return in.tellInspected(flags, in.inspect(cmd, flags, args))
		},
	}
	flags.add(cmd.Flags())
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return in.tellInspected(flags, kit.FlagError(cmd, err))
	})
	return cmd
}

// inspect asks the server of the command line what the flags say.
func (in *inspector) inspect(cmd *cobra.Command, flags *inspectFlags, words []string) error {
	_, server, err := connect.TargetOf(cmd, words, 0)
	if err != nil {
		return err
	}
	if err := flags.place(&server); err != nil {
		return err
	}
	defer in.SignIns.Close()
	if err := flags.auth.check(cmd.Flags()); err != nil {
		return err
	}
	if done, err := flags.auth.alone(cmd.Context(), in, server); done {
		return err
	}
	if flags.method == "" {
		return in.printMethods()
	}
	method, ok := inspect.Lookup(flags.method)
	if !ok {
		return kit.Usagef("unknown method %q; run 'parley inspect' to list methods", flags.method)
	}
	loading, err := flags.load.options(cmd.Flags(), method.Name)
	if err != nil {
		return err
	}
	args, err := flags.arguments(cmd.Flags(), method.Name)
	if err != nil {
		return err
	}
	if err := flags.auth.prepare(cmd.Context(), in, server); err != nil {
		return err
	}
	watcher := inspect.NewWatcher()
	if method.Watches {
		in.Tap = watcher.Tap
	}
	target, s, err := in.inspected(cmd.Context(), flags, server)
	if err != nil {
		return err
	}
	target.Watcher = watcher
	args.Emit = in.printLine
	if in.attended(flags) {
		args.Fill = in.fillArguments
	}
	if flags.load.on {
		return in.loadInspected(cmd.Context(), flags, target, s, args, loading)
	}
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	questions, err := in.questionnaire(ctx, stop, flags, target, method.Asks)
	if err != nil {
		return err
	}
	outcome, err := method.Run(ctx, target, args)
	if questions.wrong != nil {
		return questions.wrong
	}
	if err != nil {
		return err
	}
	questions.leftOver()
	return in.printOutcome(flags, method.Name, outcome)
}

// place adds the server that a flag says.
func (f *inspectFlags) place(t *connect.Target) error {
	if f.catalog != "" && f.config != "" {
		return kit.Usagef("--config and --catalog cannot be used together")
	}
	f.config = cmp.Or(f.config, f.catalog)
	if f.config != "" && (len(t.Words) > 0 || f.serverURL != "" || f.transport != "") {
		return kit.Usagef("--config reads the server from a file: name it with --server, and omit the command, the URL and --transport")
	}
	if f.serverURL == "" {
		return nil
	}
	if len(t.Words) > 0 {
		return kit.Usagef("the server must be named once: with --server-url, or as the last argument")
	}
	if !kit.IsURL(f.serverURL) {
		return kit.Usagef("--server-url: invalid URL; write it like https://example.com/mcp")
	}
	t.Words = []string{f.serverURL}
	return nil
}

// inspected makes the target of the command line, which is a connection with that server.
func (in *inspector) inspected(ctx context.Context, flags *inspectFlags, server connect.Target) (*inspect.Target, *host.Server, error) {
	modern, legacy, err := flags.versions(in.Protocol)
	if err != nil {
		return nil, nil, err
	}
	roots, err := in.Roots()
	if err != nil {
		return nil, nil, err
	}
	if len(in.Headers) > 0 && (server.Command || len(server.Words) == 1 && !kit.IsURL(server.Words[0])) {
		return nil, nil, kit.Usagef("--header requires a server at a URL")
	}
	in.Transport = flags.transport
	s, inFile, err := in.inspectedServer(ctx, flags, server)
	if err != nil {
		return nil, nil, err
	}
	if err := flags.adjust(&s, in.Streams.Masker()); err != nil {
		return nil, nil, err
	}
	if len(s.Versions) > 0 {
		modern, legacy = among(modern, s.Versions), among(legacy, s.Versions)
		if len(modern)+len(legacy) == 0 {
			return nil, nil, kit.Usagef("--protocol-era %s: the server is limited to %s", flags.era, strings.Join(s.Versions, ", "))
		}
	}
	return &inspect.Target{
		Name: s.Name, Origin: s.Origin,
		Dialer: s.Dialer,
		Info:   mcp.Implementation{Name: "parley", Version: kit.Version()},
		Legacy: legacy, Modern: modern,
		ConnectTimeout: flags.connectLimit(&s), Timeout: flags.timeout,
		Roots: append(roots, inFile...), Apps: flags.advertiseApps,
		Allow:  func(method string, params mcp.RawValue) error { return in.MethodDenial(s.Name, method, params) },
		Meta:   inspect.Meta(flags.metaPairs),
		Logger: in.Logger(),
	}, &s, nil
}

// printMethods lists what can be asked.
func (in *inspector) printMethods() error {
	list := inspect.Methods()
	if in.JSON {
		type row struct {
			Method string   `json:"method"`
			Flags  []string `json:"flags"`
			About  string   `json:"about"`
		}
		rows := make([]row, 0, len(list))
		for _, m := range list {
			rows = append(rows, row{m.Name, append([]string{}, m.Flags...), m.About})
		}
		return in.PrintJSON(struct {
			Methods []row `json:"methods"`
		}{rows})
	}
	var b strings.Builder
	for _, m := range list {
		b.WriteString(strings.Join(append([]string{m.Name}, m.Flags...), " ") + "\n    " + m.About + "\n")
	}
	return in.Print(b.String())
}

// tellInspected tells of a failure as the command inspect does, and keeps its exit code.
func (in *inspector) tellInspected(flags *inspectFlags, err error) error {
	if err == nil || errors.Is(err, kit.ErrInterrupted) || errors.As(err, new(*kit.SilentError)) {
		return err
	}
	e := inspect.Classify(err)
	if in.Streams.ErrTerminal && !in.JSON && flags.format == "" {
		in.Note("parley: %s", connect.Explain(in.Output.WithLog(err)))
		return &kit.SilentError{Code: e.Exit}
	}
	told := *e
	told.Message = kit.CutError(told.Message)
	raw, failed := jsonrpc.JSON(struct {
		Error *inspect.Error `json:"error"`
	}{&told}).AppendJSON(nil)
	if failed != nil {
		return err
	}
	text := string(in.MaskedJSON(raw))
	if in.Streams.ErrTerminal {
		text = kit.EscapeJSON(text)
	}
	in.Note("%s", text)
	return &kit.SilentError{Code: e.Exit}
}
