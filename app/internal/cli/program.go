package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// A program is one run of the command line: its streams and its flags.
type program struct {
	kit.Console

	serverFlags []string
	headers     []string
	protocol    string
	roots       []string
	logLevel    string

	allow, ask, deny []string

	rootsFound []mcp.Root     // what resolvedRoots made
	managed    *config.Config // what managedRules made

	extensions []client.Extension // that the command needs
	tap        transport.Tap      // is shown what connections carry, or nil
	transport  string             // to a URL, "http" or "sse"; else whatever is there

	held   map[string]*os.File // locks of the sessions that are open here, by their ids
	unkept bool                // there is no folder for sessions

	heard         stderrTail          // what servers that were started here log
	kept          serverLogs          // the same and their log messages, by server
	storedOnly    bool                // nobody is asked to sign in
	login         *loginFlags         // nil but in the command login
	signedIn      *signIns            // what signIns made
	entrySignedIn map[string]*signIns // what entrySignIns made, by the names of entries
	given         []host.Server       // in the place of those of flags
	addresses     addresses           // of the servers at URLs
	logs          logCounts           // of log messages that were shown
	asking        sync.Mutex          // held while the person is asked to sign in
	chatting      bool                // the command is a conversation with a person
	welcome       string              // what the screen says at the beginning of a first conversation
	onScreen      bool                // and the screen has the keyboard
	wantsAddress  addressWanted       // of the page that a sign-in ended at
}

// globals are the flags of all commands.
func (p *program) globals(f *pflag.FlagSet) {
	f.StringArrayVarP(&p.serverFlags, "server", "s", nil, "`COMMAND` that starts a server, its URL, or \"everything\", which is built in;\nNAME=COMMAND names it; may be given several times")
	f.StringArrayVar(&p.headers, "header", nil, "`HEADER` to send to the server at a URL, as 'Name: value'; may be given several times")
	f.StringVar(&p.protocol, "protocol", "", "protocol `VERSION` to insist on (default: the newest that suits both)")
	f.StringArrayVar(&p.roots, "root", nil, "`DIRECTORY` to tell servers about (default: none)")
	f.StringVar(&p.logLevel, "logs", "", "show log messages of servers from this `LEVEL` on: debug, info, notice, warning, error, ...")
	f.BoolVar(&p.JSON, "json", false, "write results as JSON")
	f.BoolVarP(&p.Verbose, "verbose", "v", false, "show what goes on between this program and the servers")
}

// open makes the host with the servers of the command line, for a command of the
// person: what servers ask meanwhile is asked at the terminal. The caller of open
// closes it.
func (p *program) open(ctx context.Context) (*host.Host, error) {
	opts, err := p.hostOptions()
	if err != nil {
		return nil, err
	}
	opts.Attended = p.Streams.InTerminal
	managed, err := p.managedRules()
	if err != nil {
		return nil, err
	}
	if opts.Policy, err = p.policyWith(managed.Rules); err != nil {
		return nil, err
	}
	servers, err := p.servers(ctx)
	if err != nil {
		return nil, err
	}
	h := host.New(opts)
	_, err = h.Apply(servers)
	return h, err
}

// with opens the host for as long as fn runs.
func (p *program) with(ctx context.Context, fn func(h *host.Host) error) error {
	h, err := p.open(ctx)
	if p.login == nil { // the command login has more to do with them
		defer p.endSignIns()
	}
	if err != nil {
		return err
	}
	leave, err := p.attend(ctx, h)
	if err == nil {
		err = fn(h)
		p.noteProblems(h)
	}
	if err != nil {
		err = p.withLog(p.addresses.name(err))
	}
	leave()
	if closeErr := h.Close(); err == nil && closeErr != nil {
		p.Logger().Warn("closing a server", "error", closeErr)
	}
	return err
}

// noteProblems reports what was wrong in the answers of servers, in one line per server.
func (p *program) noteProblems(h *host.Host) {
	for _, s := range h.Status() {
		s.Problems = p.MaskedProblems(s.Problems)
		if wrong := s.Wrong(); wrong != "" {
			p.Note("parley: server %q: %s; 'parley doctor' says what is wrong with a server", s.Name, host.EscapeLine(wrong))
		}
	}
}

// withOne opens the host and connects its only server, for commands that are
// about one server.
func (p *program) withOne(ctx context.Context, fn func(c *client.Client) error) error {
	return p.with(ctx, func(h *host.Host) error {
		names := h.Servers()
		if len(names) != 1 {
			return kit.Usagef("this command is about one server; give --server once")
		}
		c, err := h.Client(ctx, names[0])
		if err != nil {
			return err
		}
		return atServer(names[0], fn(c))
	})
}

// atServer says which server an error comes from, if it does not say so.
func atServer(name string, err error) error {
	if err == nil || errors.As(err, new(*kit.UsageError)) || errors.As(err, new(*kit.SilentError)) {
		return err
	}
	return fmt.Errorf("server %q: %w", name, err)
}

// keyValues parses key=value arguments.
func keyValues(args []string) ([]model.Pair, error) {
	list := make([]model.Pair, 0, len(args))
	for _, a := range args {
		key, value, found := strings.Cut(a, "=")
		if !found || key == "" {
			return nil, kit.Usagef("argument %q: write it as key=value", a)
		}
		list = append(list, model.Pair{Key: key, Value: value})
	}
	return list, nil
}

// pairs parses key=value arguments, each with a key of its own.
func pairs(args []string) ([]model.Pair, error) {
	list, err := keyValues(args)
	for i, pair := range list {
		if slices.ContainsFunc(list[:i], func(p model.Pair) bool { return p.Key == pair.Key }) {
			return nil, kit.Usagef("argument %q is given twice", pair.Key)
		}
	}
	return list, err
}

// texts parses key=value arguments whose values are texts.
func texts(args []string) (map[string]string, error) {
	list, err := pairs(args)
	if err != nil {
		return nil, err
	}
	m := make(map[string]string, len(list))
	for _, p := range list {
		m[p.Key] = p.Value
	}
	return m, nil
}

// aboutServers reports whether flags were given that are for commands that use a server.
func (p *program) aboutServers() bool { return len(p.serverFlags)+len(p.headers) > 0 }
