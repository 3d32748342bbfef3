package schema_test

import (
	"fmt"
	"reflect"

	"github.com/parley-mcp/parley/schema"
)

type search struct {
	Query string `json:"query" desc:"what to look for" minlen:"1"`
	Limit int    `json:"limit" min:"1" max:"100" default:"10"`
}

func ExampleOf() {
	c, err := schema.Of[search](nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(c.JSON()))

	var in search
	fmt.Println(c.Decode([]byte(`{"query":"replay"}`), &in), in)
	fmt.Println(c.Decode([]byte(`{"query":"","limit":1000}`), &in))
	// Output:
	// {"type":"object","properties":{"query":{"type":"string","description":"what to look for","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":100,"default":10}},"required":["query"],"additionalProperties":false}
	// <nil> {replay 10}
	// /query: must have at least 1 character, has 0; /limit: must be between 1 and 100
}

func ExampleFor() {
	_, err := schema.For(reflect.TypeFor[struct {
		Name string `max:"10"`
	}](), nil)
	fmt.Println(err)
	// Output:
	// schema of struct { Name string "max:\"10\"" }.Name: tag max does not fit type string: numbers only; for a length write maxlen
}

func ExampleElicitation() {
	_, err := schema.Elicitation(reflect.TypeFor[struct{ Tags []string }]())
	fmt.Println(err)
	// Output:
	// schema of struct { Tags []string }.Tags: a form can have a slice of an enum only; add the tag enum
}

func ExampleCompile() {
	c, err := schema.Compile([]byte(`{"type":"object","properties":{"port":{"type":"integer","maximum":65535}},"required":["port"]}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Check([]byte(`{"port":70000}`)))

	_, err = schema.Compile([]byte(`{"$ref":"https://example.com/port.json"}`), nil)
	fmt.Println(err)
	// Output:
	// /port: must be at most 65535
	// reference to another document: https://example.com/port.json; put what it refers to under $defs
}

// A unit is an enum that says so itself, wherever it is used.
type unit string

// JSONSchema returns the schema of a unit.
func (unit) JSONSchema() string { return `{"type":"string","enum":["celsius","kelvin"]}` }

// A type with a method JSONSchema says itself what it looks like; a description
// that is written for another library is read.
func ExampleOf_types() {
	type reading struct {
		Value float64 `json:"value" jsonschema:"what was measured"`
		Unit  unit    `json:"unit" default:"celsius"`
	}
	c, err := schema.Of[reading](nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(c.JSON()))
	fmt.Println(c.Check([]byte(`{"value":20,"unit":"feet"}`)))
	// Output:
	// {"type":"object","properties":{"value":{"type":"number","description":"what was measured"},"unit":{"allOf":[{"type":"string","enum":["celsius","kelvin"]}],"default":"celsius"}},"required":["value"],"additionalProperties":false}
	// /unit: must be one of "celsius", "kelvin"
}
