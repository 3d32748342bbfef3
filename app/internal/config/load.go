package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/policy"
)

// A reader takes what a file says.
type reader func(f *file)

// A file is one that is being read.
type file struct {
	Location
	root *node
	l    *loader
	// folder is the folder of the project that the file is about.
	folder string
}

// A loader collects what files say. Rules are made once all servers are known, since other
// clients write server and tool as one name.
type loader struct {
	m      *machine
	config *Config
	limits []serverLimit
	// managedOnly is where the administrator says that only managed rules may allow.
	managedOnly Source
	deferred    []func()
	// parsed are files that were read before, by path: one may serve two scopes.
	parsed map[string]*parsed
	// byName are the servers that count.
	byName map[string]*Server
}

// parsed is the text of a file, or why there is none.
type parsed struct {
	root   *node
	digest string
	err    error
}

// Load reads all files and merges them. Of entries with one name, that of the first file
// counts, whole; Server.Shadowed tells of the others. The error is that the folders of the
// person are unknown; what is wrong with files is in Config.Problems.
func Load(o *Options) (*Config, error) {
	m, err := newMachine(o)
	if err != nil {
		return nil, err
	}
	l := newLoader(m)
	candidates := m.candidates()
	for i := range candidates {
		if c := &candidates[i]; c.Scope == ScopeOwn {
			l.importsOf(c)
		}
	}
	for i := range candidates {
		c := &candidates[i]
		if on, ok := l.config.Own.Import[c.Client]; ok && !on && c.Client != ClientParley && !m.allClients {
			continue
		}
		l.load(c)
	}
	return l.finish(), nil
}

// LoadManaged reads the rules of the administrator alone, for servers that are in no file:
// see Config.Permits.
func LoadManaged(o *Options) (*Config, error) {
	m, err := newMachine(o)
	if err != nil {
		return nil, err
	}
	l := newLoader(m)
	l.loadManaged()
	return l.finish(), nil
}

// loadManaged reads the administrator's rules, and limits on servers.
func (l *loader) loadManaged() {
	managed := l.m.managedRules()
	for i := range managed {
		l.load(&managed[i])
	}
}

func newLoader(m *machine) *loader {
	return &loader{m: m, config: &Config{Own: &Own{Path: m.ownPath(), Import: map[Client]bool{}}}, parsed: map[string]*parsed{}, byName: map[string]*Server{}}
}

// load reads one file, if it is there.
func (l *loader) load(c *candidate) {
	if !c.exists() {
		return
	}
	if c.unread != "" {
		l.config.Files = append(l.config.Files, c.Location)
		l.problem(Source{Client: c.Client, File: c.Path, Scope: c.Scope}, "", "%s", c.unread)
		return
	}
	p := l.parse(c)
	c.Digest = p.digest
	l.config.Files = append(l.config.Files, c.Location)
	f := &file{Location: c.Location, root: p.root, l: l, folder: c.folder}
	if p.err != nil {
		f.broken(p.err, c.rules)
		return
	}
	if p.root.kind != kindObject {
		if p.root.kind != kindNull {
			f.broken(at(p.root, "expected an object, found %s", p.root.kind), c.rules)
		}
		return
	}
	c.read(f)
}

// parse reads and parses a file once.
func (l *loader) parse(c *candidate) *parsed {
	if p := l.parsed[c.Path]; p != nil {
		return p
	}
	p := &parsed{}
	l.parsed[c.Path] = p
	within := ""
	if c.Foreign {
		within = l.m.project
	}
	data, err := readFile(c.Path, within, maxFile)
	if err != nil {
		p.err = fmt.Errorf("the file cannot be read: %w", readError(err))
		if errors.Is(err, fs.ErrNotExist) {
			p.err = errors.New("the file cannot be read: the link points to nothing")
		}
		return p
	}
	p.digest = digestOf(data)
	p.root, p.err = parse(c.Path, data)
	return p
}

// broken reports a file that cannot be read. If it may hold rules, everything is asked for:
// one of them may have denied.
func (f *file) broken(err error, rules bool) {
	line := 0
	if e, ok := errors.AsType[*lineError](err); ok {
		line = e.line
	}
	f.l.problem(f.source(line), "", "%v", err)
	if f.Scope == ScopeOwn {
		f.modelFault()
	}
	if rules {
		f.askAll(line)
	}
}

// askAll makes rules that ask for everything, in place of rules that cannot be read.
func (f *file) askAll(line int) {
	f.later(func() {
		for _, kind := range policy.Kinds() {
			f.l.config.Rules = append(f.l.config.Rules, policy.Rule{
				Effect: policy.Ask, Kind: kind,
				Reason: "a rule here cannot be read, and may be one that denies: everything is asked for until it is corrected",
				Source: policy.Source{File: f.Path, Line: line},
			})
		}
	})
}

// source is a line of the file.
func (f *file) source(line int) Source {
	return Source{Client: f.Client, File: f.Path, Line: line, Scope: f.Scope}
}

// problem reports something at a value of the file.
func (f *file) problem(n *node, format string, args ...any) {
	f.l.problem(f.source(n.line), "", format, args...)
}

// wrong reports an error at the line that it knows, or that of n.
func (f *file) wrong(n *node, err error) {
	if e, ok := errors.AsType[*lineError](err); ok {
		n = &node{line: e.line}
	}
	f.problem(n, "%v", err)
}

func (l *loader) problem(source Source, server, format string, args ...any) {
	l.config.Problems = append(l.config.Problems, Problem{Source: source, Server: server, Text: fmt.Sprintf(format, args...)})
}

// add adds an entry, unless one of its name counts already.
func (l *loader) add(s *Server) {
	if winner := l.byName[s.Name]; winner != nil {
		winner.Shadowed = append(winner.Shadowed, s.Source)
		winner.hidesOwn = winner.hidesOwn || winner.NeedsConsent && !s.NeedsConsent && winner.Digest != s.Digest
		return
	}
	l.byName[s.Name] = s
	l.config.Servers = append(l.config.Servers, s)
}

// finish makes the rules and applies limits on servers.
func (l *loader) finish() *Config {
	for _, f := range l.deferred {
		f()
	}
	l.limitServers()
	l.config.limits = l.limits
	l.noteBorrowed()
	l.sortProblems()
	return l.config
}

// sortProblems puts problems in the order of files and lines.
func (l *loader) sortProblems() {
	order := map[string]int{}
	for i, f := range slices.Backward(l.config.Files) {
		order[f.Path] = i
	}
	slices.SortStableFunc(l.config.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(order[a.Source.File], order[b.Source.File]), cmp.Compare(a.Source.Line, b.Source.Line))
	})
}

// later makes rules once all servers are known, in the order of the files.
func (f *file) later(make func()) { f.l.deferred = append(f.l.deferred, make) }

// servers reads the entries that are members of an object.
func (f *file) servers(d *dialect, entries *node) {
	if entries == nil || entries.kind == kindNull {
		return
	}
	if entries.kind != kindObject {
		f.problem(entries, "expected an object of servers, found %s", entries.kind)
		return
	}
	inputs := f.inputs()
	for i, m := range entries.members {
		if i == maxServers {
			f.l.problem(f.source(m.line), "", "there are more than %d servers; the others are left out", maxServers)
			return
		}
		if m.name == "" || len(m.name) > maxName {
			f.l.problem(f.source(m.line), "", "a server has no name, or one of more than %d bytes: give it a short one", maxName)
			continue
		}
		v := &variables{m: f.l.m, foreign: f.Foreign, dir: filepath.Dir(f.Path), folder: f.folder, inputs: inputs}
		f.l.add(newEntry(d, v, f.source(m.line), m.name).read(m.value))
	}
}

// entries is the object of servers: that of the first key that is there, or of the keys of
// other clients, or the whole file if it looks like one.
func (f *file) entries(keys ...string) *node {
	for _, key := range append(keys, "mcpServers", "servers", "mcp", "extensions") {
		if n := f.root.get(key); n != nil {
			return n
		}
	}
	if isBare(f.root) {
		return f.root
	}
	return nil
}

// isBare reports whether an object has entries alone.
func isBare(n *node) bool {
	for _, m := range n.members {
		entry := false
		for _, key := range []string{"command", "cmd", "url", "uri", "serverUrl", "httpUrl"} {
			entry = entry || m.value.get(key) != nil
		}
		if !entry {
			return false
		}
	}
	return len(n.members) > 0
}

// inputs are those that a file of VS Code declares. One without an ID cannot be asked for.
func (f *file) inputs() map[string]Input {
	found := map[string]Input{}
	list := f.root.get("inputs")
	if list == nil || list.kind != kindArray {
		return found
	}
	for _, item := range list.items {
		id := orEmpty(item.get("id")).text
		if id == "" {
			f.problem(item, "an input has no id: give it one")
			continue
		}
		in := Input{
			Description: orEmpty(item.get("description")).text, Default: orEmpty(item.get("default")).text,
			Password: orEmpty(item.get("password")).text == "true",
		}
		switch orEmpty(item.get("type")).text {
		case "promptString":
			in.ID = id
		case "pickString":
			in.ID = id
			for _, option := range orEmpty(item.get("options")).items {
				value := option.text
				if option.kind == kindObject {
					value = orEmpty(option.get("value")).text
				}
				in.Options = append(in.Options, value)
			}
		}
		found[id] = in
	}
	return found
}

// milliseconds reads a variable of the environment that holds a timeout.
func (m *machine) milliseconds(name string) time.Duration {
	n, err := strconv.ParseInt(m.variable(name), 10, 64)
	if err != nil || n < 0 || n > int64(maxTimeout/time.Millisecond) {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
