package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-mcp/parley/internal/wire"
)

func seeds(f *testing.F) {
	for _, text := range []string{
		message, `{}`, `[]`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `"\ud83d\ude00"`, `"\ud83d"`, `-0.1e+5`, ` [ 1 , { "b" : null } ] `,
		"\"\xff\"", `[[[[[[[[[[]]]]]]]]]]`, `{"a":{"b":{"c":[1,2,{"d":"\\\""}]}}}`, `9007199254740993`, `1e400`, `{"NAME":1}`,
	} {
		f.Add([]byte(text))
	}
}

// depthOf is the nesting of a valid text by another parser.
func depthOf(data []byte) (depth int) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return depth
		}
		depth = max(depth, dec.StackDepth())
	}
}

// FuzzParse compares the scanner with jsontext: same verdict, same members.
func FuzzParse(f *testing.F) {
	seeds(f)
	const limit = 8
	f.Fuzz(func(t *testing.T, data []byte) {
		want := jsontext.Value(data).IsValid()
		err := wire.Valid(data, wire.Limits{Depth: limit})
		if errors.Is(err, wire.ErrDepth) {
			if want && depthOf(data) <= limit {
				t.Fatalf("refused for depth %d", depthOf(data))
			}
			return
		}
		if (err == nil) != want || want && depthOf(data) > limit {
			t.Fatalf("Valid = %v, want valid %v", err, want)
		}
		o, err := wire.ParseObject(data, wire.Limits{Depth: limit})
		if isObject := want && jsontext.Value(data).Kind() == '{'; (err == nil) != isObject {
			t.Fatalf("ParseObject = %v, want object %v", err, isObject)
		}
		if err == nil {
			compareMembers(t, data, o)
		}
	})
}

func compareMembers(t *testing.T, data []byte, o wire.Object) {
	wrapped := append(append([]byte(`{"o": `), data...), '}')
	outer, err := wire.ParseObject(wrapped, wire.Limits{Depth: 100})
	if err != nil {
		t.Fatal(err)
	}
	inner, ok := outer.Object("o") // indexed by the second path
	if !ok || inner.Len() != o.Len() || !inner.Equal(o) {
		t.Fatalf("inner object %s differs from %s", inner.Raw(), o.Raw())
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := dec.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for name, value := range o.All() {
		token, err := dec.ReadToken()
		if err != nil || token.String() != name {
			t.Fatalf("name %q, want %q, %v", name, token, err)
		}
		want, err := dec.ReadValue()
		if err != nil || !bytes.Equal(want, value) {
			t.Fatalf("value %s, want %s, %v", value, want, err)
		}
		if got, ok := inner.Member(name); !ok || !bytes.Equal(got, value) {
			t.Fatalf("inner %q is %s, want %s", name, got, value)
		}
	}
	if dec.PeekKind() != '}' {
		t.Fatal("members are missing")
	}
}

// FuzzParser compares the pooled parser, whose memory comes from other texts,
// with ParseObject: same verdict, same members, and the member that is kept is
// still the same once the parser reads something else.
func FuzzParser(f *testing.F) {
	seeds(f)
	f.Add([]byte(` {"b":1,"a":{"a":{"x":1},"\u0061b":[]},"c":{"b":{}}} `))
	f.Add([]byte(`{"\u0061":{"x":1},"b":{"y":{}},"aa":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := wire.ParseObject(data, wire.Limits{})
		p := wire.NewParser()
		kept := new(wire.Index)
		got, err := p.Parse(data, wire.Limits{}, kept, "a", "b")
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("Parse: %v, ParseObject: %v", err, wantErr)
		}
		if err != nil {
			p.Free()
			return
		}
		compareMembers(t, data, got)
		inner := make(map[string]wire.Object)
		for name := range want.All() {
			o, ok := got.Object(name)
			if again, is := want.Object(name); is != ok || !again.Equal(o) {
				t.Fatalf("member %q is %s, want %s", name, o.Raw(), again.Raw())
			}
			if word, _ := got.Member(name); word[0] == '"' && p.Word(word) != wire.Text(word) {
				t.Fatalf("word %s", word)
			}
			if ok {
				inner[name] = o
			}
		}
		p.Free()
		other := wire.NewParser()
		if _, err := other.Parse([]byte(`{"a":{"other":[1,2,3]},"z":{}}`), wire.Limits{}, new(wire.Index), "a", "b"); err != nil {
			t.Fatal(err)
		}
		other.Free()
		for _, o := range inner {
			compareMembers(t, o.Raw(), o)
		}
	})
}

// FuzzEqual holds Equal to its laws: what is encoded again is equal, equal
// values have equal canonical forms, and so on.
func FuzzEqual(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		a := wire.RawValue(data)
		valid := wire.Valid(data, wire.Limits{Depth: 500}) == nil
		if got := wire.Equal(a, a); valid && !got {
			t.Fatalf("%s does not equal itself", a)
		}
		canonical, err := wire.Canonical(a)
		if err != nil {
			return
		}
		again, err := wire.Canonical(canonical)
		if err != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("canonical %s becomes %s, %v", canonical, again, err)
		}
		compact, err := wire.Marshal(a)
		if err != nil || !wire.Equal(a, compact) || bytes.ContainsAny(compact, "\r\n") {
			t.Fatalf("%s encoded is %s, %v", a, compact, err)
		}
		var indented bytes.Buffer
		if json.Indent(&indented, data, "", " ") == nil && !wire.Equal(indented.Bytes(), a) {
			t.Fatalf("%s does not equal %s", indented.Bytes(), a)
		}
	})
}

// FuzzID checks that an id comes back as it was and has one form.
func FuzzID(f *testing.F) {
	for _, text := range []string{`"a"`, `"\u0061"`, `1`, `-0`, `1.5`, `null`, `"\ud83d\ude00"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := wire.ParseID(data)
		if err != nil {
			return
		}
		text, _ := id.AppendJSON(nil)
		back, err := wire.ParseID(text)
		if err != nil || back != id || id.IsZero() || !wire.Equal(text, data) {
			t.Fatalf("%s became %s, then %s, %v", data, id, back, err)
		}
	})
}

// FuzzDecodeParams checks that what is accepted is what Decode accepts, and
// that no twin of a known name is among it.
func FuzzDecodeParams(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"name":"n","Name":"m","steps":[{"TYPE":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var strict, plain params
		if wire.DecodeParams(data, &strict) != nil {
			return
		}
		if err := wire.Decode(data, &plain); err != nil || plain.Name != strict.Name {
			t.Fatalf("Decode differs: %v", err)
		}
		o, err := wire.ParseObject(data, wire.Limits{Depth: 500})
		if errors.Is(err, wire.ErrNotObject) || errors.Is(err, wire.ErrDepth) {
			return // null, or deeper than this test reads
		}
		if err != nil {
			t.Fatalf("accepted what ParseObject refuses: %v", err)
		}
		if err := o.CheckNames("name", "arguments", "_meta", "options", "ref", "steps", "value", "extra"); err != nil {
			t.Fatalf("accepted a twin: %v", err)
		}
	})
}

// A value that is copied as it is comes out as the encoder writes it.
func FuzzAppendRaw(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"a": "b c",  "d":[1 ,2]}`))
	f.Add([]byte("[\"a\",\n\"b\"]"))
	f.Add([]byte(`["a b\n\u00e9\/",1.50,-0,{"x":{}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		raw := wire.RawValue(data)
		got, err := wire.Append([]byte("before"), raw)
		want, wantErr := wire.Append([]byte("before["), struct {
			Raw wire.RawValue `json:"raw"`
		}{raw})
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, in a struct %v", err, wantErr)
		}
		if err != nil {
			return
		}
		inner := strings.TrimSuffix(strings.TrimPrefix(string(want), `before[{"raw":`), "}")
		if string(got) != "before"+inner {
			t.Fatalf("%s, in a struct %s", got, want)
		}
	})
}
