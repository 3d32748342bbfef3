package tester

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport/stdio"
)

// doctorFlags are the flags of the command doctor.
type doctorFlags struct {
	junit, sarif, failOn string
	timeout              time.Duration
}

func (g *group) examineCommand() *cobra.Command {
	f := doctorFlags{failOn: string(doctor.Error)}
	cmd := &cobra.Command{
		Use:   "doctor SERVER | -- COMMAND",
		Short: "Check a server: find problems, their causes and their fixes",
		Long: `Check a server in each protocol version that it supports: names, schemas, texts,
apps, resources, its responses to requests it must reject, schema keywords that
model providers do not support, and how much of a model's context its tools need.
The check calls no tool, except one annotated as read-only, without the arguments
it requires.

Each finding has a code, which the guide explains, a location, a reason and a fix.
Findings are errors, warnings and notes. The exit code is 6 if there are errors, or
findings that --fail-on selects, and 4 if Parley cannot reach the server.`,
		Example: `  parley doctor -- ./server
  parley doctor --json https://example.com/mcp
  parley doctor --junit doctor.xml --sarif doctor.sarif -- npx -y @example/server`,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, t, err := connect.TargetOf(cmd, args, 0)
			if err != nil {
				return err
			}
			return g.examine(cmd.Context(), t, &f)
		},
	}
	cmd.Flags().StringVar(&f.junit, "junit", "", "also write the findings as JUnit XML to this `FILE`")
	cmd.Flags().StringVar(&f.sarif, "sarif", "", "also write the findings as SARIF 2.1.0 to this `FILE`")
	cmd.Flags().StringVar(&f.failOn, "fail-on", f.failOn, "lowest `SEVERITY` of finding that makes the exit code 6: error, warning or note")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Second, "timeout of each request")
	return cmd
}

// processEnd is how long a process has to end with its input.
const processEnd = 5 * time.Second

// examine examines the server that is meant.
func (g *group) examine(ctx context.Context, t connect.Target, f *doctorFlags) error {
	least := doctor.Severity(f.failOn)
	switch {
	case least != doctor.Error && least != doctor.Warning && least != doctor.Note:
		return kit.Usagef("--fail-on %q: must be error, warning or note", kit.Shorten(host.EscapeLine(f.failOn), kit.MaxName))
	case f.timeout <= 0:
		return kit.Usagef("--timeout %v: must be above 0, such as 10s", f.timeout)
	}
	defer g.SignIns.Close()
	watch := &doctor.Watch{}
	g.Tap = watch.Tap
	s, err := g.TargetServer(ctx, t)
	if err != nil {
		return err
	}
	if d, ok := s.Dialer.(*stdio.CommandDialer); ok {
		d.Grace.Close = processEnd
	}
	versions := s.Versions
	if len(versions) == 0 {
		versions = kit.Versions()
	}
	report, err := doctor.Examine(ctx, doctor.Target{Name: s.Name, Dialer: s.Dialer, Watch: watch, Versions: versions}, &doctor.Options{
		Timeout: f.timeout, ConnectTimeout: max(f.timeout, s.ConnectTimeout), Logger: g.Logger(),
	})
	if report == nil {
		return err
	}
	report, failed := kit.MaskedCopy(g.Console, report)
	if failed != nil {
		return failed
	}
	if wrote := g.writeReport(report, f); wrote != nil {
		return wrote
	}
	if errors.As(err, new(*doctor.UnreachableError)) {
		return g.unreached(ctx, s, err)
	}
	if err == nil && report.Fails(least) {
		err = &kit.SilentError{Code: kit.ExitContract}
	}
	return err
}

// writeReport prints a report, and writes the files that are asked for.
func (g *group) writeReport(r *doctor.Report, f *doctorFlags) error {
	for _, file := range []struct {
		path string
		text func(*doctor.Report) ([]byte, error)
	}{{f.junit, doctor.JUnit}, {f.sarif, func(r *doctor.Report) ([]byte, error) { return doctor.SARIF(r, kit.Version()) }}} {
		if file.path == "" {
			continue
		}
		raw, err := file.text(r)
		if err == nil {
			err = os.WriteFile(file.path, raw, 0o644) // a report for others to read
		}
		if err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	if g.JSON {
		return g.PrintJSON(struct {
			*doctor.Report
			Errors   int `json:"errors"`
			Warnings int `json:"warnings"`
			Notes    int `json:"notes"`
		}{r, r.Count(doctor.Error), r.Count(doctor.Warning), r.Count(doctor.Note)})
	}
	return g.Print(describeReport(r))
}

// maxFinding bounds a place, reason or name of a report as text, in bytes: it is as long as the server likes.
// The report as JSON has all of it.
const maxFinding = 1000

// describeReport is a report as text.
func describeReport(r *doctor.Report) string {
	var b strings.Builder
	of := func(text string) string { return kit.Shorten(host.EscapeLine(text), maxFinding) }
	fmt.Fprintf(&b, "%s\n", host.EscapeLine(r.Server))
	spoken := 0
	for _, v := range r.Revisions {
		if !v.Spoken {
			fmt.Fprintf(&b, "  %s  not supported\n", v.Version)
			continue
		}
		spoken++
		fmt.Fprintf(&b, "  %s  %d tools, %d prompts, %d resources, %d resource templates\n", v.Version, v.Tools, v.Prompts, v.Resources, v.Templates)
	}
	if len(r.Model) > 0 {
		fmt.Fprintf(&b, "\nThe tool definitions take about %d tokens of a model's context:\n", r.Tokens)
		for _, c := range r.Model {
			fmt.Fprintf(&b, "  %6d  %s\n", c.Tokens, of(c.Name))
		}
	}
	if len(r.Findings) > 0 {
		b.WriteString("\n")
	}
	for i := range r.Findings {
		finding := &r.Findings[i]
		fmt.Fprintf(&b, "%-7s  %s  %s\n", finding.Severity, finding.Code, of(finding.Where))
		fmt.Fprintf(&b, "    what  %s\n", doctor.TitleOf(finding.Code))
		fmt.Fprintf(&b, "    why   %s\n", of(finding.Reason))
		fmt.Fprintf(&b, "    rule  %s\n", finding.Clause)
		fmt.Fprintf(&b, "    fix   %s\n", host.EscapeLine(finding.Fix))
		if n := len(finding.Revisions); n > 0 && n < spoken {
			fmt.Fprintf(&b, "    in    %s\n", strings.Join(finding.Revisions, ", "))
		}
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more findings\n", r.More)
	}
	fmt.Fprintf(&b, "\n%d errors, %d warnings, %d notes\n", r.Count(doctor.Error), r.Count(doctor.Warning), r.Count(doctor.Note))
	return b.String()
}
