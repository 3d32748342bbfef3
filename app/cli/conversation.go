package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/config"
	"github.com/parley-mcp/parley/app/model"
	"github.com/parley-mcp/parley/app/store/local"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// conversationFlags are the flags of the commands that hold a conversation.
type conversationFlags struct {
	resume     string
	configFile string
	maxSteps   int
}

func (p *program) conversationFlags(f *pflag.FlagSet, c *conversationFlags) {
	f.StringArrayVar(&p.allow, "allow", nil, "call these tools without a question: `SERVER/TOOL`")
	f.StringArrayVar(&p.ask, "ask", nil, "ask about these tools in any case: `SERVER/TOOL`")
	f.StringArrayVar(&p.deny, "deny", nil, "never call these tools, nor show them to the model: `SERVER/TOOL`")
	f.IntVar(&c.maxSteps, "max-steps", 0, "most turns of the model for one request (default 16)")
	f.StringVar(&c.resume, "resume", "", "go on with a session: its `ID`, or \"last\"")
	f.StringVar(&c.configFile, "config", "", "take servers and rules from this `FILE` alone, in the form of any known client")
}

// A conversation is a session, and what belongs to it.
type conversation struct {
	host    *host.Host
	session *host.Session
	store   host.Store
	// since is the last record of an earlier process.
	since int64
}

// withConversation opens the host with the person's servers, rules and sessions for
// as long as fn runs.
func (p *program) withConversation(ctx context.Context, flags *conversationFlags, attended bool, fn func(c *conversation) error) (err error) {
	store, closeStore, err := p.openStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	defer p.releaseSessions()
	defer p.endSignIns()
	opts, servers, err := p.conversationOptions(ctx, flags, attended, store)
	if err != nil {
		return err
	}
	h := host.New(opts)
	defer func() {
		if closeErr := h.Close(); closeErr != nil {
			p.logger().Warn("closing", "error", closeErr)
		}
	}()
	if _, err := h.Apply(servers); err != nil {
		return err
	}
	c := &conversation{host: h, store: store}
	if c.session, err = p.session(ctx, h, store, flags.resume); err != nil {
		return err
	}
	if flags.resume != "" {
		c.since = int64(len(c.session.Snapshot().Records))
	}
	if err := fn(c); err != nil {
		return p.withLog(p.addresses.name(err))
	}
	return nil
}

// openStore opens the person's sessions, grants, pins and audit log. Where there is no
// folder for them and none can be made, as for a program without a home in a container,
// nothing is kept.
func (p *program) openStore() (store host.Store, closeStore func() error, err error) {
	path, err := configPath("sessions.db")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		p.note("parley: nothing of this session is kept: %s", errorText(err))
		p.unkept = true
		return new(host.Memory), func() error { return nil }, nil
	}
	db, err := local.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return db, db.Close, nil
}

// openLocal opens the person's sessions, grants, pins and audit log.
func openLocal() (*local.DB, error) {
	path, err := configPath("sessions.db")
	if err != nil {
		return nil, err
	}
	return local.Open(path)
}

// session begins a session, or goes on with one.
func (p *program) session(ctx context.Context, h *host.Host, store host.Store, resume string) (*host.Session, error) {
	if resume == "" {
		s, err := h.NewSession(ctx, model.Offline{}, nil)
		if err != nil {
			return nil, err
		}
		return s, p.holdSession(s.ID())
	}
	id, err := findSession(ctx, store, resume)
	if err != nil {
		return nil, err
	}
	if err := p.holdSession(id); err != nil {
		return nil, err
	}
	return h.OpenSession(ctx, id, model.Offline{}, nil)
}

// holdSession keeps other processes from going on with a session while this one does:
// they would close the calls that run here as interrupted.
func (p *program) holdSession(id string) error {
	if p.unkept {
		return nil
	}
	path, err := configPath(filepath.Join("open", id))
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
	if err := lockFile(f); err != nil {
		_ = f.Close() // it was not written to
		return usagef("session %s is open in another program; end it there first", id)
	}
	p.held = append(p.held, f)
	return nil
}

// releaseSessions lets others go on with the sessions that were held. The end of the
// process does the same.
func (p *program) releaseSessions() {
	for _, f := range p.held {
		_ = f.Close() // it was not written to
	}
	p.held = nil
}

// findSession finds a session by its id, or the newest by "last".
func findSession(ctx context.Context, store host.Store, id string) (string, error) {
	list, err := store.Sessions(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range list { // the newest first
		if id == "last" || s.ID == id {
			return s.ID, nil
		}
	}
	if id == "last" {
		return "", usagef("there is no session yet")
	}
	return "", usagef("there is no session %q; 'parley session list' lists them", id)
}

// conversationOptions are the host's options and servers, by flags and configuration.
func (p *program) conversationOptions(ctx context.Context, flags *conversationFlags, attended bool, store host.Store) (*host.Options, []host.Server, error) {
	cfg, err := loadConfig(ctx, flags.configFile, store)
	if err != nil {
		return nil, nil, err
	}
	opts, err := p.hostOptions()
	if err != nil {
		return nil, nil, err
	}
	opts.Attended, opts.Store = attended, store
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
	servers, entryRules, err := p.conversationServers(ctx, cfg, attended && p.streams.InTerminal, store)
	if err != nil {
		return nil, nil, err
	}
	opts.Policy, err = p.policyWith(slices.Concat(cfg.Rules, entryRules))
	return opts, servers, err
}

// scriptWait is how long a run waits for servers that are starting: package runners may
// have to download them first.
const scriptWait = time.Minute

// hostOptions are the options of a host by the flags of all commands.
func (p *program) hostOptions() (*host.Options, error) {
	opts := &host.Options{
		Info:         mcp.Implementation{Name: "parley", Version: version()},
		SampleModels: []host.Model{model.Offline{}},
		Extensions:   append([]client.Extension{tasks.Client(nil)}, p.extensions...),
		Logger:       p.logger(),
	}
	if dir, err := os.Getwd(); err == nil {
		opts.Dir = dir
	}
	for _, dir := range p.roots {
		root, err := host.Root(dir)
		if err != nil {
			return nil, usagef("--root: %w", err)
		}
		opts.Roots = append(opts.Roots, root)
	}
	if p.logLevel != "" {
		opts.LogLevel = mcp.LogLevel(p.logLevel)
		if !opts.LogLevel.Valid() {
			return nil, usagef("--logs %q: the levels are debug, info, notice, warning, error, critical, alert, emergency", p.logLevel)
		}
		opts.OnLog = p.showLog
	}
	return opts, nil
}

// policyWith makes the policy: the rules of the command line first, then others, then
// those of the program itself.
func (p *program) policyWith(others []policy.Rule) (*policy.Policy, error) {
	var rules []policy.Rule
	for _, flag := range []struct {
		name     string
		effect   policy.Effect
		patterns []string
	}{{"--deny", policy.Deny, p.deny}, {"--ask", policy.Ask, p.ask}, {"--allow", policy.Allow, p.allow}} {
		for _, pattern := range flag.patterns {
			r, err := policy.ParsePattern(flag.effect, pattern, policy.Source{File: flag.name, Text: pattern})
			if err != nil {
				return nil, usagef("%w", err)
			}
			rules = append(rules, r)
		}
	}
	for _, dir := range p.roots {
		root, err := host.Root(dir)
		if err != nil {
			return nil, usagef("--root: %w", err)
		}
		raw, err := stringJSON(root.URI)
		if err != nil {
			return nil, fmt.Errorf("--root: %w", err)
		}
		rules = append(rules, policy.Rule{
			Effect: policy.Allow, Kind: policy.KindRoots, Source: policy.Source{File: "--root", Text: dir},
			Where: []policy.Predicate{{Pointer: "/uri", Op: policy.OpEquals, Values: []mcp.RawValue{raw}}},
		})
	}
	rules = append(rules, others...)
	rules = append(rules, policy.Rule{
		Effect: policy.Allow, Kind: policy.KindTool, Server: bundled, Hints: []policy.Hint{policy.HintReadOnly},
		Source: policy.Source{File: "the program: the built-in server may read"},
	})
	return policy.New(rules)
}

// loadConfig reads the person's configuration, or one file that they named.
func loadConfig(ctx context.Context, file string, store host.Store) (*config.Config, error) {
	if file != "" {
		cfg, err := config.LoadFile(file, nil)
		if err != nil {
			return nil, usagef("--config: %w", err)
		}
		return cfg, nil
	}
	opts := &config.Options{Approved: func(file, digest string) bool {
		pin, err := store.Pin(ctx, approvalOf("rules", file))
		return err == nil && pin != nil && pin.Digest == digest
	}}
	if _, err := os.UserHomeDir(); err != nil { // then nothing is in it; other places count
		opts.Home = filepath.Join(string(filepath.Separator), "nonexistent")
	}
	return config.Load(opts)
}

// approvalOf is where the store has the person's consent to what others wrote: an
// entry of a project, by its name, or the rules in a file.
func approvalOf(what, name string) host.PinKey {
	return host.PinKey{Server: "configuration " + what, Tool: name}
}

// conversationServers are the servers of the flags; else those of the configuration
// that can be started; else the one that is built in. The rules are those of entries.
func (p *program) conversationServers(ctx context.Context, cfg *config.Config, attended bool, store host.Store) ([]host.Server, []policy.Rule, error) {
	if len(p.serverFlags) > 0 {
		servers, err := p.servers(ctx)
		return servers, nil, err
	}
	var servers []host.Server
	var rules []policy.Rule
	if len(p.headers) > 0 {
		return nil, nil, usagef("--header goes with --server URL; headers of configured servers are in their entries")
	}
	for _, entry := range cfg.Servers {
		if entry.Disabled {
			continue
		}
		if p.protocol != "" {
			entry.Versions = []string{p.protocol}
		}
		s, err := p.configured(ctx, entry, attended, store)
		if err != nil {
			p.note("parley: server %s of %s is left out: %s", host.EscapeLine(entry.Name), entry.Source, errorText(err))
			continue
		}
		servers = append(servers, s)
		rules = append(rules, entryRules(entry)...)
	}
	if len(cfg.Problems) > 0 {
		p.note("parley: %d things in your configuration are not done as written; 'parley config doctor' lists them", len(cfg.Problems))
	}
	if len(servers) > 0 {
		return servers, rules, nil
	}
	servers, err := p.servers(ctx)
	return servers, nil, err
}

// entryRules deny the tools that an entry switches off.
func entryRules(entry *config.Server) []policy.Rule {
	var rules []policy.Rule
	for _, name := range entry.DenyTools {
		rules = append(rules, policy.Rule{
			Effect: policy.Deny, Server: policy.Quote(entry.Name), Name: name,
			Source: policy.Source{File: entry.Source.File, Line: entry.Source.Line},
		})
	}
	return rules
}

// configured makes the server of an entry.
func (p *program) configured(ctx context.Context, entry *config.Server, attended bool, store host.Store) (host.Server, error) {
	if entry.Err != nil {
		return host.Server{}, entry.Err
	}
	if entry.NeedsConsent {
		if err := p.approveEntry(ctx, entry, attended, store); err != nil {
			return host.Server{}, err
		}
	}
	inputs, err := p.inputs(ctx, entry, attended)
	if err != nil {
		return host.Server{}, err
	}
	entry, err = entry.Expand(inputs)
	if err != nil {
		return host.Server{}, err
	}
	s := host.Server{
		Name: entry.Name, Key: entry.Digest, Origin: entry.Source.String(), Trusted: entry.Trusted,
		Labels: entry.Labels, Versions: versionsOf(entry.Versions), OnlyTools: entry.AllowTools,
		ConnectTimeout: entry.ConnectTimeout, CallTimeout: entry.CallTimeout,
	}
	for _, t := range entry.ToolLabels {
		s.ToolLabels = append(s.ToolLabels, host.ToolLabels{Tools: t.Tools, Labels: t.Labels})
	}
	if entry.OAuth != nil {
		p.note("parley: server %s: the sign-in settings of its entry are not used; if signing in fails, give them to 'parley login %s'", host.EscapeLine(entry.Name), host.EscapeLine(entry.Address()))
	}
	s.Dialer, err = p.entryDialer(ctx, entry)
	return s, err
}

// versionsOf spells out "modern" and "legacy" in a list of protocol versions.
func versionsOf(list []string) []string {
	var versions []string
	kinds := map[string]client.Revisions{"modern": client.Stateless, "legacy": client.Handshake}
	for _, v := range list {
		kind, ok := kinds[v]
		if !ok {
			versions = append(versions, v)
			continue
		}
		for _, known := range knownVersions() {
			if kind.Has(known) {
				versions = append(versions, known)
			}
		}
	}
	return versions
}

// approveEntry lets an entry that others wrote be used: the person agreed to it as
// it is, or agrees now.
func (p *program) approveEntry(ctx context.Context, entry *config.Server, attended bool, store host.Store) error {
	key := entryKey(entry)
	pin, err := store.Pin(ctx, key)
	if err != nil {
		return err
	}
	if pin != nil && pin.Digest == entry.Digest {
		return nil
	}
	how := fmt.Sprintf("the authors of the project wrote it, and you have not agreed to it; 'parley config approve %s' shows it", host.EscapeLine(entry.Name))
	if !attended {
		return errors.New(how)
	}
	p.note("%s", describeEntry(entry, pin != nil))
	if agreed, err := p.askYes(ctx, "Start it in this and later sessions? [y]es, [n]o: "); err != nil {
		return err
	} else if !agreed {
		return errors.New(how)
	}
	return approve(ctx, store, key, entry.Digest)
}

// approve keeps the person's consent to what others wrote.
func approve(ctx context.Context, store host.Store, key host.PinKey, digest string) error {
	return store.PutPin(ctx, &host.Pin{PinKey: key, Digest: digest, Definition: mcp.RawValue("{}"), Time: time.Now()})
}

// describeEntry shows what an entry would start.
func describeEntry(entry *config.Server, changed bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe project's file %s names the server %s.\n", entry.Source, host.EscapeLine(entry.Name))
	if changed {
		b.WriteString("  It has changed since you agreed to it.\n")
	}
	// All of it, as it was written: nobody agrees to what is not shown.
	if entry.URL != "" {
		fmt.Fprintf(&b, "  It connects to: %s\n", host.EscapeLine(entry.URL))
	} else {
		fmt.Fprintf(&b, "  It starts on this machine: %s\n", host.EscapeLine(entry.Command))
		for _, arg := range entry.Args {
			fmt.Fprintf(&b, "    argument: %s\n", host.EscapeLine(arg))
		}
	}
	if entry.Dir != "" {
		fmt.Fprintf(&b, "  in the folder: %s\n", host.EscapeLine(entry.Dir))
	}
	for _, name := range slices.Sorted(maps.Keys(entry.Env)) {
		fmt.Fprintf(&b, "    variable: %s=%s\n", host.EscapeLine(name), host.EscapeLine(entry.Env[name]))
	}
	for _, h := range entry.Headers {
		fmt.Fprintf(&b, "    header: %s: %s\n", host.EscapeLine(h.Name), host.EscapeLine(h.Value))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// inputs asks the person for the values that an entry needs.
func (p *program) inputs(ctx context.Context, entry *config.Server, attended bool) (map[string]string, error) {
	values := make(map[string]string)
	for _, in := range entry.Inputs {
		if !attended {
			if in.Default != "" && !in.Password {
				values[in.ID] = in.Default
				continue
			}
			return nil, fmt.Errorf("it needs the value %q, and nobody can be asked here; 'parley chat' asks", in.ID)
		}
		about := in.Description
		if about == "" {
			about = in.ID
		}
		if len(in.Options) > 0 {
			about += " (" + strings.Join(in.Options, ", ") + ")"
		}
		ask := fmt.Sprintf("Server %s needs a value: %s: ", host.EscapeLine(entry.Name), host.EscapeLine(about))
		var line string
		var err error
		if in.Password && p.streams.Secret != nil {
			p.notePart("%s", ask)
			line, err = p.streams.Secret(ctx)
		} else {
			line, err = p.askLine(ctx, ask)
		}
		if err != nil {
			return nil, err
		}
		if in.Password {
			p.note("")
		}
		if line == "" {
			line = in.Default
		}
		values[in.ID] = line
	}
	return values, nil
}
