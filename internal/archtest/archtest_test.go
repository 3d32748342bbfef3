package archtest_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/archtest"
	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/internal/revision"
)

// TestRepository holds the whole repository to the rules.
func TestRepository(t *testing.T) {
	racetest.SkipSerial(t)
	tree, err := archtest.Load(os.DirFS(filepath.Join("..", "..")))
	if err != nil {
		t.Fatal(err)
	}
	problems, err := tree.Check()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// tree loads a repository of the given files.
func tree(t *testing.T, files map[string]string) *archtest.Tree {
	t.Helper()
	tree, err := archtest.Load(repository(files))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func repository(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// expect compares problems, written as people see them, with what is wanted.
func expect(t *testing.T, got []archtest.Problem, want ...string) {
	t.Helper()
	var texts []string
	for _, p := range got {
		texts = append(texts, p.String())
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

const home = "github.com/parley-mcp/parley/"

func TestImports(t *testing.T) {
	tests := map[string]struct {
		file, text string
		want       []string
	}{
		"downwards": {
			file: "server/a.go",
			text: `package server; import _ "` + home + `mcp"; import _ "fmt"`,
		},
		"transport to feature": {
			file: "transport/stdio/a.go",
			text: `package stdio; import _ "` + home + `mcp"`,
			want: []string{"transport/stdio/a.go:1: transport/stdio must not import " + home + "mcp: see the import table in internal/archtest/table.go"},
		},
		"transport to transport": {
			file: "transport/mem/a.go",
			text: `package mem; import _ "` + home + `transport/stdio"`,
			want: []string{"transport/mem/a.go:1: transport/mem must not import " + home + "transport/stdio: see the import table in internal/archtest/table.go"},
		},
		"client to server": {
			file: "client/a.go",
			text: `package client; import _ "` + home + `server"`,
			want: []string{"client/a.go:1: client must not import " + home + "server: see the import table in internal/archtest/table.go"},
		},
		"the root package": {
			file: "client/a.go",
			text: `package client; import _ "github.com/parley-mcp/parley"`,
			want: []string{"client/a.go:1: client must not import github.com/parley-mcp/parley: see the import table in internal/archtest/table.go"},
		},
		"a name that only begins like another": {
			file: "ext/tasks/a.go",
			text: `package tasks; import _ "` + home + `mcptest"`,
			want: []string{"ext/tasks/a.go:1: ext/tasks must not import " + home + "mcptest: see the import table in internal/archtest/table.go"},
		},
		"public": {
			file: "mcptest/a.go",
			text: `package mcptest; import _ "` + home + `server"`,
		},
		"public but": {
			file: "mcptest/a.go",
			text: `package mcptest; import _ "` + home + `oauth/guard"`,
			want: []string{"mcptest/a.go:1: mcptest must not import " + home + "oauth/guard: see the import table in internal/archtest/table.go"},
		},
		"public to internal": {
			file: "app/internal/chat/tui/a.go",
			text: `package tui; import _ "` + home + `internal/wire"`,
			want: []string{"app/internal/chat/tui/a.go:1: app/internal/chat/tui must not import " + home + "internal/wire: see the import table in internal/archtest/table.go"},
		},
		"app to app": {
			file: "app/internal/chat/tui/a.go",
			text: `package tui; import _ "` + home + `app/internal/config"`,
			want: []string{"app/internal/chat/tui/a.go:1: app/internal/chat/tui must not import " + home + "app/internal/config: see the import table in internal/archtest/table.go"},
		},
		"cli to app": {
			file: "app/internal/cli/a.go",
			text: `package cli; import _ "` + home + `app/internal/config"`,
		},
		"main to library": {
			file: "app/cmd/parley/a.go",
			text: `package main; import _ "` + home + `server"`,
			want: []string{"app/cmd/parley/a.go:1: app/cmd/parley must not import " + home + "server: see the import table in internal/archtest/table.go"},
		},
		"contrib to the library": {
			file: "contrib/otel/a.go",
			text: `package otelmcp; import _ "` + home + `server"`,
		},
		"library to contrib": {
			file: "mcptest/a.go",
			text: `package mcptest; import _ "` + home + `contrib/otel"`,
			want: []string{"mcptest/a.go:1: mcptest must not import " + home + "contrib/otel: see the import table in internal/archtest/table.go"},
		},
		"contrib to contrib": {
			file: "contrib/otel/a.go",
			text: `package otelmcp; import _ "` + home + `contrib/prometheus/metrics"`,
			want: []string{"contrib/otel/a.go:1: contrib/otel must not import " + home + "contrib/prometheus/metrics: see the import table in internal/archtest/table.go"},
		},
		"no row": {
			file: "utils/a.go",
			text: `package utils; import _ "` + home + `mcp"`,
			want: []string{
				"utils/a.go: package utils has no row in the import table of internal/archtest",
				"utils/a.go:1: utils must not import " + home + "mcp: see the import table in internal/archtest/table.go",
			},
		},
		"second codec": {
			file: "server/a.go",
			text: `package server; import _ "encoding/json/jsontext"`,
			want: []string{"server/a.go:1: server must not import encoding/json/jsontext: the library has one JSON codec, and it is strict"},
		},
		"foreign schemas": {
			file: "client/a.go",
			text: `package client; import _ "github.com/santhosh-tekuri/jsonschema/v6"`,
			want: []string{"client/a.go:1: client must not import github.com/santhosh-tekuri/jsonschema/v6: foreign schemas are bounded and checked in one place"},
		},
		"a transport in the core": {
			file: "server/a.go",
			text: `package server; import _ "net/http/httputil"`,
			want: []string{"server/a.go:1: server must not import net/http/httputil: the vocabulary, the server and the client know no transport"},
		},
		"templates": {
			file: "server/a.go",
			text: `package server; import _ "github.com/yosida95/uritemplate/v3"`,
			want: []string{"server/a.go:1: server must not import github.com/yosida95/uritemplate/v3: templates are matched and expanded in one place"},
		},
		"test": {
			file: "client/a_test.go",
			text: `package client_test; import _ "` + home + `server"; import _ "encoding/json"`,
		},
		"test outside the library": {
			file: "app/internal/chat/tui/a_test.go",
			text: `package tui_test; import _ "` + home + `internal/wire"`,
			want: []string{"app/internal/chat/tui/a_test.go:1: a test of app/internal/chat/tui must not import " + home + "internal/wire, which is for the library alone"},
		},
		"testdata": {
			file: "client/testdata/a.go",
			text: `package a; import _ "` + home + `server"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, tree(t, map[string]string{test.file: test.text}).Imports(), test.want...)
		})
	}
}

func TestSizes(t *testing.T) {
	long := "package mcp\n" + strings.Repeat("\n", 599)
	got := tree(t, map[string]string{
		"mcp/limit.go":     long,
		"mcp/long.go":      long + "// one more",
		"mcp/long_test.go": long + "\n",
	}).Sizes()
	expect(t, got, "mcp/long.go: 601 lines, more than 600: is it one subject?")
}

func TestLimits(t *testing.T) {
	methods := func(name string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "func (x *%s) m%d() {}\n", name, i)
		}
		return b.String()
	}
	fields := func(name string, n int) string {
		return "type " + name + " struct {" + strings.Repeat(" a,", n-1) + " a int }\n"
	}
	files := map[string]string{
		"mcp/many.go":      "package mcp\n" + methods("Many", 61) + methods("Few", 60),
		"mcp/many_test.go": "package mcp\n" + methods("Few", 60),
		"mcp/state.go":     "package mcp\n" + fields("state", 21) + methods("state", 1) + fields("data", 21) + fields("small", 20) + methods("small", 1),
		"host/session.go":  "package host\n" + methods("Session", 61),
	}
	for i := range 41 {
		files[fmt.Sprintf("app/internal/use/f%d.go", i)] = "package use\n"
	}
	expect(
		t, tree(t, files).Limits(),
		"mcp/state.go: fields of mcp.state are 21, more than 20: are they several subjects?",
		"app/internal/use/f0.go: files of app/internal/use are 41, more than 40: are they several subjects?",
		"host/session.go: methods of host.Session are 61: lower the row in internal/archtest/table.go, or remove it",
		"mcp/many.go: methods of mcp.Many are 61, more than 60: are they several subjects?",
	)
}

func TestDocs(t *testing.T) {
	got := tree(t, map[string]string{
		"app/cmd/parley/main.go": "// Parley speaks.\npackage main",
		"client/a.go":            "// A licence.\n\npackage client",
		"mcp/a.go":               "// Package mcp is one.\npackage mcp",
		"mcp/a_test.go":          "// Package mcp tests.\npackage mcp",
		"mcp/b.go":               "package mcp",
		"schema/a.go":            "// Package schema is one.\npackage schema",
		"schema/b.go":            "// Package schema is two.\npackage schema",
		"server/a.go":            "// Package serve is misspelt.\npackage server",
	}).Docs()
	expect(
		t, got,
		"client/a.go: package client has no package comment",
		"schema/b.go:2: a second package comment; the first is in schema/a.go",
		"server/a.go:2: the package comment must begin with \"Package server \"",
	)
}

func TestDates(t *testing.T) {
	const date = "\n// 2025-06-18\nconst d = \"v2025-06-18\"\n"
	got := tree(t, map[string]string{
		"internal/revision/a.go":       "package revision\nvar rows = []string{\"2025-06-18\", `2024-11-05`}\n// 2023-01-01\n",
		"internal/revision/a_test.go":  "package revision\nconst other = \"2023-06-01\"",
		"internal/revision/shape/a.go": "package shape" + date,
		"internal/revisions/a.go":      "package revisions" + date,
		"mcp/a.go":                     "package mcp" + date,
		"mcp/a_test.go":                "package mcp" + date,
		"mcp/raw.go":                   "package mcp\nconst r = `2024-11-05`",
		"mcp/testdata/a.go":            "package mcp" + date,
		"schema/a.go":                  "package schema\nconst layout = \"2006-01-02T15:04\"",
		"app/internal/model/a.go":      "package model\nvar header = []string{\"anthropic-version\", \"2023-06-01\", \"2023-01-01\"}",
	}).Dates()
	expect(
		t, got,
		"internal/revisions/a.go:3: the date 2025-06-18 outside internal/revision: ask for the fact, not the date",
		"mcp/a.go:3: the date 2025-06-18 outside internal/revision: ask for the fact, not the date",
		"mcp/raw.go:2: the date 2024-11-05 outside internal/revision: ask for the fact, not the date",
	)
}

// The rule knows the revisions that the library has.
func TestDatesOfTheLibrary(t *testing.T) {
	const rows = "internal/revision/table.go"
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(rows)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range revision.All() {
		got := tree(t, map[string]string{
			rows:         string(text),
			"mcp/new.go": "package mcp\nconst v = \"" + f.Version + "\"",
		}).Dates()
		expect(t, got, "mcp/new.go:2: the date "+f.Version+" outside internal/revision: ask for the fact, not the date")
	}
}

// sound is a repository of module files alone, without a breach: what each
// test of Modules takes from or adds to.
func sound() map[string]string {
	files := map[string]string{
		"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./app\n\t./conformance\n\t./contrib/otel\n\t./contrib/prometheus\n)\n",
		"go.mod": `module github.com/parley-mcp/parley

require (
	github.com/coder/websocket v1.8.15
	github.com/go-jose/go-jose/v4 v4.1.8
	github.com/go-json-experiment/json v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/yosida95/uritemplate/v3 v3.0.2
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/text v0.14.0
	golang.org/x/time v0.16.0
)
`,
		"app/go.mod": `module github.com/parley-mcp/parley/app

require (
	charm.land/bubbles/v2 v2.2.1
	charm.land/bubbletea/v2 v2.0.10
	charm.land/lipgloss/v2 v2.0.6
	filippo.io/age v1.3.2
	codeberg.org/readeck/go-readability/v2 v2.1.3
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/JohannesKaufmann/html-to-markdown/v2 v2.5.2
	golang.org/x/net v0.62.0
	github.com/charmbracelet/x/ansi v0.11.8
	github.com/coreos/go-oidc/v3 v3.21.0
	github.com/fsnotify/fsnotify v1.9.0
	github.com/go-git/go-git/v5 v5.19.3
	github.com/jackc/pgx/v5 v5.12.0
	github.com/parley-mcp/parley v0.0.0
	github.com/prometheus/common v0.72.0
	github.com/rogpeppe/go-internal v1.16.0
	github.com/spf13/cobra v1.10.2
	github.com/tailscale/hujson v0.0.0
	github.com/zalando/go-keyring v0.2.8
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/crypto v0.58.0
	golang.org/x/oauth2 v0.37.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
	golang.org/x/text v0.43.0
	modernc.org/sqlite v1.61.1
)
`,
		"conformance/go.mod": "module github.com/parley-mcp/parley/conformance\n",
		"contrib/otel/go.mod": `module github.com/parley-mcp/parley/contrib/otel

require (
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/sdk/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
)
`,
		"contrib/prometheus/go.mod": `module github.com/parley-mcp/parley/contrib/prometheus

require (
	github.com/prometheus/client_golang v1.25.0
	github.com/prometheus/common v0.72.0
)
`,
	}
	records := map[string]string{
		"0001-json-codec":      "github.com/go-json-experiment/json",
		"0002-json-schema":     "github.com/santhosh-tekuri/jsonschema/v6",
		"0003-uri-templates":   "github.com/yosida95/uritemplate/v3",
		"0005-x-time":          "golang.org/x/time",
		"0006-go-cmp":          "github.com/google/go-cmp",
		"0007-cobra":           "github.com/spf13/cobra",
		"0067-x-sys":           "golang.org/x/sys",
		"0008-x-term":          "golang.org/x/term",
		"0009-testscript":      "github.com/rogpeppe/go-internal",
		"0084-go-git":          "github.com/go-git/go-git/v5",
		"0078-hdrhistogram":    "github.com/HdrHistogram/hdrhistogram-go",
		"0080-fsnotify":        "github.com/fsnotify/fsnotify",
		"0081-html":            "codeberg.org/readeck/go-readability/v2 github.com/JohannesKaufmann/html-to-markdown/v2",
		"0083-x-net":           "golang.org/x/net",
		"0089-x-text":          "golang.org/x/text",
		"0015-websocket":       "github.com/coder/websocket",
		"0019-go-jose":         "github.com/go-jose/go-jose/v4",
		"0020-sqlite":          "modernc.org/sqlite",
		"0021-pgx":             "github.com/jackc/pgx/v5",
		"0022-keyring":         "github.com/zalando/go-keyring",
		"0023-age":             "filippo.io/age",
		"0024-x-crypto":        "golang.org/x/crypto",
		"0025-go-oidc":         "github.com/coreos/go-oidc/v3 golang.org/x/oauth2",
		"0038-opentelemetry":   "go.opentelemetry.io/otel go.opentelemetry.io/otel/metric go.opentelemetry.io/otel/sdk go.opentelemetry.io/otel/sdk/metric go.opentelemetry.io/otel/trace",
		"0058-yaml":            "go.yaml.in/yaml/v3",
		"0061-policy":          "golang.org/x/text",
		"0062-hujson":          "github.com/tailscale/hujson",
		"0073-terminal-screen": "charm.land/bubbles/v2 charm.land/bubbletea/v2 charm.land/lipgloss/v2 github.com/charmbracelet/x/ansi",
		"0039-prometheus":      "github.com/prometheus/client_golang github.com/prometheus/common",
	}
	for name, module := range records {
		files["docs/decisions/"+name+".md"] = module
	}
	return files
}

func TestModules(t *testing.T) {
	tests := map[string]struct {
		change map[string]string // file to text that is added, or to "" if it goes
		want   []string
	}{
		"sound": {},
		"replace in the root": {
			change: map[string]string{"go.mod": "replace golang.org/x/time => ../time\n"},
			want:   []string{"go.mod:14: no replace: the module is built with the versions its users get"},
		},
		"replace in a block": {
			change: map[string]string{"app/go.mod": "replace (\n\tgolang.org/x/term => ../term\n)\n"},
			want: []string{fmt.Sprintf("app/go.mod:%d: no replace: the module is built with the versions its users get",
				strings.Count(sound()["app/go.mod"], "\n")+2)}, // in the block, after all that is there
		},
		"replace in the workspace": {
			change: map[string]string{"go.work": "replace golang.org/x/term => ../term\n"},
			want:   []string{"go.work:10: no replace: the library is tested with the versions its users get"},
		},
		"home in the workspace": {
			change: map[string]string{"go.work": "replace github.com/parley-mcp/parley v0.0.0 => .\n"},
		},
		"home with a slash": {
			change: map[string]string{"go.work": "replace github.com/parley-mcp/parley v0.0.0 => ./\n"},
		},
		"a module below home": {
			change: map[string]string{"go.work": "replace github.com/parley-mcp/parley/contrib/otel v0.0.0 => ./contrib/otel\n"},
		},
		"home to another folder": {
			change: map[string]string{"go.work": "replace github.com/parley-mcp/parley v0.0.0 => ./app\n"},
			want:   []string{"go.work:10: no replace: the library is tested with the versions its users get"},
		},
		"another module in the workspace": {
			change: map[string]string{"go.work": "use ./bench\n"},
			want:   []string{`go.work: uses ["." "./app" "./bench" "./conformance" "./contrib/otel" "./contrib/prometheus"], want exactly ["." "./app" "./conformance" "./contrib/otel" "./contrib/prometheus"]`},
		},
		"another dependency": {
			change: map[string]string{"conformance/go.mod": "require \"example.org/new\" v1.0.0\n"},
			want:   []string{"conformance/go.mod:2: example.org/new is not on the list of dependencies in internal/archtest: it needs a record in docs/decisions"},
		},
		"a dependency of the program in the library": {
			change: map[string]string{"go.mod": "require github.com/spf13/cobra v1.10.2\n"},
			want:   []string{"go.mod:14: github.com/spf13/cobra is not on the list of dependencies in internal/archtest: it needs a record in docs/decisions"},
		},
		"indirect only": {
			change: map[string]string{"go.mod": "require example.org/deep v1.0.0 // indirect\n"},
		},
		"no record": {
			change: map[string]string{"docs/decisions/0007-cobra.md": ""},
			want:   []string{"app/go.mod: github.com/spf13/cobra has no record of its decision: docs/decisions/0007-cobra.md must exist and name it"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := sound()
			for file, text := range test.change {
				files[file] += text
				if text == "" {
					delete(files, file)
				}
			}
			got, err := archtest.Modules(repository(files))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, got, test.want...)
		})
	}
}

func TestModulesUnused(t *testing.T) {
	files := sound()
	files["app/go.mod"] = strings.ReplaceAll(files["app/go.mod"], "\tgolang.org/x/term v0.47.0\n", "")
	got, err := archtest.Modules(repository(files))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, got, "app/go.mod: golang.org/x/term is on the list of dependencies but not required")
}

func TestModulesMissing(t *testing.T) {
	for _, name := range []string{"go.work", "go.mod", "app/go.mod", "conformance/go.mod", "contrib/otel/go.mod"} {
		files := sound()
		delete(files, name)
		if _, err := archtest.Modules(repository(files)); err == nil {
			t.Errorf("without %s: no error", name)
		}
	}
}

// TestCheck shows that Check brings all rules together, in order of place,
// and that a file which does not parse is a problem and no end of the check.
func TestCheck(t *testing.T) {
	files := sound()
	maps.Copy(files, map[string]string{
		"internal/revision/a.go": "// Package revision has one row.\npackage revision\nconst row = \"2025-06-18\"",
		"mcp/broken.go":          "package",
		"schema/a.go":            "package schema; import _ \"encoding/json\"\nconst d = \"2025-06-18\"",
	})
	got, err := tree(t, files).Check()
	if err != nil {
		t.Fatal(err)
	}
	expect(
		t, got,
		"mcp/broken.go: does not parse: mcp/broken.go:1:8: expected 'IDENT', found 'EOF'",
		"schema/a.go: package schema has no package comment",
		"schema/a.go:1: schema must not import encoding/json: the library has one JSON codec, and it is strict",
		"schema/a.go:2: the date 2025-06-18 outside internal/revision: ask for the fact, not the date",
	)
}
