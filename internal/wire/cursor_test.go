package wire_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-mcp/parley/internal/wire"
)

var cursorTexts = []string{
	`{"a":[1,-0.5e+7,true,false,null,"x\n\u00e9\ud83d\ude00é"],"":{}}`, " \t\r\n{ \"a\" : [ ] , \"b\" : { } } \n", `12`, `"\\"`, `"a\"b"`,
	`{"` + strings.Repeat("long ", 30) + `\"":"` + strings.Repeat("é", 40) + `"}`, `[[1,[2]],[]]`, `{"\u0061":1}`,
	``, `{`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `[1`, `"\`, `"\u12`, `"\u00g0"`, `"\ud83d"`, `"\ud83d\u`, `}`, `]`, `:`, `{]}`, `{,}`,
}

// walk goes over the value at pos with the functions that trust the text, and
// returns where it ends, and the scalars on the way.
func walk(text []byte, pos int) (end int, scalars []string) {
	shut := byte('}')
	switch wire.At(text, pos) {
	case '{':
	case '[':
		shut = ']'
	default:
		end = wire.SkipValue(text, pos)
		if end < 0 || end > len(text) {
			return -1, nil
		}
		if text[pos] == '"' && end > pos+1 {
			return end, []string{wire.Text(text[pos:end])}
		}
		return end, []string{string(text[pos:end])}
	}
	end, last := wire.First(text, pos, shut)
	for !last {
		value := end
		if shut == '}' {
			nameEnd, escaped, at := wire.MemberAt(text, end)
			if nameEnd < 0 {
				return -1, nil
			}
			name := text[end+1 : nameEnd-1]
			if escaped {
				name = wire.AppendUnquoted(nil, text[end:nameEnd])
			}
			scalars = append(scalars, string(name))
			value = at
		}
		var inside []string
		if end, inside = walk(text, value); end < 0 {
			return -1, nil
		}
		scalars = append(scalars, inside...)
		end, last = wire.Next(text, end, shut)
	}
	return end, scalars
}

// scalarsOf are the same scalars by another parser.
func scalarsOf(t *testing.T, text []byte) (list []string) {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		kind := dec.PeekKind()
		if strings.IndexByte(`{}[]"`, byte(kind)) >= 0 {
			token, err := dec.ReadToken()
			if err != nil {
				t.Fatal(err)
			}
			if kind == '"' {
				list = append(list, token.String())
			}
			continue
		}
		value, err := dec.ReadValue()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(value))
	}
}

// FuzzCursor: the walk over a valid text finds what another parser finds; over
// any other text it ends.
func FuzzCursor(f *testing.F) {
	for _, text := range cursorTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if strings.Count(string(text), "[")+strings.Count(string(text), "{") > 1000 {
			return
		}
		start := wire.SkipSpace(text, 0)
		end, scalars := walk(text, start)
		skipped := wire.SkipValue(text, start)
		if wire.Valid(text, wire.Limits{Depth: 1000}) != nil {
			return
		}
		if end != skipped || wire.SkipSpace(text, end) != len(text) {
			t.Errorf("%q: walked to %d, skipped to %d", text, end, skipped)
		}
		if want := scalarsOf(t, text); !slices.Equal(want, scalars) {
			t.Errorf("%q: %q, want %q", text, scalars, want)
		}
	})
}
