package main

import (
	"strings"
	"testing"
)

const callgrindOut = `# callgrind format
version: 1
positions: line
events: Ir
summary: 1175

ob=(1) /bin/program
fl=(1) main.go
fn=(1) main.work
10 100
+2 50
cfi=(2) proc.go
cfn=(2) runtime.findRunnable
calls=3 +5
* 900
-1 25

fl=(2)
fn=(2)
20 600
fe=(3) lock.go
* 300
fn=(4) runtime.unlock2'2
7 60
fn=(5) runtime.mallocgc
1 40

totals: 1175
`

// Own instructions of functions count once, without the scheduler's.
func TestInstructionsOf(t *testing.T) {
	if n, err := instructionsOf([]byte(callgrindOut)); err != nil || n != 215 {
		t.Errorf("%.0f, %v; want 215", n, err)
	}
	for _, broken := range []string{
		"", "fn=(1) main\n1 5\n", strings.Replace(callgrindOut, "+2 50", "+2", 1), strings.Replace(callgrindOut, "+2 50", "+2 51", 1),
		strings.Replace(callgrindOut, "totals: 1175", "totals: many", 1),
	} {
		if n, err := instructionsOf([]byte(broken)); err == nil {
			t.Errorf("%.80q: %.0f, and no error", broken, n)
		}
	}
	for name, want := range map[string]bool{
		"runtime.sysmon": true, "runtime.(*timers).check": true, "runtime.nanotime1.abi0": true, "runtime.lock2'2": true,
		"runtime.mallocgc": false, "runtime.lockedOSThread": false, "runtime.mapaccess1_faststr": false, "main.runtime.lock2": false,
	} {
		if scheduled.MatchString(name) != want {
			t.Errorf("%s: scheduled is %v", name, !want)
		}
	}
}
