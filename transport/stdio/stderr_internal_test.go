package stdio

import (
	"log/slog"
	"strings"
	"testing"
)

// Of all that a program writes when it crashes, the line that says why is kept.
func TestReason(t *testing.T) {
	for name, test := range map[string]struct{ said, want string }{
		"plain":            {"warning: old\nno such file: /etc/x\n\n", "no such file: /etc/x"},
		"indented alone":   {"  usage: x\n  -h\n", "  -h"},
		"indented after":   {"cannot read the config\n  because of this\n", "cannot read the config"},
		"go panic":         {goPanic, `panic: server: tool "bad": tag minLen is not known; write minlen`},
		"go run":           {goPanic + "exit status 2\n", `panic: server: tool "bad": tag minLen is not known; write minlen`},
		"others talk":      {goPanic + strings.Repeat("still here\n", 20), `panic: server: tool "bad": tag minLen is not known; write minlen`},
		"long ago":         {goPanic + strings.Repeat("recovered\n", 21) + "disk full\n", "disk full"},
		"go nil pointer":   {"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4712d3]\n\ngoroutine 1 [running]:\nmain.(*T).f(...)\n\t/src/main.go:7\nmain.main()\n\t/src/main.go:10 +0x13\n", "panic: runtime error: invalid memory address or nil pointer dereference"},
		"go fatal error":   {"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select (no cases)]:\nmain.main()\n\t/src/main.go:4 +0xf\n", "fatal error: all goroutines are asleep - deadlock!"},
		"go stack on exit": {"no license found\ngoroutine 1 [running]:\nruntime/debug.Stack()\n\t/go/stack.go:26 +0x5e\nmain.main()\n\t/src/main.go:4 +0xf\n", "no license found"},
		"python":           {"Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    import mcp\nModuleNotFoundError: No module named 'mcp'\n", "ModuleNotFoundError: No module named 'mcp'"},
		"node":             {"node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/index.js'\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)\n    at node:internal/main/run_main_module:28:49 {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.19.1\n", "Error: Cannot find module '/srv/index.js'"},
		"java":             {"Exception in thread \"main\" java.lang.IllegalStateException: no key\n\tat a.B.c(B.java:5)\n\tat a.B.main(B.java:9)\n", `Exception in thread "main" java.lang.IllegalStateException: no key`},
		"rust":             {"thread 'main' panicked at 'no key', src/main.rs:2:5\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", "thread 'main' panicked at 'no key', src/main.rs:2:5"},
		"escaped":          {"panic: \x1b[31mred\n\ngoroutine 1 [running]:\n", `panic: \x1b[31mred`},
		"long":             {"panic: " + strings.Repeat("é", 400) + "\n", "panic: " + strings.Repeat("é", 252) + "…"},
		"nothing":          {"\n \n", ""},
	} {
		s := &stderr{log: slog.New(slog.DiscardHandler)}
		s.drain(strings.NewReader(test.said))
		if got := s.reason(); got != test.want {
			t.Errorf("%s: the reason is %q, want %q", name, got, test.want)
		}
	}
}

const goPanic = `starting
panic: server: tool "bad": tag minLen is not known; write minlen

goroutine 1 [running]:
github.com/parley-mcp/parley/server.(*Server).Add(0xc0001?, {0xc00012fe90?, 0x1, 0x1})
	/src/server/server.go:204 +0x6d
main.register[...]({0x1, 0x2}, "x y")
	/src/main.go:20 +0x3
main.main()
	/src/main.go:22 +0x6d
created by main.start in goroutine 7
	/src/main.go:1 +0x1
`
