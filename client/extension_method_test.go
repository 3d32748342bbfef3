package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

const shelfID = "com.example/shelf"

// A book is what shelf/get gives.
type book struct {
	Title string `json:"title"`
	Pages int    `json:"pages"`
}

// Validate refuses books that cannot be.
func (b *book) Validate() error {
	if b.Pages < 0 {
		return errors.New("fewer pages than none")
	}
	return nil
}

type bookParams struct {
	Title string `json:"title"`
}

// shelf is the server's side of an extension as a stranger would write it.
func shelf() server.Extension {
	every := server.MethodOptions{Revisions: server.AllRevisions}
	named := server.MethodOptions{Target: "title", NameHeader: true, Revisions: server.AllRevisions}
	return server.Extension{ID: shelfID, Revisions: server.AllRevisions, Methods: []*server.ExtensionMethod{
		server.Method("shelf/get", func(_ *server.Call, p bookParams) (book, error) { return book{p.Title, 300}, nil }).With(named),
		server.Method("shelf/free", func(*server.Call, mcp.None) (mcp.None, error) { return mcp.None{}, nil }).With(every),
		server.Method("shelf/wrong", func(_ *server.Call, p bookParams) (mcp.RawValue, error) { return mcp.RawValue(p.Title), nil }).With(every),
	}}
}

// knowsShelf is the client's.
func knowsShelf() client.Extension {
	return client.Extension{ID: shelfID, Revisions: client.AllRevisions, Methods: []client.ExtensionMethod{
		{Name: "shelf/get", Target: "title", NameHeader: true, Retry: true, Revisions: client.AllRevisions},
		{Name: "shelf/free", Revisions: client.AllRevisions},
		{Name: "shelf/wrong", Target: "title", Revisions: client.AllRevisions},
		{Name: "shelf/modern"},
	}}
}

// Methods of an extension are sent as its server wants them in each revision, over
// each transport, and their results are decoded strictly.
func TestCallMethod(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("shelf", "1", o)
		s.Extend(shelf())
		return s
	}
	o := &client.Options{Extensions: []client.Extension{knowsShelf()}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		got, err := client.CallMethod[book](t.Context(), c, "shelf/get", bookParams{"Tides \u00e9"})
		if err != nil || got != (book{"Tides \u00e9", 300}) {
			t.Errorf("shelf/get gave %+v, %v", got, err)
		}
		if p, err := client.CallMethod[*book](t.Context(), c, "shelf/get", bookParams{"t"}); err != nil || p.Pages != 300 {
			t.Errorf("shelf/get gave %+v, %v", p, err)
		}
		if _, err := client.CallMethod[mcp.None](t.Context(), c, "shelf/free", nil); err != nil {
			t.Error(err)
		}
		for result, want := range map[string]string{
			`{"title":1,"pages":1}`:    `/title: expected string, got number`,
			`{"Title":"t","pages":1}`:  `"title"`,
			`{"title":"t","pages":-1}`: "fewer pages than none",
		} {
			_, err := client.CallMethod[book](t.Context(), c, "shelf/wrong", bookParams{result})
			if !errors.Is(err, client.ErrMalformed) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `shelf/wrong "`) {
				t.Errorf("%s: error is %v, want one with %q", result, err, want)
			}
			if _, err := client.CallMethod[*book](t.Context(), c, "shelf/wrong", bookParams{result}); !errors.Is(err, client.ErrMalformed) {
				t.Errorf("%s: error is %v", result, err)
			}
		}
		if _, err := client.CallMethod[book](t.Context(), c, "shelf/unknown", nil); !errors.Is(err, client.ErrNotCapable) {
			t.Errorf("a method that no extension has: %v", err)
		}
		_, err = client.CallMethod[book](t.Context(), c, "shelf/modern", nil)
		if refused, ok := errors.AsType[*jsonrpc.Error](err); era.Stateless && (!ok || refused.Code != jsonrpc.CodeMethodNotFound) {
			t.Errorf("a method that the server has not: %v", err)
		}
		if !era.Stateless && !errors.Is(err, client.ErrNotCapable) {
			t.Errorf("a method that the revision has not: %v", err)
		}
	})
}

// Nothing is sent to a server that does not offer the extension, or a member of the
// capabilities that stands for it.
func TestNoExtension(t *testing.T) {
	for _, test := range []struct {
		version, caps string
		offered       bool
	}{
		{modern, `{}`, false},
		{modern, `{"extensions":{"com.example/other":{}},"tasks":{}}`, false},
		{modern, `{"extensions":{"com.example/shelf":{}}}`, true},
		{newest, `{"extensions":{"com.example/shelf":{}}}`, false},
		{newest, `{"tasks":{}}`, true},
		{"2025-06-18", `{"extensions":{"com.example/shelf":{}},"tasks":{}}`, true},
		{"2025-06-18", `{"tasks":{}}`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: []string{test.version}, caps: test.caps, on: map[string]func(*req) (any, error){
				"shelf/get": func(*req) (any, error) { return raw(`{"title":"t","pages":1}`), nil },
			}}
			e := knowsShelf()
			e.Capabilities = []client.Capability{{Name: "tasks", Value: map[string]int{"a": 1}, Revisions: client.CoreTasks}}
			c := connect(t, s, &client.Options{Versions: []string{test.version}, Extensions: []client.Extension{e}})
			_, err := client.CallMethod[book](t.Context(), c, "shelf/get", bookParams{"t"})
			refused, typed := errors.AsType[*client.NoExtensionError](err)
			switch {
			case test.offered && err != nil, !test.offered && (!typed || !errors.Is(err, client.ErrNotCapable)):
				t.Errorf("%s %s: error is %v", test.version, test.caps, err)
			case typed && (*refused != client.NoExtensionError{Extension: shelfID, Version: test.version} || len(s.got("shelf/get")) > 0):
				t.Errorf("%s %s: error is %#v", test.version, test.caps, refused)
			}
			want := `{"extensions":{"com.example/shelf":{}}}`
			if test.version == newest {
				want = `{"extensions":{"com.example/shelf":{}},"tasks":{"a":1}}`
			}
			declared := ""
			if test.version != modern {
				declared = text(s.await(mcp.MethodInitialize, 1), "capabilities")
			} else if declared = meta(s.await(mcp.MethodDiscover, 1), mcp.MetaClientCapabilities); test.offered {
				declared = meta(s.await("shelf/get", 1), mcp.MetaClientCapabilities)
			}
			if declared != want {
				t.Errorf("%s: the client declares %s, want %s", test.version, declared, want)
			}
		})
	}
}

// Extensions of the options that cannot be.
func TestExtensionOptions(t *testing.T) {
	method := func(m client.ExtensionMethod) client.Extension {
		return client.Extension{ID: shelfID, Methods: []client.ExtensionMethod{m}}
	}
	result := func(change func(r *client.ResultType)) client.Extension {
		e := knowsLater(nil)
		change(&e.Results[0])
		return e
	}
	for want, list := range map[string][]client.Extension{
		"no type of results":                    {result(func(r *client.ResultType) { r.Name = mcp.ResultInputRequired })},
		"no Methods":                            {result(func(r *client.ResultType) { r.Methods = nil })},
		"Settle is missing":                     {result(func(r *client.ResultType) { r.Settle = nil })},
		"result type com.example/ticket exists": {knowsLater(nil), {ID: "com.example/b", Results: knowsLater(nil).Results}},
		"needs a prefix":                        {{ID: "shelf"}},
		"given twice":                           {{ID: shelfID}, {ID: shelfID}},
		"settings":                              {{ID: shelfID, Settings: 7}},
		"not a JSON object":                     {{ID: shelfID, Settings: []int{1}}},
		"is no name":                            {{ID: shelfID, Capabilities: []client.Capability{{Name: "roots"}}}},
		"capability x":                          {{ID: shelfID, Capabilities: []client.Capability{{Name: "x", Value: 1}}}},
		"one of the core":                       {method(client.ExtensionMethod{Name: "tools/call"})},
		"no name":                               {method(client.ExtensionMethod{})},
		"without a Target":                      {method(client.ExtensionMethod{Name: "shelf/get", NameHeader: true})},
		"exists already":                        {knowsShelf(), {ID: "com.example/b", Methods: knowsShelf().Methods}},
		`"com.example/shelf"`:                   {{ID: shelfID, Settings: mcp.RawValue("{")}},
	} {
		c, err := client.Connect(t.Context(), mem.New(new(script), nil), &client.Options{Extensions: list})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
		if c != nil {
			_ = c.Close()
		}
	}
}

// Rulings 16 and 31 for methods of extensions: what may have run is repeated only if
// the extension says so, and what the server refused before it ran always.
func TestMethodRetry(t *testing.T) {
	for method, want := range map[string]int{"shelf/get": 2, "shelf/free": 1} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{caps: `{"extensions":{"com.example/shelf":{}}}`}
			sent := 0
			s.on = map[string]func(*req) (any, error){method: func(r *req) (any, error) {
				if sent++; sent == 1 {
					r.conn.end()
					return nil, errSilent
				}
				return raw(`{"title":"t","pages":1}`), nil
			}}
			c := connect(t, s, &client.Options{Extensions: []client.Extension{knowsShelf()}})
			_, err := client.CallMethod[book](t.Context(), c, method, bookParams{"t"})
			if sent != want || (err == nil) != (want == 2) {
				t.Errorf("%s was sent %d times: %v", method, sent, err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			s := &script{caps: `{"extensions":{"com.example/shelf":{}}}`}
			sent := 0
			s.on = map[string]func(*req) (any, error){method: func(*req) (any, error) {
				if sent++; sent == 1 {
					return nil, jsonrpc.NewError(mcp.CodeRateLimited, "not now")
				}
				return raw(`{"title":"t","pages":1}`), nil
			}}
			c := connect(t, s, &client.Options{Extensions: []client.Extension{knowsShelf()}})
			if _, err := client.CallMethod[book](t.Context(), c, method, bookParams{"t"}); err != nil || sent != 2 {
				t.Errorf("%s was sent %d times: %v", method, sent, err)
			}
		})
	}
}

// Middleware sees what the method is about, and the result in its type.
func TestMethodMiddleware(t *testing.T) {
	s := &script{caps: `{"extensions":{"com.example/shelf":{}}}`, on: map[string]func(*req) (any, error){
		"shelf/get": func(*req) (any, error) { return raw(`{"title":"t","pages":1}`), nil },
	}}
	seen := ""
	c := connect(t, s, &client.Options{Extensions: []client.Extension{knowsShelf()}, Middleware: []client.Middleware{func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (client.Result, error) {
			res, err := next(ctx, r)
			if b, ok := res.(*book); ok {
				seen = r.Method() + " " + r.Target() + " " + b.Title
			}
			return res, err
		}
	}}})
	if _, err := client.CallMethod[book](t.Context(), c, "shelf/get", bookParams{"about"}); err != nil || seen != "shelf/get about t" {
		t.Errorf("middleware saw %q: %v", seen, err)
	}
}
