package git_test

import (
	"path/filepath"
	"testing"
)

// For each attribute the last line that names it counts. Lines that git does not understand are passed over.
func TestAttributes(t *testing.T) {
	needGitProgram(t)
	for name, text := range map[string]string{
		"later line wins":           "* text=auto\n*.dat -text -diff\n",
		"two attributes, two lines": "*.dat -text\n*.dat -diff\n* linguist-generated\n",
		"earlier line with more":    "*.dat text eol=crlf\n*.dat -text\n",
		"binary, then text":         "* binary\n*.dat text\n",
		"text, then binary":         "*.dat text\n* binary\n",
		"binary and text":           "*.dat binary text\n",
		"unspecified":               "*.dat text\n*.dat !text\n",
		"folder":                    "* text\nvendor/ linguist-vendored\n",
		"quoted":                    "* text\n\"\"\n\"\" -text\n",
		"quoted name":               "* text\n\"a.dat\" -text\n",
		"slash":                     "* text\n/ -text\n",
		"slashes":                   "* text\n// -text\nvendor// -text\n",
		"macro":                     "[attr]raw -text\n* text\n*.dat raw\n",
		"byte order mark":           "\ufeff*.dat text\n",
		"other characters":          "[!b]* text\n",
		"stars":                     "** text\nvendor/** -text\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := simple(t)
			put(t, filepath.Join(dir, ".gitattributes"), text)
			for _, name := range []string{"a.dat", "b.txt", "vendor/x", "vendor/x.dat"} {
				put(t, filepath.Join(dir, name), "a\r\nb\r\n")
			}
			asGit(t, dir, "git_add", map[string]any{"files": []string{"."}}, "add", ".")
		})
	}
}

// A filter is found on a line before the last one that matches.
func TestAttributesOfFilters(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, ".gitattributes"), "assets/** filter=lfs -text\n*.png binary\n")
	put(t, filepath.Join(dir, "assets", "x.png"), "x\n")
	refused(t, serve(t, nil), "git_add", map[string]any{"repo_path": dir, "files": []string{"assets/x.png"}}, "filter")
}
