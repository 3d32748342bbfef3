package mcptest

import (
	"bytes"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// A trace follows a conversation, so as to know which revision and which
// request a message belongs to, and has each message checked. Without an
// oracle it only checks that what the server says are strict messages.
type trace struct {
	oracle     *Oracle
	negotiated string
	modern     string
	asked      map[mcp.Side]map[jsonrpc.ID]asked
}

type asked struct{ method, version string }

func newTrace(o *Oracle) *trace {
	return &trace{oracle: o, asked: map[mcp.Side]map[jsonrpc.ID]asked{mcp.FromClient: {}, mcp.FromServer: {}}}
}

// see checks a line of one side.
func (tr *trace) see(from mcp.Side, line []byte) error {
	return tr.each(line, func(raw []byte) error { return tr.one(from, raw, true) })
}

// note takes notice of a client's line that need not be a message.
func (tr *trace) note(line []byte) {
	_ = tr.each(line, func(raw []byte) error {
		_ = tr.one(mcp.FromClient, raw, false) // what is no message has no answer that matters
		return nil
	})
}

// each calls f with the message of a line, or with those of a batch.
func (tr *trace) each(line []byte, f func(raw []byte) error) error {
	if !jsonrpc.IsBatch(line) {
		return f(line)
	}
	t, err := parseTree(line)
	if err != nil {
		return err
	}
	for _, item := range t.items {
		if err := f([]byte(item.line())); err != nil {
			return err
		}
	}
	return nil
}

func (tr *trace) one(from mcp.Side, raw []byte, check bool) error {
	m, err := jsonrpc.Parse(bytes.Clone(raw), jsonrpc.Limits{Depth: maxTree})
	if err != nil {
		return err
	}
	about := tr.about(from, m)
	if m.Kind == jsonrpc.Request {
		if _, known := tr.asked[from][m.ID]; !known || check {
			tr.asked[from][m.ID] = about
		}
	}
	if tr.oracle == nil || !check || about.version == "" {
		return nil
	}
	answers := ""
	if m.Kind == jsonrpc.Response {
		answers = about.method
	}
	return tr.oracle.Check(about.version, from, answers, raw)
}

// about finds out what a message belongs to. The version is empty if there is
// none yet.
func (tr *trace) about(from mcp.Side, m *jsonrpc.Incoming) asked {
	if m.Kind == jsonrpc.Response {
		a := tr.asked[(mcp.FromClient|mcp.FromServer)&^from][m.ID]
		if v := text(m.Result, "protocolVersion"); a.method == mcp.MethodInitialize && v != "" {
			tr.negotiated = v
			a.version = v
		}
		if a.version == "" {
			a.version = tr.negotiated
		}
		return a
	}
	a := asked{method: m.Method, version: tr.negotiated}
	meta, _ := m.Params.Object("_meta")
	switch v := text(meta, mcp.MetaProtocolVersion); {
	case v != "":
		a.version = tr.known(v)
		tr.modern = a.version
	case m.Method == mcp.MethodInitialize && tr.negotiated == "":
		if a.version = text(m.Params, "protocolVersion"); tr.known(a.version) != a.version {
			a.version = "" // what is answered will tell
		}
	case a.version == "":
		a.version = tr.modern
	}
	return a
}

// known is a version that the oracle has: the one asked for, or the newest.
func (tr *trace) known(version string) string {
	if tr.oracle == nil {
		return version
	}
	all := tr.oracle.Versions()
	for _, v := range all {
		if v == version {
			return v
		}
	}
	return all[len(all)-1]
}

// text is a member of an object that is a string.
func text(o jsonrpc.Object, name string) string {
	raw, ok := o.Member(name)
	if !ok {
		return ""
	}
	var s string
	if anything.Decode(raw, &s) != nil {
		return ""
	}
	return s
}
