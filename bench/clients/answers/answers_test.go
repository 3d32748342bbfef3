package answers_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/bench/clients/answers"
	"github.com/parley-mcp/parley/bench/fixture"
)

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func TestAppend(t *testing.T) {
	type answer struct {
		ID     any `json:"id"`
		Result *struct {
			ResultType string   `json:"resultType"`
			Version    string   `json:"protocolVersion"`
			Versions   []string `json:"supportedVersions"`
			Tools      []struct {
				Name string `json:"name"`
			} `json:"tools"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
		Error *struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	for _, c := range []struct {
		name, message string
		want          func(*answer) any // a part of the answer
		is            any
	}{
		{"number", `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{` + meta + `}}`, func(a *answer) any { return a.ID }, 17.0},
		{"text id", `{"jsonrpc":"2.0","id":"a,b","method":"ping"}`, func(a *answer) any { return a.ID }, "a,b"},
		{"id at the end", `{"method":"ping","jsonrpc":"2.0","id":3}`, func(a *answer) any { return a.ID }, 3.0},
		{"call", `{"id":1,"method":"tools/call","params":{` + meta + `}}`, func(a *answer) any { return a.Result.Content[0].Text }, fixture.Text},
		{"modern", `{"id":1,"method":"tools/call","params":{` + meta + `}}`, func(a *answer) any { return a.Result.ResultType }, "complete"},
		{"legacy", `{"id":1,"method":"tools/call","params":{}}`, func(a *answer) any { return a.Result.ResultType }, ""},
		{"discover", `{"id":1,"method":"server/discover","params":{` + meta + `}}`, func(a *answer) any { return a.Result.Versions[0] }, fixture.Modern},
		{"initialize", `{"id":1,"method":"initialize","params":{}}`, func(a *answer) any { return a.Result.Version }, fixture.Legacy},
		{"list", `{"id":1,"method":"tools/list","params":{` + meta + `}}`, func(a *answer) any { return a.Result.Tools[0].Name }, fixture.Echo},
		{"unknown", `{"id":1,"method":"prompts/list"}`, func(a *answer) any { return a.Error.Code }, -32601},
		{"of another era", `{"id":1,"method":"initialize","params":{` + meta + `}}`, func(a *answer) any { return a.Error.Code }, -32601},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, ok := answers.Append([]byte(" "), []byte(c.message))
			if !ok {
				t.Fatal("no answer")
			}
			var a answer
			if err := json.Unmarshal(data, &a); err != nil {
				t.Fatalf("%v in %s", err, data)
			}
			if diff := cmp.Diff(c.is, c.want(&a)); diff != "" {
				t.Errorf("%s\nin %s", diff, data)
			}
		})
	}
}

func TestAppendNothing(t *testing.T) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"open`,
		`{"jsonrpc":"2.0","id":`,
		``,
	} {
		if data, ok := answers.Append(nil, []byte(message)); ok || len(data) > 0 {
			t.Errorf("%s is answered with %s", message, data)
		}
	}
}
