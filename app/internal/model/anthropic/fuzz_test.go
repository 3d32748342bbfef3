package anthropic_test

import (
	"bytes"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/modeltest"
)

// Whatever a server sends, the turn ends as it should: see modeltest.CheckTurn.
func FuzzStream(f *testing.F) {
	const end = `{"type":"message_stop"}`
	for _, seed := range []string{ // short ones: long ones take the fuzzer a minute each
		modeltest.Events(`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`, end),
		modeltest.Events(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, end),
		modeltest.Events(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm","signature":"c2ln"}}`, `{"type":"content_block_stop","index":0}`, end),
		modeltest.Events(`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"no"}},"usage":{"output_tokens":2}}`, end),
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		modeltest.CheckTurn(t, model(t, answers(bytes.NewReader(stream))))
	})
}
