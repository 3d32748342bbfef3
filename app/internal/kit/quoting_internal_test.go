package kit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFields(t *testing.T) {
	for in, want := range map[string][]string{
		"":                           nil,
		"  a  b\tc\n":                {"a", "b", "c"},
		`'a b' "c d" e\ f`:           {"a b", "c d", "e f"},
		`a'b'"c"d`:                   {"abcd"},
		`'' ""`:                      {"", ""},
		`"a\"b\\c\d\$e" 'x\y'`:       {`a"b\c\d$e`, `x\y`},
		`sh -c "echo $HOME; ls *"`:   {"sh", "-c", "echo $HOME; ls *"},
		`C:\\tools\\s.exe --é='ü ß'`: {`C:\tools\s.exe`, "--é=ü ß"},
	} {
		got, err := Fields(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
	for _, bad := range []string{`'a`, `"a`, `a\`, `"a\`} {
		if got, err := Fields(bad); err == nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}

// Quoting a text keeps it whatever it is.
func FuzzFields(f *testing.F) {
	f.Add(`a "b' \`)
	f.Fuzz(func(t *testing.T, word string) {
		word = strings.ToValidUTF8(word, "")
		quoted := "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		got, err := Fields("first " + quoted + " last")
		if err != nil || len(got) != 3 || got[1] != word {
			t.Errorf("%q becomes %q, %v", word, got, err)
		}
	})
}
