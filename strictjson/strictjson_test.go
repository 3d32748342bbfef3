package strictjson_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

type task struct {
	TaskID string        `json:"taskId"`
	TTL    time.Duration `json:"ttl,omitzero"`
}

// What two readers could take for two things is refused, with its place.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		o    *strictjson.Options
		want error
		says string
	}{
		"twice":       {text: `{"a":1,"a":2}`, want: strictjson.ErrDuplicate},
		"twice, deep": {text: `{"x":[{"a":1,"\u0061":2}]}`, want: strictjson.ErrDuplicate},
		"letter case": {text: `{"TaskId":"x"}`, want: strictjson.ErrLetterCase, says: "TaskId"},
		"trailing":    {text: `{} {}`, want: strictjson.ErrSyntax},
		"truncated":   {text: `{"taskId":"x"`, want: strictjson.ErrSyntax},
		"empty":       {text: ``, want: strictjson.ErrSyntax},
		"not UTF-8":   {text: "{\"taskId\":\"\xff\"}", want: strictjson.ErrUTF8},
		"surrogate":   {text: `{"taskId":"\ud800"}`, want: strictjson.ErrUTF8},
		"depth":       {text: strings.Repeat("[", 65) + strings.Repeat("]", 65), want: strictjson.ErrDepth},
		"own depth":   {text: `{"a":[]}`, o: &strictjson.Options{MaxDepth: 1}, want: strictjson.ErrDepth},
		"size":        {text: `{"taskId":"xyz"}`, o: &strictjson.Options{MaxBytes: 5}, want: strictjson.ErrSize},
		"unknown":     {text: `{"taskId":"x","more":1}`, o: &strictjson.Options{RefuseUnknown: true}, want: strictjson.ErrUnknown, says: "more"},
		"type":        {text: `{"taskId":7}`, says: "/taskId: expected"},
	} {
		err := strictjson.Unmarshal([]byte(test.text), new(task), test.o)
		fault, ok := errors.AsType[*strictjson.Error](err)
		if !ok || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v (%+v), want %v", name, err, fault, test.want)
		}
	}
}

func TestAccepted(t *testing.T) {
	var got task
	if err := strictjson.Unmarshal([]byte(` {"more":1,"taskId":"x","ttl":"1m30s"} `), &got); err != nil || got != (task{"x", 90 * time.Second}) {
		t.Errorf("got %+v, %v", got, err)
	}
	raw, err := strictjson.Marshal(struct {
		List []int             `json:"list"`
		Map  map[string]string `json:"map"`
		Raw  mcp.RawValue      `json:"raw"`
		Text string            `json:"text"`
	}{Raw: mcp.RawValue("{ \n}"), Text: "<&>"})
	if err != nil || string(raw) != `{"list":[],"map":{},"raw":{},"text":"<&>"}` {
		t.Errorf("got %s, %v", raw, err)
	}
	if _, err := strictjson.Marshal(func() {}); err == nil {
		t.Error("a function was encoded")
	}
	if err := strictjson.Unmarshal([]byte(`{}`), task{}); err == nil {
		t.Error("decoded into what is no pointer")
	}
}

func TestObject(t *testing.T) {
	o, err := strictjson.ParseObject([]byte(`{"b":{"c":[1]},"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	inner, ok := o.Object("b")
	if c, has := inner.Member("c"); !ok || !has || string(c) != "[1]" {
		t.Errorf("got %s, %t, %t", c, ok, has)
	}
	if _, ok := o.Object("a"); ok || o.Len() != 2 || string(inner.Raw()) != `{"c":[1]}` {
		t.Errorf("got %t, %d, %s", ok, o.Len(), inner.Raw())
	}
	var names []string
	for name := range o.All() {
		names = append(names, name)
	}
	if strings.Join(names, "") != "ba" {
		t.Errorf("got %v", names)
	}
	if _, err := strictjson.ParseObject([]byte("[]")); !errors.Is(err, strictjson.ErrNotObject) {
		t.Errorf("got %v", err)
	}
	var none strictjson.Object
	if _, ok := none.Member("a"); ok || none.Len() != 0 || none.Raw() != nil {
		t.Error("the zero Object has members")
	}
}

func TestEqual(t *testing.T) {
	if !strictjson.Equal([]byte(`{"a":1.0,"b":"\u0061"}`), []byte(`{"b":"a","a":1}`)) || strictjson.Equal([]byte(`1`), []byte(`2`)) {
		t.Error("not equal by value")
	}
	if raw, err := strictjson.Canonical([]byte(`{"b":1.0,"a":"\u0061"}`)); err != nil || string(raw) != `{"a":"a","b":1}` {
		t.Errorf("got %s, %v", raw, err)
	}
	if _, err := strictjson.Canonical([]byte(`{`)); !errors.Is(err, strictjson.ErrSyntax) {
		t.Errorf("got %v", err)
	}
}

// What is accepted is written again as the same value.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range []string{`{"a":[1,2.5e3,"\u00e9"]}`, `null`, `{"a":1,"a":2}`, `"\ud800"`, `[`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v strictjson.RawValue
		if strictjson.Unmarshal(text, &v) != nil {
			return
		}
		again, err := strictjson.Marshal(v)
		if err != nil || !strictjson.Equal(text, again) {
			t.Errorf("%q was written as %q, %v", text, again, err)
		}
	})
}
