package use

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

func (g *group) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the servers you are signed in to",
		Args:  kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := g.SignIns.Base(cmd.Context())
			defer g.SignIns.Close()
			if s.Err != nil {
				return s.Err
			}
			all, err := g.SignIns.All(cmd.Context(), g.ClientEntries)
			if err != nil {
				return err
			}
			var list []login.Status
			for _, part := range all {
				stored, err := part.Status(cmd.Context())
				if err != nil {
					return fmt.Errorf("reading the token store: %w", err)
				}
				list = append(list, stored...)
			}
			if g.JSON {
				return g.PrintJSON(statusReport(list, s.Kind))
			}
			return g.Print(statusText(list, s.Kind, time.Now()))
		},
	}
}

// A signInReport is the JSON form of the stored sign-ins.
type signInReport struct {
	Store   string         `json:"store"`
	Servers []storedTokens `json:"servers"`
}

type storedTokens struct {
	Resource    string     `json:"resource"`
	Issuer      string     `json:"issuer"`
	ClientID    string     `json:"clientId"`
	Scopes      []string   `json:"scopes"`
	Requested   []string   `json:"requested"`
	Expires     *time.Time `json:"expires,omitzero"`
	Refreshable bool       `json:"refreshable"`
	Bound       bool       `json:"bound"`
	Current     bool       `json:"current"`
}

func statusReport(list []login.Status, kind string) *signInReport {
	report := &signInReport{Store: kind, Servers: []storedTokens{}}
	for _, r := range list {
		stored := storedTokens{
			Resource: r.Resource, Issuer: r.Issuer, ClientID: r.ClientID,
			Scopes: append([]string{}, r.Scopes...), Requested: append([]string{}, r.Requested...),
			Refreshable: r.Refreshable, Bound: r.Bound, Current: r.Current,
		}
		if !r.Expires.IsZero() {
			stored.Expires = new(r.Expires.UTC())
		}
		report.Servers = append(report.Servers, stored)
	}
	return report
}

func statusText(list []login.Status, kind string, now time.Time) string {
	if len(list) == 0 {
		return "you are not signed in to any server\n"
	}
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%s\n", host.EscapeLine(r.Resource))
		issuer := r.Issuer
		if !r.Current {
			issuer += " (no longer used)"
		}
		fmt.Fprintf(&b, "  authorization server: %s\n", host.EscapeLine(issuer))
		fmt.Fprintf(&b, "  client:               %s\n", host.EscapeLine(r.ClientID))
		scopes := oauth.JoinScope(r.Scopes)
		if scopes == "" {
			scopes = "none"
		}
		fmt.Fprintf(&b, "  scopes:               %s\n", host.EscapeLine(scopes))
		fmt.Fprintf(&b, "  token:                %s\n", lifeOf(&r, now))
	}
	fmt.Fprintf(&b, "Tokens are stored in %s.\n", kind)
	return b.String()
}

// lifeOf describes how long tokens last.
func lifeOf(r *login.Status, now time.Time) string {
	life := "expiry unknown"
	left := r.Expires.Sub(now)
	switch {
	case r.Expires.IsZero():
	case left <= 0:
		life = "has expired"
	default:
		life = "expires in " + kit.RoundDuration(left)
	}
	switch {
	case r.Refreshable:
		life += ", renewed automatically"
	case !r.Expires.IsZero():
		life += ", not renewable: sign in again after that"
	}
	if r.Bound {
		life += "; bound to a key"
	}
	return life
}

func (g *group) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor URL",
		Short: "Find out why signing in to a server fails",
		Long: `Go through the steps to a token for the server at a URL, as far as possible
without signing in. Report the result of each step, the rule it breaks, and how
to fix it.`,
		Example: `  parley auth doctor https://example.com/mcp`,
		Args:    kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.diagnose(cmd.Context(), args[0])
		},
	}
}

// A diagnosis is the JSON form of the findings.
type diagnosis struct {
	URL      string    `json:"url"`
	Works    bool      `json:"works"`
	Findings []finding `json:"findings"`
}

type finding struct {
	Step    string `json:"step"`
	Verdict string `json:"verdict"`
	URL     string `json:"url,omitzero"`
	Detail  string `json:"detail"`
	Rule    string `json:"rule,omitzero"`
	Advice  string `json:"advice,omitzero"`
}

// verdicts are the library's verdicts, for people.
var verdicts = map[login.Verdict]string{login.OK: "ok", login.Warn: "warning", login.Fail: "broken"}

func (g *group) diagnose(ctx context.Context, address string) error {
	u, err := connect.ServerURL(address)
	if err != nil {
		return err
	}
	s := g.SignIns.Base(ctx)
	defer g.SignIns.Close()
	found := diagnosis{URL: connect.Shown(address), Works: true, Findings: []finding{}}
	code, sure := kit.ExitOK, true
	for f := range s.Diagnose(ctx, u.String()) {
		if f.Verdict == login.Warn && (f.Step == login.StepResource || f.Step == login.StepMetadata) {
			sure = false
		}
		if f.Verdict == login.Fail {
			found.Works = false
			code = kit.ExitConsent
			if f.Step == login.StepResource {
				code = kit.ExitUnreachable
			}
		}
		made := finding{
			Step: string(f.Step), Verdict: verdicts[f.Verdict], URL: f.URL,
			Detail: connect.ForPeople.Replace(f.Detail), Rule: f.Rule, Advice: connect.ForPeople.Replace(f.Advice),
		}
		found.Findings = append(found.Findings, made)
		if !g.JSON {
			if err := g.Print(made.text()); err != nil {
				return err
			}
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	switch {
	case g.JSON:
		err = g.PrintJSON(found)
	case found.Works && sure:
		err = g.Println("Signing in should work.")
	case found.Works:
		err = g.Println("Signing in should work, but see the warnings.")
	default:
		err = g.Println("Signing in does not work.")
	}
	if err == nil && code != kit.ExitOK {
		err = &kit.SilentError{Code: code}
	}
	return err
}

// text formats a finding. Parts of it come from servers and are untrusted.
func (f *finding) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %s", f.Verdict, f.Step)
	if f.URL != "" {
		fmt.Fprintf(&b, " at %s", host.EscapeLine(f.URL))
	}
	fmt.Fprintf(&b, "\n           %s\n", host.EscapeLine(f.Detail))
	if f.Rule != "" {
		fmt.Fprintf(&b, "           rule: %s\n", host.EscapeLine(f.Rule))
	}
	if f.Advice != "" {
		fmt.Fprintf(&b, "           to do: %s\n", host.EscapeLine(f.Advice))
	}
	return b.String()
}
