package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A plan is what would be started: all variables have their values, and inputs are open.
// It is made once, so that what is started is what the person agreed to.
type plan struct {
	command, dir, url             text
	args                          []text
	env, headers                  []planned
	clientID, secret, metadataURL text
	oauth                         *OAuth // nil: nothing is said
	inputs                        []Input
	// base is what a relative dir begins at.
	base string
}

// planned is a name with its value.
type planned struct {
	name  string
	value text
}

// prepare expands the variables of the entry and sets Inputs and Digest.
func (r *entryReader) prepare() {
	s, p := r.s, &plan{base: r.v.folder}
	s.plan = p
	s.Env = make(map[string]string, len(r.env))
	for _, e := range r.env {
		s.Env[e.Name] = e.Value
	}
	switch s.Transport {
	case TransportStdio:
		r.prepareProcess(p)
	case TransportUnsupported:
	default:
		r.prepareRemote(p)
	}
	for _, id := range r.v.used {
		p.inputs = append(p.inputs, r.v.inputs[id])
	}
	s.Inputs = slices.Clone(p.inputs)
	s.Digest = p.digest(s.Transport)
	if s.Err == nil && len(p.inputs) == 0 {
		_, err := s.Expand(nil)
		s.fail(err)
	}
}

// prepareProcess plans a process on this machine.
func (r *entryReader) prepareProcess(p *plan) {
	s := r.s
	r.readEnvFile(p)
	for _, e := range r.fixed {
		p.env = append(p.env, planned{e.Name, text{{literal: e.Value}}})
	}
	for _, e := range r.env {
		p.env = append(p.env, planned{e.Name, r.expand("env "+showPlain(e.Name), e.Value, targetProcess)})
	}
	p.command = r.expand("command", s.Command, targetProcess)
	for _, arg := range s.Args {
		p.args = append(p.args, r.expand("args", arg, targetProcess))
	}
	p.dir = r.expand("cwd", r.dir, targetProcess)
}

// prepareRemote plans the requests to a server.
func (r *entryReader) prepareRemote(p *plan) {
	s := r.s
	p.url = r.expand("url", s.URL, targetURL)
	for _, h := range s.Headers {
		p.headers = append(p.headers, planned{h.Name, r.expand("header "+showPlain(h.Name), h.Value, targetHeader)})
	}
	if p.oauth = s.OAuth; s.OAuth != nil {
		p.clientID = r.expand("oauth", s.OAuth.ClientID, targetHeader)
		p.secret = r.expand("oauth", s.OAuth.ClientSecret, targetHeader)
		p.metadataURL = r.expand("oauth", s.OAuth.MetadataURL, targetURL)
	}
}

// expand expands one text of the entry.
func (r *entryReader) expand(what, s string, t target) text {
	syn := r.d.syntax
	if r.d.remoteOnly && t == targetProcess {
		syn = nil
	}
	result, err := r.v.expand(syn, s, t)
	if err != nil {
		r.s.fail(fmt.Errorf("%s: %w", what, err))
		return text{{literal: s}}
	}
	return result
}

// Expand returns the entry that is started: a copy whose variables and inputs have their
// values. Variables have those of the time when the file was read. The error is Err of the
// entry, or tells which input is missing or is none of its options.
func (s *Server) Expand(inputs map[string]string) (*Server, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	if s.plan == nil {
		return nil, errors.New("the entry was not read from a file")
	}
	values, err := s.plan.values(inputs)
	if err != nil {
		return nil, err
	}
	p, e := s.plan, *s
	e.Command, e.URL = p.command.fill(values), p.url.fill(values)
	e.Args = make([]string, 0, len(p.args))
	for _, arg := range p.args {
		e.Args = append(e.Args, arg.fill(values))
	}
	e.Env = make(map[string]string, len(p.env))
	for _, v := range p.env {
		e.Env[v.name] = v.value.fill(values)
	}
	e.Headers = make([]Header, 0, len(p.headers))
	for _, h := range p.headers {
		e.Headers = append(e.Headers, Header{h.name, h.value.fill(values)})
	}
	if e.Dir = p.dir.fill(values); e.Dir != "" && !filepath.IsAbs(e.Dir) {
		e.Dir = filepath.Join(p.base, e.Dir)
	}
	if s.OAuth != nil {
		o := *s.OAuth
		o.ClientID, o.ClientSecret, o.MetadataURL = p.clientID.fill(values), p.secret.fill(values), p.metadataURL.fill(values)
		e.OAuth = &o
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	return &e, nil
}

// values checks what was given for the inputs and adds defaults.
func (p *plan) values(given map[string]string) (map[string]string, error) {
	values := make(map[string]string, len(p.inputs))
	for _, in := range p.inputs {
		value, ok := given[in.ID]
		if !ok {
			value, ok = in.Default, in.Default != ""
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("the input %s has no value: answer it first", show(in.ID))
		case len(in.Options) > 0 && !slices.Contains(in.Options, value):
			return nil, fmt.Errorf("the input %s takes one of its %d options alone", show(in.ID), len(in.Options))
		}
		values[in.ID] = value
	}
	return values, nil
}

// check refuses values with which nothing can be started. It shows none of them.
func (s *Server) check() error {
	for _, text := range append([]string{s.Command, s.Dir}, s.Args...) {
		if strings.Contains(text, "\x00") {
			return errors.New("the command has a NUL character: remove it")
		}
	}
	for name, value := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("env: %s is no variable of an environment: its name must not be empty or hold =, and neither may hold NUL", show(name))
		}
	}
	for _, h := range s.Headers {
		if !isToken(h.Name) || strings.ContainsAny(h.Value, "\r\n\x00") {
			return fmt.Errorf("headers: %s is no header: its name must be letters, digits and hyphens, its value one line", show(h.Name))
		}
	}
	if s.Transport == TransportStdio {
		if s.Command == "" {
			return errors.New("command: it is empty once its variables are expanded: set them")
		}
		return nil
	}
	return s.checkURL()
}

func (s *Server) checkURL() error {
	if len(s.URL) > maxURL {
		return fmt.Errorf("url: it is longer than %d bytes: shorten it", maxURL)
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return errors.New("url: it is no URL with a host: write https://host/path")
	}
	socket := s.Transport == TransportWebSocket
	switch u.Scheme {
	case "http", "https":
		if socket {
			return errors.New("url: that of a websocket begins with ws:// or wss://")
		}
	case "ws", "wss":
		if !socket {
			return errors.New("url: ws:// and wss:// are for the type websocket: write https://")
		}
	default:
		return errors.New("url: its scheme is unknown: write https://")
	}
	return nil
}

// isToken reports whether s may be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// digest names what would be started. Each text has its length before it, so that no two
// entries give the same bytes.
func (p *plan) digest(t Transport) string {
	var b []byte
	add := func(s string) { b = fmt.Appendf(b, "%d:%s", len(s), s) }
	addText := func(t text) {
		b = fmt.Appendf(b, "%d;", len(t))
		for _, f := range t {
			add(f.literal)
			add(f.input)
		}
	}
	addAll := func(list []planned) {
		b = fmt.Appendf(b, "%d;", len(list))
		for _, v := range list {
			add(v.name)
			addText(v.value)
		}
	}
	add(string(t))
	for _, t := range []text{p.command, p.dir, p.url, p.clientID, p.metadataURL} {
		addText(t)
	}
	b = fmt.Appendf(b, "%d;", len(p.args))
	for _, arg := range p.args {
		addText(arg)
	}
	if p.oauth != nil {
		b = fmt.Appendf(b, "%d;%q;", p.oauth.CallbackPort, p.oauth.Scopes)
	}
	// The order of variables means nothing, that of headers may.
	env := slices.Clone(p.env)
	slices.SortStableFunc(env, func(a, b planned) int { return strings.Compare(a.name, b.name) })
	addAll(env)
	addAll(p.headers)
	b = fmt.Appendf(b, "%d;", len(p.inputs))
	for _, in := range p.inputs {
		for _, s := range append([]string{in.ID, in.Description, in.Default, strconv.FormatBool(in.Password)}, in.Options...) {
			add(s)
		}
		b = append(b, ';')
	}
	return digestOf(b)
}

// defaultTimeouts sets timeouts that the client's environment gives for all entries.
func (s *Server) defaultTimeouts(connect, call time.Duration) {
	if s.ConnectTimeout == 0 {
		s.ConnectTimeout = connect
	}
	if s.CallTimeout == 0 {
		s.CallTimeout = call
	}
}
