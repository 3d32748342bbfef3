package jsonrpc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
)

// Messages of servers with common mistakes: what becomes of them, and the flaw that is named. All of them are
// refused without Limits.Lenient.
// Proves: rulings 37 and 42
func TestParseLeniently(t *testing.T) {
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`:                           `1 {} `,
		`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":5,"message":"m"}}`:     `1 m (code 5) `,
		`{"jsonrpc":"2.0","id":1,"method":null,"result":{}}`:                          `1 {} a response must not have a "method"`,
		`{"jsonrpc":"2.0","id":1,"method":"","error":{"code":5,"message":"m"}}`:       `1 m (code 5) a response must not have a "method"`,
		`{"jsonrpc":"2.0","id":1,"error":"full"}`:                                     `1 full (code -32603) member "error" must be an object`,
		`{"jsonrpc":"2.0","id":1,"error":["full"]}`:                                   `1 ["full"] (code -32603) member "error" must be an object`,
		`{"jsonrpc":"2.0","id":1,"error":{}}`:                                         `1 {} (code -32603) member "message" of the error must be a string, member "code" of the error must be an integer`,
		`{"jsonrpc":"2.0","id":1,"error":{"message":"full"}}`:                         `1 full (code -32603) member "code" of the error must be an integer`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":null,"message":"full"}}`:             `1 full (code -32603) member "code" of the error must be an integer`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":"-32602","message":"full"}}`:         `1 full (code -32602) member "code" of the error must be an integer`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32602.0,"message":"full"}}`:         `1 full (code -32602) `,
		`{"jsonrpc":"2.0","id":1,"error":{"code":"ENOSPC","message":"full"}}`:         `1 full (ENOSPC) (code -32603) member "code" of the error must be an integer`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"full"}}`:              `1 full (1.5) (code -32603) member "code" of the error must be an integer`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1e400,"message":"full"}}`:            `1 full (1e400) (code -32603) member "code" of the error must be an integer`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":["a","b"],"data":7}}`:    `1 ["a","b"] (code 5) member "message" of the error must be a string`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}":                  "1 {\"a\":\"\uFFFD\"} characters that are not Unicode were replaced by U+FFFD",
		`{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d"}}`:                            `1 {"a":"\ufffd"} characters that are not Unicode were replaced by U+FFFD`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":5,\"message\":\"a\xff\"}}": "1 a\uFFFD (code 5) characters that are not Unicode were replaced by U+FFFD",
	} {
		if in, err := jsonrpc.Parse([]byte(text), jsonrpc.Limits{}); err == nil {
			t.Errorf("Parse(%s) = %+v", text, in)
		}
		in, err := jsonrpc.Parse([]byte(text), jsonrpc.Limits{Lenient: true})
		if err != nil || in.Kind != jsonrpc.Response {
			t.Errorf("%s: %+v, %v", text, in, err)
			continue
		}
		outcome := string(in.Result.Raw())
		if in.Error != nil {
			outcome = in.Error.Error()
		}
		if got := fmt.Sprint(in.ID, " ", outcome, " ", strings.Join(in.Flaws(), ", ")); got != want {
			t.Errorf("%s is\n%s, want\n%s", text, got, want)
		}
	}
}

// What is refused of servers, too, and whether a request of ours has failed by it.
func TestParseLenientlyRefuses(t *testing.T) {
	for _, test := range []struct {
		text     string
		response bool
		words    string
	}{
		{`{"jsonrpc":"2.0","id":1}`, true, "none of"},
		{`{"id":1,"level":"info"}`, false, `exactly "2.0"`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, true, "both"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, false, "either"},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, false, "duplicate"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"Code":2,"message":"m"}}`, true, `"Code" must be written "code"`},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"\xff\":1}}", false, "UTF-8"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\",\"a\":2}}", false, "duplicate"},
		{`{"jsonrpc":"2.0","id":1,"result":[]}`, true, "must be an object"},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, true, "must be an object"},
	} {
		in, err := jsonrpc.Parse([]byte(test.text), jsonrpc.Limits{Lenient: true})
		e, ok := errors.AsType[*jsonrpc.ParseError](err)
		if in != nil || !ok || e.Response != test.response || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %+v, %+v, want %q", test.text, in, err, test.words)
		}
	}
}

// An id of a response is ours: an integer in any spelling. In a request it is the server's.
func TestIDsOfServers(t *testing.T) {
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"7","result":{}}`:   "7",
		`{"jsonrpc":"2.0","id":7.0,"result":{}}`:   "7",
		`{"jsonrpc":"2.0","id":"7.0","result":{}}`: `"7.0"`,
		`{"jsonrpc":"2.0","id":"07","result":{}}`:  `"07"`,
		`{"jsonrpc":"2.0","id":"a","result":{}}`:   `"a"`,
		`{"jsonrpc":"2.0","id":"7","method":"m"}`:  `"7"`,
	} {
		in, err := jsonrpc.Parse([]byte(text), jsonrpc.Limits{Lenient: true})
		if err != nil || in.ID.String() != want || len(in.Flaws()) > 0 {
			t.Errorf("%s: %+v, %v, want %s", text, in, err, want)
		}
	}
}

// A byte order mark is ignored at the beginning, of every message.
// Proves: rulings 42 and 46
func TestByteOrderMark(t *testing.T) {
	const mark = "\uFEFF"
	if in, err := jsonrpc.Parse([]byte(mark+`{"jsonrpc":"2.0","id":1,"method":"m"}`), jsonrpc.Limits{}); err != nil || in.Method != "m" {
		t.Errorf("%+v, %v", in, err)
	}
	batch := []byte(mark + ` [{"jsonrpc":"2.0","method":"m"}]`)
	if !jsonrpc.IsBatch(batch) {
		t.Error("an array is none")
	}
	if items, err := jsonrpc.ParseBatch(batch, jsonrpc.Limits{}, 0); err != nil || len(items) != 1 || items[0].In == nil {
		t.Errorf("%+v, %v", items, err)
	}
	for _, text := range []string{mark + mark + `{"jsonrpc":"2.0","method":"m"}`, `{` + mark + `"jsonrpc":"2.0","method":"m"}`, mark, "\xef\xbb{}"} {
		if in, err := jsonrpc.Parse([]byte(text), jsonrpc.Limits{}); err == nil {
			t.Errorf("%q: %+v", text, in)
		}
	}
}

// A batch of a server with text that is not Unicode.
func TestParseBatchLeniently(t *testing.T) {
	text := "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}},{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"error\":\"x\"}]"
	if items, err := jsonrpc.ParseBatch([]byte(text), jsonrpc.Limits{}, 0); err == nil {
		t.Errorf("%+v", items)
	}
	items, err := jsonrpc.ParseBatch([]byte(text), jsonrpc.Limits{Lenient: true}, 0)
	if err != nil || len(items) != 2 || items[0].In == nil || items[1].In == nil || items[1].In.ID != jsonrpc.IntID(2) {
		t.Fatalf("%+v, %v", items, err)
	}
	for i, want := range []string{"characters that are not Unicode were replaced by U+FFFD", `member "error" must be an object`} {
		if got := items[i].In.Flaws(); len(got) != 1 || got[0] != want {
			t.Errorf("message %d: %q, want %q", i, got, want)
		}
	}
}
