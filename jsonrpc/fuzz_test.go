package jsonrpc_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
)

// outgoing is the message that says the same as in.
func outgoing(in *jsonrpc.Incoming) *jsonrpc.Outgoing {
	m := &jsonrpc.Outgoing{ID: in.ID, Method: in.Method, Error: in.Error}
	if !in.Params.IsZero() {
		m.Params = jsonrpc.Raw(in.Params.Raw())
	}
	if !in.Result.IsZero() {
		m.Result = jsonrpc.Raw(in.Result.Raw())
	}
	return m
}

// FuzzParse: no input panics, refusals say what to answer, and a message that
// is written and read again is the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		request, `{"jsonrpc":"2.0","id":"a","result":{"x":[1, 2]}}`, `{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":null}}`,
		`{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","id":1,"Method":"m"}`, `[{"jsonrpc":"2.0","method":"m"},5]`, `{"id":null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if jsonrpc.IsBatch(data) {
			items, err := jsonrpc.ParseBatch(bytes.Clone(data), jsonrpc.Limits{}, 10)
			if (err == nil) != (len(items) > 0) || len(items) > 10 {
				t.Fatalf("%d items, %v", len(items), err)
			}
		}
		in, err := jsonrpc.Parse(bytes.Clone(data), jsonrpc.Limits{})
		if err != nil {
			var e *jsonrpc.ParseError
			if !errors.As(err, &e) || e.Err.Message == "" || e.Err.Code != jsonrpc.CodeParseError && e.Err.Code != jsonrpc.CodeInvalidRequest {
				t.Fatalf("refused with %#v", err)
			}
			return
		}
		if in.Method == "" && in.Kind != jsonrpc.Response || in.ParamsArray {
			return // what we accept but never send
		}
		text, err := outgoing(in).AppendJSON(nil)
		if err != nil || bytes.ContainsAny(text, "\r\n") {
			t.Fatalf("written as %q, %v", text, err)
		}
		again, err := jsonrpc.Parse(text, jsonrpc.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again.Kind != in.Kind || again.ID != in.ID || again.Method != in.Method ||
			!again.Params.Equal(in.Params) || !again.Result.Equal(in.Result) || (again.Error == nil) != (in.Error == nil) {
			t.Fatalf("%s became %s", data, text)
		}
		third, err := outgoing(again).AppendJSON(nil)
		if err != nil || !bytes.Equal(third, text) {
			t.Fatalf("not stable: %s, then %s, %v", text, third, err)
		}
	})
}
