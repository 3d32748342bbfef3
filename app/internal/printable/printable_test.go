package printable_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/printable"
)

func TestName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{ // whether it is a line, and a name of at most 8 bytes
		"":                       {true, false},
		"ada":                    {true, true},
		" a d ":                  {true, true},
		"ädä 客":                  {true, false},
		"客客":                     {true, true},
		strings.Repeat("x", 8):   {true, true},
		strings.Repeat("x", 9):   {true, false},
		"a\nb":                   {false, false},
		"a\tb":                   {false, false},
		"a\x00":                  {false, false},
		"\xff":                   {false, false},
		"a\u202eb":               {false, false},
		"a\u200bb":               {false, false},
		"a\u00a0b":               {false, false},
		string([]byte{0xc3}):     {false, false},
		string(rune(0x10ffff)):   {false, false},
		string([]rune{'a', 0x1}): {false, false},
	} {
		if got := [2]bool{printable.Line(text), printable.Name(text, 8)}; got != want {
			t.Errorf("%q: line and name are %v, want %v", text, got, want)
		}
	}
}
