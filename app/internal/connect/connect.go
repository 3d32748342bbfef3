// Package connect starts and reaches the servers that a command of the program uses: those of its flags or of
// the configuration, with the user's rules, approvals and sign-ins.
package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// A Connector starts and reaches the servers of one command. Its fields are set before its methods are
// called; the methods have one caller at a time.
type Connector struct {
	*kit.Console

	Named    []string // --server
	Headers  []string // --header
	Protocol string   // --protocol
	RootDirs []string // --root
	LogLevel string   // --logs

	Allow, Ask, Deny []string // patterns of rules

	Extensions []client.Extension // that the command needs, besides tasks
	Tap        transport.Tap      // receives what connections carry, or nil
	Transport  string             // for URLs: "http" or "sse"; empty means whichever the server has
	Given      []host.Server      // used instead of Named if it is not nil

	SignIns *SignIns
	Output  *Output

	rootsFound []mcp.Root     // what Roots made
	managed    *config.Config // what managedRules made
}

// New returns a Connector for a command at a console.
func New(console *kit.Console) *Connector {
	c := &Connector{Console: console, Output: &Output{console: console}}
	c.SignIns = &SignIns{Console: console, around: c.Around}
	return c
}

// ServerFlags adds to commands the flags that say which server to use and how to reach it, and to a command
// with others below it for all of those.
func (c *Connector) ServerFlags(commands ...*cobra.Command) {
	for _, cmd := range commands {
		f := kit.FlagsOf(cmd)
		f.StringArrayVarP(&c.Named, "server", "s", nil, "`COMMAND` that starts a server, its URL, or \"everything\" (built in);\nNAME=COMMAND sets its name (repeatable)")
		f.StringArrayVar(&c.Headers, "header", nil, "`HEADER` to send to the server at a URL, as 'Name: value' (repeatable)")
		f.StringVar(&c.Protocol, "protocol", "", "use only this protocol `VERSION` (default: the newest that both support)")
	}
}

// SessionFlags adds ServerFlags, and those of commands that tell servers of directories and show their logs.
func (c *Connector) SessionFlags(commands ...*cobra.Command) {
	c.ServerFlags(commands...)
	for _, cmd := range commands {
		c.RootFlag(cmd)
		kit.FlagsOf(cmd).StringVar(&c.LogLevel, "logs", "", "show servers' log messages of at least this `LEVEL`: debug, info, notice, warning, error, ...")
	}
}

// RootFlag adds the flag with the directories that servers are told of.
func (c *Connector) RootFlag(cmd *cobra.Command) {
	kit.FlagsOf(cmd).StringArrayVar(&c.RootDirs, "root", nil, "`DIRECTORY` to offer servers as a root (repeatable; default: none)")
}

// Level returns the level of --logs, or "" without the flag.
func (c *Connector) Level() (mcp.LogLevel, error) {
	level := mcp.LogLevel(c.LogLevel)
	if level != "" && !level.Valid() {
		return "", kit.Usagef("--logs %q: unknown level; must be debug, info, notice, warning, error, critical, alert or emergency", c.LogLevel)
	}
	return level, nil
}

// Explained adds to an error from a server the server's address, if the error is about signing in, and what
// the server logged about it.
func (c *Connector) Explained(err error) error {
	return c.Output.WithLog(c.SignIns.Named(err))
}

// open returns the host with the servers of the command line. The caller closes it.
func (c *Connector) open(ctx context.Context) (*host.Host, error) {
	opts, err := c.HostOptions()
	if err != nil {
		return nil, err
	}
	opts.Attended = c.Streams.InTerminal
	managed, err := c.managedRules()
	if err != nil {
		return nil, err
	}
	if opts.Policy, err = c.Policy(managed.Rules); err != nil {
		return nil, err
	}
	servers, err := c.Servers(ctx)
	if err != nil {
		return nil, err
	}
	h := host.New(opts)
	_, err = h.Apply(servers)
	return h, err
}

// With opens the host with the servers of the command line for as long as fn runs. The user answers what
// servers ask meanwhile at the terminal.
func (c *Connector) With(ctx context.Context, fn func(h *host.Host) error) error {
	h, err := c.open(ctx)
	if c.SignIns.Login == nil { // the command login has more to do with them
		defer c.SignIns.Close()
	}
	if err != nil {
		return err
	}
	leave, err := c.attend(ctx, h)
	if err == nil {
		err = fn(h)
		c.noteProblems(h)
	}
	if err != nil {
		err = c.Explained(err)
	}
	leave()
	if closeErr := h.Close(); err == nil && closeErr != nil {
		c.Logger().Warn("closing a server", "error", closeErr)
	}
	return err
}

// noteProblems reports what was wrong in the answers of servers, in one line per server.
func (c *Connector) noteProblems(h *host.Host) {
	for _, s := range h.Status() {
		s.Problems = c.MaskedProblems(s.Problems)
		if wrong := s.Wrong(); wrong != "" {
			c.Note("parley: server %q: %s; run 'parley doctor' to check the server", s.Name, host.EscapeLine(wrong))
		}
	}
}

// WithOne opens the host and connects its only server for as long as fn runs.
func (c *Connector) WithOne(ctx context.Context, fn func(one *client.Client) error) error {
	return c.With(ctx, func(h *host.Host) error {
		names := h.Servers()
		if len(names) != 1 {
			return kit.Usagef("--server: this command uses one server; write --server once")
		}
		one, err := h.Client(ctx, names[0])
		if err != nil {
			return err
		}
		return AtServer(names[0], fn(one))
	})
}

// AtServer adds to an error the name of the server that it comes from, unless the error is about usage or silent.
func AtServer(name string, err error) error {
	if err == nil || errors.As(err, new(*kit.UsageError)) || errors.As(err, new(*kit.SilentError)) {
		return err
	}
	return fmt.Errorf("server %q: %w", name, err)
}
