package gemini_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The streams of testdata give the same pieces, however they are split on the way.
func TestStreams(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sse")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var first string
			for i, in := range splits(text) {
				at := &transport{Replies: []reply{{Body: in}}}
				got := show(model(t, at), hello())
				if i == 0 {
					first = got
				}
				if got != first {
					t.Fatalf("split %d:\n%s\nwant\n%s", i, got, first)
				}
				if at.Closed != 1 {
					t.Fatalf("split %d: the body was closed %d times", i, at.Closed)
				}
			}
			golden(t, name+".pieces", first)
		})
	}
}
