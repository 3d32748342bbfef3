package schema

import (
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
)

// maxNodes bounds an inferred schema; without recursion a type used in many
// places is written out in each.
const maxNodes = 10_000

type walkOptions struct {
	additional bool // unknown members are tolerated
	output     bool // values are encoded
	form       bool // only what a form can have
	types      map[reflect.Type]wire.RawValue
}

// walk is one inference.
type walk struct {
	walkOptions
	path     []string // Go names, for errors
	root     reflect.Type
	rootNode *node
	defs     []*definition
	nodes    []*node
	cyclic   map[reflect.Type]bool
	reach    int // above 0: not reachable by properties alone
	names    []string
	headers  []HeaderBinding
	secrets  []string
}

// definition is a recursive type under $defs.
type definition struct {
	typ  reflect.Type
	name string
	node *node
}

// maxUint is the greatest integer of 64 bits.
var maxUint = wire.ReadDecimal([]byte("18446744073709551615"))

// noForm are types of the standard library whose members are no interface.
var noForm = map[reflect.Type]string{
	reflect.TypeFor[url.URL]():       "use a string with the tag format:\"uri\", or a type of your own with MarshalText and UnmarshalText",
	reflect.TypeFor[time.Location](): "use a string with the name of the time zone",
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

func infer(t reflect.Type, o walkOptions) (*Compiled, error) {
	if t == nil {
		return nil, fmt.Errorf("schema of nil: want a Go type")
	}
	for listed := range o.types {
		if listed == nil || listed.Kind() == reflect.Pointer {
			return nil, fmt.Errorf("schema of %s: Types has a schema for %v; give it for the type that is pointed to, not for a pointer or nil", t, listed)
		}
	}
	w := &walk{walkOptions: o, path: []string{t.String()}, cyclic: map[reflect.Type]bool{}}
	w.root = deref(t)
	if o.form && w.classify(w.root) != kindStruct {
		return nil, w.errorf("a form is a struct; wrap the value in one")
	}
	root, err := w.rootOf()
	if err != nil {
		return nil, err
	}
	w.spreadDefaults()
	c := &Compiled{
		typ: root.jsonType(), headers: w.headers, secrets: w.secrets,
		inferred: root.constraints(), goType: t, lenient: o.additional,
	}
	c.flat = !c.lenient && t.Kind() == reflect.Struct && root.isFlat(t)
	c.json = root.append(nil, nil, w.defs)
	return c, nil
}

// rootOf walks the root type, which references to itself name "#".
func (w *walk) rootOf() (*node, error) {
	w.rootNode = &node{}
	n, err := w.build(w.root, noTags)
	if err != nil {
		return nil, err
	}
	*w.rootNode = *n
	w.nodes = append(w.nodes, w.rootNode)
	return w.rootNode, nil
}

func (w *walk) errorf(format string, args ...any) error {
	return fmt.Errorf("schema of %s: "+format, append([]any{strings.Join(w.path, ".")}, args...)...)
}

// mayDefault says whether there are defaults at or below a node.
func (w *walk) mayDefault(n *node) bool {
	w.spreadDefaults()
	return n.defaults
}

// spreadDefaults notes for each node whether there are defaults beneath it.
func (w *walk) spreadDefaults() {
	for changed := true; changed; {
		changed = false
		for _, n := range w.nodes {
			if !n.defaults && n.hasDefaults() {
				n.defaults, changed = true, true
			}
		}
	}
}

func (n *node) hasDefaults() bool {
	return n.ref != nil && n.ref.defaults || n.items != nil && n.items.defaults ||
		slices.ContainsFunc(n.fields, func(f field) bool { return f.fallback != nil || f.node.defaults })
}

func deref(t reflect.Type) reflect.Type {
	for range 8 {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	return t
}

// withMethods is t or its pointer, whichever has more methods. They are looked up by constant names: with
// others the linker would keep all exported methods of a program.
func withMethods(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		return reflect.PointerTo(t)
	}
	return t
}

// hasSchemaMethod reports whether t or its pointer has a schema of its own.
func hasSchemaMethod(t reflect.Type) bool {
	_, ok := withMethods(t).MethodByName(schemaMethod)
	return ok
}

// codesJSON reports whether t or its pointer encodes or decodes its own JSON.
func codesJSON(t reflect.Type) bool {
	t = withMethods(t)
	_, marshal := t.MethodByName("MarshalJSON")
	_, unmarshal := t.MethodByName("UnmarshalJSON")
	_, to := t.MethodByName("MarshalJSONTo")
	_, from := t.MethodByName("UnmarshalJSONFrom")
	return marshal || unmarshal || to || from
}

// codesText reports whether t or its pointer encodes or decodes its own text.
func codesText(t reflect.Type) bool {
	t = withMethods(t)
	_, marshal := t.MethodByName("MarshalText")
	_, unmarshal := t.MethodByName("UnmarshalText")
	_, appends := t.MethodByName("AppendText")
	return marshal || unmarshal || appends
}

// classify says what a type is in this walk.
func (w *walk) classify(t reflect.Type) nodeKind {
	if _, ok := w.types[t]; ok {
		return kindOwn
	}
	return classify(t)
}

// classify says what a type is, and kindRef if it cannot be described.
func classify(t reflect.Type) nodeKind {
	switch {
	case t == timeType:
		return kindTime
	case t == durationType:
		return kindDuration
	case t.Kind() != reflect.Interface && hasSchemaMethod(t):
		return kindOwn
	case codesJSON(t):
		return kindAny
	case codesText(t):
		return kindString
	}
	switch t.Kind() {
	case reflect.Interface:
		return kindAny
	case reflect.String:
		return kindString
	case reflect.Bool:
		return kindBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return kindInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return kindUint
	case reflect.Float32, reflect.Float64:
		return kindFloat
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && classify(t.Elem()) == kindUint {
			return kindBytes
		}
		return kindArray
	case reflect.Map:
		return kindMap
	case reflect.Struct:
		return kindStruct
	}
	return kindRef
}

// parts returns the types that the schema of t is made of.
func (w *walk) parts(t reflect.Type) []reflect.Type {
	if t.Kind() == reflect.Pointer {
		return []reflect.Type{t.Elem()}
	}
	switch w.classify(t) {
	case kindArray, kindMap:
		return []reflect.Type{t.Elem()}
	case kindStruct:
		var list []reflect.Type
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" {
				list = append(list, f.Type)
			}
		}
		return list
	default:
	}
	return nil
}

// isCyclic says whether values of the type may contain values of it.
func (w *walk) isCyclic(t reflect.Type) bool {
	if t.Name() == "" {
		return false
	}
	if known, ok := w.cyclic[t]; ok {
		return known
	}
	seen := map[reflect.Type]bool{}
	var find func(u reflect.Type) bool
	find = func(u reflect.Type) bool {
		for _, p := range w.parts(u) {
			if p == t {
				return true
			}
			if !seen[p] {
				seen[p] = true
				if find(p) {
					return true
				}
			}
		}
		return false
	}
	w.cyclic[t] = find(t)
	return w.cyclic[t]
}

// value walks a type that is not the root.
func (w *walk) value(t reflect.Type, tags *tagSet) (*node, error) {
	t = deref(t)
	if len(w.path) > 100 {
		return nil, w.errorf("nested too deeply")
	}
	if !w.isCyclic(t) {
		return w.build(t, tags)
	}
	if name := tags.any(); name != "" {
		return nil, w.errorf("tag %s is not supported on the recursive type %s; put constraints on its fields", name, t)
	}
	ref := &node{kind: kindRef, length: anyLength}
	w.nodes = append(w.nodes, ref)
	if t == w.root {
		ref.ref, ref.refText = w.rootNode, "#"
		return ref, nil
	}
	d, err := w.define(t)
	if err != nil {
		return nil, err
	}
	ref.ref, ref.refText = d.node, "#/$defs/"+d.name
	return ref, nil
}

func (w *walk) define(t reflect.Type) (*definition, error) {
	for _, d := range w.defs {
		if d.typ == t {
			return d, nil
		}
	}
	d := &definition{typ: t, name: w.nameFor(t), node: &node{}}
	w.defs = append(w.defs, d)
	w.reach++
	n, err := w.build(t, noTags)
	w.reach--
	if err != nil {
		return nil, err
	}
	*d.node = *n
	w.nodes = append(w.nodes, d.node)
	return d, nil
}

// nameFor returns a name for $defs that needs no escapes and is not taken.
func (w *walk) nameFor(t reflect.Type) string {
	base := strings.Map(func(r rune) rune {
		if isAlphanumeric(r) {
			return r
		}
		return '_'
	}, t.Name())
	name := base
	for i := 2; slices.ContainsFunc(w.defs, func(d *definition) bool { return d.name == name }); i++ {
		name = base + strconv.Itoa(i)
	}
	return name
}

// build makes the node of a type, with the constraints of its tags.
func (w *walk) build(t reflect.Type, tags *tagSet) (*node, error) {
	n := &node{kind: w.classify(t), length: anyLength}
	n.format = typeFormats[n.kind]
	w.nodes = append(w.nodes, n)
	if len(w.nodes) > maxNodes {
		return nil, w.errorf("more than %d places; %w", maxNodes, ErrTooComplex)
	}
	if w.form {
		if err := w.formKind(t, n.kind); err != nil {
			return nil, err
		}
	}
	var err error
	switch n.kind {
	case kindRef:
		return nil, w.errorf("type %s cannot be expressed in JSON; leave the field out with json:\"-\"", t)
	case kindInt:
		n.lo, n.hi, n.bits = wire.IntDecimal(math.MinInt64>>(64-t.Bits())), wire.IntDecimal(math.MaxInt64>>(64-t.Bits())), t.Bits()
		if n.bits < 64 {
			n.loText, n.hiText = n.lo.Integer(), n.hi.Integer()
		}
	case kindUint:
		n.lo, n.hi, n.bits = wire.IntDecimal(0), maxUint, t.Bits()
		if n.loText = "0"; n.bits < 64 {
			n.hi = wire.IntDecimal(1<<n.bits - 1)
			n.hiText = n.hi.Integer()
		}
	case kindFloat:
		n.flo, n.fhi, n.bits = math.Inf(-1), math.Inf(1), t.Bits()
	case kindAny:
		if t.Kind() == reflect.Interface && t.NumMethod() > 0 && !w.output {
			err = w.errorf("interface %s cannot be decoded; use a concrete type", t)
		}
	case kindOwn:
		err = w.own(n, t)
	case kindArray:
		err = w.array(n, t, tags)
	case kindMap:
		err = w.mapping(n, t)
	case kindStruct:
		if way, ok := noForm[t]; ok {
			return nil, w.errorf("type %s has no JSON form of its own; %s", t, way)
		}
		err = w.structure(n, t)
	case kindBytes:
		if t.Kind() == reflect.Array {
			n.length.min = (t.Len() + 2) / 3 * 4
			n.length.max = n.length.min
		}
	default:
	}
	if err != nil {
		return nil, err
	}
	if err := w.constrain(n, t, tags); err != nil {
		return nil, err
	}
	return n, nil
}

func (w *walk) array(n *node, t reflect.Type, tags *tagSet) (err error) {
	if t.Kind() == reflect.Array {
		n.length = extents{t.Len(), t.Len()}
	}
	n.items, err = w.inside("[]", t.Elem(), tags.forItems())
	if err == nil && w.form && n.items.enum == nil {
		err = w.errorf("a form can have a slice of an enum only; add the tag enum")
	}
	return err
}

// inside walks what cannot be reached by properties alone.
func (w *walk) inside(name string, t reflect.Type, tags *tagSet) (*node, error) {
	w.path[len(w.path)-1] += name
	w.reach++
	defer func() {
		w.reach--
		w.path[len(w.path)-1] = strings.TrimSuffix(w.path[len(w.path)-1], name)
	}()
	return w.value(t, tags)
}

func (w *walk) mapping(n *node, t reflect.Type) (err error) {
	key := t.Key()
	switch kind := classify(key); kind {
	case kindString:
	case kindInt, kindUint:
		n.keys = digits(kind, key.Bits())
	default:
		return w.errorf("keys of type %s cannot be member names; use strings or integers", key)
	}
	n.items, err = w.inside("[]", t.Elem(), noTags)
	if err == nil && !plainKey(key) && w.mayDefault(n.items) {
		err = w.errorf("defaults in the values of a map with keys of type %s are not supported; use string keys", key)
	}
	return err
}

// plainKey says whether a map's key is the member's name as it is.
func plainKey(key reflect.Type) bool {
	return key.Kind() == reflect.String && !codesText(key)
}
