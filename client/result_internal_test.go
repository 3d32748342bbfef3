package client

import (
	"reflect"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// results are results of tools; plain says which of them are read without the
// codec.
var results = []struct {
	text  string
	plain bool
}{
	{`{"resultType":"complete","content":[{"type":"text","text":"a"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`, true},
	{`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"content":[{"type":"text","text":"a"}]}`, true},
	{`{"content":[{"type":"text","text":"\"\\"},{"type":"text","text":""},{"type":"text","text":"\\\\\"}]\u00e9"}],"isError":true}`, true},
	{`{"content":[],"structuredContent":{"a":[1, 2]},"isError":false}`, true},
	{`{"structuredContent":null,"_meta":{}}`, true},
	{`{"content":[{"type":"text","text":"a"}],"_meta":{"x/y":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1","icons":[{"src":"data:,"}]}}}`, true},
	{`{}`, true},
	{`{"content":[{"type":"text","text":"a","annotations":{"priority":1}}]}`, false},
	{`{"content":[{"text":"a","type":"text"}]}`, false},
	{`{"content":[{"type": "text","text":"a"}]}`, false},
	{`{"content":[{"type":"text","text":"a"} ]}`, false},
	{`{"content":[{"type":"image","data":"","mimeType":"image/png"}]}`, false},
	{`{"content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}]}`, false},
	{`{"content":[{"type":"text","text":1}]}`, false},
	{`{"content":null,"isError":null}`, false},
	{`{"content":[],"Content":[]}`, false},
	{`{"content":[],"other":1}`, false},
	{`{"content":[],"resultType":"task"}`, false},
	{`{"content":[],"isError":1}`, false},
	{`{"content":[],"_meta":[]}`, false},
	{`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":1}}`, false},
}

// readBoth reads a result with the codec too, and reports whether it was
// plain. What is plain is what the codec says it is.
func readBoth(t *testing.T, s *session, text []byte) bool {
	t.Helper()
	o, err := wire.ParseObject(text, wire.Limits{})
	if err != nil {
		return false
	}
	var got, want mcp.CallToolResult
	plain := s.plainResult(o, &got)
	err = wire.DecodeParams(text, &want)
	if plain && (err != nil || !reflect.DeepEqual(got, want)) {
		t.Errorf("%s: got %+v, the codec gives %+v, %v", text, got, want, err)
	}
	return plain
}

// What is read without the codec is what it would have given, also when _meta
// comes again.
func TestPlainResult(t *testing.T) {
	s := new(session)
	for range 2 {
		for _, test := range results {
			if plain := readBoth(t, s, []byte(test.text)); plain != test.plain {
				t.Errorf("%s: read without the codec is %v, want %v", test.text, plain, test.plain)
			}
		}
	}
}

// A caller may write to what it gets.
func TestPlainMetaIsOwn(t *testing.T) {
	s := new(session)
	raw := wire.RawValue(`{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}`)
	for i := range 3 {
		var m mcp.ResultMeta
		if !s.plainMeta(raw, &m) || m.ServerInfo.Name != "s" {
			t.Errorf("result %d is from %+v, want s", i, m.ServerInfo)
		}
		m.ServerInfo.Name = "another"
	}
}

func FuzzPlainResult(f *testing.F) {
	for _, r := range results {
		f.Add([]byte(r.text))
	}
	s := new(session)
	f.Fuzz(func(t *testing.T, text []byte) { readBoth(t, s, text) })
}
