package main

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/server"
)

func TestGuardRegistration(t *testing.T) {
	if lines, ok := guardRegistration(); !ok || len(lines) != 2 {
		t.Errorf("registration is not linear:\n%s", strings.Join(lines, "\n"))
	}
	// What copies all at each step is told.
	var kept []server.Feature
	quadratic := func(_ *server.Server, list []server.Feature) {
		for _, f := range list {
			kept = append(append([]server.Feature(nil), kept...), f)
		}
		kept = nil
	}
	if few, many := allocatedEach(1000, quadratic), allocatedEach(8000, quadratic); many <= registrationCeiling*few {
		t.Errorf("%f and %f bytes", few, many)
	}
}
