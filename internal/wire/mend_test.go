package wire_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
)

type shape interface{ sides() int }

type square struct {
	Kind  string `json:"kind"`
	Title string `json:"title,omitzero"`
}

func (*square) sides() int { return 4 }

type drawing struct {
	Name   string            `json:"name"`
	Shown  bool              `json:"shown,omitzero"`
	Shapes shapes            `json:"shapes,omitzero"`
	Tags   map[string]string `json:"tags,omitzero"`
	Any    any               `json:"any,omitzero"`
	Data   []byte            `json:"data,omitzero"`
	Inner  *drawing          `json:"inner,omitzero"`
	Frame  *square           `json:"frame,omitzero"`
}

type shapes []shape

func (s *shapes) UnmarshalJSON(data []byte) error {
	var all []*square
	if err := wire.DecodeParams(data, &all); err != nil {
		return err
	}
	for _, one := range all {
		if one == nil || one.Kind != "square" {
			return errors.New("not a square")
		}
		*s = append(*s, one)
	}
	return nil
}

type drawings struct {
	All  []drawing `json:"all"`
	Next *string   `json:"next,omitzero"`
}

func newMender() *wire.Mender {
	return &wire.Mender{
		Needs: func(t reflect.Type, member string) bool {
			return t == reflect.TypeFor[drawing]() && member == "name" || t == reflect.TypeFor[drawings]() && member == "all"
		},
		Instead: func(_ reflect.Type, member string, value wire.RawValue) wire.RawValue {
			switch {
			case member == "shown":
				return wire.RawValue("true")
			case member == "shapes" && value[0] == '{':
				return fmt.Appendf(nil, "[%s]", value)
			}
			return nil
		},
		Surplus: func(_ reflect.Type, o wire.Object) string {
			if _, ok := o.Member("data"); ok {
				if _, ok := o.Member("inner"); ok {
					return "data"
				}
			}
			return ""
		},
		Concrete: func(_ reflect.Type, value wire.RawValue) reflect.Type {
			if strings.Contains(string(value), `"square"`) {
				return reflect.TypeFor[square]()
			}
			return nil
		},
		Note: func(_ reflect.Type, value wire.RawValue, _ error) wire.RawValue {
			if string(value) == "null" {
				return nil
			}
			return wire.RawValue(`{"kind":"square","title":"something else"}`)
		},
	}
}

// What fits stays as it came, the smallest part that does not is left out, and each is named.
func TestMend(t *testing.T) {
	for _, test := range []struct{ text, want, lost string }{
		{`{"all":[{"name":"a"}]}`, `{"all":[{"name":"a"}]}`, ""},
		{`{"all":[{"name":"a","strange":[1]}],"next":5}`, `{"all":[{"name":"a","strange":[1]}]}`, "/next"},
		{
			`{"all":[{"name":"a","tags":{"x":"y","z":1}},{"name":7},{"name":"c","tags":["x"]}]}`,
			`{"all":[{"name":"a","tags":{"x":"y"}},{"name":"c"}]}`, "/all/0/tags/z /all/1/name /all/2/tags",
		},
		{`{"all":[{"name":"a","shown":"no","any":[1]}]}`, `{"all":[{"name":"a","shown":true,"any":[1]}]}`, "/all/0/shown"},
		{`{"all":[5,null,{"name":"b","tags":3,"inner":{"name":{}}}]}`, `{"all":[null,{"name":"b"}]}`, "/all/0 /all/2/tags /all/2/inner/name"},
		{
			`{"all":[{"name":"a","shapes":[{"kind":"square"},{"kind":"round"},null,{"kind":"square","title":1}]}]}`,
			`{"all":[{"name":"a","shapes":[{"kind":"square"},{"kind":"square","title":"something else"},{"kind":"square"}]}]}`,
			"/all/0/shapes/1 /all/0/shapes/2 /all/0/shapes/3/title",
		},
		{`{"all":[{"name":"a","data":"aGk"}]}`, `{"all":[{"name":"a","data":"aGk="}]}`, "/all/0/data"},
		{`{"all":[{"name":"a","data":"data:text/plain;base64,aG\nk="}]}`, `{"all":[{"name":"a","data":"aGk="}]}`, "/all/0/data"},
		{`{"all":[{"name":"a","data":"-_8"}]}`, `{"all":[{"name":"a","data":"+/8="}]}`, "/all/0/data"},
		{`{"all":[{"name":"a","data":"!"}]}`, `{"all":[{"name":"a"}]}`, "/all/0/data"},
		{`{"all":[{"name":"a","tags":[],"frame":[ ]}]}`, `{"all":[{"name":"a","tags":{},"frame":{}}]}`, "/all/0/tags /all/0/frame"},
		{`{"all":[{"name":"a","inner":[]},[]]}`, `{"all":[{"name":"a"}]}`, "/all/0/inner /all/1"}, // an empty one has no name
		{
			`{"all":[{"name":"a","shapes":{"kind":"square"}},{"name":"b","shapes":{"kind":"round"}}]}`,
			`{"all":[{"name":"a","shapes":[{"kind":"square"}]},{"name":"b","shapes":[{"kind":"square","title":"something else"}]}]}`,
			"/all/0/shapes /all/1/shapes /all/1/shapes/0",
		},
		{`{"all":[{"name":"a","data":"aGk=","inner":{"name":"b"},"tags":5}]}`, `{"all":[{"name":"a","inner":{"name":"b"}}]}`, "/all/0/data /all/0/tags"},
		{`{"all":[{"name":"a","data":5,"tags":{"a/b~c":1}}]}`, `{"all":[{"name":"a","tags":{}}]}`, "/all/0/data /all/0/tags/a~1b~0c"},
	} {
		m := newMender()
		got, err := m.Mend([]byte(test.text), reflect.TypeFor[drawings]())
		if err != nil || string(got) != test.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", test.text, got, err, test.want)
		}
		var lost []string
		for _, l := range m.Losses {
			lost = append(lost, l.Pointer)
			if l.Why == nil || strings.Contains(l.Why.Error(), "/all") {
				t.Errorf("%s: at %s: %v", test.text, l.Pointer, l.Why)
			}
		}
		if strings.Join(lost, " ") != test.lost {
			t.Errorf("%s: lost %s, want %s", test.text, lost, test.lost)
		}
		if err := wire.DecodeParams(got, new(drawings)); err != nil {
			t.Errorf("%s: %v", test.text, err)
		}
	}
}

// What a value cannot be without, look-alikes of its members and texts that are no JSON are errors
// with their place.
func TestMendRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"all":5}`: "/all: ",
		`5`:         "expected object",
		`{"all":[{"name":"a","Tags":{}, "tags":1}]}`: `/all/0: member "Tags" must be written "tags"`,
		`{"all":[],"all":[]}`:                        "duplicate member name",
		`{"all":[}`:                                  "at byte",
		strings.Repeat("[", 600):                     "deep",
	} {
		got, err := newMender().Mend([]byte(text), reflect.TypeFor[drawings]())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: %.50s, %v, want %q", text, got, err, want)
		}
	}
}

// A text in which much does not fit costs no more than a bounded number of attempts.
func TestMendIsBounded(t *testing.T) {
	m := newMender()
	text := `{"all":[` + strings.Repeat("5,", 4_999) + `{"name":"last"}]}`
	got, err := m.Mend([]byte(text), reflect.TypeFor[drawings]())
	if err != nil || string(got) != `{"all":[{"name":"last"}]}` {
		t.Errorf("%.50s, %v", got, err)
	}
	if len(m.Losses)+m.More != 4_999 || len(m.Losses) != 100 {
		t.Errorf("%d losses and %d more", len(m.Losses), m.More)
	}
	text = `{"all":[` + strings.Repeat(`{"name":5},`, 999_999) + `{"name":"last"}]}`
	if _, err := newMender().Mend([]byte(text), reflect.TypeFor[drawings]()); err == nil || !strings.Contains(err.Error(), "more than 10000 parts of it cannot be read") {
		t.Errorf("a million wrong parts: %v", err)
	}
	text = `{"all":[{"name":"a","shapes":[` + strings.Repeat("5,", 999_999) + `5]}]}`
	if _, err := newMender().Mend([]byte(text), reflect.TypeFor[drawings]()); err == nil || !strings.Contains(err.Error(), "more than 10000 parts of it cannot be read") {
		t.Errorf("a million parts of an unknown type: %v", err)
	}
	nested := strings.Repeat(`{"name":"a","tags":5,"inner":`, 60) + "7" + strings.Repeat("}", 60)
	if _, err := newMender().Mend(fmt.Appendf(nil, `{"all":[%s]}`, nested), reflect.TypeFor[drawings]()); err != nil {
		t.Error(err)
	}
}

func FuzzMend(f *testing.F) {
	f.Add([]byte(`{"all":[{"name":"a","tags":{"x":"y","z":1}},{"name":7},null],"next":5}`))
	f.Add([]byte(`{"all":[{"name":"a","shapes":[{"kind":"square","title":1},{}],"data":"aG k","inner":{"name":"b","shown":3}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMender()
		got, err := m.Mend(data, reflect.TypeFor[drawings]())
		whole := wire.DecodeParams(data, new(drawings))
		switch {
		case whole == nil && (err != nil || len(m.Losses) > 0):
			t.Errorf("what fits was mended: %v, %v", err, m.Losses)
		case err == nil && wire.DecodeParams(got, new(drawings)) != nil:
			t.Errorf("%s does not fit", got)
		case err == nil && whole != nil && len(m.Losses) == 0:
			t.Errorf("%s: nothing is told", got)
		}
	})
}
