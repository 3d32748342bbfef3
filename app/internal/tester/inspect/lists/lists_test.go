package lists_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/lists"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// answering gives one result after another, the last one for ever.
func answering(results ...string) lists.Ask {
	n := 0
	return func(context.Context, string, any) (mcp.RawValue, error) {
		n++
		return mcp.RawValue(results[min(n, len(results))-1]), nil
	}
}

func TestRead(t *testing.T) {
	list, err := lists.Read(t.Context(), answering(
		`{"tools":[{"name":"a","inputSchema":7}],"nextCursor":""}`, `{"tools":[],"nextCursor":"2"}`, `{"tools":[{"name":"b"}],"nextCursor":null}`,
	), lists.Tools, nil)
	if err != nil || len(list.Items) != 2 || len(list.Pages) != 3 || list.Pages[1].Items != 0 || *list.Pages[0].Next != "" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// The last page of a list that leads back into itself gives only the items that are new.
func TestReadLoop(t *testing.T) {
	list, err := lists.Read(t.Context(), answering(
		`{"tools":[{"name":"a"}],"nextCursor":"x"}`, `{"tools":[{"name":"b"},{"name":"a"},{"name":"c"}],"nextCursor":"x"}`,
	), lists.Tools, nil)
	if loop, ok := errors.AsType[*lists.LoopError](err); !ok || loop.First != 1 || loop.Cursor != "x" {
		t.Errorf("error %v", err)
	}
	if got := fmt.Sprintf("%s", list.Items); got != `[{"name":"a"} {"name":"b"} {"name":"c"}]` {
		t.Errorf("items %s", got)
	}
}

// What is wrong with pages ends the list, and is told.
func TestReadWrong(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages []string
		want  string
		is    error
	}{
		{"loop", []string{`{"tools":[],"nextCursor":"a"}`}, `the cursor "a" came a second time`, client.ErrPages},
		{"no member", []string{`{}`}, `has no member "tools"`, client.ErrMalformed},
		{"no list", []string{`{"tools":{}}`}, "is no list", client.ErrMalformed},
		{"null", []string{`{"tools":null}`}, "is no list", client.ErrMalformed},
		{"item", []string{`{"tools":[7]}`}, "item 1", client.ErrMalformed},
		{"no name", []string{`{"tools":[{"name":"a"},{}]}`}, `item 2 of "tools" has no text "name"`, client.ErrMalformed},
		{"name is a number", []string{`{"tools":[{"name":1}]}`}, "no text", client.ErrMalformed},
		{"cursor is a number", []string{`{"tools":[],"nextCursor":1}`}, "nextCursor is no text", client.ErrMalformed},
		{"no object", []string{`[]`}, "no object", client.ErrMalformed},
		{"many items", []string{`{"tools":[` + strings.Repeat(`{"name":"a"},`, 50) + `{"name":"a"}]}`}, "more than 50 items", client.ErrPages},
		{"many bytes", []string{`{"tools":[{"name":"` + strings.Repeat("a", 2000) + `"}]}`}, "more than 1000 bytes", client.ErrPages},
	} {
		_, err := lists.Read(t.Context(), answering(test.pages...), lists.Tools, &lists.Limits{Items: 50, Bytes: 1000})
		if err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, test.is) {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
	n := 0
	endless := func(context.Context, string, any) (mcp.RawValue, error) {
		n++
		return mcp.RawValue(fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n)), nil
	}
	if _, err := lists.Read(t.Context(), endless, lists.Tools, &lists.Limits{Pages: 7}); !errors.Is(err, client.ErrPages) || n != 7 {
		t.Errorf("endless: %v after %d pages", err, n)
	}
}
