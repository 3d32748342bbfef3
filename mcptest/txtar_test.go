package mcptest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArchive(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       archive
	}{
		{"nothing", "", archive{}},
		{"a comment", "only\nwords\n", archive{comment: []byte("only\nwords\n")}},
		{"parts", "words\n-- a --\n1\n2\n-- b c --\n", archive{
			comment: []byte("words\n"),
			parts:   []part{{"a", []byte("1\n2\n")}, {"b c", nil}},
		}},
		{"what only looks like a part", "-- a --\n--b--\n-- --\n -- c --\n-- d\n", archive{
			parts: []part{{"a", []byte("--b--\n-- --\n -- c --\n-- d\n")}},
		}},
		{"no name", "--  --\n", archive{comment: []byte("--  --\n")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parseArchive([]byte(c.text))
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(archive{}, part{})); diff != "" {
				t.Errorf("parsing (-want +got):\n%s", diff)
			}
			if again := string(got.format()); again != c.text {
				t.Errorf("written again it is %q", again)
			}
		})
	}
}

// A last line without an end gets one, whether it belongs to comment or part.
func TestArchiveEnds(t *testing.T) {
	if got := string(parseArchive([]byte("words\n-- a --\n1")).format()); got != "words\n-- a --\n1\n" {
		t.Errorf("got %q", got)
	}
}

func FuzzArchive(f *testing.F) {
	f.Add([]byte("words\n-- a --\n1\r\n-- b --\r\n2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		once := parseArchive(data).format()
		if twice := parseArchive(once).format(); string(once) != string(twice) {
			t.Errorf("%q is written as %q, and that as %q", data, once, twice)
		}
	})
}
