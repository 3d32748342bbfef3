package examples_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// quoted is a message on a page, in quotation marks.
var quoted = regexp.MustCompile(`“([^”]+)”`)

// Every message that the pages quote is in the source of the library: the
// pieces between what varies are parts of texts there, in this order.
func TestMessages(t *testing.T) {
	texts := sourceTexts(t)
	for page, text := range pages(t) {
		found := quoted.FindAllStringSubmatch(text, -1)
		if strings.HasSuffix(page, "troubleshooting.md") && len(found) < 30 {
			t.Errorf("%s quotes %d messages; are the quotation marks right?", page, len(found))
		}
		for _, m := range found {
			message := strings.Join(strings.Fields(m[1]), " ")
			if !inSource(texts, message) {
				t.Errorf("%s: no text of the source says %q", page, message)
			}
		}
	}
}

// inSource reports whether a text has the pieces of a message, in their order.
func inSource(texts []string, message string) bool {
	for _, text := range texts {
		rest, all := text, true
		for piece := range strings.SplitSeq(message, "…") {
			piece = strings.TrimSpace(piece)
			i := strings.Index(rest, piece)
			if all = i >= 0; !all {
				break
			}
			rest = rest[i+len(piece):]
		}
		if all {
			return true
		}
	}
	return false
}

// sourceTexts are the string literals of the library, those that are added up
// as one.
func sourceTexts(t *testing.T) []string {
	t.Helper()
	var texts []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "examples" || d.Name() == "app" || d.Name() == "bench" || d.Name() == "interop" ||
			d.Name() == "conformance" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text := literal(e); text != "" {
					texts = append(texts, text)
					return false
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 1000 {
		t.Fatalf("only %d texts were found in the source", len(texts))
	}
	return texts
}

// literal is the text of a string literal, or of several that are added up; what
// is added to them and is none varies.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literal(e.X) + literal(e.Y)
		}
	}
	return ""
}

func TestInSource(t *testing.T) {
	texts := []string{"more than %d requests (%s)", "other"}
	for message, want := range map[string]bool{
		"more than … requests": true, "requests … more": false, "other": true, "another": false, "… requests (…)": true,
	} {
		if got := inSource(texts, message); got != want {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
	}
}

// Every limit is on the page of limits.
func TestLimitsPage(t *testing.T) {
	text := pages(t)[guide+"/limits.md"]
	for _, test := range []struct {
		of     any
		prefix string
	}{
		{server.Limits{}, "Limits."},
		{streamable.Options{}, ""},
		{stdio.Options{}, ""},
		{client.Options{}, ""},
	} {
		typ := reflect.TypeOf(test.of)
		for _, f := range reflect.VisibleFields(typ) {
			switch f.Type {
			case reflect.TypeFor[int](), reflect.TypeFor[float64](), reflect.TypeFor[time.Duration]():
			default:
				continue
			}
			if !strings.Contains(text, "`"+test.prefix+f.Name+"`") {
				t.Errorf("%v.%s is not on the page of limits", typ, f.Name)
			}
		}
	}
}
