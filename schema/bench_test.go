package schema_test

import (
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/schema"
)

type echoIn struct {
	Message string `json:"message" minlen:"1" maxlen:"1000"`
	Times   int    `json:"times,omitzero" min:"1" max:"10" default:"1"`
}

var echoRaw = []byte(`{"message":"hello, world"}`)

type searchIn struct {
	Query  string   `json:"query" minlen:"1"`
	Limit  int      `json:"limit" min:"1" max:"100" default:"10"`
	Kinds  []string `json:"kinds,omitempty" enum:"code,docs,issue"`
	Exact  bool     `json:"exact,omitzero"`
	Filter struct {
		Language string  `json:"language,omitzero"`
		MinScore float64 `json:"minScore,omitzero" min:"0" max:"1"`
	} `json:"filter,omitzero"`
}

var searchRaw = []byte(`{"query":"how does replay work across restarts of a server","limit":25,"kinds":["code","docs"],"exact":false,"filter":{"language":"go","minScore":0.25}}`)

func benchDecode[T any](b *testing.B, raw []byte) {
	c := of[T](b, nil)
	b.Run("wire", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v T
			if err := wire.DecodeKnown(raw, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("schema", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v T
			if err := c.Decode(raw, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Check(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	foreign, err := schema.Compile(c.JSON(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("foreign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := foreign.Check(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEcho(b *testing.B)   { benchDecode[echoIn](b, echoRaw) }
func BenchmarkSearch(b *testing.B) { benchDecode[searchIn](b, searchRaw) }

func BenchmarkCompile(b *testing.B) {
	raw := of[searchIn](b, nil).JSON()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Compile(raw, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInfer(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		of[searchIn](b, nil)
	}
}

// The check of a value that fits allocates nothing.
func TestCheckDoesNotAllocate(t *testing.T) {
	c := of[searchIn](t, nil)
	if n := testing.AllocsPerRun(100, func() {
		if err := c.Check(searchRaw); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
