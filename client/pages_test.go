package client_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// listed collects the URIs of resources, and the error.
func listed(t *testing.T, c *client.Client) (uris []string, last error) {
	t.Helper()
	for r, err := range c.Resources(t.Context()) {
		if err != nil {
			return uris, err
		}
		uris = append(uris, r.URI)
	}
	return uris, nil
}

func resources(next string, uris ...string) raw {
	var items []string
	for _, u := range uris {
		items = append(items, fmt.Sprintf(`{"uri":%q,"name":"n"}`, u))
	}
	if next != "" {
		next = `,"nextCursor":` + next
	}
	return raw(`{"resultType":"complete","resources":[` + strings.Join(items, ",") + `]` + next + `,"ttlMs":0,"cacheScope":"private"}`)
}

func lists(f func(cursor string) (any, error)) *script {
	return &script{on: map[string]func(*req) (any, error){mcp.MethodResourcesList: func(r *req) (any, error) {
		return f(text(r.in, "cursor"))
	}}}
}

// Proves: FLOW-RES (lists), SEC-PAGE-1. Ruling 21: "" is a cursor; the loop may be left. An item
// whose URI came before is left out and reported.
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lists(func(cursor string) (any, error) {
			switch cursor {
			case "":
				return resources(`""`, "a:1", "a:2"), nil
			case `""`:
				return resources(`"c"`), nil
			case `"c"`:
				return resources("", "a:3", "a:3"), nil
			}
			return nil, jsonrpc.NewError(-32602, "cursor")
		})
		c := connect(t, s, nil)
		got, err := listed(t, c)
		if err != nil || !slices.Equal(got, []string{"a:1", "a:2", "a:3"}) {
			t.Errorf("%v, %v", got, err)
		}
		if p := c.Problems(); len(p) != 1 || p[0].Subject != "a:3" || p[0].Place != "/resources/1" {
			t.Errorf("problems %v", p)
		}
		for _, err := range c.Resources(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if n := len(s.got(mcp.MethodResourcesList)); n != 4 {
			t.Errorf("%d pages were asked for", n)
		}
	})
}

// Ruling 21: an invalid cursor drops the pages and begins again, without what
// was given already, and not for ever.
func TestStaleCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale := true
		c := connect(t, lists(func(cursor string) (any, error) {
			switch {
			case cursor == "" && stale:
				return resources(`"old"`, "a:1", "a:2"), nil
			case cursor == "":
				return resources(`"new"`, "a:0", "a:1", "a:2"), nil
			case cursor == `"new"`:
				return resources("", "a:3"), nil
			}
			stale = false
			return nil, jsonrpc.NewError(-32602, "cursor")
		}), nil)
		got, err := listed(t, c)
		if err != nil || !slices.Equal(got, []string{"a:1", "a:2", "a:0", "a:3"}) {
			t.Errorf("%v, %v", got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := lists(func(cursor string) (any, error) {
			if cursor == "" {
				return resources(`"x"`, "a:1"), nil
			}
			return nil, jsonrpc.NewError(-32602, "cursor")
		})
		c := connect(t, s, nil)
		got, err := listed(t, c)
		if err != nil || len(got) != 1 || len(s.got(mcp.MethodResourcesList)) != 6 {
			t.Errorf("%v, %v after %d", got, err, len(s.got(mcp.MethodResourcesList)))
		}
		if p := c.Problems(); len(p) != 1 || !strings.Contains(p[0].Why, "the list is incomplete") {
			t.Errorf("problems %v", p)
		}
	})
}

// Ruling 39: a cursor that was sent before ends the list, whose items come once, and is a problem.
// Each row has the items of the pages and their cursors, by the cursor that was sent.
func TestCursorsInCircles(t *testing.T) {
	type page struct {
		next  string
		items []string
	}
	for name, test := range map[string]struct {
		pages map[string]page
		want  string
	}{
		"ignored":       {map[string]page{"": {`"x"`, []string{"a:1", "a:2"}}, `"x"`: {`"x"`, []string{"a:1", "a:2"}}}, "a:1 a:2"},
		"the last page": {map[string]page{"": {`"x"`, []string{"a:1"}}, `"x"`: {`"x"`, []string{"a:2"}}}, "a:1 a:2"},
		"to the first":  {map[string]page{"": {`"x"`, []string{"a:1"}}, `"x"`: {`"y"`, []string{"a:2"}}, `"y"`: {`"x"`, []string{"a:1", "a:3"}}}, "a:1 a:2 a:3"},
		"empty":         {map[string]page{"": {`""`, []string{"a:1"}}, `""`: {`""`, nil}}, "a:1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, lists(func(cursor string) (any, error) {
					p, ok := test.pages[cursor]
					if !ok {
						t.Errorf("the cursor %s was sent", cursor)
					}
					return resources(p.next, p.items...), nil
				}), nil)
				for range 2 {
					got, err := listed(t, c)
					if err != nil || strings.Join(got, " ") != test.want {
						t.Errorf("%v, %v, want %s", got, err, test.want)
					}
				}
				if p := c.Problems(); len(p) != 1 || p[0].Place != "/nextCursor" || p[0].Method != mcp.MethodResourcesList {
					t.Errorf("problems %v", p)
				}
			})
		})
	}
}

// An item without a URI is reported also where it is on the page that leads the list back.
func TestNamelessItemInCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := connect(t, lists(func(string) (any, error) {
			if asked++; asked == 2 {
				return resources(`"x"`, "a:1", "", "a:2"), nil
			}
			return resources(`"x"`, "a:1"), nil
		}), nil)
		got, err := listed(t, c)
		if err != nil || strings.Join(got, " ") != "a:1 a:2" {
			t.Errorf("%v, %v", got, err)
		}
		var told []string
		for _, p := range c.Problems() {
			told = append(told, p.Place+" "+string(p.Effect))
		}
		if strings.Join(told, ", ") != "/resources/1 omitted, /nextCursor incomplete" {
			t.Errorf("problems %v", c.Problems())
		}
	})
}

// Lists without an end are left.
func TestEndlessPages(t *testing.T) {
	n := 0
	for name, f := range map[string]func(cursor string) (any, error){
		"items": func(string) (any, error) {
			n++
			return resources(fmt.Sprintf(`"%d"`, n), fmt.Sprintf("a:%d", n)), nil
		},
		"empty pages": func(string) (any, error) {
			n++
			return resources(fmt.Sprintf(`"%d"`, n)), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := lists(f)
				got, err := listed(t, connect(t, s, &client.Options{MaxItems: 20}))
				if !errors.Is(err, client.ErrPages) || len(got) > 20 || len(s.got(mcp.MethodResourcesList)) > 30 {
					t.Errorf("%d items, %v", len(got), err)
				}
			})
		})
	}
}

// The first page's refusal is no stale cursor.
func TestListRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lists(func(string) (any, error) { return nil, jsonrpc.NewError(-32602, "no") })
		_, err := listed(t, connect(t, s, nil))
		if err == nil || errors.Is(err, client.ErrPages) || len(s.got(mcp.MethodResourcesList)) != 1 {
			t.Errorf("error %v", err)
		}
	})
}

func TestOtherLists(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions, on: map[string]func(*req) (any, error){
				mcp.MethodPromptsList:        func(*req) (any, error) { return raw(`{"prompts":[{"name":"p"}]}`), nil },
				mcp.MethodResourcesTemplates: func(*req) (any, error) { return raw(`{"resourceTemplates":[{"name":"t","uriTemplate":"a:{b}"}]}`), nil },
				mcp.MethodPromptsGet: func(r *req) (any, error) {
					return raw(`{"messages":[{"role":"user","content":{"type":"text","text":` + string(text(r.in, "name")) + `}}]}`), nil
				},
			}}
			c := connect(t, s, nil)
			var got []string
			for p, err := range c.Prompts(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, p.Name)
			}
			for r, err := range c.ResourceTemplates(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.URITemplate)
			}
			if !slices.Equal(got, []string{"p", "a:{b}"}) {
				t.Errorf("%v", got)
			}
			r, err := c.GetPrompt(t.Context(), "p", map[string]string{"k": "v"}, nil)
			if err != nil || r.Messages[0].Content.(*mcp.TextContent).Text != "p" || text(s.await(mcp.MethodPromptsGet, 1), "arguments") != `{"k":"v"}` {
				t.Errorf("%+v, %v", r, err)
			}
		})
	})
}
