// Package page keeps parts of the guide that are made by tests: tables whose
// rows come from the code that they describe.
package page

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

var update = flag.Bool("update", false, "write the parts of the guide that are made by tests")

// Check compares the part of a page of docs/guide between the comments
// "begin name" and "end name" with want, or writes it with -update. It is for
// tests in the folder examples and one below.
func Check(t *testing.T, file, name, want string) {
	t.Helper()
	text := read(t, &file)
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatalf("%s has no %q and %q", file, begin, end)
	}
	i += len(begin)
	want = "\n" + strings.TrimSpace(want) + "\n\n"
	if text[i:j] == want {
		return
	}
	if !*update {
		t.Errorf("%s: the part %q is out of date; run go test -update in this folder. It should be:%s", file, name, want)
		return
	}
	if err := os.WriteFile(file, []byte(text[:i]+want+text[j:]), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns the text of a page, and makes its name the path of the file.
func read(t *testing.T, name *string) string {
	t.Helper()
	file := filepath.Join("..", "docs", "guide", *name)
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		file = filepath.Join("..", file)
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	*name = file
	return string(raw)
}

// Code is text as code within a table.
func Code(text string) string {
	text = strings.ReplaceAll(text, "|", `\|`)
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// Exchange sends one message to a server over a pipe and returns its answer.
func Exchange(t *testing.T, s *server.Server, message string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- stdio.ServeConn(t.Context(), theirs, s, nil) }()
	if _, err := ours.Write([]byte(message + "\n")); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(ours).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	if err := <-ended; err != nil {
		t.Log(err) // a pipe of net has no half that can be closed first
	}
	return answer
}

// Shows fails the test unless a block of JSON on a page is the same value as
// answer; a text "…" on the page stands for any text.
func Shows(t *testing.T, file string, answer []byte) {
	t.Helper()
	var got any
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks.FindAllStringSubmatch(read(t, &file), -1) {
		var shown any
		if json.Unmarshal([]byte(block[1]), &shown) == nil && same(shown, got) {
			return
		}
	}
	t.Errorf("%s does not show this: %s", file, answer)
}

var blocks = regexp.MustCompile("(?ms)^```json$(.*?)^```$")

// same compares a value of a page with a real one.
func same(shown, got any) bool {
	switch shown := shown.(type) {
	case string:
		text, ok := got.(string)
		return ok && (shown == "…" || shown == text)
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || len(object) != len(shown) {
			return false
		}
		for name, value := range shown {
			if !same(value, object[name]) {
				return false
			}
		}
		return true
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(shown, list, same)
	}
	return shown == got
}
