package schema_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/schema"
)

// plain has what the inferred checker and JSON Schema agree on. Where ours is
// stricter on purpose, the advertised schema says less than it enforces:
// formats, time.Duration and base64 are checked, integers must fit their Go
// type, and floats are compared as the nearest float64, which the handler gets.
type plain struct {
	S     string            `json:"s" minlen:"1" maxlen:"3"`
	P     string            `json:"p,omitzero" pattern:"^a+b?$"`
	E     string            `json:"e,omitzero" enum:"x,y z,é"`
	I     int               `json:"i" min:"-5" max:"5"`
	I8    int8              `json:"i8,omitzero"`
	U     uint              `json:"u,omitzero"`
	N     int               `json:"n,omitzero" enum:"1,2,3"`
	F     float64           `json:"f,omitzero" min:"-0.5" max:"2.5"`
	B     bool              `json:"b" default:"true"`
	Any   any               `json:"any,omitzero"`
	L     []string          `json:"l,omitempty" minlen:"1" maxlen:"2" enum:"a,b"`
	M     map[string]*plain `json:"m,omitempty" maxlen:"2"`
	K     map[int]bool      `json:"k,omitempty"`
	In    *struct{ X int }  `json:"in,omitzero"`
	Pair  [2]float32        `json:"pair,omitzero"`
	Twins []embedding       `json:"twins,omitempty"`
}

var differential = []reflect.Type{
	reflect.TypeFor[plain](), reflect.TypeFor[node](), reflect.TypeFor[forest](), reflect.TypeFor[embedding](), reflect.TypeFor[indexIn](),
	reflect.TypeFor[[]plain](), reflect.TypeFor[map[string]int](), reflect.TypeFor[generic[[]string]](),
}

// oracle is the JSON Schema library, without any of our code.
func oracle(t testing.TB, raw []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("test:///schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("test:///schema")
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return s
}

// extreme are numbers on which the two differ by design.
var extreme = regexp.MustCompile(`[0-9]{15}|[eE]`)

func compare(t *testing.T, c *schema.Compiled, s *jsonschema.Schema, typ reflect.Type, raw []byte) (valid bool) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := c.Check(raw), s.Validate(v)
	if (ours == nil) != (theirs == nil) {
		t.Fatalf("%s\nof %v: ours %v, theirs %v", raw, typ, ours, theirs)
	}
	target := reflect.New(typ).Interface()
	if err := c.Decode(raw, target); (err == nil) != (ours == nil) {
		t.Fatalf("%s\nof %v: check %v, decode %v", raw, typ, ours, err)
	}
	return ours == nil
}

// Proves: SEC-TOOL-1
func TestInferredCheckerAgreesWithJSONSchema(t *testing.T) {
	racetest.SkipSerial(t)
	for i, typ := range differential {
		c, err := schema.For(typ, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := oracle(t, c.JSON())
		foreign, err := schema.Compile(c.JSON(), nil)
		if err != nil {
			t.Fatal(err)
		}
		doc, _ := jsonschema.UnmarshalJSON(bytes.NewReader(c.JSON()))
		g := generator{rand: rand.New(rand.NewPCG(1, uint64(i))), root: doc}
		good := 0
		for range 4000 {
			raw := g.value(nil, doc, 0)
			if compare(t, c, s, typ, raw) {
				good++
			}
			if err := foreign.Check(raw); (err == nil) != (c.Check(raw) == nil) {
				t.Fatalf("%s\nof %v: foreign %v", raw, typ, err)
			}
		}
		if good < 200 || good > 3900 {
			t.Errorf("%v: %d of 4000 values fit; the generator proves little", typ, good)
		}
	}
}

// generator makes values that fit a schema, with some mistakes.
type generator struct {
	rand *rand.Rand
	root any
}

func (g *generator) chance(percent int) bool { return g.rand.IntN(100) < percent }

func (g *generator) value(dst []byte, schema any, depth int) []byte {
	s, _ := schema.(map[string]any)
	if g.chance(2) {
		return append(dst, [...]string{`null`, `"a"`, `1.5`, `-1`, `{}`, `[]`, `true`, `1.0`, `[1]`}[g.rand.IntN(9)]...)
	}
	switch s["$ref"] {
	case "#":
		return g.value(dst, g.root, depth)
	case nil:
	default:
		name := s["$ref"].(string)[len("#/$defs/"):]
		return g.value(dst, g.root.(map[string]any)["$defs"].(map[string]any)[name], depth)
	}
	if list, ok := s["enum"].([]any); ok {
		switch v := list[g.rand.IntN(len(list))].(type) {
		case string:
			return wire.AppendString(dst, v)
		default:
			return fmt.Append(dst, v)
		}
	}
	switch s["type"] {
	case "string":
		return append(dst, [...]string{`"aab"`, `"a"`, `"a/b"`, `"\u0061a"`, `"éé"`, `"abcd"`, `""`}[min(g.rand.IntN(9), 6)]...)
	case "integer":
		return append(dst, [...]string{`1`, `2`, `0`, `-0`, `3.0`, `-4`, `500`}[min(g.rand.IntN(12)/2, 6)]...)
	case "number":
		return append(dst, [...]string{`1`, `2.5`, `-0.5`, `0.25`, `2.51`}[min(g.rand.IntN(12)/2, 4)]...)
	case "boolean":
		return strconv.AppendBool(dst, g.chance(50))
	case "array":
		dst = append(dst, '[')
		for i := range g.size(depth) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = g.value(dst, s["items"], depth+1)
		}
		return append(dst, ']')
	case "object":
		return g.object(dst, s, depth)
	}
	return append(dst, `{"any":[1,"x"]}`...)
}

func (g *generator) size(depth int) int {
	if depth > 3 {
		return g.rand.IntN(2)
	}
	return 1 + g.rand.IntN(2)
}

func (g *generator) object(dst []byte, s map[string]any, depth int) []byte {
	start := len(dst)
	dst = append(dst, '{')
	add := func(name string, schema any) {
		if len(dst) > start+1 {
			dst = append(dst, ',', ' ')
		}
		dst = g.value(append(wire.AppendString(dst, name), ':'), schema, depth+1)
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for name, sub := range properties {
		needed := false
		for _, r := range required {
			needed = needed || r == name
		}
		if needed && g.chance(98) || !needed && g.chance(40-10*min(depth, 4)) {
			add(name, sub)
		}
	}
	if extra, ok := s["additionalProperties"].(map[string]any); ok {
		for i := range g.size(depth) - 1 {
			add(strconv.Itoa(i), extra)
		}
	} else if g.chance(2) {
		add("unknown", nil)
	}
	return append(dst, '}')
}

// FuzzDifferential: the inferred checker, the decoder and the JSON Schema
// library agree.
// Proves: SEC-TOOL-1
func FuzzDifferential(f *testing.F) {
	f.Add(uint8(0), []byte(`{"s":"é","i":1.0,"l":["a"],"m":{"x":{"s":"a","i":-5}},"k":{"-1":true},"twins":[{"id":1,"kind":true,"z":0}]}`))
	f.Add(uint8(1), []byte(`{"name":"\ud83d\ude00","children":[{"name":""}]}`))
	f.Add(uint8(4), []byte(`{"repo":"a\/b","depth":5.00,"kind":"docs"}`))
	f.Add(uint8(6), []byte(`{"a":-0.0}`))
	var compiled []*schema.Compiled
	var oracles []*jsonschema.Schema
	for _, typ := range differential {
		c, err := schema.For(typ, nil)
		if err != nil {
			f.Fatal(err)
		}
		compiled, oracles = append(compiled, c), append(oracles, oracle(f, c.JSON()))
	}
	f.Fuzz(func(t *testing.T, which uint8, raw []byte) {
		i := int(which) % len(differential)
		if wire.Valid(raw, wire.Limits{}) != nil {
			_ = compiled[i].Check(raw) // must not panic
			return
		}
		if extreme.Match(raw) {
			return
		}
		compare(t, compiled[i], oracles[i], differential[i], raw)
	})
}
