package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// ErrSavedCall says that bytes are no call that this server has saved, or that it
// cannot take it up: they were cut, changed or saved by another server or an
// incompatible version, or their revision is not served any more.
var ErrSavedCall = errors.New("not a saved call that this server can take up")

// savedVersion is the version of the form that calls are saved in.
const savedVersion = 1

// saved is a call as bytes.
type saved struct {
	Version      int                     `json:"version"`
	Server       string                  `json:"server"`
	Extension    string                  `json:"extension"`
	Began        time.Time               `json:"began"`
	Revision     string                  `json:"revision"`
	Transport    string                  `json:"transport,omitzero"`
	ID           mcp.ID                  `json:"id"`
	Method       string                  `json:"method"`
	Params       mcp.RawValue            `json:"params,omitzero"`
	Capabilities *mcp.ClientCapabilities `json:"capabilities"`
	Client       *mcp.Implementation     `json:"client,omitzero"`
	Caller       *savedCaller            `json:"caller,omitzero"`
	Flow         string                  `json:"flow,omitzero"`
	Round        int                     `json:"round,omitzero"`
	Offered      mcp.InputResponses      `json:"offered,omitzero"`
	Records      []Record                `json:"records,omitzero"`
}

// savedCaller is a principal as bytes. A function is none: a caller of a saved call
// gets no challenge.
type savedCaller struct {
	Local   bool     `json:"local,omitzero"`
	Issuer  string   `json:"issuer,omitzero"`
	Subject string   `json:"subject,omitzero"`
	Client  string   `json:"client,omitzero"`
	Scopes  []string `json:"scopes,omitzero"`
	Groups  []string `json:"groups,omitzero"`
	Remote  string   `json:"remote,omitzero"`
}

// Save returns the call as bytes from which [Server.Resume] runs it again for an
// extension, in this process or another one of the same server: method, params with
// `_meta` and trace context, revision, capabilities and name of the client, the caller
// with its scopes, and what was asked, answered and done once so far, with all that
// DetachOptions.Record has been called with until then. What comes after it, Record
// is told. Requests that may ask (tools/call, prompts/get, resources/read) and those of
// extensions can be saved. The values of the context, the session and the HTTP request
// are not in it.
//
// The bytes are JSON and hold what the client sent, secrets as well, in the clear.
// They must be kept where only the server can write: they say who the caller is and
// what it was granted, and are believed.
func (c *Call) Save(extension string) ([]byte, error) {
	if c.srv.extension(extension) == nil {
		return nil, fmt.Errorf("saving %s: the server has no extension %q", c.Method(), extension)
	}
	if !c.row.resumable() {
		return nil, fmt.Errorf("saving %s: %w", c.Method(), errNotResumable)
	}
	st := &saved{
		Version: savedVersion, Server: c.srv.info.Name, Extension: extension, Began: time.Now().UTC(), Revision: c.Version(), Transport: c.Transport(),
		ID: c.ID(), Method: c.Method(), Params: c.savedParams(), Capabilities: c.caps, Client: c.ClientInfo(), Caller: savePrincipal(c.Principal()),
	}
	if d := c.detachment(); d != nil {
		st.Began = d.began.UTC()
	}
	if m := c.more.Load(); m != nil {
		st.Flow, st.Round, st.Offered = m.asks.begun()
		st.Records = m.asks.all()
	}
	raw, err := wire.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("saving %s: %w", c.Method(), err)
	}
	return raw, nil
}

// savedParams are the params without what the client brought of earlier rounds,
// which is saved as it was understood.
func (c *Call) savedParams() mcp.RawValue {
	params := c.x.In.Params
	if params.IsZero() {
		return nil
	}
	if !c.row.Asks {
		return slices.Clone(params.Raw())
	}
	return withoutMembers(params, "inputResponses", "requestState")
}

// resumable reports whether requests of the method need nothing but what is saved: those
// that may ask, and those of extensions.
func (r *row) resumable() bool { return r != nil && (r.Asks || r.ext != nil) }

func savePrincipal(p *principal.Principal) *savedCaller {
	if p == nil {
		return nil
	}
	return &savedCaller{
		Local: p == principal.Local, Issuer: p.Issuer, Subject: p.Subject, Client: p.Client,
		Scopes: p.Scopes, Groups: p.Groups, Remote: p.Remote,
	}
}

func (s *savedCaller) principal() *principal.Principal {
	switch {
	case s == nil:
		return nil
	case s.Local:
		return principal.Local
	}
	return &principal.Principal{Issuer: s.Issuer, Subject: s.Subject, Client: s.Client, Scopes: s.Scopes, Groups: s.Groups, Remote: s.Remote}
}

// Resume takes up a call that [Call.Save] saved, and runs it again from the top, as
// [Call.Detach] does. records are what DetachOptions.Record was told since, in that
// order: their questions are answered at once, and their Once is not run again. A
// side effect whose Once was running when the process ended may have happened.
//
// What runs is what Wrap of the extension with this identifier was given as
// next: the extensions added before it, and the feature. Middleware, limits of rate
// and the checks that a request goes through do not run again: the caller is the one
// who was let in when the call was saved, with the scopes of that time. To take
// them back is to cancel the call, or not to resume it.
//
// Resume ends the set-up of the server, as the first request does. The error is
// ErrSavedCall for bytes or records that are not those of a call of this server and
// extension, ErrNotFound if its tool, prompt or resource is not offered any more, a
// [*DetachLimitError] if there is no room, and ErrShutdown.
func (s *Server) Resume(extension string, saved []byte, records []Record, o *DetachOptions) (d *Call, cancel context.CancelCauseFunc, err error) {
	s.mustBeMade()
	s.freeze()
	if s.closing() {
		return nil, nil, fmt.Errorf("resume: %w", ErrShutdown)
	}
	e := s.extension(extension)
	if e == nil {
		return nil, nil, fmt.Errorf("resume: the server has no extension %q", extension)
	}
	d, began, err := s.restored(extension, saved, records)
	if err == nil {
		cancel, err = d.start(e.next, o, began)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("resume: %w", err)
	}
	return d, cancel, nil
}

// extension is the extension with an identifier, or nil.
func (s *Server) extension(id string) *Extension {
	for _, e := range s.extensions {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// restored makes a call of bytes.
func (s *Server) restored(extension string, text []byte, records []Record) (c *Call, began time.Time, err error) {
	st, err := readSaved(text)
	switch {
	case err != nil:
	case st.Server != s.info.Name:
		err = fmt.Errorf("it is of the server %q", clip(st.Server))
	case st.Extension != extension:
		err = fmt.Errorf("it is of the extension %q", clip(st.Extension))
	}
	if err != nil {
		return nil, began, fmt.Errorf("%w: %w", ErrSavedCall, err)
	}
	f, ok := revision.Lookup(st.Revision)
	if !ok || !s.allows(f) {
		return nil, began, fmt.Errorf("%w: the protocol revision %q is not served", ErrSavedCall, clip(st.Revision))
	}
	in := &jsonrpc.Incoming{Kind: jsonrpc.Request, ID: st.ID, Method: st.Method}
	x := &transport.Exchange{In: in, Out: noResponder{}, Principal: st.Caller.principal(), Transport: &transport.Info{Name: st.Transport}}
	c = s.newCall(s.hub.ctx, x, nil)
	c.use(f)
	c.caps = st.Capabilities
	if c.row = c.rowOf(st.Method); !c.row.resumable() {
		return nil, began, fmt.Errorf("%w: the method %q cannot run detached", ErrSavedCall, clip(st.Method))
	}
	if err := c.decodeCopy(st.Params); err != nil {
		return nil, began, fmt.Errorf("%w: %w", ErrSavedCall, err)
	}
	if st.Client != nil && c.meta.ClientInfo == nil {
		own := *c.meta
		own.ClientInfo = st.Client
		c.meta = &own
	}
	if err := c.extras().asks.restore(st, records); err != nil {
		return nil, began, fmt.Errorf("%w: %w", ErrSavedCall, err)
	}
	return c, st.Began, c.featureExists()
}

// readSaved reads a saved call strictly.
func readSaved(text []byte) (*saved, error) {
	o, err := wire.ParseObject(text, wire.Limits{Depth: maxDefinitionDepth})
	if err != nil {
		return nil, err
	}
	raw, _ := o.Member("version")
	if string(raw) != fmt.Sprint(savedVersion) { // before members that this version does not know
		return nil, fmt.Errorf("it has version %s, this server reads version %d", clip(string(raw)), savedVersion)
	}
	for _, name := range requiredMembers(reflect.TypeFor[saved]()) {
		if raw, ok := o.Member(name); !ok || string(raw) == "null" {
			return nil, fmt.Errorf("%s is missing", name)
		}
	}
	st := new(saved)
	if err := wire.DecodeKnown(text, st); err != nil {
		return nil, err
	}
	if st.Began.IsZero() || st.ID.IsZero() {
		return nil, errors.New("began or id is empty")
	}
	return st, nil
}

// featureExists reports what the call is for and the server has not, as an error.
func (c *Call) featureExists() error {
	ok, what := true, ""
	switch c.Method() {
	case mcp.MethodToolsCall:
		_, ok = c.srv.allTools().byKey[c.target]
		what = "tool"
	case mcp.MethodPromptsGet:
		_, ok = c.srv.allPrompts().byKey[c.target]
		what = "prompt"
	case mcp.MethodResourcesRead:
		_, ok = c.find(c.target)
		what = "resource"
	}
	if !ok {
		return fmt.Errorf("this server offers no %s %q any more: %w", what, clip(c.target), ErrNotFound)
	}
	return nil
}
