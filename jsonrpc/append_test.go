package jsonrpc_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
)

func TestAppendJSON(t *testing.T) {
	one := jsonrpc.IntID(1)
	for _, tt := range []struct {
		m    jsonrpc.Outgoing
		want string
	}{
		{jsonrpc.Outgoing{ID: one, Method: "ping"}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{
			jsonrpc.Outgoing{ID: jsonrpc.StringID("a\n"), Method: `m"`, Params: jsonrpc.JSON(map[string]int{"x": 1})},
			`{"jsonrpc":"2.0","id":"a\n","method":"m\"","params":{"x":1}}`,
		},
		{jsonrpc.Outgoing{Method: "n", Params: jsonrpc.Raw(jsonrpc.RawValue("\n{\r\n \"a\": 1}"))}, `{"jsonrpc":"2.0","method":"n","params":{   "a": 1}}`},
		{jsonrpc.Outgoing{ID: one, Result: jsonrpc.Empty()}, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{
			jsonrpc.Outgoing{ID: one, Error: jsonrpc.NewError(-1, "no %s", "way").With([]int{1})},
			`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no way","data":[1]}}`,
		},
		{jsonrpc.Outgoing{Error: jsonrpc.NewError(-32700, "x")}, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`},
		{jsonrpc.Outgoing{NullID: true, Error: jsonrpc.NewError(-32700, "x")}, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`}, // Ruling 9
		{jsonrpc.Outgoing{ID: one, NullID: true, Error: jsonrpc.NewError(1, "x")}, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`},
	} {
		got, err := tt.m.AppendJSON([]byte("before "))
		if err != nil || string(got) != "before "+tt.want {
			t.Errorf("AppendJSON(%+v)\n got %s, %v\nwant %s", tt.m, got, err, tt.want)
		}
	}
}

type failing struct{}

var errFailing = errors.New("on purpose")

func (failing) AppendJSON(dst []byte) ([]byte, error) { return append(dst, "half"...), errFailing }

func TestAppendJSONRefuses(t *testing.T) {
	one, e := jsonrpc.IntID(1), jsonrpc.NewError(1, "x")
	for _, m := range []jsonrpc.Outgoing{
		{},
		{ID: one},
		{Result: jsonrpc.Empty()},
		{ID: one, Method: "m", Result: jsonrpc.Empty()},
		{ID: one, Method: "m", Error: e},
		{ID: one, Result: jsonrpc.Empty(), Error: e},
		{ID: one, Result: jsonrpc.Empty(), Params: jsonrpc.Empty()},
		{ID: one, Result: jsonrpc.JSON([]int{1})},
		{ID: one, Result: jsonrpc.JSON(nil)},
		{ID: one, Result: jsonrpc.Raw(nil)},
		{ID: one, Result: jsonrpc.JSON(func() {})},
		{Method: "m", Params: failing{}},
	} {
		got, err := m.AppendJSON([]byte("before"))
		if err == nil || string(got) != "before" {
			t.Errorf("AppendJSON(%+v) = %s, %v", m, got, err)
		}
		if m.Params == (failing{}) && !errors.Is(err, errFailing) {
			t.Errorf("error %v hides its cause", err)
		}
	}
}

// Proves: defect G3 (data that is not JSON must not cost the connection).
func TestErrorDataThatCannotBeEncoded(t *testing.T) {
	for _, e := range []*jsonrpc.Error{
		jsonrpc.NewError(1, "x").With(func() {}),
		{Code: 1, Message: "x", Data: jsonrpc.RawValue(`{"uri":"\a"}`)},
	} {
		m := jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Error: e}
		got, err := m.AppendJSON(nil)
		if want := `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`; err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestErrorWith(t *testing.T) {
	base := jsonrpc.NewError(-32602, "bad \xff value")
	with := base.With(map[string]string{"uri": "\u200b\x07"})
	if base.Data != nil || string(with.Data) != "{\"uri\":\"\u200b\\u0007\"}" {
		t.Errorf("data is %s, the original's %s", with.Data, base.Data)
	}
	if b, err := with.MarshalJSON(); err != nil || !strings.Contains(string(b), "bad \ufffd value") {
		t.Errorf("encoded as %s, %v", b, err)
	}
	if got, want := base.Error(), "bad \xff value (code -32602)"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

// A pieces is a result that is written in pieces of one byte.
type pieces struct {
	text string
	size int64
	err  error
}

func (p pieces) AppendJSON(dst []byte) ([]byte, error) { return append(dst, p.text...), p.err }
func (p pieces) JSONSize() int64                       { return p.size }
func (p pieces) WriteJSON(w io.Writer) error {
	for _, c := range []byte(p.text) {
		if _, err := w.Write([]byte{c}); err != nil {
			return err
		}
	}
	return p.err
}

func TestWriteJSON(t *testing.T) {
	one, broken := jsonrpc.IntID(1), errors.New("broken")
	m := &jsonrpc.Outgoing{ID: one, Result: pieces{`{"a":1}`, 7, nil}}
	want, err := m.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := m.WriteJSON(&got); err != nil || got.String() != string(want) || m.Size() != int64(len(want)) {
		t.Errorf("wrote %s, %v, size %d, want %s", got.String(), err, m.Size(), want)
	}
	for name, m := range map[string]*jsonrpc.Outgoing{
		"unknown size": {ID: one, Result: pieces{`{}`, -1, nil}},
		"no streamer":  {ID: one, Result: jsonrpc.Empty()},
		"an error":     {ID: one, Error: jsonrpc.NewError(1, "x")},
		"no id":        {Result: pieces{`{}`, 2, nil}},
	} {
		if n := m.Size(); n != -1 {
			t.Errorf("%s: size %d", name, n)
		}
	}
	if err := (&jsonrpc.Outgoing{ID: one, Result: jsonrpc.Empty()}).WriteJSON(&got); err == nil {
		t.Error("a body that does not stream was written")
	}
	if err := (&jsonrpc.Outgoing{ID: one, Result: pieces{`{}`, 2, broken}}).WriteJSON(&got); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
}
