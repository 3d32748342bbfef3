package jsonrpc_test

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/jsonrpc"
)

func ExampleParse() {
	in, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"greet","params":{"name":"Ada"}}`), jsonrpc.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	name, _ := in.Params.Member("name")
	fmt.Println(in.Method, in.ID, string(name))

	_, err = jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"greet","Params":{}}`), jsonrpc.Limits{})
	fmt.Println(err)
	// Output:
	// greet 1 "Ada"
	// invalid request: member "Params" must be written "params" (code -32600)
}

func ExampleOutgoing_AppendJSON() {
	m := &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Result: jsonrpc.JSON(map[string]string{"greeting": "hello Ada"})}
	line, err := m.AppendJSON(nil)
	fmt.Println(string(line), err)
	// Output: {"jsonrpc":"2.0","id":1,"result":{"greeting":"hello Ada"}} <nil>
}

func ExamplePeer_Call() {
	peer := jsonrpc.NewPeer(nil)
	defer peer.Close(nil)
	// A real sender writes to a connection, whose reader calls Resolve.
	echo := sender(func(_ context.Context, m *jsonrpc.Outgoing) error {
		peer.Resolve(&jsonrpc.Incoming{Kind: jsonrpc.Response, ID: m.ID, Method: m.Method})
		return nil
	})
	answer, err := peer.Call(context.Background(), echo, "ping", nil)
	fmt.Println(answer.Method, err)
	// Output: ping <nil>
}
