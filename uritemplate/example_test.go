package uritemplate_test

import (
	"fmt"
	"reflect"

	"github.com/parley-mcp/parley/uritemplate"
)

func ExampleTemplate_Match() {
	tmpl, err := uritemplate.Parse("repo://{owner}/{name}/issues{?state}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tmpl.Match("repo://ada/engine%20room/issues?state=open"))
	fmt.Println(tmpl.Match("repo://ada/%2e%2e/issues"))
	// Output:
	// map[name:[engine room] owner:[ada] state:[open]] true
	// map[] false
}

func ExampleBind() {
	type vars struct {
		Owner  string `uri:"owner"`
		Number int    `uri:"number"`
	}
	tmpl, err := uritemplate.Parse("issue://{owner}/{number}")
	if err != nil {
		fmt.Println(err)
		return
	}
	binder, err := uritemplate.Bind(reflect.TypeFor[vars](), tmpl)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, uri := range []string{"issue://ada/7", "issue://ada/seven"} {
		values, _ := tmpl.Match(uri)
		var v vars
		err := binder.Decode(values, &v)
		fmt.Println(v.Number, err)
	}
	// Output:
	// 7 <nil>
	// 0 variable number: expected an integer in the range of int
}
