package jsonrpc_test

import (
	"context"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
)

const request = `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search","arguments":{"query":"the life of a request","limit":20,"exact":true},"_meta":{"progressToken":"p-17","traceparent":"00-0af7-b7-01"}}}`

func BenchmarkParse(b *testing.B) {
	data := []byte(request)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonrpc.Parse(data, jsonrpc.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type result struct {
		Content []text `json:"content"`
	}
	m := &jsonrpc.Outgoing{ID: jsonrpc.IntID(17), Result: jsonrpc.JSON(&result{[]text{{"text", "hello"}}})}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.AppendJSON(dst); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPeerBegin(b *testing.B) {
	p := jsonrpc.NewPeer(nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	id := jsonrpc.StringID("id")
	b.ReportAllocs()
	for b.Loop() {
		_, end, err := p.Begin(ctx, id)
		if err != nil {
			b.Fatal(err)
		}
		end()
	}
}
