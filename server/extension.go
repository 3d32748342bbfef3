package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/parley-mcp/parley/internal/wire"
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
	// Settings are declared under ID in the capabilities, in the Revisions of the
	// extension. They encode as a JSON object, once, in Extend. Default {}.
	Settings any
	// Revisions are those in which the extension is declared. Its methods say
	// theirs themselves. Default: Stateless.
	Revisions Revisions
	// Capabilities are declared beside those of the core, for what was part of the
	// core in some revisions. Default none.
	Capabilities []Capability
	// Resources says that the extension is about resources: in its Revisions that
	// capability is then declared before there is one. Default false.
	Resources bool
	// Methods are requests that clients may send; [Method] makes them.
	Methods []*ExtensionMethod
	// Wrap sees every request, inside the middleware: it may answer in the
	// place of a feature, with a result type of its own. Default none.
	Wrap Middleware
	// Asker answers asks of handlers in the place of the era, for requests
	// for which it returns one. Default none.
	Asker func(c *Call) Asker
	// Filters are members of the filter of subscriptions/listen.
	Filters map[string]Filter
	// ToolMembers returns members to add to the entry of a tool in tools/list,
	// for clients of revisions that are in these sets (see Call.Revisions), such
	// as "execution" in CoreTasks; nil adds none. Values encode as JSON. It is
	// asked once for each tool and revision, may be called by many goroutines
	// and must be quick; def must not be written to. A member that the entry has
	// already, and one that cannot be encoded, is left out with a line in the
	// log. Default none.
	ToolMembers func(it Item, def *mcp.Tool, in Revisions) map[string]any
	// Visible reports whether a caller may see a tool, prompt, resource or
	// template, beside Server.Visible and as it does: what it hides does not
	// exist for the caller, and lists are then not shared between callers. It is
	// for features that need the extension: c.HasExtension(ID). It holds where the
	// server is mounted in another, too. Default: all are seen.
	Visible func(c *Call, it Item) bool

	settings mcp.RawValue // Settings in JSON
	next     Func         // what Wrap was given; made at the first request
}

// A Capability is a member of the capabilities that a server declares.
type Capability struct {
	// Name is the member, for example "tasks". It is none of the core's.
	Name string
	// Value encodes as a JSON object, once, in Extend. Default {}.
	Value any
	// Identified takes the place of Value for callers that are not anonymous, such as
	// for a list of what belongs to the caller. Default: Value.
	Identified any
	// Revisions are those in which it is declared. Default: Stateless.
	Revisions Revisions

	text, identified mcp.RawValue // Value and Identified in JSON
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

// Extend adds an extension. It panics if the identifier is not one, the settings or
// capabilities cannot be encoded, a capability is one of the core, or a method exists
// already in one of its revisions, and after the first request.
func (s *Server) Extend(e Extension) {
	s.mustBeNew("Extend")
	if err := mcp.ValidExtension(e.ID); err != nil {
		panic(fmt.Sprintf("server.Extend: extension %q: %v", e.ID, err))
	}
	own := &e
	raw, err := encodedOrEmpty(e.Settings)
	if err != nil {
		panic("server.Extend: settings of extension " + e.ID + ": " + err.Error())
	}
	own.settings = raw
	if own.Capabilities, err = encodedCapabilities(e.Capabilities); err != nil {
		panic("server.Extend: capabilities of extension " + e.ID + ": " + err.Error())
	}
	for _, m := range e.Methods {
		if err := s.addMethod(own, m); err != nil {
			panic("server.Extend: " + err.Error())
		}
	}
	s.extensions = append(s.extensions, own)
	if e.Visible != nil {
		s.viewers = append(s.viewers, e.Visible)
	}
	if e.ToolMembers != nil {
		s.toolMembers = append(s.toolMembers, own)
	}
}

// encodedOrEmpty is encodedObject, or {} for nil.
func encodedOrEmpty(v any) (mcp.RawValue, error) {
	if v == nil {
		return mcp.RawValue("{}"), nil
	}
	return encodedObject(v)
}

// encodedObject is the JSON of what an author gives for an object without `_meta`.
func encodedObject(v any) (mcp.RawValue, error) {
	o, err := wire.MarshalObject(v, wire.Limits{Depth: maxDefinitionDepth})
	if err != nil {
		return nil, err
	}
	if _, ok := o.Member("_meta"); ok {
		return nil, errors.New("the object has a member _meta, which is the server's")
	}
	return o.Raw(), nil
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

// asker returns the asker of the call: that of a detached one, an extension's, or
// the era's.
func (c *Call) asker() asker {
	d := c.detachment()
	if d != nil && d.opts.Asker != nil {
		return foreignAsker{d.opts.Asker}
	}
	for _, e := range c.srv.extensions {
		if e.Asker == nil {
			continue
		}
		if a := e.Asker(c); a != nil {
			return foreignAsker{a}
		}
	}
	if d != nil {
		return noAsker{}
	}
	return c.era()
}

// noAsker is the asker of a detached call that has no other.
type noAsker struct{}

func (noAsker) ask(_ *Call, _ string, q *question) (mcp.RawValue, error) {
	return nil, fmt.Errorf("asking for %s in a detached call: %w", q.what, ErrCannotAsk)
}

// foreignAsker lets an extension's asker ask.
type foreignAsker struct{ Asker }

func (a foreignAsker) ask(c *Call, id string, q *question) (mcp.RawValue, error) {
	q.identify(c)
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
// topic. params encodes as an object without `_meta`, or is nil. Of the notices of
// one topic that wait to be sent to a slow subscriber only the newest is sent, at
// the place in the queue of the oldest; other topics keep their order. It does not
// wait, and may be called by many goroutines at once.
func (s *Server) Notify(extension, topic, method string, params any) error {
	raw := mcp.RawValue("{}")
	if params != nil {
		var err error
		if raw, err = encodedObject(params); err != nil {
			return fmt.Errorf("notify %s: %w", method, err)
		}
	}
	s.hub.publish(notice{topic: extension + " " + topic, method: method, params: raw, state: true})
	return nil
}

// Subscribed reports whether a subscription or session wants the notices of a topic that
// Notify sends, for extensions to which a notice is a cost. It is true in a server
// that is mounted in another, whose subscriptions it does not know.
func (s *Server) Subscribed(extension, topic string) bool {
	feeds, parents := s.hub.receivers()
	name := extension + " " + topic
	return len(parents) > 0 || slices.ContainsFunc(feeds, func(f *feed) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.wanted(name)
	})
}

// Follow has the notices of a topic that Server.Notify sends go to the session of
// the request, until stop is called or the session ends: for revisions with a
// handshake, where no request of the client subscribes to topics of extensions. What
// several calls of Follow asked for goes to the session once, until each of them was
// stopped. A session may follow as many topics as Limits.MaxSubscriptions, beside its
// subscriptions to resources. It fails without a session, and in stateless revisions,
// which have Extension.Filters.
func (c *Call) Follow(extension, topic string) (stop func(), err error) {
	if c.session == nil || !c.facts.Handshake {
		return nil, fmt.Errorf("follow %s: %w", topic, errNoSession)
	}
	c.session.mu.Lock()
	f, name := c.session.feed, extension+" "+topic
	c.session.mu.Unlock()
	if most := c.srv.limits.MaxSubscriptions; !f.addFollower(name, most) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "more than %d topics followed in one session (Limits.MaxSubscriptions)", most)
	}
	return sync.OnceFunc(func() { f.removeFollower(name) }), nil
}
