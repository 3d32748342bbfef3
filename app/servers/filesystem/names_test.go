package filesystem_test

import (
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
	f.want("write_file", args{"path": "no break", "content": "new"}, "Successfully wrote to no break")
	if got := get(t, f.path("no\u00a0break")); got != "new" {
		t.Errorf("%q", got)
	}
	f.want("move_file", args{"source": "plain\u00a0space", "destination": "moved space"}, "Successfully moved plain\u00a0space to moved space")
	f.refused("move_file", args{"source": "moved space", "destination": "no break"}, "Destination already exists")
	f.want("write_file", args{"path": "a new\u00a0name", "content": "x"}, "Successfully wrote to a new\u00a0name") // nothing is equal: as it is written
	if got := get(t, f.path("a new\u00a0name")); got != "x" {
		t.Errorf("%q", got)
	}
	f.refused("read_text_file", args{"path": "no breaks"}, "ENOENT")
	f.refused("read_text_file", args{"path": "cafe/Shot at 9.41 AM.txt"}, "ENOENT") // the accent is no form

	put(t, f.path("two\u00a0names x"), "1")
	put(t, f.path("two\u202fnames x"), "2")
	f.everyTool("two names x", "several names differ from it only", `"two\u00a0names x"`, `"two\u202fnames x"`)
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
