package tester

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
)

func (g *group) lockCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "lock --out FILE SERVER | -- COMMAND",
		Short: "Write a snapshot of a server's offer to a lock file, for 'parley diff'",
		Long: `Write a snapshot of a server's offer to a lock file: its instructions and
capabilities, its tools with their schemas and annotations, its prompts, resources
and templates. The file is identical, byte by byte, as long as the server offers
the same. Commit it with the server's source, and use 'parley diff' to find changes.

The server is a configured name, a URL, or a command after --. Parley uses the
newest protocol version that the server supports; --protocol selects another one.`,
		Example: `  parley lock --out server.lock.json -- ./server
  parley lock --out server.lock.json https://example.com/mcp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, t, err := connect.TargetOf(cmd, args, 0)
			if err != nil {
				return err
			}
			if out == "" {
				return kit.Usagef("missing --out FILE: the lock file to write")
			}
			if err := lockable(out); err != nil {
				return err
			}
			found, err := g.contractOf(cmd.Context(), t, "")
			if err != nil {
				return err
			}
			raw, err := contract.Encode(found)
			if err != nil {
				return err
			}
			if err := replaceFile(out, raw); err != nil {
				return fmt.Errorf("writing the lock: %w", err)
			}
			g.Note("%s: %d tools, %d prompts, %d resources, %d resource templates, in %s", out, len(found.Tools), len(found.Prompts), len(found.Resources),
				len(found.Templates), host.EscapeLine(found.Revision))
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "lock `FILE` to write; an existing lock file is overwritten")
	return cmd
}

// lockable reports why a file cannot become a lock: it is there, and something else.
func lockable(path string) error {
	_, err := openLock(path)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, contract.ErrEdited):
		return nil
	case errors.Is(err, contract.ErrNoLock), errors.Is(err, contract.ErrTooLarge):
		return kit.Usagef("--out %s: the existing file is not a lock file; remove it, or name another file", path)
	}
	return kit.Usagef("--out: %w", err)
}

// openLock reads a lock.
func openLock(path string) (*contract.Contract, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	c, err := contract.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// replaceFile writes a file so that either the old or the new one is there.
func replaceFile(path string, raw []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(raw)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// contractOf asks the server that is meant for all that it offers. A revision that it does
// not speak gives way to one that it speaks.
func (g *group) contractOf(ctx context.Context, t connect.Target, revision string) (*contract.Contract, error) {
	defer g.SignIns.Close()
	s, err := g.TargetServer(ctx, t)
	if err != nil {
		return nil, err
	}
	if len(s.Versions) == 0 && revision != "" {
		s.Versions = []string{revision}
		found, err := g.readContract(ctx, s)
		if !errors.Is(err, client.ErrUnsupportedVersion) {
			return found, err
		}
		s.Versions = nil
	}
	return g.readContract(ctx, s)
}

func (g *group) readContract(ctx context.Context, s host.Server) (*contract.Contract, error) {
	c, err := client.Connect(ctx, s.Dialer, contract.Declare(&client.Options{
		Versions: s.Versions, ConnectTimeout: s.ConnectTimeout, CallTimeout: s.CallTimeout, Logger: g.Logger(),
	}))
	if err != nil {
		return nil, g.unreached(ctx, s, err)
	}
	found, err := contract.Read(ctx, c)
	if closeErr := c.Close(); closeErr != nil {
		g.Logger().Warn("closing a server", "error", closeErr)
	}
	if err != nil {
		return nil, g.Explained(connect.AtServer(s.Name, err))
	}
	return kit.MaskedCopy(g.Console, found)
}

// unreached is the error of a server that cannot be connected to.
func (g *group) unreached(ctx context.Context, s host.Server, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return g.Explained((&kit.UnreachableError{Err: fmt.Errorf("server %q: %w", s.Name, err)}))
}

func (g *group) diffCommand() *cobra.Command {
	failOn := string(contract.Breaking)
	cmd := &cobra.Command{
		Use:   "diff FILE SERVER | -- COMMAND",
		Short: "Show how a server's offer changed since 'parley lock'",
		Long: `Compare a server's offer with a lock file that 'parley lock' wrote. Parley
compares the meaning of schemas, not their text. Each change has a class:

  breaking  working clients fail: a removed or renamed tool or argument, a new
            required argument, a value that is no longer accepted
  risky     a model might act differently: a description, an annotation (hint),
            the instructions
  safe      working clients are not affected: an optional argument, a new tool

The exit code is 6 if there are breaking changes, or those that --fail-on names.`,
		Example: `  parley diff server.lock.json -- ./server
  parley diff --json --fail-on risky server.lock.json https://example.com/mcp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			before, t, err := connect.TargetOf(cmd, args, 1)
			if err != nil {
				return err
			}
			least := contract.Class(failOn)
			if !isClass(least) {
				return kit.Usagef("--fail-on %q: must be breaking, risky or safe", kit.Shorten(host.EscapeLine(failOn), kit.MaxName))
			}
			locked, err := openLock(before[0])
			if err != nil {
				return kit.Usagef("%w; run 'parley lock --out %s' to write one", err, before[0])
			}
			found, err := g.contractOf(cmd.Context(), t, locked.Revision)
			if err != nil {
				return err
			}
			if locked, err = kit.MaskedCopy(g.Console, locked); err != nil { // it may be from before secrets were masked
				return err
			}
			if g.Protocol != "" {
				locked.Revision = found.Revision // the person asked for another one
			}
			return g.printChanges(before[0], contract.Compare(locked, found), least)
		},
	}
	cmd.Flags().StringVar(&failOn, "fail-on", failOn, "lowest `CLASS` of change that makes the exit code 6: breaking, risky or safe")
	return cmd
}

func isClass(c contract.Class) bool {
	for _, known := range contract.Classes() {
		if c == known {
			return true
		}
	}
	return false
}

// printChanges tells of changes. Those of the class least, and worse ones, are a failure.
func (g *group) printChanges(file string, changes []contract.Change, least contract.Class) error {
	counts := make(map[contract.Class]int)
	failed := false
	var b strings.Builder
	for _, c := range changes {
		counts[c.Class]++
		failed = failed || c.Class.AtLeast(least)
		fmt.Fprintf(&b, "%-8s  %s\n", c.Class, host.EscapeLine(c.Path))
		for _, line := range [][2]string{{"before", c.Before}, {"after", c.After}, {"why", c.Why}} {
			if line[1] != "" {
				fmt.Fprintf(&b, "    %-6s  %s\n", line[0], host.EscapeLine(line[1]))
			}
		}
	}
	var err error
	if g.JSON {
		if changes == nil {
			changes = []contract.Change{}
		}
		err = g.PrintJSON(struct {
			Changes  []contract.Change `json:"changes"`
			Breaking int               `json:"breaking"`
			Risky    int               `json:"risky"`
			Safe     int               `json:"safe"`
		}{changes, counts[contract.Breaking], counts[contract.Risky], counts[contract.Safe]})
	} else {
		err = g.Print(b.String())
	}
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		g.Note("no change since %s", file)
	} else {
		g.Note("%d breaking, %d risky and %d safe changes since %s", counts[contract.Breaking], counts[contract.Risky], counts[contract.Safe], file)
	}
	if failed {
		return &kit.SilentError{Code: kit.ExitContract}
	}
	return nil
}
