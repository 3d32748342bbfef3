package interop_test

import "testing"

// Clients of others use 'parley serve time'.
func TestServersTimeClients(t *testing.T) {
	useBuiltin(t, func(*testing.T) useCase {
		return useCase{
			args:  []string{"time", "--local-timezone", "Europe/Paris"},
			tools: []string{"convert_time", "get_current_time"},
			calls: []useCall{
				{tool: "convert_time", args: map[string]any{"source_timezone": "Asia/Kathmandu", "time": "12:00", "target_timezone": "UTC"}, want: `"time_difference": "-5.75h"`},
				{tool: "get_current_time", args: map[string]any{"timezone": "Nowhere"}, want: "Invalid timezone", failed: true},
			},
			read: "time://now/Asia/Tokyo", readWant: "+09:00",
		}
	})
}
