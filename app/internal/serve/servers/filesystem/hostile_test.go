package filesystem_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/filesystem"
	"github.com/parley-mcp/parley/client"
)

// everyTool calls each tool that takes a path with it; all must refuse.
func (f *fixture) everyTool(path string, parts ...string) {
	f.t.Helper()
	for tool, in := range map[string]args{
		"read_text_file": {"path": path}, "read_file": {"path": path, "tail": 1}, "read_media_file": {"path": path},
		"write_file": {"path": path, "content": "x"}, "edit_file": {"path": path, "edits": []args{}},
		"create_directory": {"path": path}, "list_directory": {"path": path}, "list_directory_with_sizes": {"path": path},
		"directory_tree": {"path": path}, "search_files": {"path": path, "pattern": "**"}, "get_file_info": {"path": path},
		"move_file": {"source": path, "destination": "moved"},
	} {
		f.refused(tool, in, parts...)
	}
	f.refused("move_file", args{"source": "a.txt", "destination": path}, parts...)
	text, failed := call(f.t.Context(), f.t, f.client, "read_multiple_files", args{"paths": []string{path}})
	if failed || !strings.Contains(text, ": Error - ") || strings.Contains(text, secret) {
		f.t.Errorf("read_multiple_files: %.300q", text)
	}
}

// Proves: SEC-RES-1. No spelling of a path leads out of the directory.
func TestPathsOutside(t *testing.T) {
	f := start(t, nil, nil)
	outside := []string{
		filepath.Join(f.beside, "secret"), "../beside/secret", "x/../../beside/secret", f.dir + "/../beside/secret", f.dir + "x", f.dir + "2/secret",
		"~", "~/secret", "..", "/",
	}
	if runtime.GOOS == "linux" {
		outside = append(outside, "/proc/self/environ", "/proc/self/root"+f.beside+"/secret", "/proc/self/cwd", "/etc/passwd", "/dev/zero")
	}
	for _, path := range outside {
		f.everyTool(path, "Access denied")
	}
	if got := get(t, filepath.Join(f.beside, "secret")); got != secret {
		t.Errorf("it was written to: %q", got)
	}
}

// Links that lead out are not followed, of whatever kind they are.
func TestLinksOutside(t *testing.T) {
	f := start(t, nil, nil)
	link(t, f.beside, f.path("absolute"))
	link(t, "../beside", f.path("relative"))
	link(t, "absolute", f.path("twice"))
	link(t, filepath.Join(f.beside, "secret"), f.path("file"))
	for _, path := range []string{"absolute/secret", "relative/secret", "twice/secret", "absolute/new/file"} {
		f.everyTool(path, "Access denied")
	}
	f.refused("read_text_file", args{"path": "file"}, "Access denied")
	f.refused("write_file", args{"path": "file", "content": "x"}, "Access denied")
	f.refused("edit_file", args{"path": "file", "edits": []args{}}, "Access denied")
	f.want("move_file", args{"source": "file", "destination": "moved"}, "Successfully moved file to moved") // the link itself
	f.want("move_file", args{"source": "moved", "destination": "file"}, "Successfully moved moved to file")
	f.want("search_files", args{"path": ".", "pattern": "**"}, f.path("a.txt"))
	got, failed := call(t.Context(), t, f.client, "list_directory_with_sizes", args{"path": "."})
	if failed || !strings.Contains(got, "[FILE] file                                  0 B") {
		t.Errorf("the size of what is outside: %q", got)
	}
	left, err := os.ReadDir(f.beside)
	if err != nil || len(left) != 1 || get(t, filepath.Join(f.beside, "secret")) != secret {
		t.Errorf("something was written outside: %v, %v", left, err)
	}
}

// Links within the directory are followed, absolute ones and those between two directories.
func TestLinksInside(t *testing.T) {
	f := start(t, nil, nil)
	put(t, f.path("sub/x"), "x")
	link(t, f.path("sub"), f.path("absolute"))
	link(t, "sub/../absolute/x", f.path("round"))
	link(t, "missing", f.path("dangling"))
	link(t, "loop", f.path("loop"))
	f.want("read_text_file", args{"path": "round"}, "x")
	f.want("write_file", args{"path": "absolute/x", "content": "y"}, "Successfully wrote to absolute/x")
	f.want("list_directory", args{"path": "absolute"}, "[FILE] x")
	if got := get(t, f.path("sub/x")); got != "y" {
		t.Errorf("%q", got)
	}
	link(t, "dangling", f.path("twice"))
	for _, path := range []string{"dangling", "dangling/x", "twice"} {
		const words = "/dangling' leads to 'missing', which does not exist; use the path that it leads to, or remove the link"
		f.refused("write_file", args{"path": path, "content": ""}, "ENOENT: the symbolic link '", words)
		f.refused("read_text_file", args{"path": path}, words)
		f.refused("create_directory", args{"path": path}, words)
	}
	f.refused("read_text_file", args{"path": "loop"}, "ELOOP")
}

// A link that is put in the place of a directory and taken away again, all the time, leads
// no call out, neither to read nor to write.
func TestLinkSwapped(t *testing.T) {
	f := start(t, nil, nil)
	const tries = 10_000
	put(t, f.path("inner/secret"), "inside")
	link(t, "inner", f.path("swapped"))
	ctx, cancel := context.WithCancel(context.Background())
	var swapping, calling sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			target := []string{"inner", f.beside}[i%2]
			if os.Symlink(target, f.path("next")) == nil {
				_ = os.Rename(f.path("next"), f.path("swapped")) // in one step
			}
		}
	})
	var inside, refused atomic.Int64
	for range 2 {
		calling.Go(func() {
			for i := range tries / 2 {
				tool, in := "read_text_file", args{"path": "swapped/secret"}
				switch i % 8 {
				case 5:
					tool, in = "write_file", args{"path": "swapped/secret", "content": "inside"}
				case 6:
					tool, in = "edit_file", args{"path": "swapped/secret", "edits": []args{{"oldText": "inside", "newText": "inside"}}}
				case 7:
					tool, in = "create_directory", args{"path": "swapped/made"}
				}
				text, failed := call(t.Context(), t, f.client, tool, in)
				switch {
				case strings.Contains(text, secret), !failed && tool == "read_text_file" && text != "inside":
					t.Errorf("%s: %q", tool, text)
					return
				case failed:
					refused.Add(1)
				default:
					inside.Add(1)
				}
			}
		})
	}
	calling.Wait()
	cancel()
	swapping.Wait()
	if inside.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d calls inside, %d refused: the test shows nothing", inside.Load(), refused.Load())
	}
	left, err := os.ReadDir(f.beside)
	if err != nil || len(left) != 1 || get(t, filepath.Join(f.beside, "secret")) != secret {
		t.Errorf("something was written outside: %v, %v", left, err)
	}
	checkNoLeftovers(t, f.path("inner"))
}

// Names that are too long, empty bytes, and a file where a directory should be.
func TestBadNames(t *testing.T) {
	f := start(t, nil, nil)
	f.everyTool("a\x00b", "NUL")
	f.everyTool(strings.Repeat("x", 5000), "ENAMETOOLONG", "4096")
	f.everyTool(strings.Repeat("x", 300), "ENAMETOOLONG")
	f.everyTool("a.txt/x", "ENOTDIR")
	f.refused("list_directory", args{"path": "a.txt"}, "ENOTDIR")
	f.refused("read_text_file", args{"path": "."}, "EISDIR")
	f.refused("write_file", args{"path": f.dir, "content": ""}, "EISDIR")
	f.refused("create_directory", args{"path": "a.txt"}, "EEXIST")
	f.refused("read_text_file", args{"path": "a.txt", "pages": 1}, `unknown member "pages"`)
	if runtime.GOOS != "windows" {
		f.refused("read_text_file", args{"path": `C:\Users\x`}, "Windows-style path")
		f.refused("read_text_file", args{"path": `C:x`}, "ENOENT")
		for _, name := range []string{"CON", "nul.txt", "name:stream", "dot.", "space ", `back\slash`} { // names like others here
			f.want("write_file", args{"path": name, "content": name}, "Successfully wrote to "+name)
			f.want("read_text_file", args{"path": name}, name)
		}
	}
	if runtime.GOOS == "linux" { // names that differ in case are two names
		put(t, f.path("A.TXT"), "upper")
		f.want("read_text_file", args{"path": "A.TXT"}, "upper")
		f.want("read_text_file", args{"path": "a.txt"}, "one\ntwo\nthree\n")
		f.refused("read_text_file", args{"path": strings.ToUpper(f.path("a.txt"))}, "Access denied")
	}
}

// A name of as many bytes as file systems allow is written, edited and moved: the temporary name
// beside it is short.
func TestLongestName(t *testing.T) {
	f := start(t, nil, nil)
	long, other := strings.Repeat("x", 255), strings.Repeat("y", 255)
	for _, in := range []struct {
		tool string
		args args
	}{
		{"write_file", args{"path": long, "content": "one"}},
		{"write_file", args{"path": long, "content": "one two"}},
		{"edit_file", args{"path": long, "edits": []args{{"oldText": "two", "newText": "2"}}}},
		{"move_file", args{"source": long, "destination": other}},
		{"create_directory", args{"path": long}},
		{"move_file", args{"source": other, "destination": long + "/" + other}},
		{"edit_file", args{"path": long + "/" + other, "edits": []args{{"oldText": "one", "newText": "1"}}}},
	} {
		if text, failed := call(t.Context(), t, f.client, in.tool, in.args); failed {
			t.Errorf("%s: %s", in.tool, text)
		}
	}
	f.want("read_text_file", args{"path": long + "/" + other}, "1 2")
	checkNoLeftovers(t, f.dir)
}

// A directory that becomes a file, and a file that becomes a directory, between two calls.
func TestKindsChange(t *testing.T) {
	f := start(t, nil, nil)
	put(t, f.path("d/x"), "x")
	f.want("read_text_file", args{"path": "d/x"}, "x")
	if err := os.RemoveAll(f.path("d")); err != nil {
		t.Fatal(err)
	}
	put(t, f.path("d"), "file")
	f.refused("read_text_file", args{"path": "d/x"}, "ENOTDIR")
	f.want("read_text_file", args{"path": "d"}, "file")
	if err := os.Remove(f.path("d")); err != nil {
		t.Fatal(err)
	}
	put(t, f.path("d/x"), "again")
	f.refused("read_text_file", args{"path": "d"}, "EISDIR")
}

// The other name of a file keeps what the file held: a write replaces the name.
func TestHardLinks(t *testing.T) {
	f := start(t, nil, nil)
	if err := os.Link(filepath.Join(f.beside, "secret"), f.path("hard")); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	// It cannot be told from any other file, so it is read.
	f.want("read_text_file", args{"path": "hard"}, secret)
	f.want("write_file", args{"path": "hard", "content": "mine"}, "Successfully wrote to hard")
	if _, failed := call(t.Context(), t, f.client, "edit_file", args{"path": "hard", "edits": []args{{"oldText": "mine", "newText": "own"}}}); failed {
		t.Error("the edit failed")
	}
	if got := get(t, filepath.Join(f.beside, "secret")); got != secret {
		t.Errorf("the file outside was changed: %q", got)
	}
	if got := get(t, f.path("hard")); got != "own" {
		t.Errorf("%q", got)
	}
}

// Large files are read in parts; the memory for it is that of the part.
func TestLargeFiles(t *testing.T) {
	f := start(t, &filesystem.Options{MaxRead: 100_000}, nil)
	file, err := os.Create(f.path("large"))
	if err != nil {
		t.Fatal(err)
	}
	const size = 10 << 30
	_, err = file.WriteString("first\nsecond\n")
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		_, err = file.WriteAt([]byte("\nlast"), size-5)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	for tool, in := range map[string]args{
		"read_text_file": {"path": "large"}, "read_media_file": {"path": "large"},
		"edit_file": {"path": "large", "edits": []args{{"oldText": "first", "newText": "1"}}},
	} {
		f.refused(tool, in, "10.00 GB", "97.66 KB", "head or tail")
	}
	f.want("read_text_file", args{"path": "large", "head": 2}, "first\nsecond")
	f.want("read_text_file", args{"path": "large", "tail": 1}, "last")
	f.refused("read_text_file", args{"path": "large", "head": 3}, "ask for fewer lines")
	f.refused("read_text_file", args{"path": "large", "tail": 2}, "ask for fewer lines")
	put(t, f.path("b"), strings.Repeat("b", 60_000))
	text, failed := call(t.Context(), t, f.client, "read_multiple_files", args{"paths": []string{"b", "b"}})
	if failed || !strings.Contains(text, "b: Error - the file has 58.59 KB") {
		t.Errorf("together: %.200q", text[max(0, len(text)-200):])
	}
}

// What is longer than a result may be is cut, and a note beside it says so.
func TestManyEntries(t *testing.T) {
	f := start(t, &filesystem.Options{MaxEntries: 5, MaxVisited: 20}, nil)
	for i := range 10 {
		put(t, f.path(fmt.Sprintf("d/%02d", i)), "")
	}
	for tool, in := range map[string]args{
		"list_directory": {"path": "d"}, "list_directory_with_sizes": {"path": "d"},
		"directory_tree": {"path": "."}, "search_files": {"path": ".", "pattern": "**"},
	} {
		res, err := f.client.CallTool(t.Context(), tool, in, nil)
		if err != nil || res.IsError || len(res.Content) != 2 {
			t.Errorf("%s: %+v, %v, want a text and a note", tool, res, err)
		}
	}
	got, _ := call(t.Context(), t, f.client, "search_files", args{"path": ".", "pattern": "**"})
	if !strings.Contains(got, "|The search ended early, after ") || !strings.Contains(got, "with 5 matches") {
		t.Errorf("%q", got)
	}
	got, _ = call(t.Context(), t, f.client, "list_directory", args{"path": "d"})
	if strings.Count(got, "[FILE]") != 5 || !strings.Contains(got, "Only 5 entries are shown") {
		t.Errorf("%q", got)
	}
}

// More patterns than a call may have are refused, and the error names the bound.
func TestManyPatterns(t *testing.T) {
	f := start(t, nil, nil)
	patterns := make([]string, 20_000)
	for i := range patterns {
		patterns[i] = fmt.Sprint("x", i)
	}
	f.refused("search_files", args{"path": ".", "pattern": "**", "excludePatterns": patterns}, "excludePatterns", "100")
	f.refused("directory_tree", args{"path": ".", "excludePatterns": patterns}, "excludePatterns", "100")
	f.want("search_files", args{"path": ".", "pattern": "**", "excludePatterns": patterns[:100]}, f.path("a.txt"))
}

// Ten thousand files: every tool that goes through them answers, with progress, and ends
// when its call is cancelled.
func TestLargeTree(t *testing.T) {
	f := start(t, nil, nil)
	for d := range 100 {
		if err := os.MkdirAll(f.path(fmt.Sprintf("d%02d", d)), 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := os.WriteFile(f.path(fmt.Sprintf("d%02d/%02d.txt", d, i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	reports := 0
	res, err := f.client.CallTool(t.Context(), "search_files", args{"path": ".", "pattern": "**/99.txt"},
		&client.CallOptions{OnProgress: func(float64, float64, string) { reports++ }})
	if err != nil || res.IsError || reports != 5 || strings.Count(string(res.StructuredContent), "99.txt") != 100 {
		t.Errorf("%v, %d reports of progress", err, reports)
	}
	got, failed := call(t.Context(), t, f.client, "directory_tree", args{"path": "."})
	if failed || strings.Count(got, `"name"`) != 10_000 || !strings.Contains(got, "The tree is cut after 10000 entries") {
		t.Errorf("%.200q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = f.client.CallTool(ctx, "search_files", args{"path": ".", "pattern": "**"},
		&client.CallOptions{OnProgress: func(float64, float64, string) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Directories that cannot be used are left out, and none is an error.
func TestDirectoriesGiven(t *testing.T) {
	dir, beside := folders(t)
	put(t, filepath.Join(beside, "file"), "")
	s := serve(t, nil, dir, filepath.Join(beside, "missing"), filepath.Join(beside, "file"))
	if s == nil {
		t.Fatal("no server")
	}
	if _, _, err := filesystem.New("1.0.0", []string{filepath.Join(beside, "missing")}, nil); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("%v", err)
	}
	if runtime.GOOS == "linux" {
		if _, _, err := filesystem.New("1.0.0", []string{"/proc/self"}, nil); err == nil {
			t.Error("/proc is served")
		}
	}
	f := start(t, nil, nil)
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	f.refused("read_text_file", args{"path": "a.txt"}, "ENOENT")
	if _, err := os.Stat(f.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// The errors of many short paths make no result that is larger than what may be read.
func TestReadManyErrors(t *testing.T) {
	f := start(t, &filesystem.Options{MaxRead: 10_000}, nil)
	f.refused("read_multiple_files", args{"paths": slices.Repeat([]string{"/"}, 1_000)}, "ask for fewer files")
}
