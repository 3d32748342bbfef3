package server

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// MethodOptions are the optional parts of a method of an extension.
type MethodOptions struct {
	// Target is the member of params, a string, that names what the request is
	// about: for Call.Target, cursors and rate limits. If params are a struct it
	// has this member. Default none.
	Target string
	// NameHeader demands over HTTP that the header Mcp-Name says the target, as
	// it does for tools/call, in the revisions that have such headers, and
	// refuses a target that is no string. It is for methods whose extension says
	// so: tasks/get yes, skills/get no. Default: the header is not looked at.
	NameHeader bool
	// Revisions are those that have the method; in others it is unknown.
	// Methods of one name may stand beside each other for different revisions.
	// Default: Stateless.
	Revisions Revisions
	// Asks lets the function ask the client by Elicit, Sample and their like, which
	// sends requests in a session. It is for revisions with a handshake; in the
	// others only tools/call, prompts/get and resources/read may be answered with
	// a question. Default: asking fails with ErrCannotAsk.
	Asks bool
	// Long is for a method that waits, such as for the result of a task: no limit
	// of time holds for its requests. They are counted as under way. Their
	// context ends with ErrShutdown as soon as Server.Shutdown begins or the
	// transport is about to end, so that a method that returns when its context
	// ends keeps neither waiting; what it returns is still sent. Default: the
	// limits of Limits.CallTimeout and MaxCallTime.
	Long bool
	// Anyone serves clients that did not declare the extension. Default: they
	// get the error "missing client capability".
	Anyone bool
	// Cache is the hint that results carry (ttlMs, cacheScope) in revisions that
	// have such hints. Where the result says something itself, that holds.
	// Default none.
	Cache *Cache
}

// An ExtensionMethod is a method of an extension; [Method] makes it.
type ExtensionMethod struct {
	name     string
	opts     MethodOptions
	conflict error // of options that With was given twice
	required []string
	params   reflect.Type
	result   reflect.Type
	decode   func(c *Call, in *jsonrpc.Incoming) (any, *mcp.RequestMeta, error)
	serve    func(c *Call) (any, error)
}

// With sets options and returns the method. A later call adds to them: the fields that it sets
// replace earlier values. Setting Revisions to two different values is an error of [Server.Extend].
func (m *ExtensionMethod) With(o MethodOptions) *ExtensionMethod {
	m.conflict = errors.Join(m.conflict, mergeOptions(&m.opts, o))
	return m
}

// Method makes a method of an extension of a function.
//
// P is a struct, into which params are decoded strictly: member names match
// exactly, one in another letter case is refused, other unknown ones are ignored. A
// member whose tag has neither omitzero nor omitempty must be there. If P has a
// method Validate() error, it is asked then. What does not fit is -32602, with
// the texts of the core's methods. P needs no `_meta`, which is [Call.Meta]. With
// an mcp.RawValue as P the function gets the text of params, an object.
//
// R encodes as a JSON object: a struct or a map, or mcp.None for {}. In
// the revisions in which results have a type it is "complete", unless R embeds
// mcp.ResultBase and says otherwise; the server adds its own name there too. Cache
// hints are those of an embedded mcp.Cacheable, or MethodOptions.Cache. A
// jsonrpc.Body is sent as it is. A result belongs to the server afterwards.
//
// Errors are those of handlers: one made by package mcp is told to the client, any
// other becomes "internal error" with a reference. So does a *jsonrpc.Error, which may
// be that of another server; what DetachOptions.Done was given is told with
// mcp.NewError(e.Code, "%s", e.Message).With(e.Data). Method panics if the
// name is empty, or P or R cannot be those of a method: that is a mistake in the
// program.
//
// spec 2026-07-28, basic/versioning: extension negotiation.
func Method[P, R any](name string, fn func(c *Call, params P) (R, error)) *ExtensionMethod {
	params, result := reflect.TypeFor[P](), reflect.TypeFor[R]()
	if err := checkMethod(name, fn == nil, params, result); err != nil {
		panic("server.Method: " + err.Error())
	}
	validate := validatorOf(reflect.TypeFor[P]())
	raw := params == reflect.TypeFor[mcp.RawValue]()
	knowsMeta := wire.HasMember(params, "_meta")
	return &ExtensionMethod{
		name: name, required: requiredMembers(params), params: params, result: result,
		decode: func(c *Call, in *jsonrpc.Incoming) (any, *mcp.RequestMeta, error) {
			p := new(struct { // in one piece of memory
				params P
				meta   mcp.RequestMeta
			})
			text := in.Params.Raw()
			if len(text) == 0 {
				text = wire.RawValue("{}")
			}
			if err := c.decodeExtensionMeta(in.Params, &p.meta); err != nil {
				return nil, nil, err
			}
			if raw {
				*any(&p.params).(*mcp.RawValue) = text
				return &p.params, &p.meta, nil
			}
			if !knowsMeta { // to find that out the decoder would read all twice
				text = withoutMembers(in.Params, "_meta")
			}
			if err := wire.DecodeParams(text, &p.params); err != nil {
				return nil, nil, err
			}
			if validate != nil {
				if err := validate(&p.params); err != nil {
					return nil, nil, err
				}
			}
			return &p.params, &p.meta, nil
		},
		serve: func(c *Call) (any, error) {
			res, err := fn(c, *c.params.(*P))
			if err != nil {
				return nil, err
			}
			if typed, ok := any(&res).(mcp.Result); ok { // R itself is the struct
				return typed, nil
			}
			return res, nil
		},
	}
}

// withoutMembers is the text of an object without some of its members.
func withoutMembers(o jsonrpc.Object, names ...string) mcp.RawValue {
	has := func(name string) bool { _, ok := o.Member(name); return ok }
	if !o.IsZero() && !slices.ContainsFunc(names, has) {
		return o.Raw()
	}
	text := append(make([]byte, 0, len(o.Raw())+len("{}")), '{')
	for name, value := range o.All() {
		if slices.Contains(names, name) {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(wire.AppendString(text, name), ':')
		text = append(text, value...)
	}
	return append(text, '}')
}

// checkMethod says why a function cannot be a method, or nil.
func checkMethod(name string, missing bool, params, result reflect.Type) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case missing:
		return fmt.Errorf("method %q: %w", name, errNoFunction)
	case params != reflect.TypeFor[mcp.RawValue]() && params.Kind() != reflect.Struct:
		return fmt.Errorf("method %q: params of type %s: use a struct, mcp.None for none, or mcp.RawValue for the text", name, params)
	}
	switch result.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
		return nil
	}
	if result == reflect.TypeFor[mcp.RawValue]() {
		return nil
	}
	return fmt.Errorf("method %q: a result of type %s is no JSON object; make it a member of a struct", name, result)
}

// requiredMembers are the members that params of a type must have.
func requiredMembers(t reflect.Type) []string {
	var names []string
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			names = append(names, requiredMembers(f.Type)...)
		case !f.IsExported(), name == "-" && options == "", f.Anonymous && name == "":
		case hasOption(options, "omitzero"), hasOption(options, "omitempty"), hasOption(options, "embed"):
		case name == "":
			names = append(names, f.Name)
		default:
			names = append(names, name)
		}
	}
	return names
}

func hasOption(options, name string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == name {
			return true
		}
	}
	return false
}

// decodeExtensionMeta decodes the `_meta` of params whose type does not know it.
func (c *Call) decodeExtensionMeta(params jsonrpc.Object, meta *mcp.RequestMeta) error {
	if err := params.CheckNames("_meta"); err != nil {
		return err
	}
	raw, ok := params.Member("_meta")
	if !ok {
		return nil
	}
	return at("/_meta", c.decodeMeta(raw, meta))
}

// check says why the method cannot be served, or nil.
func (m *ExtensionMethod) check() error {
	o := &m.opts
	typed := m.result.Implements(resultType) || reflect.PointerTo(m.result).Implements(resultType)
	hinted := m.result.Implements(hintedType) || reflect.PointerTo(m.result).Implements(hintedType)
	switch {
	case m.conflict != nil:
		return fmt.Errorf("method %s: %w", m.name, m.conflict)
	case o.NameHeader && o.Target == "":
		return fmt.Errorf("method %s: NameHeader without a Target, which the header would say", m.name)
	case o.Target != "" && !wire.HasMember(m.params, o.Target):
		return fmt.Errorf("method %s: its params, %s, have no member %q, the Target", m.name, m.params, o.Target)
	case o.Asks && o.Revisions.overlap(Stateless):
		return fmt.Errorf("method %s: Asks needs Revisions with a handshake, such as Handshake", m.name)
	case o.Cache != nil && typed && !hinted:
		return fmt.Errorf("method %s: Cache needs an mcp.Cacheable in its result, %s", m.name, m.result)
	}
	return nil
}

var (
	resultType = reflect.TypeFor[mcp.Result]()
	hintedType = reflect.TypeFor[mcp.CacheableResult]()
)

// addMethod adds a method of an extension to the table.
func (s *Server) addMethod(e *Extension, m *ExtensionMethod) error {
	if m == nil {
		return fmt.Errorf("a method of extension %s is nil", e.ID)
	}
	if err := m.check(); err != nil {
		return err
	}
	first := s.rows[m.name]
	for r := first; r != nil; r = r.next {
		if r.ext == nil || r.method.opts.Revisions.overlap(m.opts.Revisions) {
			return fmt.Errorf("method %s exists already", m.name)
		}
	}
	required := m.required
	if len(required) == 0 && m.opts.Target != "" {
		required = []string{m.opts.Target}
	}
	s.rows[m.name] = &row{
		Method: &mcp.Method{Name: m.name, From: mcp.FromClient, Target: m.opts.Target, Asks: m.opts.Asks, Long: m.opts.Long},
		ext:    e, method: m, next: first,
		limit: toolRate, required: required,
		decode: m.decodeRow,
		serve:  m.serveRow,
	}
	return nil
}

// decodeRow decodes the params of a request. A target that a header must say is a
// string: of any other the header could not be compared.
func (m *ExtensionMethod) decodeRow(c *Call, in *jsonrpc.Incoming) (any, *mcp.RequestMeta, error) {
	params, meta, err := m.decode(c, in)
	if err != nil || !m.opts.NameHeader {
		return params, meta, err
	}
	if raw, ok := in.Params.Member(m.opts.Target); ok && wire.Kind(raw[0]) != "string" {
		return nil, nil, fmt.Errorf("/%s: expected string, got %s", m.opts.Target, wire.Kind(raw[0]))
	}
	return params, meta, nil
}

// named reports whether Mcp-Name says the target of a request.
//
// spec 2026-07-28, basic/transports/streamable-http: Mcp-Name. Ruling 35.
func (r *row) named() bool {
	return r.Target != "" && (r.method == nil || r.method.opts.NameHeader)
}

// declared checks that the client knows the extension of a method.
//
// spec 2026-07-28, basic/versioning: a party without the other's extension
// "MUST either revert to core protocol behavior or reject the request".
func (c *Call) declared(r *row) error {
	if r.ext == nil || r.method.opts.Anyone || c.HasExtension(r.ext.ID) {
		return nil
	}
	return NeedExtension(r.ext.ID)
}

// NeedExtension is the error for a request that can only be served to clients that
// declared the extension: "missing client capability" (-32021), with the identifier
// in its data, in stateless revisions.
//
// spec 2026-07-28, basic/versioning.
func NeedExtension(id string) error {
	need := mcp.ClientCapabilities{Extensions: map[string]mcp.RawValue{id: mcp.RawValue("{}")}}
	return &NotCapableError{Required: need, what: "the extension " + id}
}

// serveRow serves a request and completes its result.
func (m *ExtensionMethod) serveRow(c *Call) (Result, error) {
	v, err := m.serve(c)
	if err != nil || absent(v) {
		return nil, err
	}
	res, ok := v.(mcp.Result)
	if !ok {
		if body, ok := v.(jsonrpc.Body); ok {
			return body, nil
		}
		if res, err = newObjectResult(m.name, v); err != nil {
			return nil, err
		}
	}
	hinted, ok := res.(mcp.CacheableResult)
	switch {
	case !ok:
	case !c.facts.Cacheable:
		*hinted.Hints() = mcp.Cacheable{}
	case m.opts.Cache != nil:
		m.opts.Cache.fill(hinted.Hints(), c.srv.filters())
	}
	return res, nil
}

// An objectResult is a result whose type does not say what all results have in
// common: its members, and what the server adds to them.
type objectResult struct {
	mcp.ResultBase
	mcp.Cacheable
	members wire.Object
}

func newObjectResult(method string, v any) (*objectResult, error) {
	raw, err := wire.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("result of %s: %w", method, err)
	}
	r := new(objectResult)
	if r.members, err = wire.ParseObject(raw, wire.Limits{Depth: maxDefinitionDepth}); err != nil {
		return nil, fmt.Errorf("result of %s: %w", method, err)
	}
	var head resultHead
	if err := wire.Decode(raw, &head); err != nil {
		return nil, fmt.Errorf("result of %s: %w", method, err)
	}
	r.ResultBase, r.Cacheable = head.ResultBase, head.Cacheable
	return r, nil
}

// resultHead is what an objectResult has beside the members of the author.
type resultHead struct {
	mcp.ResultBase
	mcp.Cacheable
}

// AppendJSON encodes the members, and then the head.
func (r *objectResult) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	start := len(dst)
	for name, value := range r.members.All() {
		switch name {
		case "_meta", "resultType", "ttlMs", "cacheScope": // in the head
			continue
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendString(dst, name), ':')
		dst = append(dst, value...)
	}
	brace := len(dst)
	dst, err := wire.Append(dst, &resultHead{r.ResultBase, r.Cacheable})
	switch {
	case err != nil:
		return nil, err
	case string(dst[brace:]) == "{}":
		return append(dst[:brace], '}'), nil
	case brace == start:
		return append(dst[:brace], dst[brace+1:]...), nil
	}
	dst[brace] = ',' // in place of the head's brace
	return dst, nil
}
