package wire_test

import (
	"errors"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
)

type colour string

func (c *colour) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "red", "blue":
		*c = colour(s)
		return nil
	}
	return errors.New("colour is red or blue")
}

// union decodes itself, as unions of the protocol do.
type union struct{ Inner inner }

func (u *union) UnmarshalJSON(data []byte) error { return wire.DecodeParams(data, &u.Inner) }

type inner struct {
	Depth int `json:"depth"`
}

type embedded struct {
	Base string `json:"base"`
}

type sample struct {
	embedded
	Name     string           `json:"name"`
	Count    int8             `json:"count"`
	Size     uint             `json:"size"`
	Ratio    float64          `json:"ratio"`
	On       bool             `json:"on"`
	List     []inner          `json:"list"`
	Map      map[string]inner `json:"map"`
	Any      any              `json:"any"`
	Raw      wire.RawValue    `json:"raw"`
	Data     []byte           `json:"data"`
	When     time.Time        `json:"when"`
	Wait     time.Duration    `json:"wait"`
	Colour   colour           `json:"colour"`
	Addr     netip.Addr       `json:"addr"`
	Union    union            `json:"union"`
	Pointer  *inner           `json:"pointer"`
	Pair     [2]int           `json:"pair"`
	Untagged string
}

// Proves: SEC-DOS-1 and defect G12 in part: errors name place and kind, never a value.
func TestDecodeErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"name":7777}`, `/name: expected string, got number`},
		{`{"count":"secret"}`, `/count: expected integer, got string`},
		{`{"count":1.5}`, `/count: expected integer, got another kind of number`},
		{`{"count":7777}`, `/count: number is out of range`},
		{`{"size":-7777}`, `/size: expected integer of 0 or more, got another kind of number`},
		{`{"ratio":"secret"}`, `/ratio: expected number, got string`},
		{`{"on":"secret"}`, `/on: expected boolean, got string`},
		{`{"list":{}}`, `/list: expected array, got object`},
		{`{"list":[{"depth":1},{"depth":"secret"}]}`, `/list/1/depth: expected integer, got string`},
		{`{"map":{"a/b":{"depth":[]}}}`, `/map/a~1b/depth: expected integer, got array`},
		{`{"pointer":7777}`, `/pointer: expected object, got number`},
		{`{"data":"!secret!"}`, `/data: expected base64`},
		{`{"when":"secret"}`, `/when: expected an RFC 3339 time`},
		{`{"wait":"secret"}`, `/wait: expected a duration such as "1m30s"`},
		{`{"wait":7777}`, `/wait: expected a duration such as "1m30s", got number`},
		{`{"colour":"secret"}`, `/colour: colour is red or blue`},
		{`{"addr":"secret"}`, `/addr: expected an IP address`},
		{`{"addr":7777}`, `/addr: expected an IP address`},
		{`{"union":{"depth":"secret"}}`, `/union/depth: expected integer, got string`},
		{`{"union":{"DEPTH":7777}}`, `/union: member "DEPTH" must be written "depth"`},
		{`{"pair":[1]}`, `/pair: expected array of length 2`},
		{`[7777]`, `expected object, got array`},
		{`{"name":"a","name":"secret"}`, `duplicate member name "name"`},
		{`{"name":"secret"`, `unexpected end of text at byte 16`},
		{`{"name":"secret"} x`, `unexpected text after the value at byte 18`},
		{"{\"name\":\"secret\xff\"}", `string is not valid UTF-8 at byte 15`},
	}
	for _, tt := range tests {
		var v sample
		err := wire.Decode([]byte(tt.text), &v)
		var e *wire.Error
		if !errors.As(err, &e) {
			t.Errorf("Decode(%s) = %v, want a *wire.Error", tt.text, err)
			continue
		}
		if !strings.HasPrefix(e.Error(), tt.want) {
			t.Errorf("Decode(%s)\n got %s\nwant %s", tt.text, e, tt.want)
		}
		if strings.Contains(e.Error(), "secret") || strings.Contains(e.Error(), "7777") {
			t.Errorf("Decode(%s) shows the value: %s", tt.text, e)
		}
		if strings.Contains(e.Error(), "int8") || strings.Contains(e.Error(), "netip") {
			t.Errorf("Decode(%s) shows the Go type: %s", tt.text, e)
		}
	}
}

func TestDecode(t *testing.T) {
	text := `{"base":"b","name":"n","NAME":"unknown","count":-3,"size":4,"ratio":1e2,"on":true,"list":[{"depth":1}],
		"map":{"k":{"depth":2}},"any":[1,"x"],"raw": {"a" : 1} ,"data":"AQI=","when":"2026-07-28T10:00:00Z","wait":"1m30s",
		"colour":"red","addr":"10.0.0.1","union":{"depth":3},"pointer":{"depth":4},"pair":[5,6],"Untagged":"u"}`
	var got sample
	if err := wire.Decode([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := sample{
		embedded: embedded{"b"}, Name: "n", Count: -3, Size: 4, Ratio: 100, On: true, List: []inner{{1}},
		Map: map[string]inner{"k": {2}}, Any: []any{1.0, "x"}, Raw: wire.RawValue(`{"a" : 1}`), Data: []byte{1, 2},
		When: time.Date(2026, 7, 28, 10, 0, 0, 0, time.UTC), Wait: 90 * time.Second, Colour: "red",
		Addr: netip.MustParseAddr("10.0.0.1"), Union: union{inner{3}}, Pointer: &inner{4}, Pair: [2]int{5, 6}, Untagged: "u",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	var null sample
	if err := wire.Decode([]byte(`{"wait":null,"name":null,"list":null}`), &null); err != nil {
		t.Errorf("null is the zero value of each type: %v", err)
	}
}

func TestDecodeKnown(t *testing.T) {
	for text, want := range map[string]string{
		`{"depth":1}`:           "",
		`{"depth":1,"other":2}`: `unknown member "other"; known are depth`,
		`{"Depth":1}`:           `unknown member "Depth"; known are depth`,
	} {
		var v inner
		err := wire.DecodeKnown([]byte(text), &v)
		switch {
		case want == "" && err != nil:
			t.Errorf("DecodeKnown(%s) = %v", text, err)
		case want != "" && (!errors.Is(err, wire.ErrUnknown) || err.Error() != want):
			t.Errorf("DecodeKnown(%s) = %v, want %s", text, err, want)
		}
	}
	var v struct{ List []inner }
	if err := wire.DecodeKnown([]byte(`{"List":[{"x":1}]}`), &v); err == nil || err.Error() != `/List/0: unknown member "x"; known are depth` {
		t.Errorf("error is %v", err)
	}
}

type params struct {
	Name      string            `json:"name"`
	Arguments wire.RawValue     `json:"arguments"`
	Meta      map[string]any    `json:"_meta"`
	Options   map[string]inner  `json:"options"`
	Ref       *reference        `json:"ref"`
	Steps     []reference       `json:"steps"`
	Value     union             `json:"value"`
	Extra     map[string]string `json:"extra"`
}

type reference struct {
	Type string `json:"type"`
	URI  string `json:"uri"`
}

// Ruling 8. Proves: defect M0 (case-insensitive decoding) in typed params.
func TestDecodeParams(t *testing.T) {
	good := []string{
		`{"name":"n","other":1}`,
		`{"name":"n","other":{"NAME":1},"names":2}`,
		`{"name":"n","unknown":0,"arguments":{"NAME":1,"name":2}}`,
		`{"name":"n","unknown":0,"_meta":{"NAME":1}}`,
		`{"name":"n","options":{"a":{"depth":1,"DEPTH":2}}}`, // inside a map
		`{"name":"n","unknown":0,"ref":null}`,
		`{"name":"n","steps":[{"type":"t","x":1},{"uri":"u"}]}`,
	}
	for _, text := range good {
		var p params
		if err := wire.DecodeParams([]byte(text), &p); err != nil || p.Name != "n" {
			t.Errorf("DecodeParams(%s) = %v, name %q", text, err, p.Name)
		}
	}
	bad := map[string]string{
		`{"Name":"t"}`:                      `member "Name" must be written "name"`,
		`{"name":"nosuch","NAME":"t"}`:      `member "NAME" must be written "name"`,
		`{"name":"n","\u004eame":"t"}`:      `member "Name" must be written "name"`,
		`{"name":"n","argumentſ":{}}`:       `member "argumentſ" must be written "arguments"`,
		`{"ref":{"type":"t","URI":"u"}}`:    `/ref: member "URI" must be written "uri"`,
		`{"x":1,"steps":[{},{"TYPE":"t"}]}`: `/steps/1: member "TYPE" must be written "type"`,
		`{"value":{"Depth":1}}`:             `/value: member "Depth" must be written "depth"`,
		`{"other":1,"_META":{"NAME":1}}`:    `member "_META" must be written "_meta"`,
	}
	for text, want := range bad {
		var p params
		err := wire.DecodeParams([]byte(text), &p)
		if !errors.Is(err, wire.ErrTwin) || err.Error() != want {
			t.Errorf("DecodeParams(%s) = %v, want %s", text, err, want)
		}
	}
	var p params
	if err := wire.DecodeParams([]byte(`{"unknown":1,"name":5}`), &p); err == nil || err.Error() != "/name: expected string, got number" {
		t.Errorf("error is %v", err)
	}
	if err := wire.DecodeParams([]byte(`{"unknown":1,"name":5`), &p); !errors.Is(err, wire.ErrSyntax) {
		t.Errorf("error is %v", err)
	}
}

// A struct that keeps unknown members hides them from the decoder's report.
func TestDecodeParamsOpenStruct(t *testing.T) {
	type open struct {
		Name string         `json:"name"`
		Rest map[string]any `json:",embed"`
	}
	type outer struct {
		List []open `json:"list"`
	}
	var v outer
	if err := wire.DecodeParams([]byte(`{"list":[{"name":"n","more":1}]}`), &v); err != nil || v.List[0].Rest["more"] != 1.0 {
		t.Errorf("decoded %+v, %v", v, err)
	}
	err := wire.DecodeParams([]byte(`{"list":[{"name":"n","Name":"t"}]}`), &v)
	if !errors.Is(err, wire.ErrTwin) || !strings.HasPrefix(err.Error(), "/list/0:") {
		t.Errorf("error is %v", err)
	}
}

func TestDecodeRecursiveType(t *testing.T) {
	type node struct {
		Name     string  `json:"name"`
		Children []*node `json:"children"`
	}
	var n node
	err := wire.DecodeParams([]byte(`{"children":[{"children":[{"x":1,"NAME":"t"}]}]}`), &n)
	if err == nil || err.Error() != `/children/0/children/0: member "NAME" must be written "name"` {
		t.Errorf("error is %v", err)
	}
}

// A large string is copied once: into its Go string.
func TestDecodeCopiesOnce(t *testing.T) {
	text := []byte(`{"name":"` + strings.Repeat("a", 1<<20) + `"}`)
	var p params
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := wire.DecodeParams(text, &p)
	runtime.ReadMemStats(&after)
	if err != nil || len(p.Name) != 1<<20 {
		t.Fatalf("decoded %d bytes, %v", len(p.Name), err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 3<<19 {
		t.Errorf("decoding 1 MiB allocates %d bytes", got)
	}
}
