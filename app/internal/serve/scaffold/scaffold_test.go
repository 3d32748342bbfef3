package scaffold_test

import (
	"bufio"
	"bytes"
	"go/format"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/serve/scaffold"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport/streamable"
)

// library is the folder of the library.
const library = "../../../.."

var names = []string{
	".github/workflows/test.yml", ".gitignore", ".gitlab-ci.yml", "README.md", "go.mod", "go.sum", "main.go", "main_test.go",
}

// A new server passes go vet, gofmt and its own tests as it was written, without a network, once the modules
// that the library needs are there.
func TestNewServerPasses(t *testing.T) {
	racetest.SkipSerial(t)
	fetch := exec.CommandContext(t.Context(), "go", "mod", "download") // a workspace has other versions
	fetch.Dir, fetch.Env = library, append(os.Environ(), "GOWORK=off")
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("go mod download: %v\n%s", err, out)
	}
	dir := filepath.Join(t.TempDir(), "new server") // a space in the path
	s := &scaffold.Server{Name: "word-counter", Module: "example.com/ada/word-counter", Replace: library}
	written, err := s.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names, written); diff != "" {
		t.Error(diff)
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}, {"build", "-o", "word-counter", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=readonly -buildvcs=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	program := filepath.Join(dir, "word-counter")
	checkHTTP(t, program)
	if out, err := exec.CommandContext(t.Context(), program, "http").CombinedOutput(); err == nil || !strings.Contains(string(out), `"http" is not known`) {
		t.Errorf("a word that is no flag: %v, %q", err, out)
	}
}

// checkHTTP starts the program at an address, uses it and has it end in good order.
func checkHTTP(t *testing.T, program string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-http", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), "serving ")
	if err != nil || !found {
		t.Fatalf("the first line is %q: %v", line, err)
	}
	c, err := client.Connect(t.Context(), streamable.URL(url), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(t.Context(), "count_words", map[string]string{"text": "one"}, nil); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil || len(rest) > 0 {
		t.Errorf("the end: %v, it said %q", err, rest)
	}
}

// Whatever the name and the module are, the Go files are as gofmt leaves them.
func TestFormat(t *testing.T) {
	for _, s := range []*scaffold.Server{
		{Name: "ws", Module: "w"},
		{Name: "a-very-long-name-for-a-server_2", Module: "example.com/x"},
	} {
		dir := t.TempDir()
		if _, err := s.Write(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"main.go", "main_test.go"} {
			text := read(t, filepath.Join(dir, name))
			formatted, err := format.Source(text)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(text, formatted) {
				t.Errorf("%s: %s is not formatted: %s", s.Name, name, cmp.Diff(string(formatted), string(text)))
			}
		}
	}
}

func TestModuleFile(t *testing.T) {
	copied := t.TempDir()
	write(t, copied, "go.mod", "module github.com/parley-mcp/parley // the library\n\ngo 1.27\n\nrequire a.example/x v1.2.3\n"+
		"require (\n\tb.example/y/v2 v2.0.0-2020 // indirect\n\t// c.example/z v1.0.0\n)\nexclude (\n\td.example v1.0.0\n)\n")
	write(t, copied, "go.sum", "a.example/x v1.2.3 h1:x=\n")
	for _, tt := range []struct {
		name string
		s    scaffold.Server
		want string
	}{
		{"a version", scaffold.Server{Version: "v0.3.0"}, "module example.com/w\n\ngo 1.26.0\n\nrequire github.com/parley-mcp/parley v0.3.0\n"},
		{"no version", scaffold.Server{}, "module example.com/w\n\ngo 1.26.0\n"},
		{"a copy", scaffold.Server{Version: "v0.3.0", Replace: copied}, `module example.com/w

go 1.27

require github.com/parley-mcp/parley v0.0.0

require (
	a.example/x v1.2.3 // indirect
	b.example/y/v2 v2.0.0-2020 // indirect
)

// A copy of the library on this machine: take this line out to use a published version.
replace github.com/parley-mcp/parley => ` + copied + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.s.Name, tt.s.Module = "ws", "example.com/w"
			if _, err := tt.s.Write(dir); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(read(t, filepath.Join(dir, "go.mod")))); diff != "" {
				t.Error(diff)
			}
			program := "latest"
			if tt.name == "a version" {
				program = "v0.3.0"
			}
			for _, ci := range []string{".gitlab-ci.yml", ".github/workflows/test.yml"} {
				if text := string(read(t, filepath.Join(dir, ci))); !strings.Contains(text, "/app/cmd/parley@"+program+" doctor -- ./ws\n") {
					t.Errorf("%s does not run the program of version %s:\n%s", ci, program, text)
				}
			}
		})
	}
}

// goVersion in the package is that of the library.
func TestGoVersion(t *testing.T) {
	if text := string(read(t, filepath.Join(library, "go.mod"))); !strings.Contains(text, "\ngo 1.26.0\n") {
		t.Error("goVersion of package scaffold is not the version of Go in the library's go.mod")
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "notes.txt", "mine")
	s := &scaffold.Server{Name: "ws", Module: "w"}
	if _, err := s.Write(dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a folder with a file: %v", err)
	}
	if _, err := s.Write(filepath.Join(dir, "notes.txt")); err == nil {
		t.Error("a file was taken for a folder")
	}
	if got := list(t, dir); !slices.Equal(got, []string{"notes.txt"}) {
		t.Errorf("the folder has %q", got)
	}
	if text := string(read(t, filepath.Join(dir, "notes.txt"))); text != "mine" {
		t.Errorf("the file holds %q", text)
	}
}

func TestBadCopies(t *testing.T) {
	other := t.TempDir()
	write(t, other, "go.mod", "module example.com/other\n")
	for path, want := range map[string]string{
		t.TempDir():                    "holds no go.mod",
		filepath.Join(other, "absent"): "holds no go.mod",
		other:                          `holds the module "example.com/other"`,
	} {
		dir := filepath.Join(t.TempDir(), "w")
		s := &scaffold.Server{Name: "ws", Module: "w", Replace: path}
		if _, err := s.Write(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: the folder was made: %v", path, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"w": "two or more", "ws": "", "words2": "", "my-words_2": "",
		"": "is empty", "-w": "a letter first", "w-": "a letter first", "Words": "such as words", "my words": "such as my-words",
		"a/b": "such as a-b", "../ws": "such as ws", "w.go": "such as w-go", "wörter": "such as w-rter", "2w": "a letter first",
		"v2": "is a version", "nul": "a device", "com1": "a device", "internal": "has a meaning", "vendor": "has a meaning",
		"ws\n": "such as ws", strings.Repeat("w", 65): "at most 64", strings.Repeat("w", 64): "",
	} {
		checkError(t, name, scaffold.CheckName(name), want)
	}
}

func TestCheckModule(t *testing.T) {
	for path, want := range map[string]string{
		"w": "", "github.com/Ada/words": "", "example.com/~ada/w_2": "",
		"": `the part ""`, "a//b": `the part ""`, "/a": `the part ""`, "a/": `the part ""`, "a/../b": `the part ".."`, "a/.b": `the part ".b"`,
		"a b": "cannot have", "a/b.": "cannot have", "a/nul.txt": "cannot have", "a/b~1": "cannot have", "a\nb": "cannot have", "ä": "cannot have",
		`a"b`: "cannot have", "std/x": "of Go itself", "github.com/parley-mcp/parley": "that of the library", strings.Repeat("a", 201): "at most 200",
	} {
		checkError(t, path, scaffold.CheckModule(path), want)
	}
}

func checkError(t *testing.T, of string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%q: %v", of, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%q: %v, want %q", of, err, want)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
