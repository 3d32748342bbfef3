package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/parley-mcp/parley/bench/report"
)

// The summary of a load counts only if all calls succeeded.
func TestLoadMetrics(t *testing.T) {
	m, err := loadMetrics([]byte(`{"result":{"requests":10,"ok":10,"throughput":2000.5,"latencyMs":{"p50":0.5,"p99":2}}}`))
	if err != nil || m[report.Rate] != 2000.5 || m[report.P50] != 500 || m[report.P99] != 2000 {
		t.Error(m, err)
	}
	for _, out := range []string{"", `{"result":{"requests":10,"ok":9}}`, `{"result":{}}`} {
		if m, err := loadMetrics([]byte(out)); err == nil {
			t.Errorf("%q gives %v", out, m)
		}
	}
}

// The time of a process grows with what it and its children do, and others have no part in it.
func TestProcessorTime(t *testing.T) {
	child := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	idle := exec.CommandContext(t.Context(), "sleep", "600")
	for _, cmd := range []*exec.Cmd{child, idle} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	for deadline := time.Now().Add(time.Minute); ; {
		own, err := processorTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		busy, err := processorTime(child.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		resting, err := processorTime(idle.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if busy > 200*time.Millisecond {
			if resting >= busy/2 {
				t.Errorf("a process that sleeps has had %v, a busy one %v", resting, busy)
			}
			if total, err := processorTime(os.Getpid()); err != nil || total < busy || total < own {
				t.Errorf("this process and its children have had %v, a child %v: %v", total, busy, err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a busy process has had %v in a minute", busy)
		}
	}
}
