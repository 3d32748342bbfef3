package filesystem_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/filesystem"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Each tool answers in every revision and over every transport.
func TestTools(t *testing.T) {
	dir, _ := folders(t)
	build := func(tb testing.TB, o *server.Options) *server.Server {
		return serve(tb, &filesystem.Options{Server: o}, dir)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		f := &fixture{t: t, dir: dir, client: c}
		put(t, f.path("a.txt"), "one\ntwo\nthree\n")
		if err := os.RemoveAll(f.path("made")); err != nil {
			t.Fatal(err)
		}
		f.want("list_allowed_directories", args{}, "Allowed directories:\n"+dir)
		f.want("read_text_file", args{"path": "a.txt"}, "one\ntwo\nthree\n")
		f.want("read_file", args{"path": f.path("a.txt"), "head": 2}, "one\ntwo")
		f.want("read_text_file", args{"path": "a.txt", "tail": 2}, "two\nthree")
		f.want("read_multiple_files", args{"paths": []string{"a.txt", "b.txt"}},
			"a.txt:\none\ntwo\nthree\n\n\n---\nb.txt: Error - ENOENT: no such file or directory, open '"+f.path("b.txt")+"'")
		f.want("create_directory", args{"path": "made/deep"}, "Successfully created directory made/deep")
		f.want("write_file", args{"path": "made/b.txt", "content": "hi"}, "Successfully wrote to made/b.txt")
		f.want("move_file", args{"source": "made/b.txt", "destination": "made/deep/c.txt"}, "Successfully moved made/b.txt to made/deep/c.txt")
		f.want("list_directory", args{"path": dir}, "[FILE] a.txt\n[DIR] made")
		f.want("list_directory_with_sizes", args{"path": dir},
			"[FILE] a.txt                                14 B\n[DIR] made                           \n\nTotal: 1 files, 1 directories\nCombined size: 14 B")
		f.want("directory_tree", args{"path": "made"}, `[
  {
    "name": "deep",
    "type": "directory",
    "children": [
      {
        "name": "c.txt",
        "type": "file"
      }
    ]
  }
]`)
		f.want("search_files", args{"path": ".", "pattern": "**/*.txt", "excludePatterns": []string{"a*"}}, f.path("made/deep/c.txt"))
		f.want("search_files", args{"path": ".", "pattern": "*.go"}, "No matches found")
		f.want("edit_file", args{"path": "a.txt", "edits": []args{{"oldText": "two", "newText": "zwei"}}},
			"```diff\nIndex: "+f.path("a.txt")+"\n"+strings.Repeat("=", 67)+"\n--- "+f.path("a.txt")+"\toriginal\n+++ "+f.path("a.txt")+
				"\tmodified\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n```\n\n")
		if got := get(t, f.path("a.txt")); got != "one\nzwei\nthree\n" {
			t.Errorf("edited: %q", got)
		}
		got, failed := call(t.Context(), t, c, "get_file_info", args{"path": "made/deep/c.txt"})
		if failed || !strings.HasPrefix(got, "size: 2\ncreated: ") || !strings.Contains(got, "isDirectory: false\nisFile: true\npermissions: ") {
			t.Errorf("info: %q", got)
		}
	}, mcptest.Over("mem", "stdio", "streamable"))
}

// Media are what their names say, and are in the result once (modelcontextprotocol/servers#4044).
func TestMedia(t *testing.T) {
	f := start(t, nil, nil)
	put(t, f.path("x.PNG"), "\x89PNG")
	put(t, f.path("x.ogg"), "OggS")
	put(t, f.path("y.bin"), "\x00\x01")
	for name, want := range map[string]mcp.Content{
		"x.PNG": mcp.Image([]byte("\x89PNG"), "image/png"),
		"x.ogg": mcp.Audio([]byte("OggS"), "audio/ogg"),
		"y.bin": mcp.Embed(mcp.ResourceContents{URI: rootURI(f.path("y.bin")), MIMEType: "application/octet-stream", Blob: []byte{0, 1}}),
	} {
		res, err := f.client.CallTool(t.Context(), "read_media_file", args{"path": name}, nil)
		if err != nil || res.IsError || len(res.Content) != 1 || len(res.StructuredContent) > 0 {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		if diff := cmp.Diff(want, res.Content[0]); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// Lines from either end of a file are whole lines, whatever the ends of lines are
// (modelcontextprotocol/servers#4175, #4643, #4674).
func TestHeadAndTail(t *testing.T) {
	f := start(t, nil, nil)
	const line = "0123456789abcdef\n"
	long := strings.Repeat(line, 20_000) // several chunks
	for name, text := range map[string]string{
		"long": long, "crlf": "a\r\nb\r\nc", "crlf end": "a\r\nb\r\nc\r\n", "mixed": "a\nb\r\nc\n", "empty": "", "one": "a", "one end": "a\n", "end": "a\n\n", "ends": "\n\n",
		"cr": "a\rb\r", "wide": strings.Repeat("ü", 70_000) + "\nx", "edge": strings.Repeat("x", 64<<10) + "\n", "edges": "y\n" + strings.Repeat("x", 64<<10-1) + "\n",
	} {
		put(t, f.path(name), text)
	}
	for _, test := range []struct {
		name, part string
		n          int
		want       string
	}{
		{"long", "tail", 10_001, strings.TrimSuffix(strings.Repeat(line, 10_001), "\n")},
		{"long", "head", 10_000, strings.TrimSuffix(strings.Repeat(line, 10_000), "\n")},
		{"long", "head", 99_999, strings.TrimSuffix(long, "\n")},
		{"long", "tail", 99_999, strings.TrimSuffix(long, "\n")},
		{"long", "tail", 20_000, strings.TrimSuffix(long, "\n")},
		{"crlf", "tail", 2, "b\r\nc"},
		{"crlf", "head", 2, "a\r\nb"},
		{"crlf end", "tail", 1, "c"},
		{"crlf end", "tail", 2, "b\r\nc"},
		{"crlf end", "head", 3, "a\r\nb\r\nc"},
		{"crlf end", "head", 9, "a\r\nb\r\nc"},
		{"mixed", "tail", 2, "b\r\nc"},
		{"mixed", "head", 2, "a\nb"},
		{"empty", "head", 1, ""},
		{"empty", "tail", 1, ""},
		{"one", "head", 1, "a"},
		{"one", "tail", 1, "a"},
		{"one end", "head", 1, "a"},
		{"one end", "tail", 1, "a"},
		{"one end", "tail", 2, "a"},
		{"end", "head", 5, "a\n"},
		{"end", "tail", 1, ""},
		{"end", "tail", 2, "a\n"},
		{"ends", "tail", 2, "\n"},
		{"cr", "tail", 1, "a\rb\r"},
		{"wide", "head", 1, strings.Repeat("ü", 70_000)},
		{"wide", "tail", 1, "x"},
		{"edge", "tail", 1, strings.Repeat("x", 64<<10)},
		{"edges", "tail", 1, strings.Repeat("x", 64<<10-1)},
		{"edges", "tail", 2, "y\n" + strings.Repeat("x", 64<<10-1)},
	} {
		for _, tool := range []string{"read_text_file", "read_file"} {
			got, failed := call(t.Context(), t, f.client, tool, args{"path": test.name, test.part: test.n})
			if failed || got != test.want {
				t.Errorf("%s %s %d: %.40q and %d bytes in all, want %.40q and %d", test.name, test.part, test.n, got, len(got), test.want, len(test.want))
			}
		}
	}
	f.refused("read_text_file", args{"path": "one", "head": 1, "tail": 1}, "both head and tail")
}

// Bytes that are no text become one U+FFFD for each part of a character.
func TestBrokenText(t *testing.T) {
	f := start(t, nil, nil)
	for data, want := range map[string]string{
		"\xc2\xc2a\xe0\x9f\xed\xa0\xed\x9fb":            "\ufffd\ufffda\ufffd\ufffd\ufffd\ufffd\ufffdb",
		"\xf0\x8f\xbf\xf0\x90\xbfa\xf4\x90\xf4\x8f\xbf": "\ufffd\ufffd\ufffd\ufffda\ufffd\ufffd\ufffd",
		"\xe1\x80\xe1\x80\x80\xf5\x80":                  "\ufffd\u1000\ufffd\ufffd",
		"a\xe2\x82b\xffc\xf0\x9f\x98":                   "a\ufffdb\ufffdc\ufffd",
	} {
		put(t, f.path("broken"), data)
		f.want("read_text_file", args{"path": "broken"}, want)
	}
	put(t, f.path("broken"), "a\xe2\x82b\xffc\xf0\x9f\x98")
	f.refused("edit_file", args{"path": "broken", "edits": []args{{"oldText": "a", "newText": "b"}}}, "not text in UTF-8")
	if got := get(t, f.path("broken")); got != "a\xe2\x82b\xffc\xf0\x9f\x98" {
		t.Errorf("it was changed: %q", got)
	}
}

// A file keeps its permissions, and lines that end as on Windows keep their ends.
func TestEditKeeps(t *testing.T) {
	f := start(t, nil, nil)
	put(t, f.path("w"), "a\r\n  b\r\nc")
	if err := os.Chmod(f.path("w"), 0o600); err != nil {
		t.Fatal(err)
	}
	edits := []args{{"oldText": "b\nc", "newText": "B\nC"}}
	before := get(t, f.path("w"))
	if _, failed := call(t.Context(), t, f.client, "edit_file", args{"path": "w", "edits": edits, "dryRun": true}); failed || get(t, f.path("w")) != before {
		t.Errorf("dryRun: failed %t, %q", failed, get(t, f.path("w")))
	}
	if text, failed := call(t.Context(), t, f.client, "edit_file", args{"path": "w", "edits": edits}); failed {
		t.Fatal(text)
	}
	if got := get(t, f.path("w")); got != "a\r\n  B\r\nC" {
		t.Errorf("%q", got)
	}
	info, err := os.Stat(f.path("w"))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	// All edits are made or none.
	f.refused("edit_file", args{"path": "w", "edits": []args{{"oldText": "a", "newText": "x"}, {"oldText": "nowhere", "newText": ""}}}, "Could not find exact match for edit:\nnowhere")
	if got := get(t, f.path("w")); got != "a\r\n  B\r\nC" {
		t.Errorf("%q", got)
	}
	checkNoLeftovers(t, f.dir)
}

// checkNoLeftovers checks that no temporary file is left.
func checkNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, ".parley-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Nothing that exists is overwritten by a move, within a directory and between two.
func TestMove(t *testing.T) {
	dir, other := folders(t)
	f := &fixture{t: t, dir: dir, client: mcptest.Client(t, serve(t, nil, dir, other))}
	f.refused("move_file", args{"source": "a.txt", "destination": filepath.Join(other, "secret")}, "Destination already exists")
	f.refused("move_file", args{"source": dir, "destination": filepath.Join(other, "x")}, "is an allowed directory")
	put(t, f.path("d/e"), "e")
	f.refused("move_file", args{"source": "d", "destination": "d/f"}, "EINVAL")
	f.refused("move_file", args{"source": "none", "destination": "x"}, "ENOENT: no such file or directory, rename '")
	if runtime.GOOS != "windows" {
		f.want("move_file", args{"source": "d", "destination": filepath.Join(other, "d")}, "Successfully moved d to "+filepath.Join(other, "d"))
		if got := get(t, filepath.Join(other, "d", "e")); got != "e" {
			t.Errorf("%q", got)
		}
	}
	if got := get(t, filepath.Join(other, "secret")); got != secret {
		t.Errorf("it was overwritten: %q", got)
	}
}

// The tools that change something are not there for readers, and say what they do.
func TestAnnotationsAndReadOnly(t *testing.T) {
	changing := []string{"create_directory", "edit_file", "move_file", "write_file"}
	for _, readOnly := range []bool{false, true} {
		f := start(t, &filesystem.Options{ReadOnly: readOnly}, nil)
		var found []string
		for tool, err := range f.client.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			a := tool.Annotations
			if a == nil || a.ReadOnlyHint == nil || a.OpenWorldHint == nil || *a.OpenWorldHint {
				t.Fatalf("%s: %+v", tool.Name, a)
			}
			if !*a.ReadOnlyHint {
				found = append(found, tool.Name)
				if a.DestructiveHint == nil || *a.DestructiveHint != (tool.Name != "create_directory") {
					t.Errorf("%s: %+v", tool.Name, a)
				}
			}
		}
		slices.Sort(found)
		if want := map[bool][]string{false: changing, true: nil}[readOnly]; !slices.Equal(found, want) {
			t.Errorf("read-only %t: %v", readOnly, found)
		}
	}
}

// Tools that change something need the scope that the operator names; the others do not.
func TestWriteScope(t *testing.T) {
	dir, _ := folders(t)
	build := func(tb testing.TB, o *server.Options) *server.Server {
		return serve(tb, &filesystem.Options{WriteScope: "filesystem:write", Server: o}, dir)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		for tool, in := range map[string]args{
			"write_file": {"path": "x", "content": ""}, "create_directory": {"path": "d"},
			"edit_file": {"path": "a.txt", "edits": []args{}}, "move_file": {"source": "a.txt", "destination": "b"},
		} {
			if res, err := c.CallTool(t.Context(), tool, in, nil); err == nil && !res.IsError {
				t.Errorf("%s: %+v, want a refusal", tool, res)
			}
		}
		f := &fixture{t: t, dir: dir, client: c}
		f.want("list_directory", args{"path": "."}, "[FILE] a.txt")
	}, mcptest.Over("streamable"))
}

// With Confirm the person is asked before something that exists is changed, where the
// client can ask; without an answer nothing happens.
func TestConfirm(t *testing.T) {
	for _, agree := range []bool{true, false} {
		asked := 0
		dir, _ := folders(t)
		build := func(tb testing.TB, o *server.Options) *server.Server {
			return serve(tb, &filesystem.Options{Confirm: true, Server: o}, dir)
		}
		o := &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			if !strings.Contains(r.Params.Message, "a.txt") {
				t.Errorf("asked %q", r.Params.Message)
			}
			return client.Accept(map[string]bool{"sure": agree})
		}}
		mcptest.EachEra(t, build, o, func(t *testing.T, _ mcptest.Era, c *client.Client) {
			asked = 0
			f := &fixture{t: t, dir: dir, client: c}
			_ = os.Remove(f.path("new.txt"))
			put(t, f.path("a.txt"), "old")
			if text, failed := call(t.Context(), t, c, "write_file", args{"path": "new.txt", "content": "n"}); failed || asked != 0 {
				t.Errorf("a new file: %q, asked %d times", text, asked)
			}
			text, failed := call(t.Context(), t, c, "write_file", args{"path": "a.txt", "content": "new"})
			if asked != 1 || failed == agree {
				t.Errorf("%q (failed: %t), asked %d times", text, failed, asked)
			}
			if got, want := get(t, f.path("a.txt")), map[bool]string{true: "new", false: "old"}[agree]; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}, mcptest.Over("mem"), mcptest.In("2026-07-28", "2025-11-25", "2025-06-18")) // those that have forms
	}
	f := start(t, &filesystem.Options{Confirm: true}, nil) // this client cannot ask
	f.want("write_file", args{"path": "a.txt", "content": "new"}, "Successfully wrote to a.txt")
}
