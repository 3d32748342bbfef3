package eventstream_test

import (
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		name  string
		event eventstream.Event
		want  string
	}{
		{"data", eventstream.Event{Data: []byte(`{"a":1}`)}, "data: {\"a\":1}\n\n"},
		{"nothing", eventstream.Event{}, "data: \n\n"},
		{
			"all",
			eventstream.Event{Type: "message", ID: "7", HasID: true, Data: []byte("x"), Retry: 1500 * time.Millisecond, HasRetry: true},
			"event: message\nid: 7\nretry: 1500\ndata: x\n\n",
		},
		{"priming", eventstream.Event{ID: "s-0", HasID: true}, "id: s-0\ndata: \n\n"},
		{"fields without Has", eventstream.Event{ID: "7", Retry: time.Second}, "data: \n\n"},
		{"empty id", eventstream.Event{HasID: true}, "id: \ndata: \n\n"},
		{"lines", eventstream.Event{Data: []byte("a\nb\r\nc\rd\n\n")}, "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: \n\n"},
		{"type with a line break", eventstream.Event{Type: "a\ndata: planted", Data: []byte("x")}, "data: x\n\n"},
		{"id with a line break", eventstream.Event{ID: "a\rb", HasID: true, Data: []byte("x")}, "data: x\n\n"},
		{"id with NUL", eventstream.Event{ID: "a\x00b", HasID: true, Data: []byte("x")}, "data: x\n\n"},
		{"negative retry", eventstream.Event{Retry: -time.Second, HasRetry: true}, "retry: 0\ndata: \n\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := string(eventstream.Append([]byte("before "), &test.event)); got != "before "+test.want {
				t.Errorf("Append gives %q, want %q after what was there", got, test.want)
			}
		})
	}
}

func TestIsMessage(t *testing.T) {
	for name, want := range map[string]bool{"": true, "message": true, "Message": false, "endpoint": false} {
		if e := (eventstream.Event{Type: name}); e.IsMessage() != want {
			t.Errorf("IsMessage of type %q is %v, want %v", name, !want, want)
		}
	}
}
