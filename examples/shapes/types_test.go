package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/examples/page"
	"github.com/parley-mcp/parley/schema"
)

// A colour says itself what it looks like.
type colour string

// JSONSchema is the schema of every colour.
func (colour) JSONSchema() string { return `{"enum":["red","green"]}` }

type point struct {
	X int `json:"x"`
}

// row makes the line of the table for a struct with one field v.
func row[T any](t *testing.T, field string) string {
	t.Helper()
	of := func(o *schema.Options) (string, string) {
		c, err := schema.Of[T](o)
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Properties struct {
				V json.RawMessage `json:"v"`
			} `json:"properties"`
			Required []string `json:"required"`
		}
		if err := json.Unmarshal(c.JSON(), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Required) > 0 {
			return page.Code(string(s.Properties.V)), "yes"
		}
		return page.Code(string(s.Properties.V)), "no"
	}
	in, required := of(nil)
	out, also := of(&schema.Options{Output: true})
	if out == in && also == required {
		return fmt.Sprintf("| %s | %s | %s |\n", page.Code(field), in, required)
	}
	return fmt.Sprintf("| %s | %s; in outputs %s | %s; in outputs %s |\n", page.Code(field), in, out, required, also)
}

// The page shows what a client gets.
func TestAnswer(t *testing.T) {
	page.Shows(t, "tools.md", page.Exchange(t, newServer(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+
		`"name":"search","arguments":{"query":"bridges","limit":1},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
}

// The page's table is what package schema makes of the types.
func TestTypes(t *testing.T) {
	var b strings.Builder
	b.WriteString("| your field | its schema | required |\n|---|---|---|\n")
	for _, line := range []string{
		row[struct {
			V string `json:"v" desc:"a word" minlen:"1" maxlen:"9"`
		}](t, "V string `json:\"v\" desc:\"a word\" minlen:\"1\" maxlen:\"9\"`"),
		row[struct {
			V string `json:"v" pattern:"^v[0-9]+$"`
		}](t, "V string `pattern:\"^v[0-9]+$\"`"),
		row[struct {
			V string `json:"v" enum:"low,high"`
		}](t, "V string `enum:\"low,high\"`"),
		row[struct {
			V string `json:"v" enum:"low,high" default:"low"`
		}](t, "V string `enum:\"low,high\" default:\"low\"`"),
		row[struct {
			V string `json:"v" format:"email"`
		}](t, "V string `format:\"email\"`"),
		row[struct {
			V int `json:"v" min:"1" max:"10"`
		}](t, "V int `min:\"1\" max:\"10\"`"),
		row[struct {
			V uint8 `json:"v"`
		}](t, "V uint8"),
		row[struct {
			V float64 `json:"v" default:"0.5"`
		}](t, "V float64 `default:\"0.5\"`"),
		row[struct {
			V bool `json:"v"`
		}](t, "V bool"),
		row[struct {
			V string `json:"v,omitempty"`
		}](t, "V string `json:\"v,omitempty\"`"),
		row[struct {
			V *string `json:"v"`
		}](t, "V *string `json:\"v\"`"),
		row[struct {
			V *string `json:"v,omitzero"`
		}](t, "V *string `json:\"v,omitzero\"`"),
		row[struct {
			V []string `json:"v" minlen:"1" enum:"a,b"`
		}](t, "V []string `minlen:\"1\" enum:\"a,b\"`"),
		row[struct {
			V map[string]int `json:"v"`
		}](t, "V map[string]int"),
		row[struct {
			V point `json:"v"`
		}](t, "V point // struct{ X int }"),
		row[struct {
			V []byte `json:"v"`
		}](t, "V []byte"),
		row[struct {
			V time.Time `json:"v"`
		}](t, "V time.Time"),
		row[struct {
			V time.Duration `json:"v"`
		}](t, "V time.Duration"),
		row[struct {
			V netip.Addr `json:"v"`
		}](t, "V netip.Addr // or another type with MarshalText"),
		row[struct {
			V int64 `json:"v,string"`
		}](t, "V int64 `json:\"v,string\"`"),
		row[struct {
			V any `json:"v"`
		}](t, "V any"),
		row[struct {
			V colour `json:"v"`
		}](t, "V colour // with a method JSONSchema"),
		row[struct {
			V string `json:"v" jsonschema:"a word"`
		}](t, "V string `jsonschema:\"a word\"`"),
	} {
		b.WriteString(line)
	}
	page.Check(t, "tools.md", "types", b.String())
}
