package jsonrpc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/jsonrpc"
)

// Proves: MSG-1, MSG-2.
func TestParse(t *testing.T) {
	type want struct {
		Kind        jsonrpc.Kind
		ID          jsonrpc.ID
		Method      string
		Params      string
		ParamsArray bool
		Result      string
		Error       *jsonrpc.Error
	}
	one := jsonrpc.IntID(1)
	tests := []struct {
		text string
		want want
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, want{Kind: jsonrpc.Request, ID: one, Method: "ping"}},
		{
			`{"id":"\u0061","params":{"x":[1]},"method":"to\u006fls/call","jsonrpc":"2.\u0030"}`,
			want{Kind: jsonrpc.Request, ID: jsonrpc.StringID("a"), Method: "tools/call", Params: `{"x":[1]}`},
		},
		{`{"jsonrpc":"2.0","id":0,"method":"m","params":[]}`, want{Kind: jsonrpc.Request, ID: jsonrpc.IntID(0), Method: "m", ParamsArray: true}},
		{`{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, want{Kind: jsonrpc.Notification, Method: "notifications/x", Params: `{}`}},
		{` {"jsonrpc":"2.0","id":1,"method":"m","more":{"ID":2}} `, want{Kind: jsonrpc.Request, ID: one, Method: "m"}},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, want{Kind: jsonrpc.Response, ID: one, Result: `{"a":1}`}},
		{
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}`,
			want{Kind: jsonrpc.Response, ID: one, Error: &jsonrpc.Error{Code: -32601, Message: "no", Data: jsonrpc.RawValue(`[1]`)}},
		},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, want{Kind: jsonrpc.Response, Error: &jsonrpc.Error{Code: 1}}}, // Ruling 9
		{`{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`, want{Kind: jsonrpc.Response, Error: &jsonrpc.Error{Code: 1, Message: "m"}}},
	}
	for _, tt := range tests {
		in, err := jsonrpc.Parse([]byte(tt.text), jsonrpc.Limits{})
		if err != nil {
			t.Errorf("Parse(%s): %v", tt.text, err)
			continue
		}
		got := want{in.Kind, in.ID, in.Method, string(in.Params.Raw()), in.ParamsArray, string(in.Result.Raw()), in.Error}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Parse(%s): %s", tt.text, diff)
		}
		if in.Size != len(tt.text) {
			t.Errorf("Parse(%s): size %d, want %d", tt.text, in.Size, len(tt.text))
		}
	}
}

// Proves: MSG-1, MSG-2, MSG-4, SEC-DOS-1, defects G16 and M0. Ruling 8.
func TestParseRefuses(t *testing.T) {
	one, none := jsonrpc.IntID(1), jsonrpc.ID{}
	const parse, invalid = jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest
	tests := []struct {
		text         string
		code         int64
		id           jsonrpc.ID
		notification bool
		response     bool
		words        string
	}{
		{``, parse, none, false, false, "end of text"},
		{`{"jsonrpc":"2.0","id":1,"method":"m"`, parse, none, false, false, "at byte 36"},
		{`{"jsonrpc":"2.0","id":1,"method":"m"} {}`, parse, none, false, false, "after the value"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"a":2}}`, parse, none, false, false, `duplicate member name "a"`},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, parse, none, false, false, "duplicate"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", parse, none, false, false, "UTF-8"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[[[[[[[[[]]]]]]]]]}}`, parse, none, false, false, "nested too deeply"},
		{`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 300) + `"}`, parse, none, false, false, "limit of 256"},
		{`5`, invalid, none, false, false, "expected an object"},
		{`[]`, invalid, none, false, false, "expected an object, got array"},
		{`{}`, invalid, none, false, false, `"jsonrpc"`},
		{`{"jsonrpc":"2.0"}`, invalid, none, false, false, "none of"},
		{`{"jsonrpc":"2.0","id":1}`, invalid, one, false, false, "none of"},
		{`{"id":1,"method":"m"}`, invalid, one, false, false, `exactly "2.0"`},
		{`{"jsonrpc":"2.1","id":1,"method":"m"}`, invalid, one, false, false, `exactly "2.0"`},
		{`{"jsonrpc":2.0,"id":1,"method":"m"}`, invalid, one, false, false, `exactly "2.0"`},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, invalid, one, false, false, "must be a string"},
		{`{"jsonrpc":"2.0","id":1,"method":null}`, invalid, one, false, false, "must be a string"},
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, invalid, none, false, false, "got null"},
		{`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, invalid, none, false, false, "fraction"},
		{`{"jsonrpc":"2.0","id":{},"method":"m"}`, invalid, none, false, false, "got object"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":false}`, invalid, one, false, false, "leave it out"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, invalid, one, false, false, "must be an object"},
		{`{"jsonrpc":"2.0","method":"m","params":"x"}`, invalid, none, true, false, "must be an object"},
		{`{"jsonrpc":"1.0","method":"m"}`, invalid, none, true, false, `exactly "2.0"`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, invalid, one, false, false, "either"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":1,"message":""}}`, invalid, one, false, false, "either"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","Method":"n"}`, invalid, one, false, false, `"Method" must be written "method"`},
		{`{"jsonrpc":"2.0","ID":1,"method":"m"}`, invalid, none, false, false, `"ID" must be written "id"`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","paramſ":{}}`, invalid, one, false, false, `written "params"`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, invalid, one, false, true, "both"},
		{`{"jsonrpc":"2.0","id":1,"result":[]}`, invalid, one, false, true, "must be an object"},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, invalid, one, false, true, "must be an object"},
		{`{"jsonrpc":"2.0","result":{}}`, invalid, none, false, true, `needs the "id"`},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, invalid, none, false, true, "got null"},
		{`{"jsonrpc":"2.0","id":1,"error":"x"}`, invalid, one, false, true, "must be an object"},
		{`{"jsonrpc":"2.0","id":1,"error":{}}`, invalid, one, false, true, `"code"`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":null,"message":"m"}}`, invalid, one, false, true, `"code"`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}`, invalid, one, false, true, `"code"`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":99999999999999999999,"message":"m"}}`, invalid, one, false, true, `"code"`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, invalid, one, false, true, `"message"`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","Code":2}}`, invalid, one, false, true, `"Code" must be written "code"`},
	}
	for _, tt := range tests {
		in, err := jsonrpc.Parse([]byte(tt.text), jsonrpc.Limits{Bytes: 256, Depth: 8})
		var e *jsonrpc.ParseError
		if in != nil || !errors.As(err, &e) {
			t.Errorf("Parse(%s) = %v, %v, want a *ParseError", tt.text, in, err)
			continue
		}
		if e.Err.Code != tt.code || e.ID != tt.id || e.Notification != tt.notification || e.Response != tt.response {
			t.Errorf("Parse(%s) = %+v, want %+v", tt.text, e, tt)
		}
		if !strings.Contains(err.Error(), tt.words) {
			t.Errorf("Parse(%s): error %q does not say %q", tt.text, err, tt.words)
		}
		var answer *jsonrpc.Error
		if !errors.As(err, &answer) || answer != e.Err {
			t.Errorf("Parse(%s): the answer is not in the chain", tt.text)
		}
	}
}

// Proves: SEC-DOS-1 (batch length). Ruling 10.
func TestParseBatch(t *testing.T) {
	items, err := jsonrpc.ParseBatch([]byte(` [{"jsonrpc":"2.0","id":1,"method":"a"}, 5 ,{"jsonrpc":"2.0","method":"b","params":5}]`), jsonrpc.Limits{}, 3)
	if err != nil || len(items) != 3 {
		t.Fatalf("ParseBatch = %v, %v", items, err)
	}
	if in := items[0].In; in == nil || items[0].Err != nil || in.Method != "a" || in.ID != jsonrpc.IntID(1) {
		t.Errorf("first item is %+v", items[0])
	}
	if e := items[1].Err; items[1].In != nil || e == nil || e.Err.Code != jsonrpc.CodeInvalidRequest || e.Notification {
		t.Errorf("second item is %+v", items[1])
	}
	if e := items[2].Err; e == nil || !e.Notification {
		t.Errorf("third item is %+v", items[2])
	}
	for text, code := range map[string]int64{
		`[]`:        jsonrpc.CodeInvalidRequest,
		`[1,2,3,4]`: jsonrpc.CodeInvalidRequest,
		`{}`:        jsonrpc.CodeInvalidRequest,
		`[1,2`:      jsonrpc.CodeParseError,
		`[{"jsonrpc":"2.0","id":1,"method":"a"},{"a":1,"a":2}]`: jsonrpc.CodeParseError,
		`[[[[[[]]]]]]`: jsonrpc.CodeParseError,
	} {
		items, err := jsonrpc.ParseBatch([]byte(text), jsonrpc.Limits{Depth: 4}, 3)
		var e *jsonrpc.ParseError
		if items != nil || !errors.As(err, &e) || e.Err.Code != code {
			t.Errorf("ParseBatch(%s) = %v, %v, want code %d", text, items, err, code)
		}
	}
}

func TestIsBatch(t *testing.T) {
	for text, want := range map[string]bool{"[": true, " \t\r\n[1]": true, "{}": false, "": false, " ": false, `"["`: false} {
		if got := jsonrpc.IsBatch([]byte(text)); got != want {
			t.Errorf("IsBatch(%q) = %v", text, got)
		}
	}
}

// Null for no params is taken, in requests and notifications. Ruling 33.
func TestParseNullParams(t *testing.T) {
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, `{"jsonrpc":"2.0","method":"m","params":null}`, `{"params":null,"jsonrpc":"2.0","method":"m"}`} {
		in, err := jsonrpc.Parse([]byte(text), jsonrpc.Limits{})
		if err != nil || !in.Params.IsZero() || in.ParamsArray || len(in.Params.Raw()) > 0 {
			t.Errorf("%s: %+v, %v", text, in, err)
		}
	}
}
