package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

// message is a usual request of about 200 bytes.
const message = `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search","arguments":{"query":"the life of a request","limit":20,"exact":true},"_meta":{"progressToken":"p-17","traceparent":"00-0af7-b7-01"}}}`

type callParams struct {
	Name      string        `json:"name"`
	Arguments wire.RawValue `json:"arguments,omitzero"`
	Meta      meta          `json:"_meta,omitzero"`
}

type meta struct {
	ProgressToken wire.ID `json:"progressToken,omitzero"`
	Traceparent   string  `json:"traceparent,omitzero"`
}

func BenchmarkParseObject(b *testing.B) {
	var wide strings.Builder
	wide.WriteByte('{')
	for i := range 1000 {
		fmt.Fprintf(&wide, `"member%d":%d,`, i, i)
	}
	wide.WriteString(`"last":null}`)
	for _, c := range []struct{ name, text string }{
		{"message", message},
		{"string1MiB", `{"text":"` + strings.Repeat("plain text ", 1<<20/11) + `"}`},
		{"members1000", wide.String()},
	} {
		b.Run(c.name, func(b *testing.B) {
			data := []byte(c.text)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.ParseObject(data, wire.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeParams(b *testing.B) {
	o, err := wire.ParseObject([]byte(message), wire.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	params, _ := o.Member("params")
	big := []byte(`{"name":"x","arguments":"` + strings.Repeat("a", 1<<20) + `"}`)
	unknown := []byte(strings.Replace(string(params), `"name"`, `"other":1,"name"`, 1))
	for _, c := range []struct {
		name string
		text []byte
	}{{"message", params}, {"raw1MiB", big}, {"unknownMember", unknown}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				var p callParams
				if err := wire.DecodeParams(c.text, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	small := &callParams{Name: "search", Arguments: wire.RawValue(`{"query":"x"}`)}
	big := &callParams{Name: strings.Repeat("a", 1<<20)}
	for _, c := range []struct {
		name string
		v    any
	}{{"small", small}, {"string1MiB", big}} {
		b.Run(c.name, func(b *testing.B) {
			dst := make([]byte, 0, 2<<20)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Append(dst, c.v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Canonical(json.RawMessage(message)); err != nil {
			b.Fatal(err)
		}
	}
}
