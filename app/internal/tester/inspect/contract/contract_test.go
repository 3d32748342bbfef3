package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// base is a contract as JSON; the table replaces texts in it.
const base = `{
"revision":"2026-07-28",
"server":{"name":"shop","version":"1","title":"Shop"},
"instructions":"Look before you order.",
"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"extensions":{"a.example/x":{"y":1}}},
"tools":{
 "order":{
  "name":"order","title":"Order","description":"Orders things.",
  "annotations":{"readOnlyHint":false,"title":"Order things"},
  "icons":[{"src":"https://shop.example/a.png"}],
  "_meta":{"shop.example/k":1},
  "execution":{"taskSupport":"optional"},
  "inputSchema":{
   "type":"object",
   "$defs":{"size":{"enum":["small","large"]}},
   "properties":{
    "item":{"type":"string","description":"What to order.","minLength":1,"maxLength":80,"pattern":"^[a-z]+$"},
    "count":{"type":"integer","minimum":1,"maximum":10,"default":1},
    "size":{"$ref":"#/$defs/size"},
    "tags":{"type":"array","items":{"type":"string"},"maxItems":5},
    "note":{"type":["string","null"],"title":"Note"}
   },
   "required":["item"]
  },
  "outputSchema":{
   "type":"object",
   "properties":{"id":{"type":"string"},"state":{"enum":["new","sent"]},"price":{"type":"number","minimum":0},"hint":{"type":"string","description":"A hint."}},
   "required":["id","state"]
  }
 },
 "list":{"name":"list","description":"Lists orders.","inputSchema":{"type":"object"}}
},
"prompts":{"ask":{"name":"ask","title":"Ask","description":"Asks.","arguments":[{"name":"what","description":"What.","required":true},{"name":"how"}]}},
"resources":{"shop://prices":{"uri":"shop://prices","name":"prices","mimeType":"text/csv","description":"Prices."}},
"resourceTemplates":{"shop://orders/{id}":{"uriTemplate":"shop://orders/{id}","name":"order","mimeType":"application/json"}}
}`

func parse(t *testing.T, text string) *contract.Contract {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var c contract.Contract
	if err := d.Decode(&c); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &c
}

const (
	breaking = contract.Breaking
	risky    = contract.Risky
	safe     = contract.Safe
)

// changes are replacements in base, and what they are: the class and path of each change, none
// where the meaning is the same.
var changes = []struct {
	name, old, new string
	want           []string
}{
	// Arguments.
	{"argument renamed", `"note":{`, `"remark":{`, []string{"breaking $.tools.order.inputSchema.properties.note"}},
	{"argument removed", `"tags":{"type":"array","items":{"type":"string"},"maxItems":5},`, ``, []string{"breaking $.tools.order.inputSchema.properties.tags"}},
	{"enum narrowed", `["small","large"]`, `["small"]`, []string{"breaking $.tools.order.inputSchema.properties.size.enum"}},
	{"enum widened", `["small","large"]`, `["small","large","huge"]`, []string{"safe $.tools.order.inputSchema.properties.size.enum"}},
	{"enum reordered", `["small","large"]`, `["large","small"]`, nil},
	{"new required member", `"required":["item"]`, `"required":["item","who"]`, []string{"breaking $.tools.order.inputSchema.properties.who"}},
	{"member becomes required", `"required":["item"]`, `"required":["count","item"]`, []string{"breaking $.tools.order.inputSchema.properties.count.required"}},
	{"member becomes optional", `"required":["item"]`, `"required":[]`, []string{"safe $.tools.order.inputSchema.properties.item.required"}},
	{"new optional member", `"note":{`, `"gift":{"type":"boolean"},"note":{`, []string{"safe $.tools.order.inputSchema.properties.gift"}},
	{"maximum lowered", `"maximum":10`, `"maximum":9`, []string{"breaking $.tools.order.inputSchema.properties.count.maximum"}},
	{"maximum raised", `"maximum":10`, `"maximum":11`, []string{"safe $.tools.order.inputSchema.properties.count.maximum"}},
	{"maximum written in another way", `"maximum":10`, `"exclusiveMaximum":1.1e1`, nil},
	{"minimum raised", `"minimum":1,`, `"minimum":2,`, []string{"breaking $.tools.order.inputSchema.properties.count.minimum"}},
	{"longer least length", `"minLength":1`, `"minLength":2`, []string{"breaking $.tools.order.inputSchema.properties.item.minLength"}},
	{"shorter greatest length", `"maxLength":80`, `"maxLength":40`, []string{"breaking $.tools.order.inputSchema.properties.item.maxLength"}},
	{"no greatest length", `"maxLength":80,`, ``, []string{"safe $.tools.order.inputSchema.properties.item.maxLength"}},
	{"another pattern", `^[a-z]+$`, `^[a-y]+$`, []string{"breaking $.tools.order.inputSchema.properties.item.pattern"}},
	{"no pattern", `,"pattern":"^[a-z]+$"`, ``, []string{"safe $.tools.order.inputSchema.properties.item.pattern"}},
	{"fewer items", `"maxItems":5`, `"maxItems":4`, []string{"breaking $.tools.order.inputSchema.properties.tags.maxItems"}},
	{"another type", `"tags":{"type":"array","items":{"type":"string"},"maxItems":5}`, `"tags":{"type":"string"}`, []string{"breaking $.tools.order.inputSchema.properties.tags.type"}},
	{"type of items narrowed", `"items":{"type":"string"}`, `"items":{"type":"string","format":"uri"}`, []string{"breaking $.tools.order.inputSchema.properties.tags.items.format"}},
	{"null is refused", `"type":["string","null"]`, `"type":"string"`, []string{"breaking $.tools.order.inputSchema.properties.note.type"}},
	{"number in the place of an integer", `"type":"integer"`, `"type":"number"`, []string{"safe $.tools.order.inputSchema.properties.count.type"}},
	{"closed", `"required":["item"]`, `"required":["item"],"additionalProperties":false`, []string{"breaking $.tools.order.inputSchema.additionalProperties"}},
	{"list of types as anyOf", `{"type":["string","null"],"title":"Note"}`, `{"anyOf":[{"type":"null"},{"type":"string"}],"title":"Note"}`, nil},
	{"type as a list", `"type":"integer"`, `"type":["integer"]`, nil},
	{"reference written out", `{"$ref":"#/$defs/size"}`, `{"enum":["small","large"],"type":"string"}`, nil},
	{"enum as oneOf", `"$defs":{"size":{"enum":["small","large"]}}`, `"$defs":{"size":{"oneOf":[{"const":"large"},{"const":"small"}]}}`, nil},
	{"description of an argument", `What to order.`, `What to order, in capitals.`, []string{"risky $.tools.order.inputSchema.properties.item.description"}},
	{"title of an argument", `"title":"Note"`, `"title":"Remark"`, []string{"safe $.tools.order.inputSchema.properties.note.title"}},
	{"another default", `"default":1`, `"default":2`, []string{"risky $.tools.order.inputSchema.properties.count.default"}},
	{"header", `"type":"integer"`, `"type":"integer","x-mcp-header":"Count"`, []string{"breaking $.tools.order.inputSchema.properties.count['x-mcp-header']"}},

	// Results.
	{"result enum widened", `["new","sent"]`, `["new","sent","lost"]`, []string{"breaking $.tools.order.outputSchema.properties.state.enum"}},
	{"result enum narrowed", `["new","sent"]`, `["new"]`, []string{"safe $.tools.order.outputSchema.properties.state.enum"}},
	{"result member may be missing", `"required":["id","state"]`, `"required":["id"]`, []string{"breaking $.tools.order.outputSchema.properties.state.required"}},
	{"result member is always there", `"required":["id","state"]`, `"required":["id","state","price"]`, []string{"safe $.tools.order.outputSchema.properties.price.required"}},
	{"result member lost", `"id":{"type":"string"},`, ``, []string{"breaking $.tools.order.outputSchema.properties.id.type"}},
	{"optional result member gone", `,"hint":{"type":"string","description":"A hint."}`, ``, []string{"risky $.tools.order.outputSchema.properties.hint"}},
	{"new result member", `"id":{"type":"string"},`, `"id":{"type":"string"},"eta":{"type":"string"},`, []string{"safe $.tools.order.outputSchema.properties.eta"}},
	{"result bound loosened", `,"minimum":0`, ``, []string{"breaking $.tools.order.outputSchema.properties.price.minimum"}},
	{"result bound tightened", `"minimum":0`, `"minimum":1`, []string{"safe $.tools.order.outputSchema.properties.price.minimum"}},
	{"result description", `A hint.`, `A clue.`, []string{"safe $.tools.order.outputSchema.properties.hint.description"}},
	{"no promise of results", `,
  "outputSchema":`, `,"x":`, []string{"breaking $.tools.order.outputSchema", "risky $.tools.order.x"}},
	{"promise of results", `"description":"Lists orders.",`, `"description":"Lists orders.","outputSchema":{"type":"object"},`, []string{"safe $.tools.list.outputSchema"}},

	// Tools.
	{"tool renamed", `"list":{"name":"list"`, `"orders":{"name":"orders"`, []string{"breaking $.tools.list"}},
	{"tool removed", `,
 "list":{"name":"list","description":"Lists orders.","inputSchema":{"type":"object"}}`, ``, []string{"breaking $.tools.list"}},
	{"new tool", `"list":{`, `"pay":{"name":"pay","inputSchema":{"type":"object"}},"list":{`, []string{"safe $.tools.pay"}},
	{"description", `Orders things.`, `Orders all things.`, []string{"risky $.tools.order.description"}},
	{"title", `"title":"Order",`, `"title":"Buy",`, []string{"safe $.tools.order.title"}},
	{"hint", `"readOnlyHint":false`, `"readOnlyHint":true`, []string{"risky $.tools.order.annotations.readOnlyHint"}},
	{"title among the hints", `Order things`, `Buy things`, []string{"safe $.tools.order.annotations.title"}},
	{"icon", `a.png`, `b.png`, []string{"safe $.tools.order.icons"}},
	{"metadata", `"shop.example/k":1`, `"shop.example/k":2`, []string{"risky $.tools.order._meta"}},
	{"only as a task", `"taskSupport":"optional"`, `"taskSupport":"required"`, []string{"breaking $.tools.order.execution.taskSupport"}},

	// Prompts, resources, and the server itself.
	{"prompt argument removed", `,{"name":"how"}`, ``, []string{"breaking $.prompts.ask.arguments.how"}},
	{"prompt argument required", `{"name":"how"}`, `{"name":"how","required":true}`, []string{"breaking $.prompts.ask.arguments.how.required"}},
	{"new required prompt argument", `{"name":"how"}`, `{"name":"how"},{"name":"when","required":true}`, []string{"breaking $.prompts.ask.arguments.when"}},
	{"new optional prompt argument", `{"name":"how"}`, `{"name":"how"},{"name":"when"}`, []string{"safe $.prompts.ask.arguments.when"}},
	{"prompt arguments reordered", `[{"name":"what","description":"What.","required":true},{"name":"how"}]`, `[{"name":"how"},{"required":true,"name":"what","description":"What."}]`, nil},
	{"prompt description", `"Asks."`, `"Asks you."`, []string{"risky $.prompts.ask.description"}},
	{"prompt removed", `"ask":{"name":"ask"`, `"ask2":{"name":"ask2"`, []string{"breaking $.prompts.ask"}},
	{"resource removed", `"shop://prices":{"uri":"shop://prices","name":"prices","mimeType":"text/csv","description":"Prices."}`, ``, []string{"breaking $.resources['shop://prices']"}},
	{"resource type", `text/csv`, `text/plain`, []string{"breaking $.resources['shop://prices'].mimeType"}},
	{"template changed", `"shop://orders/{id}":{"uriTemplate":"shop://orders/{id}"`, `"shop://o/{id}":{"uriTemplate":"shop://o/{id}"`, []string{"breaking $.resourceTemplates['shop://orders/{id}']"}},
	{"instructions", `Look before`, `Think before`, []string{"risky $.instructions"}},
	{"version", `"version":"1"`, `"version":"2"`, []string{"safe $.server.version"}},
	{"capability removed", `"completions":{},`, ``, []string{"breaking $.capabilities.completions"}},
	{"capability added", `"completions":{},`, `"completions":{},"logging":{},`, []string{"safe $.capabilities.logging"}},
	{"subscriptions removed", `"subscribe":true`, `"subscribe":false`, []string{"breaking $.capabilities.resources.subscribe"}},
	{"extension removed", `"a.example/x":{"y":1}`, ``, []string{"breaking $.capabilities.extensions['a.example/x']"}},
	{"extension settings", `{"y":1}`, `{"y":2}`, []string{"risky $.capabilities.extensions['a.example/x']"}},
	{"false is what is left out", `"tools":{"listChanged":true},"resources":{"subscribe":true}`, `"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false}`, nil},
	{"revision", `"revision":"2026-07-28"`, `"revision":"2025-11-25"`, []string{"breaking $.revision"}},
}

// Each change has its class and its path, and says why.
func TestCompare(t *testing.T) {
	before := parse(t, base)
	seen := make(map[string]bool)
	for _, test := range changes {
		if strings.Count(base, test.old) != 1 || seen[test.name] {
			t.Errorf("%s: the text to replace is there %d times", test.name, strings.Count(base, test.old))
		}
		seen[test.name] = true
		after := parse(t, strings.Replace(base, test.old, test.new, 1))
		var got []string
		for _, c := range contract.Compare(before, after) {
			got = append(got, fmt.Sprintf("%s %s", c.Class, c.Path))
			if c.Why == "" || c.Before == c.After {
				t.Errorf("%s: incomplete: %+v", test.name, c)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", test.name, got, test.want)
		}
	}
	if len(changes) < 40 {
		t.Errorf("the table has %d changes", len(changes))
	}
}

// What the server itself calls a changing list breaks nothing when it changes.
func TestChangingResources(t *testing.T) {
	text := strings.Replace(base, `"resources":{"subscribe":true}`, `"resources":{"subscribe":true,"listChanged":true}`, 1)
	after := strings.Replace(text, `"shop://prices":{"uri":"shop://prices"`, `"shop://news":{"uri":"shop://news"`, 1)
	got := contract.Compare(parse(t, text), parse(t, after))
	if len(got) != 2 || got[0].Class != risky || got[1].Class != safe {
		t.Errorf("got %+v", got)
	}
}

func TestAtLeast(t *testing.T) {
	if !breaking.AtLeast(risky) || !risky.AtLeast(risky) || safe.AtLeast(risky) {
		t.Error("the order of classes is wrong")
	}
}

type orderIn struct {
	Item string `json:"item" desc:"What to order."`
}

type orderOut struct {
	ID string `json:"id"`
}

func build(tb testing.TB, o *server.Options) *server.Server {
	tb.Helper()
	o.Instructions = "Order."
	s := server.New("shop", "1", o)
	s.Add(
		server.Tool("order", "Orders.", func(context.Context, orderIn) (orderOut, error) { return orderOut{}, nil }),
		server.Tool("list", "Lists.", func(context.Context, mcp.None) (string, error) { return "", nil }),
		server.Resource("shop://a", "a", func(context.Context) (string, error) { return "", nil }),
	)
	return s
}

// A server gives the same lock each time, in each revision and over each transport, and the
// lock is read back as it was.
func TestReadEncodeDecode(t *testing.T) {
	mcptest.EachEra(t, build, contract.Declare(&client.Options{}), func(t *testing.T, era mcptest.Era, c *client.Client) {
		var texts []string
		for range 2 {
			found, err := contract.Read(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if found.Revision != era.Version || len(found.Tools) != 2 || len(found.Resources) != 1 || found.Instructions != "Order." {
				t.Errorf("got %+v", found)
			}
			raw, err := contract.Encode(found)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(raw))
			again, err := contract.Decode(strings.NewReader(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			if list := contract.Compare(found, again); len(list) > 0 {
				t.Errorf("the lock differs from what was locked: %+v", list)
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("two locks:\n%s\n%s", texts[0], texts[1])
		}
	})
}
