package tasks

import (
	"testing"

	"github.com/parley-mcp/parley/strictjson"
)

// Any bytes are refused or become a handle of which the same can be said again.
func FuzzHandle(f *testing.F) {
	f.Add([]byte(`{"version":1,"taskId":"a","tool":"t"}`))
	f.Add([]byte(`{"version":1,"taskId":"a","tool":"t","server":"s","asked":[{"key":"k","digest":"d","answered":true},{"key":"l","digest":"d"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, saved []byte) {
		h, _, err := readHandle(nil, saved, nil)
		if err != nil {
			return
		}
		if h.id == "" || h.tool == "" || len(h.id) > maxID || len(h.asked.list) > maxSaved {
			t.Errorf("%q became a handle of task %q, tool %q, with %d questions", saved, h.id, h.tool, len(h.asked.list))
		}
		var s savedHandle
		if err := strictjson.Unmarshal(saved, &s); err != nil || len(s.Asked) != len(h.asked.list) {
			t.Errorf("%q has %d questions, and its handle %d: %v", saved, len(s.Asked), len(h.asked.list), err)
		}
	})
}
