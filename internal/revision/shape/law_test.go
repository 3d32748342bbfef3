package shape_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// typeOf is a pointer to a new value of the Go type of a message.
func typeOf(t testing.TB, m message) any {
	row, ok := mcp.Lookup(m.method)
	if !ok {
		t.Fatalf("no method %s", m.method)
	}
	if m.result {
		return reflect.New(row.Result).Interface()
	}
	return reflect.New(row.Params).Interface()
}

func up(s *shape.Shape, m message, raw wire.RawValue, v any) error {
	if m.result {
		return s.UpResult(m.method, raw, v)
	}
	return s.UpParams(m.method, raw, v)
}

func down(s *shape.Shape, m message, v any) (any, error) {
	if m.result {
		return s.DownResult(m.method, v)
	}
	return s.DownParams(m.method, v)
}

func encode(t testing.TB, v any) wire.RawValue {
	t.Helper()
	raw, err := wire.Marshal(v)
	if err != nil {
		t.Fatalf("encode %T: %v", v, err)
	}
	return raw
}

// checkLaw makes a message of an old revision and sees that it is the same
// after up and down.
func checkLaw(t testing.TB, s *schema, f *revision.Facts, seed uint64) {
	t.Helper()
	messages := s.messages()
	g := &generator{rand.New(rand.NewPCG(seed, 1)), s}
	m := messages[g.IntN(len(messages))]
	raw := encode(t, g.make(m.def, "", 0))
	v := typeOf(t, m)
	sh := shape.For(f)
	if err := up(sh, m, raw, v); err != nil {
		t.Fatalf("%s %v (seed %d): up: %v\n%s", f.Version, m, seed, err, raw)
	}
	before := encode(t, v)
	got, err := down(sh, m, v)
	if err != nil {
		t.Fatalf("%s %v (seed %d): down: %v\n%s", f.Version, m, seed, err, raw)
	}
	if out := encode(t, got); !wire.Equal(out, raw) {
		t.Fatalf("%s %v (seed %d):\n got %s\nwant %s", f.Version, m, seed, out, raw)
	}
	if after := encode(t, v); !wire.Equal(before, after) {
		t.Fatalf("%s %v (seed %d): down wrote to its argument:\nbefore %s\n after %s", f.Version, m, seed, before, after)
	}
}

// The law: down(up(old)) == old, for every message of every revision.
func TestLaw(t *testing.T) {
	racetest.SkipSerial(t)
	for _, f := range revision.All() {
		t.Run(f.Version, func(t *testing.T) {
			s := loadSchema(t, f.Version)
			for seed := range uint64(3000) {
				checkLaw(t, s, f, seed)
			}
		})
	}
}

func FuzzLaw(f *testing.F) {
	schemas := map[string]*schema{}
	for _, r := range revision.All() {
		schemas[r.Version] = loadSchema(f, r.Version)
	}
	for row := range revision.All() {
		f.Add(uint64(42), row)
	}
	f.Fuzz(func(t *testing.T, seed uint64, row int) {
		all := revision.All()
		r := all[(row%len(all)+len(all))%len(all)]
		checkLaw(t, schemas[r.Version], r, seed)
	})
}

// validators compiles the schema of a revision and returns a function that
// compiles a part of it, found by JSON pointer.
func validators(t testing.TB, version string) func(pointer string) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(specDir(t), version, "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mcp.json", doc); err != nil {
		t.Fatal(err)
	}
	return func(pointer string) *jsonschema.Schema {
		s, err := c.Compile("mcp.json#" + pointer)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// pointers finds where a revision's schema describes each of its messages.
func pointers(s *schema, root string) map[string]string {
	found := map[string]string{}
	for name, def := range s.defs {
		method, _ := property(def.(object), "method")["const"].(string)
		if method == "" {
			continue
		}
		found[message{method: method}.String()] = root + name + "/properties/params"
		base, isRequest := cutRequest(name)
		if !isRequest {
			continue
		}
		result := "EmptyResult"
		if s.defs[base+"Result"] != nil {
			result = base + "Result"
		}
		found[message{method: method, result: true}.String()] = root + result
	}
	return found
}

func cutRequest(name string) (string, bool) {
	base, ok := bytes.CutSuffix([]byte(name), []byte("Request"))
	return string(base), ok
}

// What newest messages become is valid in the older revision, or an error that
// says what it cannot say.
func TestDownIsValid(t *testing.T) {
	racetest.SkipSerial(t)
	newest := loadSchema(t, revision.Newest().Version)
	messages := newest.messages()
	for _, f := range revision.Handshakes() {
		t.Run(f.Version, func(t *testing.T) {
			old := loadSchema(t, f.Version)
			root := "/definitions/"
			if f.ElicitModes {
				root = "/$defs/"
			}
			at, compile := pointers(old, root), validators(t, f.Version)
			compiled := map[string]*jsonschema.Schema{}
			counts := map[string]int{}
			refused := 0
			for seed := range uint64(4000) {
				g := &generator{rand.New(rand.NewPCG(seed, 2)), newest}
				m := messages[g.IntN(len(messages))]
				pointer := at[m.String()]
				if !f.Has(m.method) || pointer == "" {
					continue
				}
				if compiled[pointer] == nil {
					compiled[pointer] = compile(pointer)
				}
				out, ok := translate(t, f, m, g)
				if !ok {
					refused++
					continue
				}
				if m.result && m.method == mcp.MethodElicit && !f.FormEnums && bytes.Contains(out, []byte(`":[`)) {
					continue // a list answers a server that asked for one, against its revision
				}
				counts[m.String()]++
				instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
				if err != nil {
					t.Fatal(err)
				}
				if err := compiled[pointer].Validate(instance); err != nil {
					t.Fatalf("%v (seed %d) is not valid: %v\n%s", m, seed, err, out)
				}
			}
			if len(counts) < 20 {
				t.Errorf("only %d kinds of messages were checked: %v", len(counts), counts)
			}
			if f.SamplingTools == (refused > 0) {
				t.Errorf("%d messages were refused", refused)
			}
		})
	}
}

// translate makes a message of the newest revision and translates it down; ok
// is false if the older one cannot say it.
func translate(t *testing.T, f *revision.Facts, m message, g *generator) (out wire.RawValue, ok bool) {
	t.Helper()
	raw := encode(t, g.make(m.def, "", 0))
	v := typeOf(t, m)
	if err := up(shape.For(revision.Newest()), m, raw, v); err != nil {
		t.Fatalf("%v: up: %v\n%s", m, err, raw)
	}
	if p, isElicit := v.(*mcp.ElicitParams); isElicit && p.IsURL() {
		p.ElicitationID = "e-1" // who asks in the handshake era adds one
	}
	before := encode(t, v)
	got, err := down(shape.For(f), m, v)
	if after := encode(t, v); !wire.Equal(before, after) {
		t.Fatalf("%v: down wrote to its argument:\nbefore %s\n after %s", m, before, after)
	}
	if err != nil {
		cannot, isCannot := errors.AsType[*shape.UnsupportedError](err)
		if !isCannot || cannot.Version != f.Version || cannot.Feature == "" {
			t.Fatalf("%v: down: %v", m, err)
		}
		return nil, false
	}
	return encode(t, got), true
}
