package servers_test

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A report is a row of testdata/reports.txt.
type report struct {
	server, number, state, decision, text, where string
}

// testdata/reports.txt lists reports about the reference servers, each with a decision that is
// backed: by a test that exists, or by a reason.
func TestReports(t *testing.T) {
	reports := readReports(t, filepath.Join("testdata", "reports.txt"))
	if len(reports) < 60 {
		t.Errorf("%d reports, want 60 at least", len(reports))
	}
	seen := make(map[string]bool)
	functions := make(map[string]map[string]bool) // by folder
	for _, r := range reports {
		if seen[r.number] {
			t.Errorf("%s is there twice", r.number)
		}
		seen[r.number] = true
		if err := r.check(functions); err != nil {
			t.Errorf("%s %s: %v", r.server, r.number, err)
		}
	}
	if !slices.IsSortedFunc(reports, compareReports) {
		t.Error("the reports are not sorted by server, repository and number")
	}
}

// readReports reads the rows of a file. It passes over lines that begin with "#".
func readReports(t *testing.T, path string) []report {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	var reports []report
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		cells := strings.Split(lines.Text(), "\t")
		if len(cells) != 6 {
			t.Fatalf("%s:%d: %d cells, want 6", path, n, len(cells))
		}
		if slices.ContainsFunc(cells, func(cell string) bool { return cell == "" || cell != strings.TrimSpace(cell) }) {
			t.Errorf("%s:%d: a cell is empty, or has space around it: %q", path, n, cells)
		}
		if !number.MatchString(cells[1]) {
			t.Fatalf("%s:%d: %q is not the number of a report", path, n, cells[1])
		}
		reports = append(reports, report{cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return reports
}

// number matches the number of a report, after its repository unless that is
// modelcontextprotocol/servers.
var number = regexp.MustCompile(`^([\w.-]+/[\w.-]+)?#([1-9]\d*)$`)

// compareReports orders reports by server, repository and number.
func compareReports(a, b report) int {
	repository := func(r report) string { return strings.ToLower(r.number[:strings.LastIndex(r.number, "#")]) }
	count := func(r report) int {
		n, _ := strconv.Atoi(r.number[strings.LastIndex(r.number, "#")+1:]) // readReports checked it
		return n
	}
	return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(repository(a), repository(b)), cmp.Compare(count(a), count(b)))
}

// check checks the cells of a report. functions are the test functions of folders that were read.
func (r report) check(functions map[string]map[string]bool) error {
	switch {
	case !slices.Contains([]string{"everything", "fetch", "filesystem", "git", "memory", "thinking", "time"}, r.server):
		return fmt.Errorf("unknown server %q", r.server)
	case !slices.Contains([]string{"open", "closed", "merged"}, r.state):
		return fmt.Errorf("unknown state %q", r.state)
	}
	switch r.decision {
	case "kept", "not ours":
		return nil
	case "mend", "works":
	default:
		return fmt.Errorf("unknown decision %q", r.decision)
	}
	return checkTest(r.where, functions)
}

// checkTest checks that a test exists, such as "./app/internal/serve/servers/git TestTools/name". It looks for the
// function only, as subtests are made when the test runs.
func checkTest(where string, functions map[string]map[string]bool) error {
	folder, test, ok := strings.Cut(where, " ")
	if !ok || !strings.HasPrefix(folder, "./") {
		return fmt.Errorf("%q is not a folder and a test", where)
	}
	if functions[folder] == nil {
		read, err := testFunctions(filepath.Join("..", "..", "..", "..", filepath.FromSlash(folder)))
		if err != nil {
			return err
		}
		functions[folder] = read
	}
	if name, _, _ := strings.Cut(test, "/"); !functions[folder][name] {
		return fmt.Errorf("%s has no test %s", folder, name)
	}
	return nil
}

// testFunctions returns the names of the test functions in a folder.
func testFunctions(folder string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
	}
	return names, nil
}
