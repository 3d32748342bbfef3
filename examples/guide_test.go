package examples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	root  = ".."
	guide = "docs/guide"
	// commandTime bounds the commands of one block; none takes nearly as long, on a busy machine either.
	commandTime = 8 * time.Minute
)

// A block is a fenced block of a page, with what the comment right above it
// says of it: where it comes from, or how it is tried.
type block struct {
	page, language, directive, text string
	line                            int
	output                          string // of the block marked "output" that follows
	hasOutput                       bool
}

func (b *block) at() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var directive = regexp.MustCompile(`^<!--\s*(.*?)\s*-->$`)

// blocks reads the fenced blocks of a page.
func blocks(page, text string) []*block {
	var found []*block
	var open *block
	above := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open != nil && strings.HasPrefix(trimmed, "```"):
			if open.directive == "output" && len(found) > 0 {
				last := found[len(found)-1]
				last.output, last.hasOutput = open.text, true
			} else {
				found = append(found, open)
			}
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(trimmed, "```"):
			open = &block{page: page, line: i + 1, language: strings.TrimPrefix(trimmed, "```"), directive: above}
			above = ""
		case trimmed != "":
			above = ""
			if m := directive.FindStringSubmatch(trimmed); m != nil {
				above = m[1]
			}
		}
	}
	return found
}

// pages returns the pages of the guide by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, guide, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("the guide has no pages")
	}
	texts := make(map[string]string)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[path(t, name)] = string(text)
	}
	return texts
}

// path is a file's name, seen from the root of the repository.
func path(t *testing.T, name string) string {
	t.Helper()
	rel, err := filepath.Rel(root, name)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(rel)
}

// Every block of the guide is tried: Go is an excerpt of a program of this
// module or of a test, JSON parses, commands are run. A block that cannot be
// tried here says so, with the reason.
func TestBlocks(t *testing.T) {
	bin := programs(t)
	for page, text := range pages(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			newcomer := newNewcomer(t)
			for _, b := range blocks(page, text) {
				if !newcomer.takes(t, b, bin) {
					tryBlock(t, b, bin)
				}
			}
		})
	}
}

func tryBlock(t *testing.T, b *block, bin string) {
	t.Helper()
	if reason, ok := strings.CutPrefix(b.directive, "not run: "); ok && reason != "" {
		if b.language == "json" {
			checkJSON(t, b)
		}
		return
	}
	switch b.language {
	case "go":
		checkGo(t, b)
	case "json":
		checkJSON(t, b)
	case "sh":
		runCommands(t, b, bin)
	case "nginx", "caddyfile":
		if b.directive != "tried by interop" {
			t.Errorf("%s: the comment above must be <!-- tried by interop -->", b.at())
		}
	case "text":
		if b.directive != "text" && b.directive != "metrics of parley serve" {
			t.Errorf("%s: a block of text is either marked <!-- output --> or <!-- text -->", b.at())
		}
	default:
		t.Errorf("%s: nothing is known of blocks of %q", b.at(), b.language)
	}
}

// checkGo checks that a block is part of the file that the comment names, at
// whatever indentation.
func checkGo(t *testing.T, b *block) {
	t.Helper()
	if !strings.HasSuffix(b.directive, ".go") {
		t.Errorf("%s: the comment above must name the file that this is part of, or say <!-- not run: why -->", b.at())
		return
	}
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b.directive)))
	if err != nil {
		t.Errorf("%s: %v", b.at(), err)
		return
	}
	if !strings.Contains(unindented(string(source)), unindented(b.text)) {
		t.Errorf("%s: this is not in %s:\n%s", b.at(), b.directive, b.text)
	}
}

// unindented takes the white space at the start of every line away.
func unindented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

func checkJSON(t *testing.T, b *block) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(b.text), &v); err != nil {
		t.Errorf("%s: this is no JSON: %v\n%s", b.at(), err, b.text)
	}
}

// runCommands runs a block in an empty folder, with the programs of this
// module and parley in PATH, and compares what it prints with the block of
// output that follows, if there is one: a line that is "…" stands for any
// lines.
func runCommands(t *testing.T, b *block, bin string) {
	t.Helper()
	if b.directive != "run" {
		t.Errorf("%s: the comment above must be <!-- run --> or <!-- not run: why -->", b.at())
		return
	}
	b.run(t, t.TempDir(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir(), "GOWORK=off")
}

// run runs the commands of a block in a folder, and compares what they print
// with the output that the page shows.
func (b *block) run(t *testing.T, folder string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.text)
	cmd.Dir, cmd.Env, cmd.WaitDelay = folder, append(os.Environ(), env...), 5*time.Second
	today := time.Now().Format(time.DateOnly)
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%s: %v\n%s\nprinted:\n%s", b.at(), err, b.text, out)
	case b.hasOutput && !like(string(out), b.output):
		t.Errorf("%s: %s\nprinted:\n%s\nthe page says:\n%s", b.at(), b.text, out, b.output)
	case strings.Contains(b.output, today):
		t.Errorf("%s: the output holds today's date, %s, and will be another tomorrow: have sed take it out", b.at(), today)
	}
}

// like reports whether text is what a page says, where a line "…" stands for
// any lines.
func like(text, page string) bool {
	parts := strings.Split("\n"+strings.TrimSpace(page)+"\n", "\n…\n")
	rest := "\n" + strings.TrimSpace(text) + "\n"
	if !strings.HasPrefix(rest, parts[0]) || !strings.HasSuffix(rest, parts[len(parts)-1]) {
		return false
	}
	if len(parts) == 1 {
		return rest == parts[0]
	}
	for _, part := range parts {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return true
}

func TestLike(t *testing.T) {
	for _, test := range []struct {
		text, page string
		want       bool
	}{
		{"a\nb\n", "a\nb", true},
		{"a\nb\n", "a", false},
		{"a\nb\nc\n", "a\n…\nc", true},
		{"a\nb\nc\n", "a\n…\nd", false},
		{"a\nb\nc\n", "a\n…", true},
		{"a\nb\nc\n", "…\nc", true},
		{"a\nb\nc\n", "…\nb", false},
	} {
		if got := like(test.text, test.page); got != test.want {
			t.Errorf("like(%q, %q) = %v, want %v", test.text, test.page, got, test.want)
		}
	}
}

// programs builds the programs of this module, and parley, into a folder.
func programs(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	build := func(dir, work string, args ...string) {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK="+work)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	build(".", "off", "./...")
	build(root, "", "./app/cmd/parley")
	return bin
}

// Every program has a place in the guide.
func TestProgramsAreInTheGuide(t *testing.T) {
	all := ""
	for _, text := range pages(t) {
		all += text
	}
	folders, err := fs.Glob(os.DirFS("."), "*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 {
		t.Fatal("there are no programs")
	}
	for _, file := range folders {
		folder := strings.TrimSuffix(file, "/main.go")
		if !strings.Contains(all, "examples/"+folder) {
			t.Errorf("no page of the guide speaks of examples/%s", folder)
		}
	}
}

// fenced is a block of code, where brackets are no links.
var fenced = regexp.MustCompile("(?ms)^```.*?^```$")

var link = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)

// Links between pages, and to files of the repository, lead somewhere.
func TestLinks(t *testing.T) {
	texts := pages(t)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts["README.md"] = string(readme)
	for page, text := range texts {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := filepath.Join(root, filepath.FromSlash(page))
			if target != "" {
				file = filepath.Join(filepath.Dir(file), filepath.FromSlash(target))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, target)
				continue
			}
			if anchor != "" && strings.HasSuffix(file, ".md") && !slices.Contains(anchors(t, file), anchor) {
				t.Errorf("%s: %s has no heading #%s", page, target, anchor)
			}
		}
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (.*)$`)

// anchors are the headings of a page as links name them.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		name := strings.ToLower(strings.TrimSpace(m[1]))
		name = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(name, "")
		found = append(found, strings.ReplaceAll(name, " ", "-"))
	}
	return found
}
