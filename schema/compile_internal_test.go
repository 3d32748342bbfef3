package schema

import (
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

// What a stranger's tool is like: 5 properties, one of them an object.
var (
	searchSchema = wire.RawValue(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","title":"search",
		"properties":{"query":{"type":"string","minLength":1,"description":"what to look for"},
			"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},
			"kinds":{"type":"array","items":{"enum":["code","docs","issue"]},"uniqueItems":true},
			"exact":{"type":"boolean"},
			"filter":{"type":"object","properties":{"language":{"type":"string"},"minScore":{"type":"number","minimum":0,"maximum":1}},"additionalProperties":false}},
		"required":["query"],"additionalProperties":false}`)
	searchGood = wire.RawValue(`{"query":"how does replay work across restarts of a server, and what is kept?","limit":25,"kinds":["code","docs"],"exact":false,"filter":{"language":"go","minScore":0.25}}`)
	searchBad  = wire.RawValue(`{"query":"how does replay work across restarts of a server, and what is kept?","limit":250,"kinds":["code","docs"],"exact":false,"filter":{"language":"go","minScore":0.25}}`)
)

func newLibrary(t testing.TB, raw wire.RawValue) *library {
	t.Helper()
	l := &library{limit: 500_000}
	if err := l.compile(raw, false); err != nil {
		t.Fatal(err)
	}
	return l
}

func BenchmarkForeign(b *testing.B) {
	c, l := readSchema(searchSchema, false), newLibrary(b, searchSchema)
	for _, bench := range []struct {
		name string
		run  func() (fits bool)
		want bool
	}{
		{"constraints/valid", func() bool { err, _ := c.validate(searchGood, 500_000); return err == nil }, true},
		{"constraints/invalid", func() bool { err, _ := c.validate(searchBad, 500_000); return err == nil }, false},
		{"constraints/compile", func() bool { return readSchema(searchSchema, false) != nil }, true},
		{"library/valid", func() bool { return l.check(searchGood) == nil }, true},
		{"library/invalid", func() bool { return l.check(searchBad) == nil }, false},
		{"library/compile", func() bool { return new(library).compile(searchSchema, false) == nil }, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if bench.run() != bench.want {
					b.Fatal("the check is wrong")
				}
			}
		})
	}
}

// The check of a value that fits allocates nothing, and a schema of common
// keywords never becomes one of the library.
func TestForeignCheckDoesNotAllocate(t *testing.T) {
	c, err := Compile(searchSchema, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.foreign.constraints == nil {
		t.Fatal("the schema is left to the library")
	}
	c.foreign.library = nil // would panic
	if n := testing.AllocsPerRun(100, func() {
		if err := c.Check(searchGood); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := c.Check(searchBad); err == nil {
			t.Fatal("a value that does not fit passes")
		}
	}); n > 5 {
		t.Errorf("%v allocations for a report", n)
	}
}

// Compiling a schema costs no more than walks over its text.
func TestCompileAllocates(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Compile(searchSchema, nil); err != nil {
			t.Fatal(err)
		}
	}); n > 200 {
		t.Errorf("%v allocations", n)
	}
}
