package schema_test

import (
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/schema"
)

type indexIn struct {
	_     struct{} `title:"Index" desc:"What to index."`
	Repo  string   `json:"repo" desc:"owner/name" pattern:"^[\\w.-]+/[\\w.-]+$"`
	Depth int      `json:"depth,omitzero" desc:"history depth" min:"1" max:"500" default:"50"`
	Kind  string   `json:"kind,omitzero" enum:"code, docs,all" default:"all"`
}

type node struct {
	Name     string           `json:"name"`
	Children []*node          `json:"children,omitempty"`
	ByName   map[string]*node `json:"byName,omitzero"`
}

type forest struct {
	Trees []tree `json:"trees"`
	Best  *tree  `json:"best" desc:"The tallest."`
}

type tree struct {
	Height uint8  `json:"height" default:"1"`
	Grafts []tree `json:"grafts,omitempty"`
}

type Base struct {
	ID   int32  `json:"id"`
	Kind string `json:"kind"` // shadowed
}

type Deep struct {
	Note string `json:"note"`
}

type embedding struct {
	Base
	*Deep
	Kind  bool             `json:"kind"`
	Extra map[string]int64 `json:",embed"`
}

type generic[T any] struct {
	Value T           `json:"value"`
	Next  *generic[T] `json:"next,omitempty"`
}

type every struct {
	S    string             `json:"s" minlen:"1" maxlen:"9" format:"email" title:"Mail"`
	I    int64              `json:"i"`
	I8   int8               `json:"i8"`
	U    uint               `json:"u" max:"10"`
	U16  uint16             `json:"u16"`
	F    float64            `json:"f" min:"-1.5" max:"1e3"`
	F32  float32            `json:"f32,omitempty" enum:"0.5,1"`
	B    bool               `json:"b,omitzero" default:"true"`
	T    time.Time          `json:"t"`
	D    time.Duration      `json:"d" default:"1m30s"`
	Raw  wire.RawValue      `json:"raw"`
	Any  any                `json:"any"`
	Data []byte             `json:"data"`
	Sum  [4]byte            `json:"sum"`
	Pair [2]int             `json:"pair"`
	L    []string           `json:"l" minlen:"1" maxlen:"3" enum:"a,b,c" default:"a,b"`
	M    map[string]bool    `json:"m" maxlen:"2"`
	ByI  map[int8]string    `json:"byI"`
	P    *int               `json:"p" min:"0"`
	Addr netip.Addr         `json:"addr"`
	Skip chan int           `json:"-"`
	In   struct{ X string } `json:"in"`
	none func()
}

// Proves: SEC-TOOL-1
func TestInferredSchema(t *testing.T) {
	_ = every{none: nil}
	for _, c := range []struct {
		typ  reflect.Type
		o    *schema.Options
		want string
	}{
		{reflect.TypeFor[struct{}](), nil, `{"type":"object","additionalProperties":false}`},
		{
			reflect.TypeFor[struct{ Name string }](), nil,
			`{"type":"object","properties":{"Name":{"type":"string"}},"required":["Name"],"additionalProperties":false}`,
		},
		{
			reflect.TypeFor[struct{ Name string }](), &schema.Options{AllowAdditional: true},
			`{"type":"object","properties":{"Name":{"type":"string"}},"required":["Name"]}`,
		},
		{
			reflect.TypeFor[*indexIn](), nil,
			`{"type":"object","title":"Index","description":"What to index.","properties":{` +
				`"repo":{"type":"string","description":"owner/name","pattern":"^[\\w.-]+/[\\w.-]+$"},` +
				`"depth":{"type":"integer","description":"history depth","minimum":1,"maximum":500,"default":50},` +
				`"kind":{"type":"string","enum":["code","docs","all"],"default":"all"}},` +
				`"required":["repo"],"additionalProperties":false}`,
		},
		{
			reflect.TypeFor[node](), nil,
			`{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}},` +
				`"byName":{"type":"object","additionalProperties":{"$ref":"#"}}},"required":["name"],"additionalProperties":false}`,
		},
		{
			reflect.TypeFor[forest](), nil,
			`{"type":"object","properties":{"trees":{"type":"array","items":{"$ref":"#/$defs/tree"}},` +
				`"best":{"$ref":"#/$defs/tree","description":"The tallest."}},"required":["trees"],"additionalProperties":false,` +
				`"$defs":{"tree":{"type":"object","properties":{"height":{"type":"integer","minimum":0,"maximum":255,"default":1},` +
				`"grafts":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"additionalProperties":false}}}`,
		},
		{
			reflect.TypeFor[embedding](), nil,
			`{"type":"object","properties":{"id":{"type":"integer","minimum":-2147483648,"maximum":2147483647},` +
				`"note":{"type":"string"},"kind":{"type":"boolean"}},"required":["id","kind"],"additionalProperties":{"type":"integer"}}`,
		},
		{
			reflect.TypeFor[[]generic[int]](), nil,
			`{"type":"array","items":{"$ref":"#/$defs/generic_int_"},"$defs":{"generic_int_":{"type":"object","properties":{` +
				`"value":{"type":"integer"},"next":{"$ref":"#/$defs/generic_int_"}},"required":["value"],"additionalProperties":false}}}`,
		},
		{reflect.TypeFor[every](), nil, everySchema},
		{reflect.TypeFor[any](), nil, `{}`},
		{reflect.TypeFor[string](), nil, `{"type":"string"}`},
	} {
		got, err := schema.For(c.typ, c.o)
		if err != nil {
			t.Errorf("%v: %v", c.typ, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(got.JSON())); diff != "" {
			t.Errorf("%v: %s", c.typ, diff)
		}
		if err := wire.Valid(got.JSON(), wire.Limits{}); err != nil {
			t.Errorf("%v: %v", c.typ, err)
		}
		// Compiling checks it against the metaschema of 2020-12.
		if _, err := schema.Compile(got.JSON(), nil); err != nil {
			t.Errorf("%v: %v", c.typ, err)
		}
	}
}

const everySchema = `{"type":"object","properties":{` +
	`"s":{"type":"string","title":"Mail","format":"email","minLength":1,"maxLength":9},` +
	`"i":{"type":"integer"},"i8":{"type":"integer","minimum":-128,"maximum":127},` +
	`"u":{"type":"integer","minimum":0,"maximum":10},"u16":{"type":"integer","minimum":0,"maximum":65535},` +
	`"f":{"type":"number","minimum":-1.5,"maximum":1e3},"f32":{"type":"number","enum":[0.5,1]},` +
	`"b":{"type":"boolean","default":true},"t":{"type":"string","format":"date-time"},` +
	`"d":{"type":"string","pattern":"^[-+]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$","default":"1m30s"},` +
	`"raw":{},"any":{},"data":{"type":"string","contentEncoding":"base64"},` +
	`"sum":{"type":"string","contentEncoding":"base64","minLength":8,"maxLength":8},` +
	`"pair":{"type":"array","minItems":2,"maxItems":2,"items":{"type":"integer"}},` +
	`"l":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["a","b","c"]},"default":["a","b"]},` +
	`"m":{"type":"object","maxProperties":2,"additionalProperties":{"type":"boolean"}},` +
	`"byI":{"type":"object","propertyNames":{"pattern":"^-?(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"string"}},` +
	`"p":{"type":"integer","minimum":0},"addr":{"type":"string"},` +
	`"in":{"type":"object","properties":{"X":{"type":"string"}},"required":["X"],"additionalProperties":false}},` +
	`"required":["s","i","i8","u","u16","f","t","raw","any","data","sum","pair","m","byI","addr","in"],"additionalProperties":false}`

type loop struct{ *loop }

func TestProgrammerErrors(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		want []string
	}{
		{reflect.TypeFor[struct{ C chan int }](), []string{".C: type chan int", `json:"-"`}},
		{reflect.TypeFor[struct{ F []func() }](), []string{".F[]: type func()"}},
		{reflect.TypeFor[struct {
			N int `max:"x"`
		}](), []string{".N: tag max", "integer"}},
		{reflect.TypeFor[struct {
			N int `min:"5" max:"4"`
		}](), []string{".N: ", "min"}},
		{reflect.TypeFor[struct {
			N int8 `max:"128"`
		}](), []string{".N: ", "range"}},
		{reflect.TypeFor[struct {
			S string `max:"4"`
		}](), []string{".S: tag max does not fit", "maxlen"}},
		{reflect.TypeFor[struct {
			S string `minlen:"5" maxlen:"4"`
		}](), []string{".S: minlen 5"}},
		{reflect.TypeFor[struct {
			S string `pattern:"("`
		}](), []string{".S: tag pattern"}},
		{reflect.TypeFor[struct {
			S string `format:"phone"`
		}](), []string{".S: tag format", "email"}},
		{reflect.TypeFor[struct {
			S string `enum:"a,a"`
		}](), []string{".S: tag enum", "twice"}},
		{reflect.TypeFor[struct {
			N int `enum:"1,b"`
		}](), []string{".N: tag enum"}},
		{reflect.TypeFor[struct {
			S string `enum:"a,b" default:"c"`
		}](), []string{".S: tag default", "one of"}},
		{reflect.TypeFor[struct {
			N int `default:"x"`
		}](), []string{".N: tag default"}},
		{reflect.TypeFor[struct {
			D time.Duration `default:"90"`
		}](), []string{".D: tag default", "1m30s"}},
		{reflect.TypeFor[struct {
			X struct{} `default:"{}"`
		}](), []string{".X: tag default", "fields of a struct"}},
		{reflect.TypeFor[struct {
			S string `jsonschema:"required,description=x"`
		}](), []string{".S: tag jsonschema", "plain text", "desc", "JSONSchema"}},
		{reflect.TypeFor[struct {
			S string `jsonschema:"required"`
		}](), []string{".S: tag jsonschema"}},
		{reflect.TypeFor[struct {
			S int `minLen:"1"`
		}](), []string{".S: tag minLen", "write minlen"}},
		{reflect.TypeFor[struct {
			S string `json:"s,string"`
		}](), []string{".S: ", `"string" fits numbers only`}},
		{reflect.TypeFor[struct {
			N int `json:"n,string" min:"1"`
		}](), []string{".N: tag min", "number in a string"}},
		{reflect.TypeFor[struct{ U url.URL }](), []string{".U: type url.URL", `format:"uri"`}},
		{reflect.TypeFor[struct{ U *url.URL }](), []string{".U: type url.URL"}},
		{reflect.TypeFor[struct{ L time.Location }](), []string{".L: type time.Location", "time zone"}},
		{reflect.TypeFor[struct{ P panicking }](), []string{".P: method JSONSchema", "panicked", "boom"}},
		{reflect.TypeFor[struct{ P withParams }](), []string{".P: method JSONSchema", "no parameters"}},
		{reflect.TypeFor[struct{ P notASchema }](), []string{".P: schema given for", "invalid"}},
		{reflect.TypeFor[struct{ P referring }](), []string{".P: schema given for", "$ref does not work inside"}},
		{reflect.TypeFor[struct {
			P shape `header:"P"`
		}](), []string{".P: tag header"}},
		{reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"a"`},
			{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"a"`},
		}), []string{"fields A and B", `"a"`}},
		{reflect.TypeFor[struct{ M map[bool]int }](), []string{".M: keys of type bool"}},
		{reflect.TypeFor[struct{ E error }](), []string{".E: interface error"}},
		{reflect.TypeFor[loop](), []string{"embedded twice"}},
		{nil, []string{"nil"}},
	} {
		_, err := schema.For(c.typ, nil)
		if err == nil {
			t.Errorf("%v: no error", c.typ)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v; want %q in it", c.typ, err, want)
			}
		}
	}
}

// A nil pointer of an output is null, and the schema says so; those of an input
// are absent or have a value.
func TestNullableOutputs(t *testing.T) {
	type inner struct {
		A int `json:"a"`
	}
	type out struct {
		S *string  `json:"s" desc:"Text."`
		E *string  `json:"e" enum:"a,b" title:"E"`
		I *inner   `json:"i"`
		N *node    `json:"n" desc:"Tree."`
		L *[]int   `json:"l"`
		W *shape   `json:"w"`
		O *string  `json:"o,omitzero"`
		A *any     `json:"a"`
		P **string `json:"p"`
	}
	c := of[out](t, &schema.Options{Output: true})
	want := `{"type":"object","properties":{"s":{"type":["string","null"],"description":"Text."},` +
		`"e":{"title":"E","anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]},` +
		`"i":{"type":["object","null"],"properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},` +
		`"n":{"description":"Tree.","anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},` +
		`"l":{"type":["array","null"],"items":{"type":"integer"}},` +
		`"w":{"anyOf":[` + shapeSchema + `,{"type":"null"}]},"o":{"type":"string"},"a":{},"p":{"type":["string","null"]}},` +
		`"required":["s","e","i","n","l","w","a","p"],"additionalProperties":false`
	if got := string(c.JSON()); !strings.HasPrefix(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	foreign, err := schema.Compile(c.JSON(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []out{
		{},
		{S: new("x"), E: new("a"), I: &inner{1}, N: &node{Name: "n"}, L: &[]int{1}, W: &shape{round: true}, O: new("o"), A: new(any), P: new(new("p"))},
	} {
		raw, err := wire.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if err := foreign.Check(raw); err != nil {
			t.Errorf("%s, by the text of the schema: %v", raw, err)
		}
	}
	const rest = `"i":null,"n":null,"l":null,"w":null,"a":null,"p":null}`
	for raw, want := range map[string]string{
		`{"e":null,` + rest:                   `member "s" is required`,
		`{"s":1,"e":null,` + rest:             "/s: expected string, got number",
		`{"s":null,"e":"c",` + rest:           `/e: must be one of "a", "b"`,
		`{"s":null,"e":null,"o":null,` + rest: "/o: expected string, got null",
	} {
		if err := c.Check([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	if err := of[out](t, nil).Check([]byte(`{"s":null}`)); err == nil || !strings.Contains(err.Error(), "/s: expected string, got null") {
		t.Errorf("an input takes null: %v", err)
	}
}

type (
	wide    struct{ A, B, C, D, E, F, G, H, I, J struct{ S string } }
	wider   struct{ A, B, C, D, E, F, G, H, I, J wide }
	widest  struct{ A, B, C, D, E, F, G, H, I, J wider }
	tooWide struct{ A, B, C, D, E, F, G, H, I, J widest }
)

func TestInferredSizeIsBounded(t *testing.T) {
	if _, err := schema.Of[tooWide](nil); err == nil || !strings.Contains(err.Error(), "10000") {
		t.Errorf("got %v", err)
	}
}

type form struct {
	Name   string    `json:"name" title:"Your name" maxlen:"40"`
	Mail   string    `json:"mail,omitzero" format:"email"`
	Age    int       `json:"age,omitzero" min:"0" max:"150"`
	Weight float64   `json:"weight,omitzero"`
	Sure   bool      `json:"sure" default:"false"`
	When   time.Time `json:"when,omitzero"`
	Colour string    `json:"colour,omitzero" enum:"red,green"`
	Sizes  []string  `json:"sizes,omitempty" enum:"S,M,L" minlen:"1" maxlen:"2"`
}

// Ruling 20
func TestElicitation(t *testing.T) {
	c, err := schema.Elicitation(reflect.TypeFor[form]())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"name":{"type":"string","title":"Your name","maxLength":40},` +
		`"mail":{"type":"string","format":"email"},"age":{"type":"integer","minimum":0,"maximum":150},` +
		`"weight":{"type":"number"},"sure":{"type":"boolean","default":false},` +
		`"when":{"type":"string","format":"date-time"},"colour":{"type":"string","enum":["red","green"]},` +
		`"sizes":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["S","M","L"]}}},"required":["name"]}`
	if diff := cmp.Diff(want, string(c.JSON())); diff != "" {
		t.Error(diff)
	}
	var got form
	if err := c.Decode([]byte(`{"name":"Ada","sizes":["S"],"other":1}`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(form{Name: "Ada", Sizes: []string{"S"}}, got); diff != "" {
		t.Error(diff)
	}
}

// Ruling 20
func TestElicitationIsFlat(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[struct{ In struct{ X int } }](), ".In: a form cannot have"},
		{reflect.TypeFor[struct{ L []string }](), ".L: a form can have a slice of an enum only"},
		{reflect.TypeFor[struct{ L []int }](), ".L: a form cannot have"},
		{reflect.TypeFor[struct{ M map[string]string }](), ".M: a form cannot have"},
		{reflect.TypeFor[struct{ A any }](), ".A: a form cannot have"},
		{reflect.TypeFor[struct{ D time.Duration }](), ".D: a form cannot have a duration"},
		{reflect.TypeFor[struct{ B []byte }](), ".B: a form cannot have"},
		{reflect.TypeFor[struct {
			S string `pattern:"x"`
		}](), ".S: a form cannot have the tag pattern"},
		{reflect.TypeFor[struct {
			S string `format:"uuid"`
		}](), ".S: tag format"},
		{reflect.TypeFor[struct {
			N int `enum:"1,2"`
		}](), ".N: a form cannot have the tag enum"},
		{reflect.TypeFor[string](), "wrap the value"},
		{reflect.TypeFor[node](), ".Children"},
	} {
		if _, err := schema.Elicitation(c.typ); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.typ, err)
		}
	}
}

// Ruling 18
func TestSecretish(t *testing.T) {
	c, err := schema.Of[struct {
		Password  string
		APIKey    string `json:"api_key"`
		AuthToken string `json:"authToken"`
		PageToken string `json:"pageToken"`
		MaxTokens int    `json:"maxTokens"`
		UseSecret bool   `json:"use_secret"`
		Kind      string `json:"secretType"`
		Length    string `json:"password_length"`
		Name      string
		In        struct {
			ClientSecret string `json:"clientSecret"`
		}
	}](nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Password", "api_key", "authToken", "clientSecret"}
	if diff := cmp.Diff(want, c.SecretMembers()); diff != "" {
		t.Error(diff)
	}
	f, err := schema.Compile([]byte(`{"type":"object","properties":{"name":{},"db":{"properties":{"passwd":{"type":"string"}}},"hasToken":{"type":"boolean"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"passwd"}, f.SecretMembers()); diff != "" {
		t.Error(diff)
	}
}
