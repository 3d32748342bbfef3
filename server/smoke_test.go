package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type Confirm struct {
	Sure bool `json:"sure" desc:"Really?"`
}

func TestSmoke(t *testing.T) {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets.", func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "hello " + in.Name, nil
	}))
	s.Add(server.Tool("add", "Adds.", func(ctx context.Context, in struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}) (struct {
		Sum float64 `json:"sum"`
	}, error) {
		server.Progress(ctx, 1, 2, "half")
		return struct {
			Sum float64 `json:"sum"`
		}{in.A + in.B}, nil
	}))
	s.Add(server.Tool("drop", "Drops.", func(ctx context.Context, in struct {
		Table string `json:"table"`
	}) (string, error) {
		n, err := server.Once(ctx, "t", func() (int, error) { return 7, nil })
		if err != nil {
			return "", err
		}
		a, err := server.Elicit[Confirm](ctx, "Drop "+in.Table+"?")
		if err != nil {
			return "", err
		}
		b, err := server.Elicit[Confirm](ctx, "Drop "+in.Table+" really?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%v %v %d", a.Value.Sure, b.Value.Sure, n), nil
	}))
	a, b := net.Pipe()
	go stdio.ServeConn(t.Context(), a, s, nil)
	r := bufio.NewReader(b)
	do := func(line string, n int) {
		fmt.Fprintln(b, line)
		t.Log("> " + line)
		for range n {
			got, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			t.Log("< " + got)
		}
	}
	const meta = `"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	do(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`, 1)
	do(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, 1)
	do(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+meta+`,"name":"add","arguments":{"a":2,"b":3}}}`, 2)
	do(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{`+meta+`,"name":"drop","arguments":{"table":"t"}}}`, 1)
	do(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"greet"}}`, 1)
	do(`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`, 1)
	do(`{"jsonrpc":"2.0","id":6,"method":"tools/list"}`, 1)
	do(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"drop","arguments":{"table":"t"}}}`, 1)
	do(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"sure":true}}}`, 1)
	do(`{"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"sure":true}}}`, 1)
	do(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"greet","arguments":{"nam":"t"}}}`, 1)
}
