package mcp_test

import (
	"bytes"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// The way for large contents gives what the plain encoding gives.
func TestReadResourceResultAppendJSON(t *testing.T) {
	r := &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{
		{URI: "a:b", Text: "héllo \"\n", MIMEType: "text/plain"},
		{URI: "a:c", Blob: []byte{}, Meta: mcp.Meta{"k": mcp.RawValue(`1`)}},
		{URI: "a:d", Blob: bytes.Repeat([]byte{0, 250, 7}, 5000)},
		{URI: "a:e"},
	}}
	r.ResultType, r.TTLMs = mcp.ResultComplete, new(int64(5))
	want, err := wire.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.AppendJSON([]byte("before"))
	if err != nil || !bytes.HasPrefix(got, []byte("before{")) || !wire.Equal(got[len("before"):], want) {
		t.Errorf("got %.200s, %v, want %.200s", got, err, want)
	}
	if empty, err := new(mcp.ReadResourceResult).AppendJSON(nil); err != nil || string(empty) != `{"contents":[]}` {
		t.Errorf("empty result is %s, %v", empty, err)
	}
}

func BenchmarkReadResourceResult(b *testing.B) {
	r := &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: "a:d", Blob: make([]byte, 10<<20)}}}
	b.ReportAllocs()
	b.SetBytes(10 << 20)
	for b.Loop() {
		if _, err := r.AppendJSON(nil); err != nil {
			b.Fatal(err)
		}
	}
}
