package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// An ExtensionMethod is a request of an extension.
type ExtensionMethod struct {
	// Name is the method, for example "tasks/get".
	Name string
	// Target is the member of params, a string, that names what the request is
	// about: for Request.Target and errors. Default none.
	Target string
	// NameHeader says the target in the header Mcp-Name over HTTP, in the revisions
	// that have such headers. It is for methods whose extension says so: tasks/get
	// yes, skills/get no.
	NameHeader bool
	// Retry says that doing it twice is harmless: the request may be sent again when
	// the connection broke before the answer, as lists and reads are. A request
	// that the server refused before it ran is sent again in any case; see
	// Options.Retries.
	Retry bool
	// Asks says that the server may ask questions while it carries the request out, in
	// revisions with a handshake, and that they belong to the request that the context is
	// of in which this one is sent: the one that Settle got, or that of [WithRequest]. Its
	// handlers are told of that one, and its time limits are paused as well.
	Asks bool
	// Related is the key of _meta by which a question says to what Asks holds, where the
	// transport does not tell: an object with the member Target, which has the value that
	// the request has. The answer to the question says the same. It needs Asks and Target.
	// Default none.
	Related string
	// Revisions are those that have the method. Default: Stateless.
	Revisions Revisions
}

// An extensionMethod is a method with the extension that it belongs to.
type extensionMethod struct {
	ExtensionMethod

	ext *Extension
}

// ofExtension is the method of an extension that the call is of, or nil.
func (k *call) ofExtension() *extensionMethod {
	if k.row != nil || k.c == nil {
		return nil
	}
	return k.c.extensions.methods[k.method]
}

// relates reports whether a question says that it belongs to a request with the target.
func (m *extensionMethod) relates(question *jsonrpc.Incoming, target string) bool {
	if m.Related == "" || question.ParamsArray {
		return false
	}
	meta, _ := question.Params.Object("_meta")
	related, _ := meta.Object(m.Related)
	raw, ok := related.Member(m.Target)
	return ok && raw[0] == '"' && wire.Text(raw) == target
}

// relateAnswer returns what a handler says to a question with the members of the question's
// _meta that name what it belongs to.
//
// Revision 2025-11-25, basic/utilities/tasks, "Associating Task-Related Messages": all
// requests, notifications and responses related to a task MUST include
// io.modelcontextprotocol/related-task in _meta.
func (x *extensions) relateAnswer(question *jsonrpc.Incoming, answer any) any {
	if !x.related || question.ParamsArray {
		return answer
	}
	meta, _ := question.Params.Object("_meta")
	for _, m := range x.methods {
		if m.Related == "" {
			continue
		}
		if raw, ok := meta.Member(m.Related); ok && raw[0] == '{' {
			answer = withMeta(answer, m.Related, slices.Clone(raw))
		}
	}
	return answer
}

// withMeta returns a copy of the answer to a question with one more member of _meta.
func withMeta(answer any, key string, value wire.RawValue) any {
	added := func(meta mcp.Meta) mcp.Meta {
		meta = maps.Clone(meta)
		if meta == nil {
			meta = make(mcp.Meta)
		}
		meta[key] = value
		return meta
	}
	switch a := answer.(type) {
	case *mcp.ElicitResult:
		with := *a
		with.Meta = added(a.Meta)
		return &with
	case *mcp.CreateMessageResult:
		with := *a
		with.Meta = added(a.Meta)
		return &with
	case *mcp.ListRootsResult:
		with := *a
		with.Meta = added(a.Meta)
		return &with
	}
	return answer
}

// addMethod adds a method of an extension.
func (x *extensions) addMethod(e *Extension, m ExtensionMethod) error {
	_, core := mcp.Lookup(m.Name)
	switch {
	case m.Name == "":
		return errors.New("a method has no name")
	case core:
		return fmt.Errorf("method %s is one of the core", m.Name)
	case x.methods[m.Name] != nil:
		return fmt.Errorf("method %s exists already", m.Name)
	case m.NameHeader && m.Target == "":
		return fmt.Errorf("method %s: NameHeader without a Target, which the header would say", m.Name)
	case m.Related != "" && (m.Target == "" || !m.Asks):
		return fmt.Errorf("method %s: Related without Asks, or without a Target, which questions would name", m.Name)
	}
	x.related = x.related || m.Related != ""
	x.methods[m.Name] = &extensionMethod{m, e}
	return nil
}

// allowed refuses what the revision does not have or the server did not declare.
func (m *extensionMethod) allowed(s *session) error {
	if !m.Revisions.include(s.facts) {
		return fmt.Errorf("%w: extension %s has no method %s in revision %s", ErrNotCapable, m.ext.ID, m.Name, s.facts.Version)
	}
	if !m.ext.offered(s) {
		return &NoExtensionError{m.ext.ID, s.facts.Version}
	}
	return nil
}

// CallMethod sends a request of an extension of Options.Extensions, and decodes its
// result into Out, strictly: member names match exactly, one in another letter case
// is refused, other unknown ones are ignored. If Out has a method Validate() error,
// it is asked then. What does not fit is an [ErrMalformed]. An [mcp.RawValue] takes
// the result as it came, [mcp.None] nothing of it. Params encode to an object, or
// are nil; they are not written to.
//
// The error is a [NoExtensionError] if the server does not offer the extension.
func CallMethod[Out any](ctx context.Context, c *Client, method string, params any, o ...*CallOptions) (Out, error) {
	var out Out
	var opts *CallOptions
	if len(o) > 0 {
		opts = o[0]
	}
	if c.extensions.methods[method] == nil {
		return out, fmt.Errorf("%s: %w: no extension of this client has the method (Options.Extensions)", method, ErrNotCapable)
	}
	err := c.Request(ctx, method, params, &out, opts)
	return out, err
}

// decodeStrictly decodes a result of an extension's method into out, a pointer.
func decodeStrictly(raw wire.RawValue, out any) error {
	if err := wire.DecodeParams(raw, out); err != nil {
		return err
	}
	v, ok := out.(validator)
	if inner := reflect.ValueOf(out).Elem(); !ok && inner.Kind() == reflect.Pointer && !inner.IsNil() {
		v, ok = inner.Interface().(validator)
	}
	if !ok {
		return nil
	}
	return v.Validate()
}

// validator is what a type checks beyond what its members say.
type validator interface{ Validate() error }
