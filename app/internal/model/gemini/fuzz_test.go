package gemini_test

import (
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/modeltest"
)

// Whatever a server sends, the turn ends as it should: see modeltest.CheckTurn.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{ // short ones: long ones take the fuzzer a minute each
		events(parts(`{"text":"Hi","thoughtSignature":"c2ln"}`), finish("STOP")),
		events(parts(`{"text":"Hm","thought":true},{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"c2ln"}`), finish("STOP")),
		events(`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":1}}`),
		events(`{"error":{"code":503,"message":"no","status":"UNAVAILABLE"}}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		modeltest.CheckTurn(t, model(t, streams(string(stream))))
	})
}
