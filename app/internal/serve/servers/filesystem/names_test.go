package filesystem_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Every path of every tool may be a file URI of this machine, and no other one.
func TestFileURIs(t *testing.T) {
	f := start(t, nil, nil)
	put(t, f.path("a b/x y.txt"), "text")
	uri := strings.ReplaceAll(rootURI(f.path("")), " ", "%20")
	file, made := uri+"/a%20b/x%20y.txt", uri+"/a%20b/%C3%A9"
	f.want("read_text_file", args{"path": file}, "text")
	f.want("read_file", args{"path": strings.Replace(file, "file:///", "file://localhost/", 1), "tail": 1}, "text")
	f.want("read_multiple_files", args{"paths": []string{file}}, file+":\ntext\n")
	f.want("list_directory", args{"path": uri + "/a%20b"}, "[FILE] x y.txt")
	f.want("search_files", args{"path": uri, "pattern": "**/*.txt"}, f.path("a b/x y.txt")+"\n"+f.path("a.txt"))
	f.want("write_file", args{"path": file, "content": "new text"}, "Successfully wrote to "+file)
	f.want("create_directory", args{"path": made}, "Successfully created directory "+made)
	f.want("move_file", args{"source": file, "destination": made + "/z"}, "Successfully moved "+file+" to "+made+"/z")
	for tool, in := range map[string]args{
		"read_media_file": {"path": made + "/z"}, "list_directory_with_sizes": {"path": made}, "directory_tree": {"path": made}, "get_file_info": {"path": made},
		"edit_file": {"path": made + "/z", "edits": []args{{"oldText": "new", "newText": "newer"}}},
	} {
		if text, failed := call(t.Context(), t, f.client, tool, in); failed {
			t.Errorf("%s: %s", tool, text)
		}
	}
	if got := get(t, f.path("a b/é/z")); got != "newer text" {
		t.Errorf("%q", got)
	}
	f.everyTool("file://elsewhere"+filepath.ToSlash(f.path("a.txt")), "not the URI of a file on this machine; write file:///path")
	f.everyTool(uri+"/a.txt?x", "%3F")
	f.everyTool(uri+"/a.txt#x", "%23")
	f.everyTool(uri+"/%00", "NUL")
	f.everyTool(rootURI(filepath.Join(f.beside, "secret")), "Access denied")
	f.everyTool(uri+"/%2e%2e/beside/secret", "Access denied")
}

// A name in another Unicode form, or with other spaces, is the one entry that is equal but for that
// (modelcontextprotocol/servers#1970, #1999, #2112, #3238, #4016). A name that exists is never
// another one.
func TestNamesInOtherForms(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	f := start(t, nil, nil)
	put(t, f.path(decomposed+"/Shot at 9.41\u202fAM.txt"), "shot")
	put(t, f.path("no\u00a0break"), "nbsp")
	put(t, f.path("plain space"), "plain")
	for path, want := range map[string]string{
		composed + "/Shot at 9.41 AM.txt": "shot", decomposed + "/Shot at 9.41\u00a0AM.txt": "shot", "no break": "nbsp", "plain\u202fspace": "plain", "plain\u00a0space": "plain",
	} {
		f.want("read_text_file", args{"path": path}, want)
	}
	f.want("list_directory", args{"path": composed}, "[FILE] Shot at 9.41\u202fAM.txt")
	f.want("move_file", args{"source": "plain\u00a0space", "destination": "moved space"}, "Successfully moved plain\u00a0space to moved space")
	f.want("write_file", args{"path": "a new\u00a0name", "content": "x"}, "Successfully wrote to a new\u00a0name") // nothing is equal: as it is written
	if got := get(t, f.path("a new\u00a0name")); got != "x" {
		t.Errorf("%q", got)
	}
	f.refused("read_text_file", args{"path": "no breaks"}, "ENOENT")
	f.refused("read_text_file", args{"path": "cafe/Shot at 9.41 AM.txt"}, "ENOENT") // the accent is no form

	put(t, f.path("two\u00a0names x"), "1")
	put(t, f.path("two\u202fnames x"), "2")
	for tool, in := range map[string]args{
		"read_text_file": {"path": "two names x"}, "read_media_file": {"path": "two names x"}, "get_file_info": {"path": "two names x"},
		"edit_file": {"path": "two names x", "edits": []args{}}, "move_file": {"source": "two names x", "destination": "moved"},
	} {
		f.refused(tool, in, "several names differ from it only", `"two\u00a0names x"`, `"two\u202fnames x"`)
	}
	f.want("read_text_file", args{"path": "two\u202fnames x"}, "2")
	put(t, f.path("two names x"), "3")
	f.want("read_text_file", args{"path": "two names x"}, "3")

	// A link of that name leads no further than others.
	link(t, f.beside, f.path("out\u00a0side"))
	f.everyTool("out side/secret", "Access denied")
	if runtime.GOOS == "linux" { // where two forms are two names
		put(t, f.path(composed+"/here"), "composed")
		f.want("read_text_file", args{"path": composed + "/here"}, "composed")
		f.refused("read_text_file", args{"path": decomposed + "/here"}, "ENOENT")
	}
}

// Calls that make something take its name as it is written: what is there under another form of it stays.
// The directory that it is made in may have another form.
func TestNamesMadeLiterally(t *testing.T) {
	const there, asked = "a\u202fb", "a b"
	f := start(t, nil, nil)
	put(t, f.path("the\u00a0folder/"+there), "old")
	in := func(name string) string { return f.path("the\u00a0folder/" + name) }
	f.want("write_file", args{"path": "the folder/" + asked, "content": "new"}, "Successfully wrote to the folder/"+asked)
	if got := get(t, in(asked)) + get(t, in(there)); got != "newold" {
		t.Errorf("%q", got)
	}
	f.want("move_file", args{"source": "the folder/" + asked, "destination": "the folder/" + asked + " c"}, "Successfully moved the folder/"+asked+" to the folder/"+asked+" c")
	f.want("move_file", args{"source": "the folder/" + there, "destination": "the folder/" + asked}, "Successfully moved the folder/"+there+" to the folder/"+asked)
	if got := get(t, in(asked)); got != "old" {
		t.Errorf("%q", got)
	}
	f.want("edit_file", args{"path": "the folder/" + there, "edits": edits("old", "old"), "dryRun": true},
		"```diff\nIndex: "+in(asked)+"\n"+strings.Repeat("=", 67)+"\n--- "+in(asked)+"\toriginal\n+++ "+in(asked)+"\tmodified\n```\n\n")
	for _, path := range []string{"new\u00a0one", "new\u202fone/below", "new one"} {
		f.want("create_directory", args{"path": path}, "Successfully created directory "+path)
	}
	for _, path := range []string{"new\u00a0one/below", "new one"} {
		if info, err := os.Stat(f.path(path)); err != nil || !info.IsDir() {
			t.Errorf("%q: %v", path, err)
		}
	}
}
