package examples_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/examples/page"
	"github.com/parley-mcp/parley/server"
)

// factRows are the rows of the table that are no methods, by the fact of the
// revision that decides them.
var factRows = []struct{ fact, says string }{
	{"Handshake", "handshake and sessions"},
	{"InputRequired", "\"input required\" results"},
	{"ElicitForm", "form elicitation"},
	{"ElicitURL", "URL elicitation"},
	{"StructuredOutput", "structured output"},
	{"ToolAnnotations", "tool annotations"},
	{"Audio", "audio"},
	{"ResourceLinks", "resource links"},
	{"ProgressMessage", "progress messages"},
	{"Titles", "titles"},
	{"Icons", "icons"},
	{"Cacheable", "cache hints"},
	{"Batch", "JSON-RPC batches"},
}

// The page's table is what the library's table of revisions says, and every
// revision that a server speaks is in it.
func TestRevisions(t *testing.T) {
	versions, facts := revisionFacts(t)
	served := server.New("x", "1", nil).Versions()
	slices.Reverse(served)
	slices.Sort(versions)
	if !slices.Equal(versions, served) {
		t.Fatalf("the table has %v, a server speaks %v", versions, served)
	}
	var b strings.Builder
	b.WriteString("| | " + strings.Join(versions, " | ") + " |\n|---" + strings.Repeat("|---", len(versions)) + "|\n")
	for _, row := range factRows {
		fmt.Fprintf(&b, "| %s |", row.says)
		known := false
		for _, v := range versions {
			mark := ""
			if facts[v][row.fact] {
				mark, known = "yes", true
			}
			b.WriteString(" " + mark + " |")
		}
		b.WriteByte('\n')
		if !known {
			t.Errorf("no revision has the fact %s", row.fact)
		}
	}
	page.Check(t, "versions.md", "revisions", b.String())
}

// revisionFacts reads the table of revisions, which is not exported.
func revisionFacts(t *testing.T) (versions []string, facts map[string]map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), root+"/internal/revision/table.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	facts = make(map[string]map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		row, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		version, set := "", make(map[string]bool)
		for _, e := range row.Elts {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			name, _ := field.Key.(*ast.Ident)
			switch value := field.Value.(type) {
			case *ast.BasicLit:
				if name != nil && name.Name == "Version" {
					version, _ = strconv.Unquote(value.Value)
				}
			case *ast.Ident:
				set[nameOf(name)] = value.Name == "true"
			}
		}
		if version != "" {
			versions, facts[version] = append(versions, version), set
		}
		return true
	})
	return versions, facts
}

func nameOf(id *ast.Ident) string {
	if id == nil {
		return ""
	}
	return id.Name
}
