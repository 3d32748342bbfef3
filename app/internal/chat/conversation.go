package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/safefile"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

// conversationFlags are the flags of the commands that hold a conversation.
type conversationFlags struct {
	resume     string
	configFile string
	maxSteps   int
	model      modelFlags
}

func (g *group) conversationFlags(cmd *cobra.Command, c *conversationFlags) {
	g.SessionFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&g.Allow, "allow", nil, "call these tools without asking: `SERVER/TOOL` (repeatable)")
	f.StringArrayVar(&g.Ask, "ask", nil, "always ask before calling these tools: `SERVER/TOOL` (repeatable)")
	f.StringArrayVar(&g.Deny, "deny", nil, "never call these tools, and hide them from the model: `SERVER/TOOL` (repeatable)")
	g.models.modelFlags(f, &c.model)
	f.IntVar(&c.maxSteps, "max-steps", 0, "maximum model turns per request (default 16)")
	f.StringVar(&c.resume, "resume", "", "resume a session: its `ID`, or \"last\"")
	f.StringVar(&c.configFile, "config", "", "use only the servers and rules in this `FILE`, in the format of any known client")
}

// A conversation is a session, and what belongs to it.
type conversation struct {
	host    *host.Host
	session *host.Session
	model   host.Model // of the session
	store   host.Store
	// models finds a model by what the person calls it.
	models func(ctx context.Context, name string) (host.Model, error)
	// since is the last record of an earlier process.
	since int64
	// own is what parley.jsonc says.
	own *config.Own
}

// withConversation opens the host with the person's servers, rules and sessions for
// as long as fn runs.
func (g *group) withConversation(ctx context.Context, flags *conversationFlags, attended bool, fn func(c *conversation) error) (err error) {
	g.SignIns.Chatting = attended
	store, closeStore, err := g.openStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	defer g.releaseSessions()
	defer g.SignIns.Close()
	cfg, err := g.LoadConfig(ctx, flags.configFile, store)
	if err != nil {
		return err
	}
	// A file that --config names says nothing of the model: keys would go to its address.
	own := cfg.Own
	if flags.configFile != "" {
		mine, err := g.LoadConfig(ctx, "", store)
		if err != nil {
			return err
		}
		own = mine.Own
	}
	choice, err := chooseModel(&flags.model, own)
	if err != nil {
		return err
	}
	w := newModelWindows(ctx)
	defer w.close()
	chosen, err := g.models.talkTo(ctx, choice, w)
	if err != nil {
		return err
	}
	opts, servers, err := g.conversationOptions(ctx, flags, cfg, attended, store)
	if err != nil {
		return err
	}
	opts.SampleModels = sampleModels(chosen)
	if attended { // somebody may want to read them
		g.Output.KeepErrors(servers)
	}
	if attended && g.Streams.InTerminal {
		g.Output.KeepMessages(opts)
	}
	h := host.New(opts)
	defer func() {
		if closeErr := h.Close(); closeErr != nil {
			g.Logger().Warn("closing", "error", closeErr)
		}
	}()
	if _, err := h.Apply(servers); err != nil {
		return err
	}
	c := &conversation{host: h, model: chosen, store: store, models: g.models.modelNamed(&flags.model, own, w), own: own}
	if c.session, err = g.session(ctx, h, store, chosen, flags.resume); err != nil {
		return err
	}
	if flags.resume != "" {
		c.since = int64(len(c.session.Snapshot().Records))
	}
	if err := fn(c); err != nil {
		return g.Explained(err)
	}
	return nil
}

// openStore opens the person's sessions, grants, pins and audit log. Where there is no
// folder for them and none can be made, as for a program without a home in a container,
// nothing is kept.
func (g *group) openStore() (store host.Store, closeStore func() error, err error) {
	path, err := kit.Path("sessions.db")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		g.Note("parley: this session is not saved: %s", kit.ErrorText(err))
		g.unkept = true
		return new(host.Memory), func() error { return nil }, nil
	}
	db, err := local.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return db, db.Close, nil
}

// session begins a session, or goes on with one.
func (g *group) session(ctx context.Context, h *host.Host, store host.Store, m host.Model, resume string) (*host.Session, error) {
	if resume == "" {
		s, err := h.NewSession(ctx, m, nil)
		if err != nil {
			return nil, err
		}
		return s, g.holdSession(s.ID())
	}
	id, err := findSession(ctx, store, resume)
	if err != nil {
		return nil, err
	}
	if err := g.holdSession(id); err != nil {
		return nil, err
	}
	s, err := h.OpenSession(ctx, id, m, nil)
	if err != nil {
		g.releaseSession(id)
	}
	return s, err
}

// holdSession keeps other processes from going on with a session while this one does:
// they would close the calls that run here as interrupted.
func (g *group) holdSession(id string) error {
	if g.unkept {
		return nil
	}
	if g.held[id] != nil {
		return kit.Usagef("session %s is open here", id)
	}
	path, err := kit.Path(filepath.Join("open", id))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("holding session %s: %w", id, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("holding session %s: %w", id, err)
	}
	taken, err := safefile.TryLock(f)
	switch {
	case errors.Is(err, errors.ErrUnsupported): // the store finds out when two processes write to a session
	case err != nil:
		_ = f.Close() // it was not written to
		return fmt.Errorf("holding session %s: %w", id, err)
	case !taken:
		_ = f.Close() // it was not written to
		return kit.Usagef("session %s is open in another program; end it there first", id)
	}
	if g.held == nil {
		g.held = make(map[string]*os.File)
	}
	g.held[id] = f
	return nil
}

// releaseSession lets others go on with a session that was held.
func (g *group) releaseSession(id string) {
	if f := g.held[id]; f != nil {
		_ = f.Close() // it was not written to
		delete(g.held, id)
	}
}

// releaseSessions lets others go on with the sessions that were held. The end of the
// process does the same.
func (g *group) releaseSessions() {
	for id := range g.held {
		g.releaseSession(id)
	}
}

// deleteSession deletes a session that no program has open, and the file by which it was held.
func (g *group) deleteSession(ctx context.Context, store host.Store, id string) error {
	if err := g.holdSession(id); err != nil {
		return err
	}
	defer g.releaseSession(id)
	if err := store.DeleteSession(ctx, id); err != nil {
		return err
	}
	if f := g.held[id]; f != nil {
		_ = os.Remove(f.Name()) // it is empty; not every system removes what is open
	}
	return nil
}

// findSession finds a session by its id, or the one that was used last by "last".
func findSession(ctx context.Context, store host.Store, id string) (string, error) {
	list, err := store.Sessions(ctx)
	if err != nil {
		return "", err
	}
	if id == "last" && len(list) == 0 {
		return "", kit.Usagef("no session yet")
	}
	if id == "last" {
		used := func(a, b host.SessionInfo) int { return a.Used.Compare(b.Used) }
		return slices.MaxFunc(list, used).ID, nil // of equal ones the newest, which is first
	}
	for _, s := range list {
		if s.ID == id {
			return s.ID, nil
		}
	}
	return "", kit.Usagef("unknown session %q; run 'parley session list' to list sessions", id)
}

// conversationOptions are the host's options and servers, by flags and configuration.
func (g *group) conversationOptions(ctx context.Context, flags *conversationFlags, cfg *config.Config, attended bool, store host.Store) (*host.Options, []host.Server, error) {
	g.NotePending(cfg)
	opts, err := g.HostOptions()
	if err != nil {
		return nil, nil, err
	}
	opts.Attended, opts.Store = attended, store
	opts.Extensions, opts.Skills = append(opts.Extensions, skills.Extension()), skills.Loader{}
	opts.StartWait = g.Streams.StartWait
	if !attended { // a script wants the tools of all servers from the first turn on
		opts.StartWait = scriptWait
	}
	for _, dir := range cfg.Own.Roots {
		root, err := host.Root(dir)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", cfg.Own.Path, err)
		}
		opts.Roots = append(opts.Roots, root)
	}
	b := cfg.Own.Budgets
	opts.MaxSteps, opts.MaxRunCalls, opts.MaxTokens = b.Steps, b.Calls, int64(b.Tokens)
	opts.MaxTime, opts.MaxCost = time.Duration(b.Time), b.Money
	if flags.maxSteps > 0 {
		opts.MaxSteps = flags.maxSteps
	}
	// What is read from a pipe are messages, and no answers to questions about servers.
	servers, entryRules, err := g.conversationServers(ctx, cfg, attended && g.Streams.InTerminal, store)
	if err != nil {
		return nil, nil, err
	}
	opts.Policy, err = g.Policy(slices.Concat(cfg.Rules, entryRules))
	return opts, servers, err
}

// scriptWait is how long a run waits for servers that are starting: package runners may
// have to download them first.
const scriptWait = time.Minute

// conversationServers are the servers of the flags; else those of the configuration
// that can be started; else the one that is built in. The rules are those of entries.
func (g *group) conversationServers(ctx context.Context, cfg *config.Config, attended bool, store host.Store) ([]host.Server, []policy.Rule, error) {
	if len(g.Named) == 0 {
		if len(g.Headers) > 0 {
			return nil, nil, kit.Usagef("--header requires --server URL; set the headers of configured servers in their entries")
		}
		servers, rules, _ := g.ConfiguredServers(ctx, cfg, attended, store)
		if len(cfg.Problems) > 0 {
			g.Note("parley: your configuration has %d problems; run 'parley config doctor' to list them", len(cfg.Problems))
		}
		if len(servers) > 0 {
			return servers, rules, nil
		}
	}
	servers, err := g.Servers(ctx)
	return servers, nil, err
}
