package cassette

import (
	"encoding/json"
	"testing"
)

// What differs is told by its place, and what does not count is left out.
func TestCompare(t *testing.T) {
	for _, test := range []struct{ was, is, want string }{
		{`{"a":1,"b":[true,null,"x"]}`, `{"b":[true,null,"x"],"a":1.0}`, ``},
		{`{"_meta":{"a":1},"nextCursor":"a","taskId":"x"}`, `{"nextCursor":"b","taskId":"y"}`, ``},
		{`{"nextCursor":"a"}`, `{}`, `[{"path":"/r/nextCursor","was":"a"}]`},
		{`{"a/b":[1]}`, `{}`, `[{"path":"/r/a~1b","was":[1]}]`},
		{`{}`, `{"a":null}`, `[{"path":"/r/a","is":null}]`},
		{`{"a":[1,2]}`, `{"a":[1]}`, `[{"path":"/r/a/1","was":2}]`},
		{`{"a":1}`, `{"a":"1"}`, `[{"path":"/r/a","was":1,"is":"1"}]`},
		{`{"a":{}}`, `{"a":[]}`, `[{"path":"/r/a","was":{},"is":[]}]`},
		{`12345678901234567890`, `12345678901234567891`, `[{"path":"/r","was":12345678901234567890,"is":12345678901234567891}]`},
		{`{"a":"at 2026-01-01T00:00:00Z"}`, `{"a":"at 2026-01-02T00:00:00Z"}`, `[{"path":"/r/a","was":"at 2026-01-01T00:00:00Z","is":"at 2026-01-02T00:00:00Z"}]`},
		{`{"a":"2026-01-01T00:00:00Z"}`, `{"a":"2026-01-02T00:00:00.5+01:00"}`, ``},
		{`{"a":"x «redacted:0a0a0a» y"}`, `{"a":"x secret y"}`, ``},
		{`{"a":"x «redacted:0a0a0a» y"}`, `{"a":"x secret z"}`, `[{"path":"/r/a","was":"x «redacted:0a0a0a» y","is":"x secret z"}]`},
		{`{"a":"«redacted:0a0a0a»-«redacted:0b0b0b»"}`, `{"a":"1-2"}`, ``},
		{`{"a":"«redacted:0a0a0a»"}`, `{"a":5}`, ``},
		{`{"a":"«redacted:0a0a0a»"}`, `{}`, `[{"path":"/r/a","was":"«redacted:0a0a0a»"}]`},
		{
			`[{"name":"a","x":1},{"name":"b"}]`, `[{"name":"c"},{"name":"b"},{"name":"a","x":2}]`,
			`[{"path":"/r/0/x","was":1,"is":2},{"path":"/r/0","is":{"name":"c"}}]`,
		},
		{`[{"name":"a"},{"name":"a"}]`, `[{"name":"a"},{"name":"b"}]`, `[{"path":"/r/1/name","was":"a","is":"b"}]`},
		{`{"deep":{"skip":[1],"a":1}}`, `{"deep":{"skip":[2],"a":1}}`, ``},
		{`{"any":[{"skip":1}]}`, `{"any":[{"skip":2}]}`, ``},
		{``, `{}`, `[{"path":"/r","is":{}}]`},
		{``, ``, ``},
	} {
		got := ""
		if changes := compare(json.RawMessage(test.was), json.RawMessage(test.is), "/r", []string{"/r/deep/skip", "/r/*/*/skip"}); len(changes) > 0 {
			raw, err := json.Marshal(changes)
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
		}
		if got != test.want {
			t.Errorf("%s and %s:\ngot  %s\nwant %s", test.was, test.is, got, test.want)
		}
	}
}
