package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// An Extension is the client's side of an extension of the protocol: what it
// declares, the methods and notifications that it adds, and how its results are
// settled. The official extensions and those of strangers use the same seams.
//
// spec 2026-07-28, basic/versioning: extension negotiation.
type Extension struct {
	// ID is the identifier, with a prefix: "com.example/tasks".
	ID string
	// Settings are declared under ID in the capabilities, in the Revisions of the
	// extension: with each request in those without a handshake. They encode as a
	// JSON object, once, in Connect. Default {}.
	Settings any
	// Revisions are those in which the extension is declared. Its methods say
	// theirs themselves. Default: Stateless.
	Revisions Revisions
	// Capabilities stand for the extension in revisions in which it was part of the
	// core. Default none.
	Capabilities []Capability
	// Methods are requests that [CallMethod] sends. Names are unique among the
	// extensions of a client. Default none.
	Methods []ExtensionMethod
	// Results are types of results that servers may answer with, and how the final
	// result is had. Default none.
	Results []ResultType
	// Additions are what the extension adds to requests of the core. Default none.
	Additions []Addition
	// Notifications are those that servers may send. Default none.
	Notifications []ExtensionNotification
	// OnNotification takes Notifications, and the acknowledgements of the
	// subscriptions that ask for them, in order, one at a time. It may call the
	// client. What waits for it is bounded together with what waits for
	// Options.OnLog. Default none.
	OnNotification func(ctx context.Context, n *Notification)

	settings mcp.RawValue // Settings in JSON
}

// A Capability is a member of the capabilities that stands for an extension: in its
// revisions a server offers the extension by declaring it.
type Capability struct {
	// Name is the member, for example "tasks". It is none of the core's.
	Name string
	// Value is what the client declares: it encodes as a JSON object, once, in
	// Connect. Default: the client declares nothing.
	Value any
	// Revisions are those of which this holds. Default: Stateless.
	Revisions Revisions

	text mcp.RawValue // Value in JSON, or nil
}

// extensions are those of a client.
type extensions struct {
	list          []*Extension
	methods       map[string]*extensionMethod
	results       map[string]*foreignResult
	additions     []*addition
	related       bool // there are methods with Related
	notifications map[string]*extensionNotification
	filters       map[string]*Extension
}

// newExtensions checks and encodes what was given in the options.
func newExtensions(list []Extension) (*extensions, error) {
	all := &extensions{methods: make(map[string]*extensionMethod)}
	for i := range list {
		own := list[i]
		if err := all.add(&own); err != nil {
			return nil, fmt.Errorf("client options: extension %q: %w", own.ID, err)
		}
	}
	return all, nil
}

// add adds an extension.
func (x *extensions) add(e *Extension) (err error) {
	if err := mcp.ValidExtension(e.ID); err != nil {
		return err
	}
	for _, other := range x.list {
		if other.ID == e.ID {
			return errors.New("it is given twice")
		}
	}
	e.settings = mcp.RawValue("{}")
	if e.Settings != nil {
		if e.settings, err = encodedObject(e.Settings); err != nil {
			return fmt.Errorf("settings: %w", err)
		}
	}
	if err := e.encodeCapabilities(); err != nil {
		return err
	}
	for _, m := range e.Methods {
		if err := x.addMethod(e, m); err != nil {
			return err
		}
	}
	for _, t := range e.Results {
		if err := x.addResult(e, t); err != nil {
			return err
		}
	}
	for _, a := range e.Additions {
		if err := x.addAddition(e, a); err != nil {
			return err
		}
	}
	for _, n := range e.Notifications {
		if err := x.addNotification(e, n); err != nil {
			return err
		}
	}
	x.list = append(x.list, e)
	return nil
}

// encodeCapabilities checks and encodes the capabilities, in a copy.
func (e *Extension) encodeCapabilities() (err error) {
	e.Capabilities = append([]Capability(nil), e.Capabilities...)
	for i := range e.Capabilities {
		own := &e.Capabilities[i]
		if own.Name == "" || coreCapability(own.Name) {
			return fmt.Errorf("%q is no name for a capability of an extension", own.Name)
		}
		if own.Value == nil {
			continue
		}
		if own.text, err = encodedObject(own.Value); err != nil {
			return fmt.Errorf("capability %s: %w", own.Name, err)
		}
	}
	return nil
}

// coreCapability reports whether the core has a capability of a client or of a
// server with that name.
func coreCapability(name string) bool {
	return wire.KnowsMember(reflect.TypeFor[mcp.ClientCapabilities](), name) ||
		wire.KnowsMember(reflect.TypeFor[mcp.ServerCapabilities](), name)
}

// encodedObject is the JSON of what must be an object.
func encodedObject(v any) (mcp.RawValue, error) {
	o, err := wire.MarshalObject(v, wire.Limits{})
	return o.Raw(), err
}

// declare puts the extensions into what the client declares in a revision, in the
// place of those that are there.
func (x *extensions) declare(caps *mcp.ClientCapabilities, f *revision.Facts) {
	caps.Extensions = nil
	extra := false // Extra is our own
	for _, e := range x.list {
		if e.Revisions.include(f) {
			if caps.Extensions == nil {
				caps.Extensions = make(map[string]mcp.RawValue, len(x.list))
			}
			caps.Extensions[e.ID] = e.settings
		}
		for _, own := range e.Capabilities {
			if own.text == nil || !own.Revisions.include(f) {
				continue
			}
			if !extra {
				caps.Extra, extra = maps.Clone(caps.Extra), true
			}
			if caps.Extra == nil {
				caps.Extra = make(map[string]mcp.RawValue)
			}
			caps.Extra[own.Name] = own.text
		}
	}
}

// offered reports whether the server of a session declared the extension.
//
// spec 2026-07-28, basic/versioning: extensions are used where both parties
// declared them.
func (e *Extension) offered(s *session) bool {
	for _, own := range e.Capabilities {
		if own.Revisions.include(s.facts) {
			_, ok := s.caps.Extra[own.Name]
			return ok
		}
	}
	_, ok := s.caps.Extensions[e.ID]
	return ok && e.Revisions.include(s.facts)
}

// A NoExtensionError says that the server did not declare an extension, in the
// revision in use, of which something was asked. Nothing was sent. It is an
// [ErrNotCapable].
type NoExtensionError struct {
	// Extension is the identifier.
	Extension string
	// Version is the revision in use.
	Version string
}

// Error names the extension.
func (e *NoExtensionError) Error() string {
	return fmt.Sprintf("%v: the server does not offer the extension %q in revision %s", ErrNotCapable, e.Extension, e.Version)
}

// Is makes the error an ErrNotCapable.
func (e *NoExtensionError) Is(target error) bool { return target == ErrNotCapable }
