package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/losses"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

func (st *settings) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change which servers chat and run use",
		Long: `The commands chat and run use the servers in your parley.jsonc and in the files of
the other MCP clients on this machine. Parley never changes those clients' files.`,
		Args: kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(st.configListCommand(), st.configDoctorCommand(), st.configApproveCommand(), st.configImportCommand(), st.configAddCommand(), st.configRemoveCommand(),
		st.configSwitchCommand("enable", "Enable a server entry in your own file", false),
		st.configSwitchCommand("disable", "Disable a server entry in your own file", true))
	return cmd
}

// A listedEntry is an entry in the JSON of 'config list'. It has no secrets.
type listedEntry struct {
	Name         string   `json:"name"`
	Client       string   `json:"client"`
	Scope        string   `json:"scope"`
	File         string   `json:"file"`
	Line         int      `json:"line"`
	Transport    string   `json:"transport"`
	Address      string   `json:"address"`
	Disabled     bool     `json:"disabled,omitzero"`
	Trusted      bool     `json:"trusted,omitzero"`
	NeedsConsent bool     `json:"needsConsent,omitzero"`
	Approved     bool     `json:"approved,omitzero"`
	Shadowed     []string `json:"shadowed,omitzero"`
	Notes        []string `json:"notes,omitzero"`
	Error        string   `json:"error,omitzero"`
}

func listed(ctx context.Context, s *config.Server, db *local.DB) (*listedEntry, error) {
	e := &listedEntry{
		Name: s.Name, Client: string(s.Source.Client), Scope: string(s.Source.Scope), File: s.Source.File, Line: s.Source.Line,
		Transport: string(s.Transport), Address: s.Address(), Disabled: s.Disabled, Trusted: s.Trusted,
		NeedsConsent: s.NeedsConsent, Notes: s.Notes,
	}
	if s.Err != nil {
		e.Error = s.Err.Error()
	}
	for _, other := range s.Shadowed {
		e.Shadowed = append(e.Shadowed, other.String())
	}
	if s.NeedsConsent {
		pin, err := db.Pin(ctx, connect.EntryKey(s))
		if err != nil {
			return nil, err
		}
		e.Approved = pin != nil && pin.Digest == s.Digest
	}
	return e, nil
}

// state says in a few words whether an entry is used.
func (e *listedEntry) state() string {
	switch {
	case e.Disabled:
		return "disabled"
	case e.Error != "":
		return "cannot start: " + e.Error
	case e.NeedsConsent && !e.Approved:
		return "needs 'parley config approve " + e.Name + "'"
	}
	return "used"
}

func (st *settings) configListCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "list", Short: "List the servers, with their files and lines", Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return st.WithConfig(cmd.Context(), file, func(cfg *config.Config, db *local.DB) error {
				entries := make([]*listedEntry, 0, len(cfg.Servers))
				for _, s := range cfg.Servers {
					e, err := listed(cmd.Context(), s, db)
					if err != nil {
						return err
					}
					entries = append(entries, e)
				}
				return st.printEntries(entries, len(cfg.Problems))
			})
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "list only this `FILE`")
	st.JSONFlag(cmd)
	return cmd
}

func (st *settings) printEntries(entries []*listedEntry, problems int) error {
	if st.JSON {
		return st.PrintJSON(struct {
			Servers []*listedEntry `json:"servers"`
		}{entries})
	}
	if len(entries) == 0 {
		st.Note("No server is configured; chat and run use the built-in demo server. Run 'parley config add' to add one.")
	}
	for _, e := range entries {
		text := fmt.Sprintf("%s  %s %s\n    %s:%d (%s, %s)\n    %s\n", e.Name, e.Transport, e.Address, e.File, e.Line, e.Client, e.Scope, e.state())
		if err := st.Print(host.Escape(text)); err != nil {
			return err
		}
	}
	if problems > 0 {
		st.Note("%d configuration problems; run 'parley config doctor' to list them", problems)
	}
	return nil
}

func (st *settings) configDoctorCommand() *cobra.Command {
	var file string
	var reach bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Report configuration problems and how to fix them",
		Long: `List the files that were read, the settings that Parley ignores, and the server
entries that it cannot start. With --connect it also starts each server in use, and
lists the names and schema keywords of the server's tools that Anthropic, OpenAI or
Gemini do not support, with the reason and the fix. The exit code is 6 if there is a
problem; unsupported keywords are not a problem, since Parley omits them.`,
		Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer st.SignIns.Close()
			return st.WithConfig(cmd.Context(), file, func(cfg *config.Config, db *local.DB) error {
				return st.doctor(cmd.Context(), cfg, db, reach)
			})
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "check only this `FILE`")
	cmd.Flags().BoolVar(&reach, "connect", false, "also start each server")
	st.SessionFlags(cmd)
	return cmd
}

func (st *settings) doctor(ctx context.Context, cfg *config.Config, db *local.DB, reach bool) error {
	var b strings.Builder
	for _, f := range cfg.Files {
		fmt.Fprintf(&b, "read %s (%s, %s)\n", f.Path, f.Client, f.Scope)
	}
	for i := range cfg.Pending {
		for _, r := range cfg.Pending[i].Rules {
			fmt.Fprintf(&b, "%s: the rule %s needs 'parley config approve'\n", r.Source, connect.RuleWords(&r))
		}
	}
	wrong := len(cfg.Problems)
	for _, problem := range cfg.Problems {
		fmt.Fprintf(&b, "%s\n", problem)
	}
	for _, s := range cfg.Servers {
		if s.Err != nil {
			wrong++
			fmt.Fprintf(&b, "%s: %s cannot start: %v\n", s.Source, s.Name, s.Err)
		}
		for _, note := range s.Notes {
			fmt.Fprintf(&b, "%s: %s: %s\n", s.Source, s.Name, note)
		}
	}
	if err := st.Print(host.Escape(b.String())); err != nil {
		return err
	}
	if reach {
		more, err := st.doctorConnect(ctx, cfg, db)
		if err != nil {
			return err
		}
		wrong += more
	}
	st.Note("%d files, %d servers, %d findings", len(cfg.Files), len(cfg.Servers), wrong)
	if wrong > 0 {
		return &kit.SilentError{Code: kit.ExitContract}
	}
	return nil
}

// doctorConnect starts each server that is used, and returns how many things are wrong with
// them, beside what the entries have shown.
func (st *settings) doctorConnect(ctx context.Context, cfg *config.Config, db *local.DB) (wrong int, err error) {
	opts, err := st.HostOptions()
	if err != nil {
		return 0, err
	}
	var servers []host.Server
	if len(st.Named) > 0 {
		if servers, err = st.Servers(ctx); err != nil {
			return 0, err
		}
	} else {
		servers, _, wrong = st.ConfiguredServers(ctx, cfg, false, db)
		for _, s := range cfg.Servers {
			if s.Err != nil && !s.Disabled {
				wrong-- // it was counted with the entries
			}
		}
	}
	if len(servers) == 0 {
		st.Note("No server to start: none is in use, or none can be started.")
		return wrong, nil
	}
	h := host.New(opts)
	defer func() { err = errors.Join(err, h.Close()) }()
	if _, err := h.Apply(servers); err != nil {
		return wrong, err
	}
	const enough = 2 * time.Minute
	catalog := h.Settle(ctx, enough)
	for _, s := range catalog.Servers {
		tools := slices.DeleteFunc(slices.Clone(catalog.Tools), func(t *host.Tool) bool { return t.Server != s.Name })
		text, n := describeServer(&s, tools)
		wrong += n
		if err := st.Print(st.Masked(host.Escape(text))); err != nil {
			return wrong, err
		}
	}
	return wrong, ctx.Err()
}

// describeServer says what a server offers, and what providers do not take of it. It counts
// what is wrong.
func describeServer(s *host.ServerStatus, tools []*host.Tool) (text string, wrong int) {
	if s.State != host.StateReady || s.Err != nil {
		return fmt.Sprintf("%s: %s: %s\n", s.Name, s.State, kit.ErrorText(cmp.Or(s.Err, errors.New("no answer in time")))), 1
	}
	defs := make([]*mcp.Tool, len(tools))
	for i, t := range tools {
		defs[i] = t.Def
	}
	lost, errs := losses.Of(defs)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d tools, protocol %s\n", s.Name, s.Tools, s.Version)
	for _, err := range errs {
		fmt.Fprintf(&b, "    %s\n", host.EscapeLine(err.Error()))
	}
	b.WriteString(losses.Describe(lost, len(tools)))
	return b.String(), len(errs)
}

func (st *settings) configAddCommand() *cobra.Command {
	var env, headers, labels []string
	var dir string
	var trusted bool
	cmd := &cobra.Command{
		Use:   "add NAME URL | add NAME -- COMMAND [ARG...]",
		Short: "Add a server to your own file",
		Example: `  parley config add files -- npx -y @modelcontextprotocol/server-filesystem .
  parley config add issues https://example.com/mcp -H 'X-Team: blue'
  parley config add -e TOKEN='${TOKEN}' notes -- ./notes-server`,
		Args: kit.UsageArgs(cobra.MinimumNArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			e := config.Entry{Dir: dir, Trusted: trusted}
			if kit.IsURL(args[1]) {
				if len(args) > 2 || len(env) > 0 || dir != "" {
					return kit.Usagef("a server at a URL cannot have arguments, variables or a folder")
				}
				e.URL = args[1]
			} else {
				e.Command, e.Args = args[1], args[2:]
			}
			var err error
			if e.Env, err = splitPairs(env, "=", "--env"); err != nil {
				return err
			}
			if e.Headers, err = splitPairs(headers, ":", "--header-field"); err != nil {
				return err
			}
			if err := readLabels(&e, labels); err != nil {
				return err
			}
			return st.editConfig("added", args[0], func(path string) error { return config.Add(path, args[0], e) })
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&env, "env", "e", nil, "`NAME=VALUE` for the command's environment (repeatable); ${X} refers to your environment")
	f.StringArrayVarP(&headers, "header-field", "H", nil, "`'NAME: VALUE'` header to send with each request to the URL (repeatable)")
	f.StringArrayVar(&labels, "label", nil, "`LABEL` of the server: untrusted-input, private-data, can-send-out, runs-code (repeatable)")
	f.StringVar(&dir, "cwd", "", "`FOLDER` in which the command runs")
	f.BoolVar(&trusted, "trusted", false, "trust the server's annotations and pass its instructions to the model")
	return cmd
}

// splitPairs splits the values of a flag that are written NAME and VALUE.
func splitPairs(list []string, sep, flag string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(list))
	for _, text := range list {
		name, value, found := strings.Cut(text, sep)
		if name = strings.TrimSpace(name); !found || name == "" {
			return nil, kit.Usagef("%s: must have the form NAME%sVALUE", flag, sep) // the text may be a secret
		}
		m[name] = strings.TrimSpace(value)
	}
	return m, nil
}

func (st *settings) configRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a server from your own file", Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return st.editConfig("removed", args[0], func(path string) error { return config.Remove(path, args[0]) })
		},
	}
}

func (st *settings) configSwitchCommand(verb, short string, disabled bool) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return st.editConfig(verb+"d", args[0], func(path string) error { return config.SetDisabled(path, args[0], disabled) })
		},
	}
}

// editConfig changes the person's own file. Files of others are never written.
func (st *settings) editConfig(done, name string, change func(path string) error) error {
	cfg, err := config.Load(st.ConfigOptions())
	if err != nil {
		return err
	}
	path := cfg.Own.Path
	err = change(path)
	if errors.Is(err, config.ErrNoEntry) {
		if s := cfg.Server(name); s != nil {
			return kit.Usagef("%q is in %s, a file of another program; change it there", name, s.Source)
		}
		return kit.Usagef("unknown server %q in %s; run 'parley config list' to list all servers", name, path)
	}
	if errors.Is(err, config.ErrExists) {
		return kit.Usagef("%w", err)
	}
	if err != nil {
		return err
	}
	st.Note("The server %s is %s: %s", host.EscapeLine(name), done, path)
	return nil
}

// readLabels checks the labels of the command line.
func readLabels(e *config.Entry, labels []string) error {
	for _, l := range labels {
		label := policy.Label(l)
		if !slices.Contains([]policy.Label{policy.LabelUntrusted, policy.LabelPrivate, policy.LabelSends, policy.LabelRuns}, label) {
			return kit.Usagef("--label %q: unknown label; must be %s, %s, %s or %s", l, policy.LabelUntrusted, policy.LabelPrivate, policy.LabelSends, policy.LabelRuns)
		}
		e.Labels = append(e.Labels, label)
	}
	return nil
}
