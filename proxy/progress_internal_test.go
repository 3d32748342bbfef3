package proxy

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
)

// What waits for a caller that does not read is bounded, and taking it never waits:
// the connection that it comes from is that of all callers.
func TestStepsAreBounded(t *testing.T) {
	reading := make(chan struct{}) // as if a step was being told and did not come to an end
	log := func(bytes int) step {
		return step{log: &mcp.LogParams{Level: mcp.LogError, Data: mcp.RawValue(strings.Repeat("1", bytes))}}
	}
	a := &upstreamCall{idle: reading}
	for i := range 10_000 {
		a.progress(float64(i), 0, "")
		a.step(log(10))
	}
	if len(a.steps) != maxSteps {
		t.Errorf("%d steps wait", len(a.steps))
	}
	a = &upstreamCall{idle: reading}
	for i := range 10_000 {
		a.progress(float64(i), 0, "")
	}
	if n := len(a.steps); n != maxSteps || a.steps[n-1].progress != 9999 {
		t.Errorf("%d steps wait, the last is %v", n, a.steps[n-1].progress)
	}
	a = &upstreamCall{idle: reading}
	if !a.step(log(4 << 20)) {
		t.Error("one big message is not taken")
	}
	if a.step(log(1)) {
		t.Error("one more is taken")
	}
	a = &upstreamCall{idle: reading}
	for range maxSteps {
		a.step(log(maxStepBytes / 4))
	}
	if len(a.steps) != 4 {
		t.Errorf("%d messages wait", len(a.steps))
	}
}
