package interop_test

import "testing"

// Clients of others use 'parley serve everything'.
func TestServersEverythingClients(t *testing.T) {
	useBuiltin(t, func(*testing.T) useCase {
		return useCase{
			args: []string{"everything"},
			tools: []string{
				"add", "drop-table", "echo", "fail", "get-annotated-message", "get-resource-links", "get-resource-reference",
				"get-roots-list", "get-tiny-audio", "get-tiny-image", "log-messages", "measure-shape", "show-palette",
				"simulate-backup", "simulate-order", "simulate-research", "toggle-extra-tool", "trigger-elicitation-request",
				"trigger-long-running-operation", "trigger-sampling-request", "trigger-url-elicitation", "weather",
			},
			calls: []useCall{{tool: "echo", args: map[string]any{"message": "héllo"}, want: "héllo"}},
			read:  "demo://text", readWant: "does not change",
		}
	})
}
