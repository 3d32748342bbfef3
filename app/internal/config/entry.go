package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A dialect is how one client writes entries.
type dialect struct {
	client Client
	// syntax is that of variables; nil is none.
	syntax syntax
	// unit is what a number of "timeout" counts.
	unit time.Duration
	// connect says that "timeout" bounds the start of a server, and not a call.
	connect bool
	// keys are members beyond commonKeys, or instead of them.
	keys map[string]key
	// strict says that unknown members are errors.
	strict bool
	// remoteOnly says that variables are expanded in URLs and headers alone.
	remoteOnly bool
	// begin tells the variables what the entry says about them, before it is read; or nil.
	begin func(v *variables, n *node)
}

// A key reads one member of an entry.
type key func(r *entryReader, n *node) error

// An entryReader makes a Server of one entry. What it finds out on the way is in its
// fields; settle and prepare bring them together.
type entryReader struct {
	d *dialect
	s *Server
	v *variables

	command []string // with arguments, if they are in one array
	env     []Header
	fixed   []Header // variables whose values are no text of the file
	dir     string
	envFile string
}

// newEntry begins an entry.
func newEntry(d *dialect, v *variables, source Source, name string) *entryReader {
	return &entryReader{d: d, v: v, s: &Server{Name: name, Source: source, NeedsConsent: v.foreign}}
}

// read reads an entry and returns the server, whose Err tells what is wrong.
func (r *entryReader) read(n *node) *Server {
	r.readMembers(n)
	r.settle()
	r.prepare()
	return r.s
}

// readMembers fills the fields of the server.
func (r *entryReader) readMembers(n *node) {
	s := r.s
	if n.kind != kindObject {
		s.Transport = TransportUnsupported
		s.fail(at(n, "expected an object, found %s", n.kind))
		return
	}
	if r.d.begin != nil {
		r.d.begin(r.v, n)
	}
	unknown := 0
	for _, m := range n.members {
		read, ok := r.d.keys[m.name]
		if !ok {
			read, ok = commonKeys[m.name]
		}
		if !ok || r.d.strict && !r.knows(m.name) {
			if unknown++; unknown <= maxTypos {
				r.unknown(m)
			}
			continue
		}
		if read == nil || m.value.kind == kindNull {
			continue
		}
		if err := read(r, m.value); err != nil {
			s.fail(fmt.Errorf("%s (line %d): %w", m.name, m.line, err))
		}
	}
}

// knows reports whether a strict dialect has the member.
func (r *entryReader) knows(name string) bool {
	_, ok := r.d.keys[name]
	return ok
}

// unknown notes a member that looks like a known one. Others are of no interest: clients
// have members of their own.
func (r *entryReader) unknown(m member) {
	known := slices.Collect(maps.Keys(r.d.keys))
	if !r.d.strict {
		known = slices.AppendSeq(known, maps.Keys(commonKeys))
	}
	near := Nearest(m.name, known)
	hint := ""
	if near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	switch {
	case r.d.strict:
		r.s.fail(at(&node{line: m.line}, "there is no member %s%s", show(m.name), hint))
	case near != "":
		r.s.note(fmt.Sprintf("the member %s on line %d is unknown%s", show(m.name), m.line, hint))
	}
}

// commonKeys are the members that entries of several clients have. A nil key is known and
// means nothing here. Each client has names of its own for the same thing; all are taken.
var commonKeys = map[string]key{
	"type": readType, "transport": readType, "transportType": readType,
	"command": readCommand, "cmd": readCommand, "args": readArgs,
	"env": readEnv, "environment": readEnv, "envs": readEnv,
	"cwd": readDir, "dir": readDir, "workingDirectory": readDir,
	"url": readURL, "uri": readURL, "serverUrl": readURL, "httpUrl": readURL,
	"headers": readHeaders, "timeout": readTimeout, "oauth": readOAuth,
	"disabled": readDisabled, "enabled": readEnabled,
	"name": nil, "title": nil, "description": nil, "version": nil, "icon": nil, "id": nil,
	"autoApprove": readAutoApprove, "alwaysAllow": readAutoApprove,
}

func readType(r *entryReader, n *node) error {
	name, err := n.str()
	if err != nil {
		return err
	}
	switch strings.ToLower(name) {
	case "stdio", "local":
		r.s.Transport = TransportStdio
	case "http", "streamable-http", "streamable_http", "streamablehttp", "http-stream", "remote":
		r.s.Transport = TransportHTTP
	case "sse":
		r.s.Transport = TransportSSE
	case "websocket", "ws":
		r.s.Transport = TransportWebSocket
	case "builtin", "platform", "frontend", "inline_python", "inprocess", "in-process":
		r.s.Transport = TransportUnsupported
		return at(n, "%q is a part of %s and no server: only that client has it", name, r.d.client)
	case "sdk", "claudeai-proxy", "ws-ide", "sse-ide":
		r.s.Transport = TransportUnsupported
		return at(n, "%q works within %s alone", name, r.d.client)
	default:
		r.s.Transport = TransportUnsupported
		return at(n, "there is no transport %s: write stdio, http, sse or websocket", show(name))
	}
	return nil
}

// readCommand takes a string, or an array of command and arguments.
func readCommand(r *entryReader, n *node) error {
	if n.kind != kindArray {
		command, err := n.str()
		r.s.Command = command
		return err
	}
	words, err := n.array()
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return at(n, "the array is empty: write the program and its arguments")
	}
	r.s.Command, r.command = words[0], words[1:]
	return nil
}

func readArgs(r *entryReader, n *node) (err error) {
	r.s.Args, err = n.array()
	return err
}

func readEnv(r *entryReader, n *node) error {
	if n.kind != kindObject {
		return at(n, "expected an object, found %s", n.kind)
	}
	for _, m := range n.members {
		value, err := m.value.scalar()
		if err != nil {
			return at(m.value, "the value of %s must be a string", showPlain(m.name))
		}
		r.env = append(r.env, Header{m.name, value})
	}
	return nil
}

func readDir(r *entryReader, n *node) (err error) {
	r.dir, err = n.str()
	r.s.Dir = r.dir
	return err
}

func readURL(r *entryReader, n *node) (err error) {
	r.s.URL, err = n.str()
	return err
}

// readHeaders takes an object, or an array of "Name: value".
func readHeaders(r *entryReader, n *node) error {
	switch n.kind {
	case kindObject:
		for _, m := range n.members {
			value, err := m.value.scalar()
			if err != nil {
				return at(m.value, "the value of %s must be a string", showPlain(m.name))
			}
			r.s.Headers = append(r.s.Headers, Header{m.name, value})
		}
	case kindArray:
		for _, item := range n.items {
			line, err := item.str()
			if err != nil {
				return err
			}
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return at(item, `a header is written as "Name: value"`)
			}
			r.s.Headers = append(r.s.Headers, Header{strings.TrimSpace(name), strings.TrimSpace(value)})
		}
	default:
		return at(n, "expected an object, found %s", n.kind)
	}
	return nil
}

func readDisabled(r *entryReader, n *node) error {
	off, err := n.boolean()
	r.s.Disabled = r.s.Disabled || off || err != nil
	return err
}

func readEnabled(r *entryReader, n *node) error {
	on, err := n.boolean()
	r.s.Disabled = r.s.Disabled || !on
	return err
}

// readAutoApprove notes tools that other clients call without a question.
func readAutoApprove(r *entryReader, n *node) error {
	if len(n.items) > 0 {
		r.s.note(fmt.Sprintf("tools that are approved within the entry (line %d) are asked for: write rules to allow them", n.line))
	}
	return nil
}

// readTimeout reads a number in the dialect's unit, or a text such as "30s".
func readTimeout(r *entryReader, n *node) error {
	d, err := readDuration(n, r.d.unit)
	if err != nil {
		return err
	}
	if d == 0 {
		return nil
	}
	if r.d.connect {
		r.s.ConnectTimeout = d
	} else {
		r.s.CallTimeout = d
	}
	if n.kind == kindNumber && r.d.unit == time.Second {
		r.s.note(fmt.Sprintf("the timeout counts seconds in files of %s: it is %v", r.d.client, d))
	}
	return nil
}

// durationKey reads a number of milliseconds.
func durationKey(field func(*Server) *time.Duration) key {
	return func(r *entryReader, n *node) (err error) {
		*field(r.s), err = readDuration(n, time.Millisecond)
		return err
	}
}

func connectTimeout(s *Server) *time.Duration { return &s.ConnectTimeout }
func callTimeout(s *Server) *time.Duration    { return &s.CallTimeout }

// maxTimeout bounds timeouts, so that they can be added to any time.
const maxTimeout = 30 * 24 * time.Hour

func readDuration(n *node, unit time.Duration) (time.Duration, error) {
	if n.kind == kindString {
		d, err := time.ParseDuration(n.text)
		if err != nil || d < 0 || d > maxTimeout {
			return 0, at(n, `expected a duration such as "30s"`)
		}
		return d, nil
	}
	f, err := n.number()
	if err != nil {
		return 0, err
	}
	if f > float64(maxTimeout/unit) {
		return 0, at(n, "the timeout is longer than %v", maxTimeout)
	}
	return time.Duration(f * float64(unit)), nil
}

// toolsKey reads globs of tools.
func toolsKey(field func(*Server) *[]string) key {
	return func(r *entryReader, n *node) error {
		names, err := n.array()
		if err != nil {
			return err
		}
		*field(r.s) = append(*field(r.s), names...)
		return nil
	}
}

func allowTools(s *Server) *[]string { return &s.AllowTools }
func denyTools(s *Server) *[]string  { return &s.DenyTools }

// noteKey notes that a member has no effect, if it is not false or empty.
func noteKey(text string) key {
	return func(r *entryReader, n *node) error {
		if n.kind == kindBool && n.text == "false" || n.kind == kindArray && len(n.items) == 0 || n.kind == kindObject && len(n.members) == 0 {
			return nil
		}
		r.s.note(text)
		return nil
	}
}

// settle infers the transport and refuses entries that contradict themselves.
func (r *entryReader) settle() {
	s := r.s
	if r.command != nil {
		s.Args = append(slices.Clip(r.command), s.Args...)
	}
	if s.Transport == "" {
		s.Transport = inferTransport(s)
	}
	if s.Err != nil {
		return
	}
	switch {
	case s.Transport == TransportUnsupported:
		s.fail(errors.New("the entry has neither command nor url: add one"))
	case s.Command != "" && s.URL != "":
		s.fail(errors.New("the entry has a command and a url: remove one"))
	case s.Transport == TransportStdio && s.Command == "":
		s.fail(errors.New("the entry has no command: add the program that is to be started"))
	case len(s.URL) > maxURL:
		s.fail(fmt.Errorf("the url is longer than %d bytes: shorten it", maxURL))
	case s.Transport != TransportStdio && s.URL == "":
		s.fail(fmt.Errorf("the entry is of type %s and has no url: add one", s.Transport))
	}
	if s.Transport == TransportStdio && strings.ContainsAny(s.Command, " \t") && len(s.Args) == 0 && !strings.ContainsAny(s.Command, `/\`) {
		s.note("the command has spaces and is taken for one name: put arguments into args")
	}
	for _, h := range s.Headers {
		s.NoOAuth = s.NoOAuth || strings.EqualFold(h.Name, "Authorization")
	}
}

func inferTransport(s *Server) Transport {
	scheme, _, _ := strings.Cut(s.URL, "://")
	switch {
	case s.Command != "":
		return TransportStdio
	case s.URL == "":
		return TransportUnsupported
	case strings.EqualFold(scheme, "ws"), strings.EqualFold(scheme, "wss"):
		return TransportWebSocket
	default:
		return TransportHTTP
	}
}
