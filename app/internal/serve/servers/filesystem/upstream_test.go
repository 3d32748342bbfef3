package filesystem_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// Reports about the original that no other test covers. The name of each is its number in
// modelcontextprotocol/servers; ../testdata/reports.txt lists all reports.
func TestUpstreamReports(t *testing.T) {
	t.Run("670", reportSubdirectories)
	t.Run("2098", reportLetters)
	t.Run("2366", reportRootDirectory)
	t.Run("3110", reportStructured)
	t.Run("3174", reportEscapedRoot)
	t.Run("3253", reportLinkedDirectory)
	t.Run("3508", reportSpaces)
	t.Run("4115", reportExecutable)
	t.Run("4178", reportNoLines)
	t.Run("4225", reportDollars)
}

// The description of list_allowed_directories says that everything below them is allowed.
func reportSubdirectories(t *testing.T) {
	for tool, err := range start(t, nil, nil).client.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.Name == "list_allowed_directories" && strings.Contains(tool.Description, "all below them") {
			return
		}
	}
	t.Error("no description of list_allowed_directories says so")
}

// No lines are not all lines.
func reportNoLines(t *testing.T) {
	f := start(t, nil, nil)
	for _, end := range []string{"head", "tail"} {
		f.refused("read_text_file", args{"path": "a.txt", end: 0}, end)
	}
}

// Letters beyond ASCII reach the file as UTF-8, whatever the encoding of the system is.
func reportLetters(t *testing.T) {
	f := start(t, nil, nil)
	f.want("write_file", args{"path": "b.txt", "content": "Bäcker € 日本"}, "Successfully wrote to b.txt")
	if got, want := get(t, f.path("b.txt")), "B\u00e4cker \u20ac \u65e5\u672c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Everything below the root of a file system is allowed if the root is.
func reportRootDirectory(t *testing.T) {
	dir, _ := folders(t)
	root := filepath.VolumeName(dir) + string(filepath.Separator)
	f := &fixture{t: t, dir: dir, client: mcptest.Client(t, serve(t, nil, root))}
	f.want("read_text_file", args{"path": f.path("a.txt")}, "one\ntwo\nthree\n")
	f.want("list_directory", args{"path": dir}, "[FILE] a.txt")
}

// The structured result of each tool with text has the member content, which is the text.
func reportStructured(t *testing.T) {
	f := start(t, nil, nil)
	for _, test := range []struct {
		tool string
		in   args
	}{
		{"list_directory_with_sizes", args{"path": "."}},
		{"directory_tree", args{"path": "."}},
		{"search_files", args{"path": ".", "pattern": "*"}},
		{"read_multiple_files", args{"paths": []string{"a.txt"}}},
		{"move_file", args{"source": "a.txt", "destination": "b.txt"}},
	} {
		res, err := f.client.CallTool(t.Context(), test.tool, test.in, nil)
		if err != nil || res.IsError || len(res.Content) != 1 {
			t.Fatalf("%s: %+v, %v", test.tool, res, err)
		}
		var got map[string]string
		if err := json.Unmarshal(res.StructuredContent, &got); err != nil {
			t.Errorf("%s: %s: %v", test.tool, res.StructuredContent, err)
		}
		if text := host.ContentText(res.Content[0]); len(got) != 1 || got["content"] != text {
			t.Errorf("%s: %q, want the content %q", test.tool, got, text)
		}
	}
}

// The URI of a root can have escapes, also of signs that need none.
func reportEscapedRoot(t *testing.T) {
	dir, _ := folders(t)
	spaced := filepath.Join(filepath.Dir(dir), "one drive")
	put(t, filepath.Join(spaced, "b.txt"), "b")
	uri := strings.Replace((&url.URL{Scheme: "file", Path: filepath.ToSlash(spaced)}).String(), "one%20drive", "%6Fne%20drive", 1)
	if runtime.GOOS == "windows" { // as some clients write the drive
		uri = strings.Replace(uri, "file://"+spaced[:2], "file:///"+spaced[:1]+"%3A", 1)
	}
	o := &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: uri}}, nil }}
	f := &fixture{t: t, dir: spaced, client: mcptest.Client(t, serve(t, nil), o)}
	f.want("list_allowed_directories", args{}, "Allowed directories:\n"+spaced)
	f.want("read_text_file", args{"path": f.path("b.txt")}, "b")
}

// An allowed directory that is a link, or lies below one, is allowed by both of its names.
func reportLinkedDirectory(t *testing.T) {
	dir, _ := folders(t)
	linked := filepath.Join(filepath.Dir(dir), "linked")
	link(t, dir, linked)
	f := &fixture{t: t, dir: linked, client: mcptest.Client(t, serve(t, nil, linked))}
	f.want("read_text_file", args{"path": filepath.Join(linked, "a.txt")}, "one\ntwo\nthree\n")
	f.want("read_text_file", args{"path": filepath.Join(dir, "a.txt")}, "one\ntwo\nthree\n")
	f.want("write_file", args{"path": filepath.Join(linked, "new", "..", "b.txt"), "content": "b"},
		"Successfully wrote to "+filepath.Join(linked, "new", "..", "b.txt"))
}

// Spaces and letters beyond ASCII in the names of subdirectories do no harm.
func reportSpaces(t *testing.T) {
	f := start(t, nil, nil)
	const name = "03- FORMBLÄTTER/Qualitäts Management/ä ö.txt"
	put(t, f.path(name), "x")
	f.want("read_text_file", args{"path": f.path(name)}, "x")
	f.want("list_directory", args{"path": "03- FORMBLÄTTER"}, "[DIR] Qualitäts Management")
	f.want("search_files", args{"path": ".", "pattern": "**/ä*"}, f.path(name))
}

// A script stays executable when it is written or edited.
func reportExecutable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission to execute")
	}
	f := start(t, nil, nil)
	if err := os.Chmod(f.path("a.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.want("write_file", args{"path": "a.txt", "content": "echo one"}, "Successfully wrote to a.txt")
	if text, failed := call(t.Context(), t, f.client, "edit_file", args{"path": "a.txt", "edits": []args{{"oldText": "one", "newText": "two"}}}); failed {
		t.Error(text)
	}
	if info, err := os.Stat(f.path("a.txt")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}

// A new text is written as it is, whatever a replacement in JavaScript would make of it.
func reportDollars(t *testing.T) {
	f := start(t, nil, nil)
	const next = "$& $1 $$ $` $' ${x} \\1"
	text, failed := call(t.Context(), t, f.client, "edit_file", args{"path": "a.txt", "edits": []args{{"oldText": "two", "newText": next}}})
	if got := get(t, f.path("a.txt")); failed || got != "one\n"+next+"\nthree\n" {
		t.Errorf("%q (%s)", got, text)
	}
}
