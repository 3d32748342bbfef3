package authserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	auditlog "github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/kit"
)

func (g *group) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify, query and export the audit file of the authorization server",
		Long: `Verify, query and export the audit file of the authorization server, including
its rotated files (FILE.000000001234). A server can be writing to it at the same time.

With --admin a server reads its own audit; omit FILE.`,
		Args: kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := &adminFlags{}
	flags.addAdmin(cmd.PersistentFlags())
	cmd.AddCommand(g.auditVerifyCommand(flags), g.auditQueryCommand(flags), g.auditExportCommand(flags))
	return cmd
}

func (g *group) auditVerifyCommand(at *adminFlags) *cobra.Command {
	var expect string
	var flags auditFlags
	cmd := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Find lines of an audit file that were changed, removed, inserted or moved",
		Args:  kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at.admin != "" && flags.keyFile != "" {
				return kit.Usagef("--audit-key-file requires a FILE: with --admin the server uses its own key")
			}
			key, err := auditKey(flags.keyFile)
			if err != nil {
				return err
			}
			source, err := at.auditSource(args, key)
			if err != nil {
				return err
			}
			chain, err := source.verify(cmd.Context(), expect)
			if err != nil {
				return auditError(source.name(), err)
			}
			if g.JSON {
				return g.PrintJSON(chain)
			}
			return g.Print(chainText(&chain))
		},
	}
	cmd.Flags().StringVar(&expect, "expect", "", "`HASH` from an earlier verify, which a line, or the line before the first, must have")
	flags.addKey(cmd.Flags())
	g.JSONFlag(cmd)
	return cmd
}

func chainText(c *auditlog.Chain) string {
	from := ""
	if c.First > 1 {
		from = fmt.Sprintf(" from number %d on, because older files were removed", c.First)
	}
	switch {
	case c.Authenticated > c.First:
		from += fmt.Sprintf(", authenticated from number %d on", c.Authenticated)
	case c.Authenticated > 0:
		from += ", all authenticated"
	}
	return fmt.Sprintf("%d lines%s, the last with the hash\n%s\n", c.Lines, from, c.Hash)
}

// auditError is an error of reading the audit with a name.
func auditError(name string, err error) error {
	switch {
	case errors.As(err, new(*kit.UnreachableError)):
		return err
	case errors.Is(err, os.ErrNotExist), errors.As(err, new(*admin.Error)):
		return kit.Usagef("%w", err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// filterFlags say which lines are meant.
type filterFlags struct {
	since, until, event, user, client, address string
	last                                       int
}

func (f *filterFlags) add(set *pflag.FlagSet, last int) {
	set.StringVar(&f.since, "since", "", "lines from this `TIME` on: 2026-11-25, 2026-11-25T08:00:00Z, or how long ago, such as 90m or 7d")
	set.StringVar(&f.until, "until", "", "lines before this `TIME`")
	set.StringVar(&f.event, "event", "", "lines of this `EVENT`, or of events that begin with it: token includes token.issued, and admin all operator actions")
	set.StringVar(&f.user, "user", "", "lines about the user with this `NAME` or subject")
	set.StringVar(&f.client, "client", "", "lines about the client with this `ID` or name")
	set.StringVar(&f.address, "address", "", "lines of requests from this `ADDRESS` or network, such as 192.0.2.0/24")
	about := "the newest lines, at most this `many`; 0 is all"
	set.IntVar(&f.last, "limit", last, about)
}

func (f *filterFlags) filter(now time.Time) (*auditlog.Filter, error) {
	out := &auditlog.Filter{Event: f.event, User: f.user, Client: f.client, Last: f.last}
	var err error
	if out.Since, err = parseMoment("since", f.since, now); err != nil {
		return nil, err
	}
	if out.Until, err = parseMoment("until", f.until, now); err != nil {
		return nil, err
	}
	if f.address != "" {
		if out.Address, err = auditlog.ParseAddress(f.address); err != nil {
			return nil, kit.Usagef("--address %q: must be an address or a network, such as 192.0.2.1 or 192.0.2.0/24", f.address)
		}
	}
	const most = 100_000
	if f.last < 0 || f.last > most {
		return nil, kit.Usagef("--limit %d: must be 1 to %d, or 0 for all lines", f.last, most)
	}
	return out, nil
}

// parseMoment reads a time, a day, or how long ago; zero if there is none.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, kit.Usagef("--%s %q: must be a day (2026-11-25), a time (2026-11-25T08:00:00Z), or how long ago (90m, 7d)", flag, text)
}

func (g *group) auditQueryCommand(at *adminFlags) *cobra.Command {
	var flags filterFlags
	cmd := &cobra.Command{
		Use:   "query [FILE]",
		Short: "Show lines of an audit file, oldest first",
		Example: `  parley auth audit query audit.log --user ada --since 7d
  parley auth audit query audit.log --event login --address 192.0.2.0/24
  parley auth audit query --admin unix:run/admin --user ada`,
		Args: kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := at.auditSource(args, nil)
			if err != nil {
				return err
			}
			if g.JSON {
				list := []json.RawMessage{}
				err := g.queryAudit(cmd.Context(), source, &flags, func(raw []byte) error {
					list = append(list, json.RawMessage(string(raw)))
					return nil
				})
				if err != nil {
					return err
				}
				return g.PrintJSON(struct {
					Lines []json.RawMessage `json:"lines"`
				}{list})
			}
			return g.queryAudit(cmd.Context(), source, &flags, func(raw []byte) error {
				var e auditEntry
				if err := json.Unmarshal(raw, &e); err != nil {
					return fmt.Errorf("cannot show a line: %w", err)
				}
				return g.Println(e.Time.Local().Format(time.DateTime) + " " + e.text())
			})
		},
	}
	flags.add(cmd.Flags(), 100)
	g.JSONFlag(cmd)
	return cmd
}

func (g *group) auditExportCommand(at *adminFlags) *cobra.Command {
	var flags filterFlags
	var out string
	cmd := &cobra.Command{
		Use:     "export [FILE]",
		Short:   "Write unchanged lines of an audit file, as JSON lines, to a new file or standard output",
		Example: `  parley auth audit export audit.log --since 2026-11-01 --until 2026-12-01 --out november.jsonl`,
		Args:    kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := at.auditSource(args, nil)
			if err != nil {
				return err
			}
			return g.exportAudit(cmd.Context(), source, out, &flags)
		},
	}
	cmd.Flags().StringVar(&out, "out", "-", "new `FILE` to write to; - is standard output")
	flags.add(cmd.Flags(), 0)
	return cmd
}

// queryAudit shows the lines that flags mean, and says what could not be read.
func (g *group) queryAudit(ctx context.Context, source auditSource, flags *filterFlags, show func(raw []byte) error) error {
	filter, err := flags.filter(time.Now())
	if err != nil {
		return err
	}
	read, err := source.query(ctx, filter, show)
	for line := range strings.Lines(read.Text()) {
		g.Note("parley: %s: %s", source.name(), strings.TrimSpace(line))
	}
	if err != nil {
		return auditError(source.name(), err)
	}
	return nil
}

func (g *group) exportAudit(ctx context.Context, source auditSource, out string, flags *filterFlags) error {
	if out == "-" {
		if g.Streams.OutTerminal {
			return g.queryAudit(ctx, source, flags, func(raw []byte) error { return g.PrintJSONLines(string(raw)) })
		}
		return g.writeAudit(ctx, source, g.Streams.Out, flags)
	}
	file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return kit.Usagef("--out: %w", err)
	}
	err = g.writeAudit(ctx, source, file, flags)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(out)) // what is half is nothing
	}
	return nil
}

// writeAudit writes lines as they are.
func (g *group) writeAudit(ctx context.Context, source auditSource, to io.Writer, flags *filterFlags) error {
	w := bufio.NewWriter(to)
	err := g.queryAudit(ctx, source, flags, func(raw []byte) error {
		_, err := w.Write(raw)
		return errors.Join(err, w.WriteByte('\n'))
	})
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the lines: %w", err)
	}
	return nil
}
