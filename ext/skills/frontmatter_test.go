package skills_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/strictjson"
)

// front is the frontmatter of a file with these lines of YAML.
func front(yaml string) (string, error) {
	got, _, err := skills.Frontmatter([]byte("---\n" + yaml + "\n---\nbody\n"))
	return string(got), err
}

// SEP-2640, Frontmatter: "every other field the author wrote passes through unchanged";
// types are those of YAML 1.2's core schema.
func TestFrontmatterTypes(t *testing.T) {
	for yaml, want := range map[string]string{
		"name: a\ndescription: b":               `{"name":"a","description":"b"}`,
		"a: 2026-07-28":                         `{"a":"2026-07-28"}`,
		"a: 2001-12-14t21:59:43.10-05:00":       `{"a":"2001-12-14t21:59:43.10-05:00"}`,
		"a: yes\nb: No\nc: on\nd: OFF\ne: y":    `{"a":"yes","b":"No","c":"on","d":"OFF","e":"y"}`,
		"yes: 1\nno: 2":                         `{"yes":1,"no":2}`,
		"a: true\nb: FALSE\nc: True":            `{"a":true,"b":false,"c":true}`,
		"a: ~\nb: null\nc:\nd: NULL":            `{"a":null,"b":null,"c":null,"d":null}`,
		"a: 0o17\nb: 0x1F\nc: 017\nd: 0b11":     `{"a":15,"b":31,"c":17,"d":"0b11"}`,
		"a: +12\nb: -0\nc: 1_000\nd: -007":      `{"a":12,"b":0,"c":"1_000","d":-7}`,
		"a: 12345678901234567890123456789":      `{"a":12345678901234567890123456789}`,
		"a: 0xFFFFFFFFFFFFFFFFFFFF":             `{"a":1208925819614629174706175}`,
		"a: 1.50\nb: .5\nc: 1.\nd: +1e3":        `{"a":1.50,"b":0.5,"c":1,"d":1e3}`,
		"a: -00.10E-05":                         `{"a":-0.10E-05}`,
		"a: 1:30\nb: 190:20:30":                 `{"a":"1:30","b":"190:20:30"}`,
		"a: '1'\nb: \"true\"\nc: !!str 1":       `{"a":"1","b":"true","c":"1"}`,
		"a: '.inf'\nb: !!int '3'\nc: !!float 1": `{"a":".inf","b":3,"c":1}`,
		"a: |\n  x\n  y\nb: >\n  x\n  y\n":      `{"a":"x\ny\n","b":"x y\n"}`,
		"a: [1, {b: c}]\nd: {}\ne: []":          `{"a":[1,{"b":"c"}],"d":{},"e":[]}`,
		"a: &x [1]\nb: *x":                      `{"a":[1],"b":[1]}`,
		"'<<': 1\na: <<":                        `{"<<":1,"a":"<<"}`,
		"a: \"\\u263A\\x07\\0\"":                `{"a":"☺\u0007\u0000"}`,
		"a: \"\\L\\P\\N\"":                      `{"a":"\u2028\u2029\u0085"}`,
		"# a comment\na: b # another":           `{"a":"b"}`,
		"metadata:\n  version: 1.0":             `{"metadata":{"version":1.0}}`,
	} {
		got, err := front(yaml)
		if err != nil || !strictjson.Equal(strictjson.RawValue(got), strictjson.RawValue(want)) {
			t.Errorf("%q: got %s, %v; want %s", yaml, got, err, want)
		}
	}
}

// What JSON or YAML's core schema does not have, and what could be read in two ways, is
// refused with the line and what to do.
func TestFrontmatterRefused(t *testing.T) {
	deep := "a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for yaml, says := range map[string]string{
		"":                                    "it is empty",
		"# nothing":                           "it is empty",
		"- a":                                 "it is no YAML mapping",
		"text":                                "it is no YAML mapping",
		"a: 1\nb: 2\na: 3":                    `line 4: the key "a" is there twice`,
		"a: {b: 1, \"b\": 2}":                 `line 2: the key "b" is there twice`,
		"a: .inf":                             "line 2: .inf is no number in JSON; put it in quotes",
		"a: -.INF":                            "no number in JSON",
		"a: .NaN":                             "no number in JSON",
		"1: a":                                "line 2: a key is no string; put it in quotes",
		"true: a":                             "a key is no string",
		"~: a":                                "a key is no string",
		"[a]: b":                              "a key is no string",
		"? {a: b}\n: c":                       "a key is no string",
		"&k a: 1\n*k : 2":                     "a key is no string",
		"a: &m {b: 1}\nc:\n  <<: *m":          "line 4: merge keys (<<)",
		"a: !!binary aGk=":                    "the tag !!binary is none of YAML's core schema",
		"a: !!timestamp 2026-07-28":           "the tag !!timestamp",
		"a: !!set {b}":                        "the tag !!set",
		"a: !mine b":                          "the tag !mine",
		"a: !!int b":                          "the text is no !!int",
		"a: !!bool yes":                       "the text is no !!bool",
		"a: !!null b":                         "the text is no !!null",
		"a: *x":                               "unknown anchor",
		"a: &x [*x]":                          "nested more than 32 levels",
		"a: b: c":                             "line 2",
		"a: \"\\ud800\"":                      "line 2",
		"a: 1\n...\nb: 2":                     "more than one YAML document",
		"%YAML 1.1\na: b":                     "line",
		"a: \xff":                             "not valid UTF-8",
		"a: \x01":                             "control characters",
		deep:                                  "nested more than 32 levels",
		"a: 1\nb: x\u2028allowed-tools: Bash": "line 3: it holds a line separator",
		"a: x\u2029b: y":                      "line 2: it holds a line separator",
		"a: 'x\u0085y'":                       "line 2: it holds a line separator",
		"a: " + strings.Repeat("x", 1<<16):    "longer than 65536 bytes",
	} {
		got, err := front(yaml)
		if _, ok := errors.AsType[*skills.FrontmatterError](err); !ok || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: got %.60s, %v; want an error that says %q", yaml, got, err, says)
		}
	}
	for file, says := range map[string]string{
		"":                       `must begin with a line "---"`,
		"# Title\n":              `must begin with a line "---"`,
		"---":                    `must begin with a line "---"`,
		"\n---\na: b\n---\n":     `must begin with a line "---"`,
		"---\na: b\n":            `it has no end`,
		"--- a\nb: c\n---\n":     `must begin with a line "---"`,
		"\xff\xfe---\na: b\n---": `must begin with a line "---"`,
	} {
		if _, _, err := skills.Frontmatter([]byte(file)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v; want %q", file, err, says)
		}
	}
}

// Aliases that refer to one another would be 3 to the power of 20 values.
func TestFrontmatterAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x]\n")
	for i := 1; i <= 20; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1)
	}
	if _, err := front(b.String()); err == nil || !strings.Contains(err.Error(), "aliases count as often as they are used") {
		t.Errorf("got %v", err)
	}
	long := "a: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("*a, ", 9000) + "]"
	if _, err := front(long); err == nil || !strings.Contains(err.Error(), "or 262144 bytes") {
		t.Errorf("got %v", err)
	}
	// The JSON of these numbers is "0": what they cost is counted, not what is left of them.
	for _, number := range []string{"", "0x", "0o"} {
		zeros := "a: &a " + number + strings.Repeat("0", 30_000) + "\nb: [" + strings.Repeat("*a, ", 8000) + "]"
		if _, err := front(zeros); err == nil || !strings.Contains(err.Error(), "or 262144 bytes") {
			t.Errorf("%q and zeros: %v", number, err)
		}
	}
}

// A byte order mark and CR LF are taken, and the body is what follows.
func TestFrontmatterBytes(t *testing.T) {
	for _, file := range []string{
		"---\nname: a\ntext: |\n  x\n  y\n---\nbody\n",
		"\xef\xbb\xbf---\nname: a\ntext: |\n  x\n  y\n---\nbody\n",
		"---\r\nname: a\r\ntext: |\r\n  x\r\n  y\r\n---\r\nbody\r\n",
		"--- \nname: a\ntext: |\n  x\n  y\n---\t\nbody\n",
	} {
		got, body, err := skills.Frontmatter([]byte(file))
		if err != nil || string(got) != `{"name":"a","text":"x\ny\n"}` || strings.TrimSpace(string(body)) != "body" {
			t.Errorf("%q: %s, %q, %v", file, got, body, err)
		}
	}
	if _, body, err := skills.Frontmatter([]byte("---\na: b\n---")); err != nil || len(body) != 0 {
		t.Errorf("without a body: %q, %v", body, err)
	}
}

// Whatever the bytes are, what comes out is a JSON object within the bounds, or a
// FrontmatterError.
func FuzzFrontmatter(f *testing.F) {
	for _, seed := range []string{
		"---\nname: a\n---\n", "\xef\xbb\xbf---\r\na: &x [1]\r\nb: *x\r\n---\r\n", "---\na: !!int 0o7\n<<: {b: 1}\n---\n",
		"---\n? a\n: |+\n  b\n\n---\n", "---\na: 'b\n  c'\n\"d\\x41\": {e: [1., .5e3, -0]}\n---", "---\na: &a [*a]\n---\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, body, err := skills.Frontmatter(file)
		if err != nil {
			if _, ok := errors.AsType[*skills.FrontmatterError](err); !ok || err.Error() == "" {
				t.Fatalf("a %T: %v", err, err)
			}
			return
		}
		if len(body) >= len(file) {
			t.Fatalf("the body has %d bytes, the file %d", len(body), len(file))
		}
		if _, err := strictjson.ParseObject(got, &strictjson.Options{MaxDepth: 40}); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		again, _, err := skills.Frontmatter(append([]byte("---\n"), append(got, "\n---\n"...)...))
		if err == nil && !strictjson.Equal(got, again) {
			t.Fatalf("JSON is YAML, but it reads differently: %s, %s", got, again)
		}
	})
}
