package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/schema"
	"github.com/parley-mcp/parley/strictjson"
)

// readSchema is the published schema, which must be one that strangers' schemas may be.
func readSchema(t *testing.T) (strictjson.Object, *schema.Compiled) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide", "parley.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	object, err := strictjson.ParseObject(data)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := schema.Compile(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object, compiled
}

// The members of each object are the same in the schema, in the Go types and in the reader.
func TestSchemaMembers(t *testing.T) {
	t.Parallel()
	root, _ := readSchema(t)
	defs, _ := root.Object("$defs")
	server, _ := defs.Object("server")
	within := func(o strictjson.Object, name string) strictjson.Object {
		properties, _ := o.Object("properties")
		inner, _ := properties.Object(name)
		return inner
	}
	budgets, _ := defs.Object("budgets")
	model, _ := defs.Object("model")
	for name, test := range map[string]struct {
		schema strictjson.Object
		value  any
	}{
		"file": {root, config.File{}}, "server": {server, config.Entry{}}, "oauth": {within(server, "oauth"), config.EntryOAuth{}},
		"timeout": {within(server, "timeout"), config.EntryTimeout{}}, "tools": {within(server, "tools"), config.EntryTools{}},
		"budgets": {budgets, config.Budgets{}}, "model": {model, config.ModelEntry{}}, "screen": {within(root, "screen"), config.Screen{}},
	} {
		var members, fields []string
		properties, _ := test.schema.Object("properties")
		for member := range properties.All() {
			members = append(members, member)
		}
		for field := range reflect.TypeOf(test.value).Fields() {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields = append(fields, tag)
		}
		slices.Sort(members)
		slices.Sort(fields)
		if diff := cmp.Diff(members, fields); diff != "" || len(members) == 0 {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var clients []string
	for name := range within(root, "import").All() {
		if name == "properties" {
			properties, _ := within(root, "import").Object(name)
			for client := range properties.All() {
				clients = append(clients, client)
			}
		}
	}
	want := []string{}
	for _, c := range config.Clients()[1:] {
		want = append(want, string(c))
	}
	if diff := cmp.Diff(want, clients); diff != "" {
		t.Errorf("import: %s", diff)
	}
}

// The schema and the reader agree about what is valid.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	_, compiled := readSchema(t)
	tests := map[string]bool{
		`{}`: true,
		`{"$schema":"x","model":"m","roots":["/a","~/b"],"import":{"goose":false}}`:                                                                                    true,
		`{"budgets":{"steps":1,"calls":0,"time":"1h","tokens":5,"money":0.5}}`:                                                                                         true,
		`{"servers":{"s":{"command":"x","args":["a"],"env":{"A":"b"},"cwd":"d","envFile":"f","description":"d"}}}`:                                                     true,
		`{"servers":{"s":{"command":["x","y"],"disabled":true,"trusted":true,"labels":["private-data"]}}}`:                                                             true,
		`{"servers":{"s":{"url":"https://a.example/","type":"sse","headers":{"A":"b"},"noOAuth":true,"versions":["new"]}}}`:                                            true,
		`{"servers":{"s":{"url":"https://a.example/","oauth":{"clientId":"a","clientSecret":"b","scopes":["c"],"callbackPort":1,"metadataUrl":"https://b.example"}}}}`: true,
		`{"servers":{"s":{"command":"x","timeout":{"connect":"1s","call":"1m30s"},"tools":{"allow":["a"],"deny":["b*"]}}}}`:                                            true,
		`{"servers":{"s":{"command":"x","toolLabels":{"a*":["untrusted-input","can-send-out"]}}}}`:                                                                     true,
		`{"rules":[{"effect":"deny","kind":"tool","server":"s","name":"n","where":{"/p":{"inside":["/etc"]},"/n":[{"min":1,"max":2}]},"reason":"r"}]}`:                 true,
		`{"rules":[{"effect":"approve","hints":"read-only","labels":["private-data"],"subjects":"a","until":"2030-01-01T00:00:00Z"}]}`:                                 true,
		`{"rulez":[]}`:                                                                  false,
		`{"servers":[]}`:                                                                false,
		`{"servers":{"":{"command":"x"}}}`:                                              false,
		`{"servers":{"s":{}}}`:                                                          false,
		`{"servers":{"s":{"command":[]}}}`:                                              false,
		`{"servers":{"s":{"type":"stdio"}}}`:                                            false,
		`{"servers":{"s":{"type":"pigeon","command":"x"}}}`:                             false,
		`{"servers":{"s":{"command":"x","url":"https://a.example/"}}}`:                  false,
		`{"servers":{"s":{"command":"x","comand":"y"}}}`:                                false,
		`{"servers":{"s":{"command":"x","args":"y"}}}`:                                  false,
		`{"servers":{"s":{"command":"x","env":["A=b"]}}}`:                               false,
		`{"servers":{"s":{"command":"x","timeout":{"conect":"1s"}}}}`:                   false,
		`{"servers":{"s":{"command":"x","timeout":{"connect":"soon"}}}}`:                false,
		`{"servers":{"s":{"command":"x","tools":{"allowed":[]}}}}`:                      false,
		`{"servers":{"s":{"command":"x","labels":["secret"]}}}`:                         false,
		`{"servers":{"s":{"command":"x","disabled":"no"}}}`:                             false,
		`{"servers":{"s":{"command":"x","trusted":1}}}`:                                 false,
		`{"servers":{"s":{"url":"https://a.example/","oauth":{"client_id":"a"}}}}`:      false,
		`{"servers":{"s":{"url":"https://a.example/","oauth":{"callbackPort":70000}}}}`: false,
		`{"rules":{}}`:                                                    false,
		`{"rules":[{"server":"s"}]}`:                                      false,
		`{"rules":[{"effect":"maybe"}]}`:                                  false,
		`{"rules":[{"effect":"deny","naem":"x"}]}`:                        false,
		`{"rules":[{"effect":"deny","where":{"/p":{"outside":"/etc"}}}]}`: false,
		`{"budgets":{"step":1}}`:                                          false,
		`{"budgets":{"steps":-1}}`:                                        false,
		`{"budgets":{"time":5}}`:                                          false,
		`{"import":{"clyde":false}}`:                                      false,
		`{"roots":"a"}`:                                                   false,
		`{"models":{"openai:x":{"baseUrl":"http://127.0.0.1:1/v1","noKey":true,"window":8192,"maxImage":0,"inputPrice":0.5,"outputPrice":1}}}`: true,
		`{"models":[]}`:                                 false,
		`{"models":{"openai:x":{"window":-1}}}`:         false,
		`{"models":{"openai:x":{"window":1073741825}}}`: false,
		`{"models":{"openai:x":{"maxImage":-1}}}`:       false,
		`{"models":{"openai:x":{"inputPrice":-1}}}`:     false,
		`{"models":{"openai:x":{"key":"sk-1"}}}`:        false,
		`{"model":5}`:                                   false,
	}
	for text, valid := range tests {
		d := newDesk(t)
		d.write("home/.config/parley/parley.jsonc", text)
		d.write("home/project/f", "A=b")
		c := d.load()
		read := len(c.Problems) == 0
		for _, s := range c.Servers {
			read = read && s.Err == nil
		}
		checked := compiled.Check([]byte(text)) == nil
		if read != valid || checked != valid {
			t.Errorf("%s: read %v, by the schema %v, want %v", text, read, checked, valid)
		}
	}
}

// Every parley.jsonc of the guide is valid and read without problems.
func TestGuide(t *testing.T) {
	t.Parallel()
	_, compiled := readSchema(t)
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for i, block := range strings.Split(string(guide), "```") {
		text, ok := strings.CutPrefix(block, "jsonc\n")
		if i%2 == 0 || !ok {
			continue
		}
		examples++
		plain, err := hujson.Standardize([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := compiled.Check(plain); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		d := newDesk(t)
		d.env["TICKETS_TOKEN"] = "t"
		d.write("home/.config/parley/parley.jsonc", text)
		c := d.load()
		for _, s := range c.Servers {
			if s.Err != nil {
				t.Errorf("%s: %v", s.Name, s.Err)
			}
		}
		if len(c.Problems) > 0 {
			t.Errorf("%s: problems %v", text, c.Problems)
		}
	}
	if examples == 0 {
		t.Error("no examples")
	}
}

// What parley.jsonc says.
func TestOwn(t *testing.T) {
	t.Parallel()
	d := fullDesk(t)
	c := d.load()
	want := &config.Own{
		Path: d.path("home/.config/parley/parley.jsonc"), Model: "offline", Roots: []string{d.path("home/src")},
		Budgets: config.Budgets{Steps: 40, Calls: 100, Tokens: 200000, Time: config.Duration(10 * time.Minute), Money: 1.5},
		Import:  map[config.Client]bool{config.ClientLibreChat: false},
	}
	if diff := cmp.Diff(want, c.Own); diff != "" {
		t.Error(diff)
	}
	files := d.server(c, "files")
	if !files.Trusted || !slices.Equal(files.Labels, []policy.Label{policy.LabelPrivate}) || len(files.ToolLabels) != 1 ||
		files.ToolLabels[0].Tools != "fetch_*" || files.ConnectTimeout != 20*time.Second || files.CallTimeout != 2*time.Minute {
		t.Errorf("%+v", files)
	}
	if s := d.server(c, "tickets"); !s.NoOAuth || !slices.Equal(s.Versions, []string{"modern"}) {
		t.Errorf("%+v", s)
	}
	if s := d.server(c, "parley-project"); s.Trusted || !s.NeedsConsent {
		t.Errorf("%+v", s)
	}
}

// What cannot be read of models is told, since it may be the address of one.
func TestModelFault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"model": "openai:a"}`:                                      "",
		`{"theme": "dark"}`:                                          "",
		"{\n\"baseUrl\": 1}":                                         ":2: baseUrl: ",
		`{"model": []}`:                                              "model: ",
		`{"models": []}`:                                             "models: expected an object",
		`{"models": {"openai:a": {"nokey": true}}}`:                  `models: "openai:a": `,
		`{"models": {"openai:a": {"window": -1}}}`:                   "window: write a number",
		`{"baseURL": "http://127.0.0.1:1/v1", "model": "openai:a"}`:  `did you mean "baseUrl"?`,
		`{"model": "openai:a", "baseUrl": "http://127.0.0.1:1/v1" "`: "parley.jsonc:1: ",
	} {
		d := newDesk(t)
		d.write("home/.config/parley/parley.jsonc", text)
		d.write("home/project/.parley.jsonc", `{"models": 1, "baseURL": 2}`) // is nobody's word about models
		switch err := d.load().Own.ModelFault; {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
