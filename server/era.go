package server

import (
	"bytes"
	"context"
	"hash/maphash"
	"sync/atomic"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// An era is how requests live in a family of revisions: with a handshake and a
// session, or each for itself. There are two, each one file, and what is left of
// the first where no sessions are kept.
type era interface {
	// open checks, after decoding, what the era wants of every request, and
	// fills in the client's capabilities.
	open(c *Call) error
	// ask gets the answer to a question, or notes it and returns
	// ErrInputPending.
	ask(c *Call, id string, q *question) (mcp.RawValue, error)
	// await waits until what a person does behind an opened URL is done.
	await(c *Call, q *question, done func(context.Context) (bool, error)) error
	// settle completes a result.
	settle(c *Call, res Result) (Result, error)
	// level is the least log level that the client wants for this request;
	// "" is none.
	level(c *Call) mcp.LogLevel
	// refusal is the error for an ask that the client did not declare.
	refusal(c *Call, err *NotCapableError) *jsonrpc.Error
}

// admit finds out the era and revision of a request. Ruling 1: what carries a
// protocol version in `_meta`, or whose header names a stateless revision, is
// modern, whatever its method and whatever the connection did before.
func (c *Call) admit(in *jsonrpc.Incoming) error {
	if raw, ok := in.Params.Member("_meta"); ok {
		if k := c.known(raw); k != nil && k.version != "" {
			return c.admitStateless(k.version, k.meta.ClientCapabilities != nil)
		}
	}
	version, modern, err := modernVersion(in)
	if err != nil {
		return err
	}
	if !modern && c.x.Version != "" {
		return c.admitSessionless()
	}
	if !modern && c.x.Route.Carried {
		return c.admitByRoute()
	}
	if modern {
		meta, _ := in.Params.Object("_meta")
		_, declared := meta.Member(mcp.MetaClientCapabilities)
		return c.admitStateless(version, declared)
	}
	if c.session == nil {
		return jsonrpc.NewError(jsonrpc.CodeInvalidParams,
			"_meta lacks %q: each request of a stateless revision names its protocol version there", mcp.MetaProtocolVersion)
	}
	return c.session.admit(c)
}

// modernVersion returns the protocol version that a request names in `_meta`.
func modernVersion(in *jsonrpc.Incoming) (version string, modern bool, err error) {
	if raw, ok := in.Params.Member("_meta"); !ok || len(raw) == 0 || raw[0] != '{' {
		return "", false, nil
	}
	meta, _ := in.Params.Object("_meta")
	raw, ok := meta.Member(mcp.MetaProtocolVersion)
	switch {
	case !ok:
		return "", false, nil
	case len(raw) == 0 || raw[0] != '"':
		return "", true, jsonrpc.NewError(jsonrpc.CodeInvalidParams, "_meta %q must be a string", mcp.MetaProtocolVersion)
	}
	return wire.Text(raw), true, nil
}

// era is that of the call's revision.
func (c *Call) era() era {
	switch {
	case !c.facts.Handshake:
		return stateless{}
	case c.session == nil:
		return sessionless{}
	}
	return handshake{}
}

// use sets the revision of a call.
func (c *Call) use(f *revision.Facts) {
	c.facts = f
}

// decodeMeta decodes the `_meta` of a request. What a client sends again
// unchanged, as most do, is not decoded again. What differs with each request
// is not worth remembering.
func (c *Call) decodeMeta(raw wire.RawValue, meta *mcp.RequestMeta) error {
	if k := c.known(raw); k != nil {
		*meta = k.meta // its parts are never written to
		_, meta.ProgressToken = cutToken(raw)
		return nil
	}
	if err := wire.Decode(raw, meta); err != nil {
		return err
	}
	text, token := cutToken(raw)
	if len(text) <= maxKnownMeta && meta.ProgressToken == token && meta.TraceParent == "" {
		k := &decodedMeta{text: bytes.Clone(text), meta: *meta}
		k.meta.ProgressToken = mcp.ID{}
		if !c.facts.Handshake {
			k.version = c.facts.Version
		}
		c.metaCell(text).Store(k)
	}
	return nil
}

// tokenMember is how a progress token begins.
const tokenMember = `"` + mcp.MetaProgressToken + `":`

// cutToken returns a valid `_meta` without its closing brace, and without a progress token that is
// its last member and a short number, as our client writes it: all else is the same in most requests.
// In a string the member would be followed by a quotation mark, and in an inner object by a brace.
func cutToken(raw wire.RawValue) (text wire.RawValue, token mcp.ID) {
	text = raw[:len(raw)-1]
	digits := len(text)
	for digits > 0 && '0' <= text[digits-1] && text[digits-1] <= '9' {
		digits--
	}
	start := digits - len(tokenMember) - 1 // of the member, with what is before it
	if n := len(text) - digits; n == 0 || n > 18 || start < 0 || string(text[start+1:digits]) != tokenMember {
		return text, mcp.ID{}
	}
	number := int64(0)
	for _, digit := range text[digits:] {
		number = 10*number + int64(digit-'0')
	}
	switch text[start] {
	case ',':
		return text[:start], mcp.IntID(number)
	case '{':
		return text[:1], mcp.IntID(number)
	}
	return text, mcp.ID{}
}

// metaCell is where the `_meta` of a request is remembered: one place in a
// session, one of a few among all requests that belong to none.
func (c *Call) metaCell(text wire.RawValue) *atomic.Pointer[decodedMeta] {
	if c.session != nil {
		return &c.session.meta
	}
	return &c.srv.metas[maphash.Bytes(metaSeed, text)%uint64(len(c.srv.metas))]
}

var metaSeed = maphash.MakeSeed()

// known returns what was decoded of the same `_meta` before, or nil.
func (c *Call) known(raw wire.RawValue) *decodedMeta {
	if len(raw) == 0 {
		return nil
	}
	text, _ := cutToken(raw)
	if len(text) > maxKnownMeta {
		return nil
	}
	if k := c.metaCell(text).Load(); k != nil && bytes.Equal(k.text, text) {
		return k
	}
	return nil
}

// maxKnownMeta is the longest `_meta` that is remembered, in bytes.
const maxKnownMeta = 4 << 10

// decodedMeta is a `_meta` and its text, without what cutToken takes off.
type decodedMeta struct {
	text    []byte
	meta    mcp.RequestMeta
	version string // the stateless revision it names, or ""
}
