package strictjson_test

import (
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/strictjson"
)

func ExampleUnmarshal() {
	var p struct {
		TaskID string `json:"taskId"`
	}
	fmt.Println(strictjson.Unmarshal([]byte(`{"taskId":"t1"}`), &p), p.TaskID)
	fmt.Println(strictjson.Unmarshal([]byte(`{"taskId":1}`), &p))
	err := strictjson.Unmarshal([]byte(`{"taskId":"t1","taskId":"t2"}`), &p)
	fmt.Println(errors.Is(err, strictjson.ErrDuplicate))
	// Output:
	// <nil> t1
	// /taskId: expected string, got number
	// true
}

func ExampleParseObject() {
	o, err := strictjson.ParseObject([]byte(`{"extensions":{"com.example/jobs":{"max":9}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	extensions, _ := o.Object("extensions")
	for id, settings := range extensions.All() {
		fmt.Println(id, string(settings))
	}
	// Output: com.example/jobs {"max":9}
}
