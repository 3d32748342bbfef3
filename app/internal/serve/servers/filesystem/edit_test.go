package filesystem_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// edits makes the argument of edit_file from pairs of texts.
func edits(pairs ...string) []args {
	var list []args
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, args{"oldText": pairs[i], "newText": pairs[i+1]})
	}
	return list
}

// Lines keep their ends, whatever ends the edit has; lines that come in have the end of the line
// before them.
func TestEditEnds(t *testing.T) {
	f := start(t, nil, nil)
	for _, test := range []struct{ before, old, next, after string }{
		{"a\r\nb\r\nc\nd\r\n", "b\nc", "x\ny", "a\r\nx\r\ny\nd\r\n"},
		{"a\nb\r\nc\nd\n", "c\n", "x\n", "a\nb\r\nx\nd\n"},
		{"a\nb\r\nc\nd\n", "a\nb\nc\n", "x\ny\nz\nnew\n", "x\ny\r\nz\nnew\nd\n"},
		{"a\nb\r\n  c\r\nd\n", "b\nc", "x\ny", "a\nx\r\n  y\r\nd\n"},
		{"a\r\n  b\r\n\r\n", " b \n ", "x\n", "a\r\n  x\r\n\r\n"},
		{"a\r\nb\r\n", "b", "x\ny\nz", "a\r\nx\r\ny\r\nz\r\n"},
		{"a\r\nb", "b", "x\r\ny\n", "a\r\nx\r\ny\r\n"},
		{"a\nb\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\ny\n"},
		{"a\r\nb\r\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\r\ny\r\n"},
		{"a\r\nb\r\nc", "b\n", "", "a\r\nc"},
		{"a\r\nb\r\n", "b\n", "b", "a\r\nb"},
		{"a\r\n\tb\r\nc\r\n", "  b\n", "", "a\r\nc\r\n"},
		{"a\nb\n", "b\n\n", "c\n", "a\nc\n"},
		{"a\r\nb\r\n", "b\n\n", "c\nd\n", "a\r\nc\r\nd\r\n"},
		{"a\nb\n", "b\n\n", "c\n\n", "a\nc\n"},
		{"a\nb\n", "b\n\n", "", "a\n"},
		{"a\nb", "b \n", "c\n", "a\nc"},
		{"a\rb\r", "a\rb", "x\ry", "x\ry\r"},
	} {
		put(t, f.path("ends"), test.before)
		text, failed := call(t.Context(), t, f.client, "edit_file", args{"path": "ends", "edits": edits(test.old, test.next)})
		if got := get(t, f.path("ends")); failed || got != test.after {
			t.Errorf("%q, %q to %q: %q, want %q (%s)", test.before, test.old, test.next, got, test.after, text)
		}
	}
}

// Lines that are found in spite of other indentation keep the indentation of the file, in tabs or
// spaces as it has them (modelcontextprotocol/servers#4823).
func TestEditIndentation(t *testing.T) {
	f := start(t, nil, nil)
	const nbsp = "\u00a0"
	for name, test := range map[string]struct{ before, old, next, after string }{
		"none given":        {"if x {\n    a()\n    b()\n}\n", "a()\nb()\n", "a()\nc()\nb()\nd()\n", "if x {\n    a()\n    c()\n    b()\n    d()\n}\n"},
		"none given, tabs":  {"if x {\n\t\ta()\n\t\tb()\n}\n", "a()\nb()", "a()\nc()\nb()", "if x {\n\t\ta()\n\t\tc()\n\t\tb()\n}\n"},
		"spaces for tabs":   {"f {\n\tif x {\n\t\ta()\n\t}\n}\n", "    if x {\n        a()\n    }", "    if x {\n        a()\n        if y {\n            b()\n        }\n    }", "f {\n\tif x {\n\t\ta()\n\t\tif y {\n\t\t\tb()\n\t\t}\n\t}\n}\n"},
		"two for tabs":      {"f {\n\ta()\n}\n", "  a()", "  if x {\n    a()\n  }", "f {\n\tif x {\n\t\ta()\n\t}\n}\n"},
		"tabs for spaces":   {"f:\n    if x:\n        a()\n", "\tif x:\n\t\ta()", "\tif x:\n\t\ta()\n\t\tif y:\n\t\t\tb()", "f:\n    if x:\n        a()\n        if y:\n            b()\n"},
		"two for four":      {"f:\n    if x:\n        a()\n", "  if x:\n    a()", "  if x:\n    a()\n    if y:\n      b()", "f:\n    if x:\n        a()\n        if y:\n            b()\n"},
		"wrapped":           {"f {\n\ta()\n}\n", "a() ", "if x {\n    a()\n}", "f {\n\tif x {\n\t\ta()\n\t}\n}\n"},
		"none in the new":   {"f:\n\t\ta()\n", "    a()", "b()\nc()", "f:\n\t\tb()\n\t\tc()\n"},
		"none, as it is":    {"f:\n    a()\n", "    a() ", "b()\nc()", "f:\nb()\nc()\n"},
		"less in the new":   {"def f():\n\tif x:\n\t\treturn x\n", "        return x\n", "    return x\n", "def f():\n\tif x:\n\treturn x\n"},
		"less, two for one": {"f {\n\tg {\n\t\ta()\n\t}\n}\n", "    a()", "  a()", "f {\n\tg {\n\ta()\n\t}\n}\n"},
		"more, two for one": {"f {\n\tg {\n\t\ta()\n\t}\n}\n", "    a()", "      a()", "f {\n\tg {\n\t\t\ta()\n\t}\n}\n"},
		"less, two levels":  {"f:\n    g:\n      h:\n\n        a()\n", "\t\ta()", "\ta()", "f:\n    g:\n      h:\n\n      a()\n"},
		"deep snippet":      {"f {\n\tg {\n\t\ta()\n\t}\n}\n", "        a()", "        if y {\n            a()\n        }", "f {\n\tg {\n\t\tif y {\n\t\t\ta()\n\t\t}\n\t}\n}\n"},
		"whole characters":  {"a\n    b\na\n    b\n" + nbsp + nbsp + nbsp + nbsp + nbsp + "x\n", "      x", "      x\n   y", "a\n    b\na\n    b\n" + nbsp + nbsp + nbsp + nbsp + nbsp + "x\n" + nbsp + nbsp + "y\n"},
		"a very wide step":  {"x\n" + strings.Repeat(" ", 20_000) + "y\n", "x \n", "x\n  a\n" + strings.Repeat(" ", 2_000) + "b\n", "x\n    a\n" + strings.Repeat(" ", 4_000) + "b\n" + strings.Repeat(" ", 20_000) + "y\n"},
		"first line bare":   {"f:\n    a()\n    b()\n", "a()\n    b() ", "a()\n    b()\n    c()", "f:\n    a()\n    b()\n    c()\n"},
		"out of the block":  {"f:\n\ta()\n", "    a()\n", "    a()\n\ng:\n    b()\n", "f:\n\ta()\n\ng:\n\tb()\n"},
		"blank lines":       {"f:\n    a()\n\n    b()\n", "a()\n\nb()", "a()\n\n\nc()", "f:\n    a()\n\n\n    c()\n"},
		"aligned":           {"f(\n  a,\n    b)\n", "f( \n  a,\n    b)", "f(\n  a,\n    b,\n     c)", "f(\n  a,\n    b,\n     c)\n"},
		"exact is as it is": {"\ta()\n", "a()", "b()\nc()", "\tb()\nc()\n"},
	} {
		put(t, f.path("code"), test.before)
		text, failed := call(t.Context(), t, f.client, "edit_file", args{"path": "code", "edits": edits(test.old, test.next)})
		if got := get(t, f.path("code")); failed || got != test.after {
			t.Errorf("%s: %.1000q, want %.1000q (%.1000s)", name, got, test.after, text)
		}
	}
}

// An edit that names no place, or several, changes nothing. The error says where the nearest lines
// are, how they differ, or which places there are (modelcontextprotocol/servers#2034).
func TestEditRefused(t *testing.T) {
	f := start(t, nil, nil)
	many := strings.Repeat("same\n", 30)
	for name, test := range map[string]struct {
		file  string
		edits []args
		want  []string
	}{
		"empty":         {"a\n", edits("", "b"), []string{"oldText is empty", "write_file"}},
		"empty second":  {"a\n", edits("a", "b", "", "c"), []string{"edit 2 of 2: oldText is empty"}},
		"twice":         {"x = 1\ny\nx = 1\n", edits("x = 1", "z"), []string{"oldText occurs 2 times, in lines 1, 3; add lines before or after it"}},
		"in one line":   {"ab ab\n", edits("ab", "z"), []string{"2 times, in lines 1, 1"}},
		"overlapping":   {"aaa\n", edits("aa", "z"), []string{"2 times"}},
		"inexact twice": {"\tx = 1\ny\n  x = 1\n", edits("    x = 1", "z"), []string{"2 times, in lines 1, 3"}},
		"many":          {many, edits("same", "z"), []string{"more than 10 times, in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...;"}},
		"after others":  {"a\nb\n", edits("a", "b\nc", "b\n", "z"), []string{"edit 2 of 2", "in lines 1, 3", "lines are counted after the edits before it"}},
		"nowhere":       {"a\nb\n", edits("a", "x", "nowhere", ""), []string{"edit 2 of 2: Could not find exact match for edit:\nnowhere\n", "No line of the file is like it"}},
		"a word":        {"one\nthe quick brown fox\nthree\n", edits("the quick red fox", ""), []string{"nearest lines are 2 to 2:\n2: the quick brown fox\n", "Line 2 differs: the file has \"the quick brown fox\", and oldText has \"the quick red fox\""}},
		"tabs":          {"a\nx\t= 1\nb\n", edits("x = 1", ""), []string{"Line 2 differs only in tabs and spaces: the file has \"x\\t= 1\""}},
		"white space":   {"a\nx  =  1\nb\n", edits("a\nx = 1\nb", ""), []string{"nearest lines are 1 to 3", "Line 2 differs only in white space"}},
		"no space":      {"f(a,b)\n", edits("f(a, b)", ""), []string{"Line 1 differs only in white space"}},
		"carriage":      {"a\rb\n", edits("a\nb", ""), []string{"Could not find"}},
		"lone return":   {"a\rb c d\n", edits("ab c d", ""), []string{"only in a carriage return"}},
		"form":          {"le cafe\u0301 noir\n", edits("le caf\u00e9 noir", ""), []string{"only in the Unicode form of letters, or the kind of spaces: the file has \"le cafe\\u0301 noir\", and oldText has \"le caf\\u00e9 noir\""}},
		"nbsp":          {"10\u00a0km\n", edits("10 km", ""), []string{"the kind of spaces: the file has \"10\\u00a0km\""}},
		"quotes":        {"say \u201chello\u201d\n", edits("say \"hello\"", ""), []string{"characters that look alike"}},
		"not seen":      {"ze\u200bro\n", edits("zero", ""), []string{"characters that are not seen", "ze\\u200bro"}},
		"case":          {"Hello World\n", edits("hello world", ""), []string{"upper and lower case"}},
		"two ways":      {"Hello  World\n", edits("hello world", ""), []string{"only in white space, letter case"}},
		"past the end":  {"one\ntwo", edits("one\ntwo\nthree\nfour", ""), []string{"nearest lines are 1 to 2", "The file ends there, and oldText has 2 more lines"}},
		"past its end":  {"one\ntwo\n", edits("one\ntwo\nthree\nfour", ""), []string{"nearest lines are 1 to 2:\n1: one\n2: two\n", "The file ends there, and oldText has 2 more lines"}},
		"a long line":   {strings.Repeat("x", 5_000) + "y\nz\n", edits(strings.Repeat("x", 5_000)+"z", ""), []string{"nearest lines are 1 to 1:\n1: xxx", "Line 1 differs"}},
		"long":          {strings.Repeat("x", 5_000) + "y\n", edits(strings.Repeat("x", 5_000), "", strings.Repeat("x", 9_000), ""), []string{"..."}},
	} {
		put(t, f.path("file"), test.file)
		for _, dry := range []bool{false, true} {
			f.refused("edit_file", args{"path": "file", "edits": test.edits, "dryRun": dry}, append(test.want, "Nothing was changed.")...)
		}
		if got := get(t, f.path("file")); got != test.file {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Edits are made in their order: one finds what another put there.
func TestEditOrder(t *testing.T) {
	f := start(t, nil, nil)
	in := args{"path": "a.txt", "edits": edits("one", "first\nsecond", "second\ntwo", "2", "2\n", "$& $1\n")}
	if text, failed := call(t.Context(), t, f.client, "edit_file", in); failed {
		t.Fatal(text)
	}
	if got := get(t, f.path("a.txt")); got != "first\n$& $1\nthree\n" {
		t.Errorf("%q", got)
	}
}

// An edit through a link changes the file that it leads to, which keeps its permissions; the link stays.
func TestEditThroughLink(t *testing.T) {
	f := start(t, nil, nil)
	put(t, f.path("sub/file"), "old")
	if err := os.Chmod(f.path("sub/file"), 0o640); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join("sub", "file"), f.path("link"))
	for tool, in := range map[string]args{"edit_file": {"path": "link", "edits": edits("old", "new")}, "write_file": {"path": "link", "content": "new"}} {
		if text, failed := call(t.Context(), t, f.client, tool, in); failed {
			t.Errorf("%s: %s", tool, text)
		}
		if target, err := os.Readlink(f.path("link")); err != nil || target != filepath.Join("sub", "file") {
			t.Errorf("%s: the link leads to %q, %v", tool, target, err)
		}
		info, err := os.Stat(f.path("sub/file"))
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode() != 0o640 {
			t.Errorf("%s: mode %v", tool, info.Mode())
		}
		if got := get(t, f.path("sub/file")); got != "new" {
			t.Errorf("%s: %q", tool, got)
		}
		put(t, f.path("sub/file"), "old")
	}
}

// A dry run changes nothing, not even the time.
func TestEditDryRun(t *testing.T) {
	f := start(t, nil, nil)
	long := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(f.path("a.txt"), long, long); err != nil {
		t.Fatal(err)
	}
	text, failed := call(t.Context(), t, f.client, "edit_file", args{"path": "a.txt", "edits": edits("two", "2"), "dryRun": true})
	if failed || !strings.Contains(text, "-two\n+2\n") {
		t.Error(text)
	}
	if info, err := os.Stat(f.path("a.txt")); err != nil || !info.ModTime().Equal(long) || get(t, f.path("a.txt")) != "one\ntwo\nthree\n" {
		t.Errorf("%v, %v", info, err)
	}
}

// An edit whose lines are almost found at each line of the file ends, where one comparison
// for each pair of lines would take hours.
func TestEditHostile(t *testing.T) {
	f := start(t, nil, nil)
	put(t, f.path("lines"), strings.Repeat("\n", 2_000_000))
	f.refused("edit_file", args{"path": "lines", "edits": edits(strings.Repeat("\n", 500_000)+"x", "")}, "Could not find exact match")
	f.refused("edit_file", args{"path": "lines", "edits": edits(strings.Repeat(" \n", 500_000), "")}, "more than 10 times")
	var most []args
	for range 1_001 {
		most = append(most, args{"oldText": "one", "newText": "one"})
	}
	f.refused("edit_file", args{"path": "a.txt", "edits": most}, "edits", "1000")
}

// Edits whose time or memory would grow with the product of two texts end.
func TestEditProducts(t *testing.T) {
	f := start(t, nil, nil)
	long, many := strings.Repeat("x", 1<<20), strings.Repeat("y\n", 1<<20)
	spaces := strings.Repeat(" ", 1<<20)
	for name, test := range map[string]struct{ file, old, next, refusal string }{
		"a fence":            {strings.Repeat("`", 1<<20) + "\na\n", "a", "b", ""},
		"line ends":          {"a\r\n" + long + "b\n", "a\n" + long, many[:1<<20], ""},
		"the nearest line":   {many, long, "", "Could not find"},
		"deep, not as it is": {spaces + "a\n", " a ", " b\n" + strings.Repeat(" b\n", 100), "8.00 MB"},
		"many indentations":  {strings.Repeat(" y\n", 1<<19) + "z\n", strings.Repeat("y\n", 1<<19) + "z ", strings.Repeat(" x\n", 1<<19), ""},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, f.path("file"), test.file)
			in := args{"path": "file", "edits": edits(test.old, test.next), "dryRun": true}
			text, failed := call(t.Context(), t, f.client, "edit_file", in)
			if failed != (test.refusal != "") || !strings.Contains(text, test.refusal) {
				t.Errorf("%.300s (failed: %t), want %q", text, failed, test.refusal)
			}
		})
	}
}

// The diff of an edit: its lines, and how it shows a file without an end of its last line.
func TestEditDiff(t *testing.T) {
	f := start(t, nil, nil)
	var numbers strings.Builder
	for i := range 20 {
		fmt.Fprintln(&numbers, "line", i)
	}
	for name, test := range map[string]struct {
		file  string
		edits []args
		want  string
	}{
		"same":       {"a\n", edits("a", "a"), ""},
		"to nothing": {"a\nb\n", edits("a\nb\n", ""), "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		"no end":     {"a\nb", edits("b", "c"), "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
		"end added":  {"a", edits("a", "a\n"), "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		"far apart": {numbers.String(), edits("line 0\n", "", "line 19", "last"), "@@ -1,5 +1,4 @@\n-line 0\n line 1\n line 2\n line 3\n line 4\n" +
			"@@ -16,5 +15,5 @@\n line 15\n line 16\n line 17\n line 18\n-line 19\n+last\n"},
		"fence": {"```\n", edits("```", "````"), "@@ -1,1 +1,1 @@\n-```\n+````\n"},
	} {
		put(t, f.path("x"), test.file)
		fence := "```"
		if name == "fence" {
			fence = "`````"
		}
		f.want("edit_file", args{"path": "x", "edits": test.edits}, fence+"diff\nIndex: "+f.path("x")+"\n"+strings.Repeat("=", 67)+"\n--- "+
			f.path("x")+"\toriginal\n+++ "+f.path("x")+"\tmodified\n"+test.want+fence+"\n\n")
	}
}
