package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// An Extension adds to the protocol: methods, result types, filters of
// subscriptions, another way to ask. The official extensions and those of
// strangers use the same seams.
//
// spec 2026-07-28, basic/versioning: extension negotiation.
type Extension struct {
	// ID is the identifier, with a prefix: "com.example/tasks".
	ID string
	// Settings are declared under ID in the capabilities. They encode as a JSON
	// object, once, in Extend. Default {}.
	Settings any
	// Methods are requests that clients may send.
	Methods []MethodDef
	// Wrap sees every request, inside the middleware: it may answer in the
	// place of a feature, with a result type of its own. Default none.
	Wrap Middleware
	// Asker answers asks of handlers in the place of the era, for requests
	// for which it returns one. Default none.
	Asker func(c *Call) Asker
	// Filters are members of the filter of subscriptions/listen.
	Filters map[string]Filter

	settings mcp.RawValue // Settings in JSON
}

// MethodDef is a method of an extension.
type MethodDef struct {
	// Name is the method, for example "tasks/get".
	Name string
	// Target is the member of params that names what the request is about,
	// for Call.Target and for routing in HTTP. Default none.
	Target string
	// Legacy serves the method in the handshake revisions too. Default: only
	// in stateless ones.
	Legacy bool
	// Anyone serves clients that did not declare the extension. Default:
	// they get "missing client capability".
	Anyone bool
	// Serve handles a request; its Params are an mcp.RawValue.
	Serve Func
}

// An Asker brings questions to the client in its own way, and blocks until
// there is an answer. method and params are those of the question; the result
// is that of the client.
type Asker interface {
	Ask(c *Call, key, method string, params mcp.RawValue) (mcp.RawValue, error)
}

// A Filter reads the value that a client gave a member of a subscription's
// filter. It returns what is acknowledged, and the topics that Server.Notify
// will publish to the subscription. A nil ack leaves the member out.
type Filter func(c *Call, value mcp.RawValue) (ack mcp.RawValue, topics []string, err error)

// Extend adds an extension. It panics if the identifier is not one, the settings
// cannot be encoded or a method exists already, and after the first request.
func (s *Server) Extend(e Extension) {
	s.mustBeNew("Extend")
	if err := validExtension(e.ID); err != nil {
		panic("server.Extend: " + err.Error())
	}
	own := &e
	raw, err := e.encodedSettings()
	if err != nil {
		panic("server.Extend: settings of extension " + e.ID + ": " + err.Error())
	}
	own.settings = raw
	for _, d := range e.Methods {
		if _, ok := s.rows[d.Name]; ok {
			panic("server.Extend: method " + d.Name + " exists already")
		}
		r := own.row(d)
		s.rows[d.Name] = &r
	}
	s.extensions = append(s.extensions, own)
}

// row makes the row of a method of the extension.
func (e *Extension) row(d MethodDef) row {
	return row{
		Method: &mcp.Method{Name: d.Name, From: mcp.FromClient, Target: d.Target},
		ext:    e, def: &d,
		limit: toolRate,
		decode: func(_ *Call, in *jsonrpc.Incoming) (any, *mcp.RequestMeta, error) {
			var p mcp.EmptyParams
			raw := in.Params.Raw()
			if len(raw) == 0 {
				return mcp.RawValue("{}"), &p.Meta, nil
			}
			if err := wire.DecodeParams(raw, &p); err != nil {
				return nil, nil, err
			}
			return raw, &p.Meta, nil
		},
		serve: d.Serve,
	}
}

// encodedSettings is what the capabilities say of the extension.
func (e *Extension) encodedSettings() (mcp.RawValue, error) {
	if e.Settings == nil {
		return mcp.RawValue("{}"), nil
	}
	raw, err := wire.Marshal(e.Settings)
	if err != nil {
		return nil, err
	}
	if _, err := wire.ParseObject(raw, wire.Limits{Depth: maxDefinitionDepth}); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	return raw, nil
}

// extends reports whether a method belongs to an extension that the revision
// of c can have.
func (c *Call) extends(r *row) bool {
	return r.ext != nil && (!c.facts.Handshake || r.def.Legacy)
}

// declared checks that the client knows the extension of a method.
//
// spec 2026-07-28, basic/versioning: a party without the other's extension
// "MUST either revert to core protocol behavior or reject the request".
func (c *Call) declared(r *row) error {
	if r.ext == nil || r.def.Anyone || c.HasExtension(r.ext.ID) {
		return nil
	}
	need := mcp.ClientCapabilities{Extensions: map[string]mcp.RawValue{r.ext.ID: mcp.RawValue("{}")}}
	return &NotCapableError{Required: need, what: fmt.Sprintf("the extension %s", r.ext.ID)}
}

// HasExtension reports whether the client of the request declared an extension.
func (c *Call) HasExtension(id string) bool {
	_, ok := c.caps.Extensions[id]
	return ok
}

// asker sends questions to the client.
type asker interface {
	ask(c *Call, id string, q *question) (mcp.RawValue, error)
}

// asker returns the asker of the call: an extension's, or the era's.
func (c *Call) asker() asker {
	for _, e := range c.srv.extensions {
		if e.Asker == nil {
			continue
		}
		if a := e.Asker(c); a != nil {
			return foreignAsker{a}
		}
	}
	return c.era()
}

// foreignAsker lets an extension's asker ask.
type foreignAsker struct{ Asker }

func (a foreignAsker) ask(c *Call, id string, q *question) (mcp.RawValue, error) {
	params, err := c.shape().DownParams(q.method, q.params)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", q.what, err)
	}
	raw, err := wire.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", q.what, err)
	}
	c.timer.Pause()
	defer c.timer.Resume()
	return a.Ask(c, id, q.method, raw)
}

// acceptExtra hands the members of a filter that extensions define to them.
func (c *Call) acceptExtra(f *feed, want, ack *mcp.SubscriptionFilter) error {
	for _, e := range c.srv.extensions {
		for _, name := range slices.Sorted(maps.Keys(e.Filters)) {
			value, ok := want.Extra[name]
			if !ok {
				continue
			}
			said, topics, err := e.Filters[name](c, value)
			if err != nil {
				return err
			}
			for _, t := range topics {
				f.want(e.ID + " " + t)
			}
			if said == nil {
				continue
			}
			if ack.Extra == nil {
				ack.Extra = make(map[string]mcp.RawValue)
			}
			ack.Extra[name] = said
		}
	}
	return nil
}

// Notify sends a notification of an extension to the subscriptions that have
// topic. params encodes as an object without `_meta`, or is nil. Notices of
// one topic that wait to be sent are merged.
func (s *Server) Notify(extension, topic, method string, params any) error {
	raw := mcp.RawValue("{}")
	if params != nil {
		var err error
		if raw, err = wire.Marshal(params); err != nil {
			return fmt.Errorf("notify %s: %w", method, err)
		}
	}
	s.hub.publish(notice{topic: extension + " " + topic, method: method, params: raw})
	return nil
}

// validExtension checks an identifier: a `_meta` key with a prefix.
func validExtension(id string) error {
	if !strings.Contains(id, "/") {
		return fmt.Errorf("extension %q: the identifier needs a prefix, such as com.example/", id)
	}
	return mcp.ValidMetaKey(id)
}
