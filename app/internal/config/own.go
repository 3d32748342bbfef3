package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/strictjson"
)

// A File is parley.jsonc. Its schema is docs/guide/parley.schema.json.
type File struct {
	Schema  string                `json:"$schema,omitzero"`
	Servers map[string]Entry      `json:"servers,omitzero"`
	Rules   []strictjson.RawValue `json:"rules,omitzero"` // see policy.ParseRule
	Budgets Budgets               `json:"budgets,omitzero"`
	Import  map[Client]bool       `json:"import,omitzero"`
	Roots   []string              `json:"roots,omitzero"`
	Model   string                `json:"model,omitzero"`
	BaseURL string                `json:"baseUrl,omitzero"`
	Models  map[string]ModelEntry `json:"models,omitzero"` // by PROVIDER:NAME
	Screen  Screen                `json:"screen,omitzero"`
}

// An Entry is a server in parley.jsonc. It has a command or a URL.
type Entry struct {
	Description string `json:"description,omitzero"`
	// Type is stdio, http, sse or websocket; empty is stdio with a command, http with a URL.
	Type    string            `json:"type,omitzero"`
	Command string            `json:"command,omitzero"`
	Args    []string          `json:"args,omitzero"`
	Env     map[string]string `json:"env,omitzero"`
	EnvFile string            `json:"envFile,omitzero"`
	Dir     string            `json:"cwd,omitzero"`
	URL     string            `json:"url,omitzero"`
	Headers map[string]string `json:"headers,omitzero"`
	OAuth   *EntryOAuth       `json:"oauth,omitzero"`
	NoOAuth bool              `json:"noOAuth,omitzero"`
	Timeout *EntryTimeout     `json:"timeout,omitzero"`
	// Versions are protocol versions, or "modern" or "legacy".
	Versions   []string                  `json:"versions,omitzero"`
	Disabled   bool                      `json:"disabled,omitzero"`
	Tools      *EntryTools               `json:"tools,omitzero"`
	Trusted    bool                      `json:"trusted,omitzero"`
	Labels     []policy.Label            `json:"labels,omitzero"`
	ToolLabels map[string][]policy.Label `json:"toolLabels,omitzero"` // by a glob of names
}

// EntryOAuth is what the person registered by hand.
type EntryOAuth struct {
	ClientID     string   `json:"clientId,omitzero"`
	ClientSecret string   `json:"clientSecret,omitzero"`
	Scopes       []string `json:"scopes,omitzero"`
	CallbackPort int      `json:"callbackPort,omitzero"`
	MetadataURL  string   `json:"metadataUrl,omitzero"`
}

// EntryTimeout are durations such as "30s".
type EntryTimeout struct {
	Connect Duration `json:"connect,omitzero"`
	Call    Duration `json:"call,omitzero"`
}

// EntryTools are globs of the names of tools.
type EntryTools struct {
	Allow []string `json:"allow,omitzero"`
	Deny  []string `json:"deny,omitzero"`
}

// A Duration is written as a text such as "1m30s".
type Duration time.Duration

// MarshalText writes the text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads and is not negative.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf(`expected a duration such as "30s"`)
	}
	*d = Duration(parsed)
	return nil
}

var ownDialect = &dialect{
	client: ClientParley, syntax: plainSyntax, unit: time.Second, strict: true,
	keys: map[string]key{
		"description": ignored, "type": readType, "command": readCommand, "args": readArgs, "env": readEnv,
		"envFile": readEnvFileName, "cwd": readDir, "url": readURL, "headers": readHeaders, "oauth": readOwnOAuth,
		"noOAuth": readNoOAuth, "timeout": readOwnTimeout, "versions": readVersions, "disabled": readDisabled,
		"tools": readOwnTools, "trusted": readTrusted, "labels": readLabels, "toolLabels": readToolLabels,
	},
}

// members reads the members of an object by a table; unknown ones are errors.
func (r *entryReader) members(n *node, keys map[string]key) error {
	if n.kind != kindObject {
		return at(n, "expected an object, found %s", n.kind)
	}
	for _, m := range n.members {
		read, ok := keys[m.name]
		if !ok {
			return at(&node{line: m.line}, "there is no member %s", show(m.name))
		}
		if err := read(r, m.value); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

var ownOAuthKeys = map[string]key{
	"clientId": clientIDKey, "clientSecret": clientSecretKey, "scopes": readScopes,
	"callbackPort": readCallbackPort, "metadataUrl": metadataURLKey,
}

func readOwnOAuth(r *entryReader, n *node) error { return r.members(n, ownOAuthKeys) }

var ownTimeoutKeys = map[string]key{"connect": durationKey(connectTimeout), "call": durationKey(callTimeout)}

func readOwnTimeout(r *entryReader, n *node) error { return r.members(n, ownTimeoutKeys) }

var ownToolsKeys = map[string]key{"allow": toolsKey(allowTools), "deny": toolsKey(denyTools)}

func readOwnTools(r *entryReader, n *node) error { return r.members(n, ownToolsKeys) }

func readVersions(r *entryReader, n *node) (err error) {
	r.s.Versions, err = n.array()
	return err
}

// readTrusted believes the person, and not the authors of a project.
func readTrusted(r *entryReader, n *node) error {
	on, err := n.boolean()
	if on && r.v.foreign {
		r.s.note(fmt.Sprintf("trusted (line %d) has no effect in a project: a file cannot say that of itself", n.line))
		return nil
	}
	r.s.Trusted = on
	return err
}

func readLabels(r *entryReader, n *node) (err error) {
	r.s.Labels, err = n.labels()
	return err
}

func readToolLabels(r *entryReader, n *node) error {
	if n.kind != kindObject {
		return at(n, "expected an object, found %s", n.kind)
	}
	for _, m := range n.members {
		labels, err := m.value.labels()
		if err != nil {
			return err
		}
		r.s.ToolLabels = append(r.s.ToolLabels, ToolLabels{Tools: m.name, Labels: labels})
	}
	return nil
}

func (n *node) labels() ([]policy.Label, error) {
	names, err := n.array()
	if err != nil {
		return nil, err
	}
	labels := make([]policy.Label, 0, len(names))
	for _, name := range names {
		switch l := policy.Label(name); l {
		case policy.LabelUntrusted, policy.LabelPrivate, policy.LabelSends, policy.LabelRuns:
			labels = append(labels, l)
		default:
			return nil, at(n, "there is no label %s: write %s, %s, %s or %s", show(name), policy.LabelUntrusted, policy.LabelPrivate, policy.LabelSends, policy.LabelRuns)
		}
	}
	return labels, nil
}

// ownKeys are the members of parley.jsonc. Those of the person have no effect in a project.
var ownKeys = map[string]struct {
	read       func(f *file, n *node)
	personOnly bool
}{
	"$schema": {}, "servers": {read: func(f *file, n *node) { f.servers(ownDialect, n) }}, "rules": {read: (*file).ownRules},
	"budgets": {(*file).ownBudgets, true}, "import": {func(*file, *node) {}, true}, // importsOf has read it
	"roots": {(*file).ownRoots, true}, "model": {(*file).ownModel, true}, "baseUrl": {(*file).ownBaseURL, true},
	"models": {(*file).ownModels, true}, "screen": {(*file).ownScreen, true},
}

// readOwn reads parley.jsonc, or the .parley.jsonc of a project.
func readOwn(f *file) {
	unknown := 0
	for _, m := range f.root.members {
		k, ok := ownKeys[m.name]
		switch {
		case !ok:
			if unknown++; unknown <= maxTypos {
				f.unknownOwn(m)
			}
		case k.read == nil || m.value.kind == kindNull:
		case k.personOnly && f.Foreign:
			f.l.problem(f.source(m.line), "", "%s has no effect in a project: write it into your own parley.jsonc", m.name)
		default:
			k.read(f, m.value)
		}
	}
}

// unknownOwn reports a member that parley.jsonc does not have. One that may be meant for
// rules may hide one that denies.
func (f *file) unknownOwn(m member) {
	known := make([]string, 0, len(ownKeys))
	for name := range ownKeys {
		known = append(known, name)
	}
	near, hint := Nearest(m.name, known), ""
	if near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	f.l.problem(f.source(m.line), "", "there is no member %s%s", show(m.name), hint)
	switch near {
	case "rules":
		f.askAll(m.line)
	case "model", "models", "baseUrl":
		f.modelFault()
	}
}

// ownRules reads rules. Where one cannot be read, everything is asked for.
func (f *file) ownRules(n *node) {
	if n.kind != kindArray {
		f.problem(n, "expected an array of rules, found %s", n.kind)
		f.askAll(n.line)
		return
	}
	for i, item := range n.items {
		if i == maxRules {
			f.problem(item, "there are more than %d rules; the others are left out, and everything is asked for", maxRules)
			f.askAll(item.line)
			return
		}
		rule, err := policy.ParseRule(item.json(), policy.Source{}) // the problem tells the place
		rule.Source = policy.Source{File: f.Path, Line: item.line}
		if err != nil {
			f.problem(item, "%v", err)
			f.askAll(item.line)
			continue
		}
		f.later(func() { f.rule(rule) })
	}
}

// rule adds a rule. One that allows does so only if it is the person's own, or if the person
// agreed to it.
func (f *file) rule(r policy.Rule) {
	if s := f.l.hiding(r.Server); s != nil && r.Effect == policy.Allow {
		f.l.problem(f.source(r.Source.Line), "", "the rule %sis left out: it is about your own server %s, and the project has "+
			"another one of that name (%s)", quoted(r.Source.Text), show(s.Name), s.Source)
		return
	}
	if r.Effect == policy.Allow && f.Foreign && !f.l.m.approved(f.Path, f.Digest, &r) {
		f.pending(r)
		return
	}
	f.l.config.Rules = append(f.l.config.Rules, r)
}

// pending adds a rule that waits for the person.
func (f *file) pending(r policy.Rule) {
	list := f.l.config.Pending
	i := slices.IndexFunc(list, func(p PendingRules) bool { return p.File.Path == f.Path })
	if i < 0 {
		i, list = len(list), append(list, PendingRules{File: f.Location})
	}
	list[i].Rules = append(list[i].Rules, r)
	f.l.config.Pending = list
}

// hiding returns the entry of a project that hides one of the person, if the glob names it.
func (l *loader) hiding(server string) *Server {
	for _, s := range l.config.Servers {
		if s.hidesOwn && policy.Quote(s.Name) == server {
			return s
		}
	}
	return nil
}

// quoted is a text in quotes with a space after it, or empty.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return show(s) + " "
}

func (f *file) ownBudgets(n *node) {
	var b Budgets
	if err := strictjson.Unmarshal(n.json(), &b, &strictjson.Options{RefuseUnknown: true}); err != nil {
		f.problem(n, "budgets: %v", err)
		return
	}
	if min(b.Steps, b.Calls, b.Tokens) < 0 || b.Money < 0 {
		f.problem(n, "budgets: a bound is negative: write a number from 0")
		return
	}
	f.l.config.Own.Budgets = b
}

func (f *file) ownModel(n *node) {
	name, err := n.str()
	if err != nil {
		f.wrong(n, fmt.Errorf("model: %w", err))
		f.modelFault()
	}
	f.l.config.Own.Model = name
}

func (f *file) ownBaseURL(n *node) {
	address, err := n.str()
	if err != nil {
		f.wrong(n, fmt.Errorf("baseUrl: %w", err))
		f.modelFault()
	}
	f.l.config.Own.BaseURL = address
}

// ownRoots reads folders, of which "~" is the home folder.
func (f *file) ownRoots(n *node) {
	paths, err := n.array()
	if err != nil {
		f.wrong(n, fmt.Errorf("roots: %w", err))
		return
	}
	for i, path := range paths {
		if path == "~" {
			path = f.l.m.home
		} else if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(f.l.m.home, rest)
		}
		if !filepath.IsAbs(path) {
			f.problem(n.items[i], "roots: %s is no absolute path, nor begins with ~/", show(path))
			continue
		}
		f.l.config.Own.Roots = append(f.l.config.Own.Roots, filepath.Clean(path))
	}
}

// importsOf reads which clients count, before any file of theirs is read.
func (l *loader) importsOf(c *candidate) {
	if !c.exists() {
		return
	}
	p := l.parse(c)
	imports := p.root.get("import")
	if p.err != nil || imports == nil {
		return
	}
	f := &file{Location: c.Location, root: p.root, l: l, folder: c.folder}
	if imports.kind != kindObject {
		f.problem(imports, "import: expected an object, found %s", imports.kind)
		return
	}
	for _, m := range imports.members {
		on, err := m.value.boolean()
		switch {
		case err != nil:
			f.wrong(m.value, fmt.Errorf("import: %w", err))
		case !isClient(Client(m.name)):
			f.problem(&node{line: m.line}, "import: there is no client %s: write one of %s", show(m.name), clientNames())
		default:
			l.config.Own.Import[Client(m.name)] = on
		}
	}
}

func isClient(c Client) bool {
	for _, known := range Clients() {
		if c == known {
			return true
		}
	}
	return false
}

// clientNames lists the clients whose files can be left out.
func clientNames() string {
	var names []string
	for _, c := range Clients()[1:] {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}
