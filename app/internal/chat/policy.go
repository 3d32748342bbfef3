package chat

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/strictjson"
)

func (st *settings) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Explain, check and test the rules of your configuration",
		Args:  kit.NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(st.policyExplainCommand(), st.policyLintCommand(), st.policyTestCommand())
	return cmd
}

// policyFlags are the flags of the commands about rules.
func (st *settings) policyFlags(f *pflag.FlagSet, flags *conversationFlags) {
	f.StringArrayVar(&st.Allow, "allow", nil, "add a rule that allows: `SERVER/TOOL` (repeatable)")
	f.StringArrayVar(&st.Ask, "ask", nil, "add a rule that asks: `SERVER/TOOL` (repeatable)")
	f.StringArrayVar(&st.Deny, "deny", nil, "add a rule that denies: `SERVER/TOOL` (repeatable)")
	f.StringVar(&flags.configFile, "config", "", "use only the rules in this `FILE`")
}

// A rulebook is the rules of flags and configuration, and what entries list.
type rulebook struct {
	*policy.Policy
	cfg *config.Config
}

// withPolicy makes the rules of flags and configuration.
func (st *settings) withPolicy(ctx context.Context, flags *conversationFlags, fn func(book *rulebook) error) error {
	return connect.WithStore(func(db *local.DB) error {
		cfg, err := st.LoadConfig(ctx, flags.configFile, db)
		if err != nil {
			return err
		}
		rules := cfg.Rules
		for _, entry := range cfg.Servers {
			rules = append(rules, connect.EntryRules(entry)...)
		}
		pol, err := st.Policy(rules)
		if err != nil {
			return err
		}
		return fn(&rulebook{pol, cfg})
	})
}

// unlisted says why a tool is none that its entry lists, or returns "".
func (b *rulebook) unlisted(kind policy.Kind, server, name string) string {
	entry := b.cfg.Server(server)
	if kind != policy.KindTool || entry == nil || len(entry.AllowTools) == 0 {
		return ""
	}
	for _, glob := range entry.AllowTools {
		listed, err := policy.New([]policy.Rule{{Effect: policy.Allow, Kind: policy.KindTool, Name: glob}})
		if err == nil && listed.Decide(&policy.Query{Kind: kind, Server: server, Name: name}).Effect == policy.Allow {
			return ""
		}
	}
	return fmt.Sprintf("the entry %s lists only %s", entry.Source, strings.Join(entry.AllowTools, ", "))
}

// decided is a verdict of the rules together with what the entry lists.
func (b *rulebook) decided(q *policy.Query, v policy.Verdict) (effect policy.Effect, why string) {
	if why := b.unlisted(q.Kind, q.Server, q.Name); why != "" {
		return policy.Deny, why
	}
	return v.Effect, v.Why()
}

// trusts reports whether the entry of a server says that it is trusted.
func (b *rulebook) trusts(server string) bool {
	entry := b.cfg.Server(server)
	return entry != nil && entry.Trusted
}

// folder returns the folder at which a server begins relative paths, or "" if that is unknown, as it is
// for a server without an entry.
func (b *rulebook) folder(server string) string {
	entry := b.cfg.Server(server)
	if entry == nil {
		return ""
	}
	started, err := entry.Expand(nil)
	if err != nil { // an input that only the person knows, or an entry that is not started
		return ""
	}
	return connect.EntryFolder(started)
}

// lint finds rules that do nothing, also those about a tool that the entry does not list.
func (b *rulebook) lint() []string {
	var found []string
	for _, f := range b.Lint() {
		found = append(found, f.String())
	}
	for _, r := range b.Rules() {
		for _, entry := range b.cfg.Servers {
			if r.Server != policy.Quote(entry.Name) || r.Name == "" || strings.ContainsAny(r.Name, "*?[") {
				continue
			}
			if why := b.unlisted(r.Kind, entry.Name, r.Name); why != "" {
				found = append(found, r.String()+": never matches ("+why+")")
			}
		}
	}
	return found
}

func (st *settings) policyExplainCommand() *cobra.Command {
	var flags conversationFlags
	var args, kind string
	var trusted, readOnly bool
	var labels []string
	cmd := &cobra.Command{
		Use:   "explain SERVER/NAME [KEY=VALUE...]",
		Short: "Show the decision about a call, and the result of each rule",
		Example: `  parley policy explain files/write_file path=/etc/passwd
  parley policy explain web/fetch --args '{"url":"https://example.com"}'`,
		Args: kit.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			server, name, found := strings.Cut(words[0], "/")
			if !found {
				return kit.Usagef("write the call as SERVER/NAME, for example everything/add")
			}
			given, err := connect.KeyValues(words[1:])
			if err != nil {
				return err
			}
			if args != "" && len(given) > 0 {
				return kit.Usagef("give the arguments as KEY=VALUE or with --args, not both")
			}
			raw := mcp.RawValue(args)
			if args == "" {
				raw, err = model.Arguments(mcp.RawValue(`{"type":"object"}`), given)
			} else if wrong := model.CheckObject(raw); wrong != nil {
				err = fmt.Errorf("--args: that is no JSON object: %w", wrong)
			}
			if err != nil {
				return kit.Usagef("%w", err)
			}
			q := &policy.Query{Kind: policy.Kind(kind), Server: server, Name: name, Arguments: raw, Trusted: trusted, Time: time.Now(), Client: "parley"}
			if readOnly {
				q.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: &readOnly}
			}
			for _, l := range labels {
				q.Labels = append(q.Labels, policy.Label(l))
			}
			return st.withPolicy(cmd.Context(), &flags, func(book *rulebook) error {
				q.Trusted, q.Dir = q.Trusted || book.trusts(server), book.folder(server)
				return st.explainCall(book, q)
			})
		},
	}
	st.policyFlags(cmd.Flags(), &flags)
	cmd.Flags().StringVar(&args, "args", "", "arguments as one `JSON` object")
	cmd.Flags().StringVar(&kind, "kind", "tool", "`KIND` of the action: tool, prompt, resource, sampling, elicitation, roots, skill, app")
	cmd.Flags().BoolVar(&trusted, "trusted", false, "treat the server as trusted, so that its annotations apply")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "treat the tool as annotated read-only")
	cmd.Flags().StringArrayVar(&labels, "label", nil, "treat the conversation as having this `LABEL`: untrusted-input, private-data (repeatable)")
	st.JSONFlag(cmd)
	return cmd
}

// explainCall writes a verdict and what became of each rule.
func (st *settings) explainCall(book *rulebook, q *policy.Query) error {
	e := book.Explain(q)
	effect, why := book.decided(q, e.Verdict)
	if st.JSON {
		type considered struct {
			Rule   *policy.Rule `json:"rule"`
			Source string       `json:"source"`
			Result string       `json:"result"`
			Detail string       `json:"detail,omitzero"`
		}
		out := struct {
			Effect string       `json:"effect"`
			Why    string       `json:"why"`
			Rules  []considered `json:"rules"`
		}{effect.String(), why, make([]considered, 0)}
		for _, c := range e.Considered {
			out.Rules = append(out.Rules, considered{c.Rule, c.Rule.Source.String(), c.Result.String(), c.Detail})
		}
		return st.PrintJSON(out)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", effect, host.EscapeLine(why))
	if r := e.Verdict.Rule; r != nil && r.Reason != "" && effect == e.Verdict.Effect {
		fmt.Fprintf(&b, "  reason: %s\n", host.EscapeLine(r.Reason))
	}
	for _, c := range e.Considered {
		fmt.Fprintf(&b, "  %s: %s", host.EscapeLine(c.Rule.String()), c.Result)
		if c.Detail != "" {
			fmt.Fprintf(&b, " (%s)", host.EscapeLine(c.Detail))
		}
		b.WriteString("\n")
	}
	return st.Print(b.String())
}

func (st *settings) policyLintCommand() *cobra.Command {
	var flags conversationFlags
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Find rules that can never match or have no effect",
		Long:  kit.Wrap("Find rules that can never match or have no effect. Findings are proved, not guessed; with findings the exit code is 6."),
		Args:  kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return st.withPolicy(cmd.Context(), &flags, func(book *rulebook) error {
				findings := book.lint()
				for _, f := range findings {
					if err := st.Println(host.EscapeLine(f)); err != nil {
						return err
					}
				}
				st.Note("%d rules, %d findings", len(book.Rules()), len(findings))
				if len(findings) > 0 {
					return &kit.SilentError{Code: kit.ExitContract}
				}
				return nil
			})
		},
	}
	st.policyFlags(cmd.Flags(), &flags)
	return cmd
}

// A policyCase is a row of a table for 'parley policy test'.
type policyCase struct {
	Kind      policy.Kind    `json:"kind,omitzero"`
	Server    string         `json:"server"`
	Name      string         `json:"name"`
	Arguments mcp.RawValue   `json:"arguments,omitzero"`
	Trusted   bool           `json:"trusted,omitzero"`
	ReadOnly  bool           `json:"readOnly,omitzero"`
	Labels    []policy.Label `json:"labels,omitzero"`
	Dir       string         `json:"dir,omitzero"`
	Expect    policy.Effect  `json:"expect"`
}

func (st *settings) policyTestCommand() *cobra.Command {
	var flags conversationFlags
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Test the rules with a table of calls and expected decisions",
		Long: `Test the rules with a table: a JSON array of
  {"server": "files", "name": "write_file", "arguments": {"path": "/etc/x"}, "expect": "deny"}

A row can also have kind, trusted, readOnly, labels and dir, the base folder of
relative paths; the default is the folder of the server entry, if it is known. The
exit code is 6 if a decision differs from the expected one.`,
		Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := os.ReadFile(args[0])
			if err != nil {
				return kit.Usagef("reading the table: %w", err)
			}
			var cases []policyCase
			if err := strictjson.Unmarshal(raw, &cases); err != nil {
				return kit.Usagef("reading the table %s: %w", args[0], err)
			}
			return st.withPolicy(cmd.Context(), &flags, func(book *rulebook) error { return st.testPolicy(book, cases) })
		},
	}
	st.policyFlags(cmd.Flags(), &flags)
	return cmd
}

func (st *settings) testPolicy(book *rulebook, cases []policyCase) error {
	failed := 0
	for i := range cases {
		c := &cases[i]
		q := &policy.Query{Kind: c.Kind, Server: c.Server, Name: c.Name, Arguments: c.Arguments, Trusted: c.Trusted || book.trusts(c.Server), Labels: c.Labels, Dir: cmp.Or(c.Dir, book.folder(c.Server)), Time: time.Now(), Client: "parley"}
		if q.Kind == "" {
			q.Kind = policy.KindTool
		}
		if c.ReadOnly {
			q.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: &c.ReadOnly}
		}
		effect, why := book.decided(q, book.Decide(q))
		if effect == c.Expect {
			continue
		}
		failed++
		if err := st.Println(host.EscapeLine(fmt.Sprintf("row %d: %s/%s is decided %s, expected %s: %s", i+1, c.Server, c.Name, effect, c.Expect, why))); err != nil {
			return err
		}
	}
	st.Note("%d rows, %d decided otherwise", len(cases), failed)
	if failed > 0 {
		return &kit.SilentError{Code: kit.ExitContract}
	}
	if len(cases) == 0 {
		return kit.Usagef("the table has no rows")
	}
	return nil
}
