package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport"
)

const shelfID = "com.example/shelf"

// withMethods is a server with an extension that has these methods.
func withMethods(o *server.Options, methods ...*server.ExtensionMethod) *server.Server {
	if o == nil {
		o = unlimited()
	}
	s := newServer(o)
	s.Extend(server.Extension{ID: shelfID, Methods: methods})
	return s
}

const shelfCaps = `{"extensions":{"com.example/shelf":{}}}`

func joinShelf(t *testing.T, s *server.Server, version string, who ...string) *line {
	t.Helper()
	l := dial(t, s, version, nil)
	if len(who) > 0 && who[0] == "bob" {
		l = dial(t, s, version, bob)
	}
	l.caps = shelfCaps
	if !l.modern() {
		l.handshake()
	}
	return l
}

type bookParams struct {
	Title string   `json:"title"`
	Pages int      `json:"pages,omitzero"`
	Tags  []string `json:"tags,omitzero"`
}

func (p *bookParams) Validate() error {
	if p.Pages < 0 {
		return errors.New("pages must not be negative")
	}
	return nil
}

// Params of an extension's method are held to their type, with the texts that
// the core's methods have.
func TestMethodParams(t *testing.T) {
	s := withMethods(nil,
		server.Method("shelf/add", func(c *server.Call, p bookParams) (map[string]any, error) {
			own, ok := c.Params().(*bookParams)
			return map[string]any{"said": fmt.Sprint(p.Title, p.Pages, len(p.Tags), ok && own.Title == p.Title), "note": c.Meta().Extra["com.example/note"]}, nil
		}),
		server.Method("shelf/raw", func(_ *server.Call, p mcp.RawValue) (mcp.RawValue, error) {
			return mcp.RawValue(`{"text":` + fmt.Sprintf("%q", strings.SplitN(string(p), `"_meta"`, 2)[0]) + `}`), nil
		}))
	l := joinShelf(t, s, v2607)
	l.meta = `"com.example/note":7`
	if got := string(l.result(l.call("shelf/add", `{"title":"a","pages":3,"unknown":1}`))); !strings.HasPrefix(got, `{"note":7,"said":"a3 0 true"`) && !strings.HasPrefix(got, `{"note":7,"said":"a 3 0 true"`) {
		t.Errorf("got %s", got)
	}
	for params, says := range map[string]string{
		`{}`:                         `invalid params of shelf/add: "title" is missing`,
		`{"title":1}`:                `invalid params of shelf/add: /title: expected string, got number`,
		`{"title":"a","Pages":1}`:    `invalid params of shelf/add: member "Pages" must be written "pages"`,
		`{"title":"a","pages":-1}`:   `invalid params of shelf/add: pages must not be negative`,
		`{"title":"a","tags":{}}`:    `invalid params of shelf/add: /tags: expected array, got object`,
		`{"title":"a","pages":1e99}`: `invalid params of shelf/add: /pages: `,
	} {
		if got := l.fails(l.call("shelf/add", params), mcp.CodeInvalidParams); !strings.HasPrefix(got, says) {
			t.Errorf("%s: %q, want %q", params, got, says)
		}
	}
	if got := string(l.result(l.call("shelf/raw", `{"x":1}`))); !strings.Contains(got, `"text":"{`) {
		t.Errorf("got %s", got)
	}
}

// Params may have _meta of their own, any member, or a decoder of their own.
func TestMethodParamsWithMeta(t *testing.T) {
	type own struct {
		Title string                  `json:"title"`
		Meta  map[string]mcp.RawValue `json:"_meta"`
	}
	type open struct {
		Title string                  `json:"title"`
		Rest  map[string]mcp.RawValue `json:",embed"`
	}
	s := withMethods(nil,
		server.Method("shelf/own", func(_ *server.Call, p own) (any, error) {
			return map[string]any{"note": p.Meta["com.example/note"]}, nil
		}),
		server.Method("shelf/open", func(_ *server.Call, p open) (any, error) {
			return map[string]any{"note": strings.Contains(string(p.Rest["_meta"]), `"com.example/note":7`)}, nil
		}),
		server.Method("shelf/decodes", func(_ *server.Call, p decodesItself) (any, error) {
			return map[string]any{"note": strings.Contains(p.text, `"com.example/note":7`)}, nil
		}))
	l := joinShelf(t, s, v2607)
	l.meta = `"com.example/note":7`
	for method, want := range map[string]string{"shelf/own": `{"note":7`, "shelf/open": `{"note":true`, "shelf/decodes": `{"note":true`} {
		if got := string(l.result(l.call(method, `{"title":"a"}`))); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// decodesItself keeps what it is decoded from.
type decodesItself struct{ text string }

func (d *decodesItself) UnmarshalJSON(text []byte) error {
	d.text = string(text)
	return nil
}

type book struct {
	mcp.ResultBase
	mcp.Cacheable
	Title string `json:"title"`
}

// What all results have in common is added in the revisions that have it.
func TestMethodResults(t *testing.T) {
	hint := &server.Cache{TTL: time.Minute, Public: true}
	every := func(o server.MethodOptions) server.MethodOptions {
		o.Revisions, o.Anyone = server.AllRevisions, true
		return o
	}
	s := withMethods(nil,
		server.Method("a/pointer", func(*server.Call, mcp.None) (*book, error) { return &book{Title: "t"}, nil }).With(every(server.MethodOptions{Cache: hint})),
		server.Method("a/value", func(*server.Call, mcp.None) (book, error) { return book{Title: "t"}, nil }).With(every(server.MethodOptions{Cache: hint})),
		server.Method("a/plain", func(*server.Call, mcp.None) (any, error) { return map[string]string{"title": "t"}, nil }).With(every(server.MethodOptions{Cache: hint})),
		server.Method("a/own", func(*server.Call, mcp.None) (mcp.RawValue, error) {
			return mcp.RawValue(`{"title":"t","resultType":"com.example/x","_meta":{"com.example/y":1},"ttlMs":5,"cacheScope":"private"}`), nil
		}).With(every(server.MethodOptions{Cache: hint})),
		server.Method("a/none", func(*server.Call, mcp.None) (mcp.None, error) { return mcp.None{}, nil }).With(every(server.MethodOptions{})),
		server.Method("a/nil", func(*server.Call, mcp.None) (*book, error) { return nil, nil }).With(every(server.MethodOptions{})),
		server.Method("a/list", func(*server.Call, mcp.None) (any, error) { return []int{1}, nil }).With(every(server.MethodOptions{})),
		server.Method("a/hidden", func(*server.Call, mcp.None) (mcp.None, error) { return mcp.None{}, errors.New("secret") }).With(every(server.MethodOptions{})))
	const info = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1.2.3"}}`
	hints := `"ttlMs":60000,"cacheScope":"public"`
	for method, want := range map[string]string{
		"a/pointer": `{` + info + `,"resultType":"complete",` + hints + `,"title":"t"}`,
		"a/value":   `{` + info + `,"resultType":"complete",` + hints + `,"title":"t"}`,
		"a/plain":   `{"title":"t",` + info + `,"resultType":"complete",` + hints + `}`,
		"a/own":     `{"title":"t","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1.2.3"},"com.example/y":1},"resultType":"com.example/x","ttlMs":5,"cacheScope":"private"}`,
		"a/none":    `{` + info + `,"resultType":"complete"}`,
	} {
		l := join(t, s, v2607)
		if got := string(l.result(l.call(method, emptyBody))); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
	for method, want := range map[string]string{
		"a/pointer": `{"title":"t"}`, "a/value": `{"title":"t"}`, "a/plain": `{"title":"t"}`, "a/none": `{}`,
	} {
		l := join(t, s, v2511)
		if got := string(l.result(l.call(method, emptyBody))); got != want {
			t.Errorf("%s in a session: %s, want %s", method, got, want)
		}
	}
	each(t, bothEras, func(t *testing.T, version string) {
		l := join(t, s, version)
		for _, method := range []string{"a/nil", "a/list", "a/hidden"} {
			if got := l.fails(l.call(method, emptyBody), jsonrpc.CodeInternalError); !strings.HasPrefix(got, "internal error (ref ") {
				t.Errorf("%s: %q", method, got)
			}
		}
	})
}

// A method exists in the revisions that its extension names by what they have in
// common, and methods of one name may stand beside each other.
func TestMethodRevisions(t *testing.T) {
	says := func(text string) func(c *server.Call, _ mcp.None) (map[string]string, error) {
		return func(*server.Call, mcp.None) (map[string]string, error) { return map[string]string{"says": text}, nil }
	}
	s := withMethods(nil,
		server.Method("a/new", says("stateless")),
		server.Method("a/old", says("handshake")).With(server.MethodOptions{Revisions: server.Handshake, Anyone: true}),
		server.Method("a/both", says("extension")).With(server.MethodOptions{Anyone: true}),
		server.Method("a/both", says("core")).With(server.MethodOptions{Revisions: server.CoreTasks, Anyone: true}))
	for _, version := range versions {
		modern, tasks := version == v2607, version == v2511
		for method, want := range map[string]string{
			"a/new":  map[bool]string{true: "stateless"}[modern],
			"a/old":  map[bool]string{false: "handshake"}[modern],
			"a/both": map[bool]string{true: "extension"}[modern] + map[bool]string{true: "core"}[tasks],
		} {
			l := joinShelf(t, s, version)
			m := l.call(method, emptyBody)
			if want == "" {
				l.fails(m, jsonrpc.CodeMethodNotFound)
			} else if got := string(l.result(m)); !strings.HasPrefix(got, `{"says":"`+want+`"`) {
				t.Errorf("%s in %s: %s, want %s", method, version, got, want)
			}
		}
	}
}

// Over HTTP a method's target is in Mcp-Name where its extension says so, and
// only there. Ruling 35.
func TestMethodNameHeader(t *testing.T) {
	target := func(c *server.Call, _ struct {
		URI string `json:"uri"`
	},
	) (map[string]string, error) {
		return map[string]string{"target": c.Target()}, nil
	}
	s := withMethods(nil,
		server.Method("a/named", target).With(server.MethodOptions{Target: "uri", NameHeader: true}),
		server.Method("a/unnamed", target).With(server.MethodOptions{Target: "uri"}))
	l := &line{version: v2607, caps: shelfCaps}
	for _, test := range []struct {
		method, header string
		refused        bool
	}{
		{"a/named", "x:y", false},
		{"a/named", "", true},
		{"a/named", "x:z", true},
		{"a/unnamed", "", false},
		{"a/unnamed", "x:z", false},
	} {
		out := new(sink)
		x := out.exchange(t, []byte(l.request("1", test.method, `{"uri":"x:y"}`)))
		x.Route = transport.Route{Carried: true, Version: v2607, Method: test.method, Name: test.header}
		s.Serve(context.Background(), x)
		if got := string(out.buffer); strings.Contains(got, "-32020") != test.refused || !test.refused && !strings.Contains(got, `"target":"x:y"`) {
			t.Errorf("%s with Mcp-Name %q: %s", test.method, test.header, got)
		}
	}
}

// Cursors of an extension's lists are sealed: for this method, target and caller.
// Proves: SEC-PAGE-1.
func TestPaginate(t *testing.T) {
	var all []string
	for i := range 5 {
		all = append(all, fmt.Sprintf("b%d", 4-i)) // not in order
	}
	type listed struct {
		mcp.ResultBase
		mcp.Page
		Items []string `json:"items"`
	}
	list := func(c *server.Call, p struct {
		mcp.ListParams
		Shelf string `json:"shelf,omitzero"`
	},
	) (*listed, error) {
		items, next, err := server.Paginate(c, all, func(s string) string { return s }, p.Cursor)
		return &listed{Page: next, Items: items}, err
	}
	o := unlimited()
	o.Limits.PageSize = 2
	s := withMethods(o,
		server.Method("shelf/list", list).With(server.MethodOptions{Target: "shelf"}),
		server.Method("shelf/other", list).With(server.MethodOptions{Target: "shelf"}))
	l := joinShelf(t, s, v2607)
	page := func(params string) listed { return decode[listed](t, l.result(l.call("shelf/list", params))) }
	first := page(`{"shelf":"a"}`)
	second := page(fmt.Sprintf(`{"shelf":"a","cursor":%q}`, *first.NextCursor))
	third := page(fmt.Sprintf(`{"shelf":"a","cursor":%q}`, *second.NextCursor))
	if got := fmt.Sprint(first.Items, second.Items, third.Items, third.NextCursor); got != "[b0 b1] [b2 b3] [b4] <nil>" {
		t.Errorf("got %s", got)
	}
	if all[0] != "b4" {
		t.Error("the author's list was sorted in place")
	}
	foreign := joinShelf(t, s, v2607, "bob")
	for _, refused := range []message{
		l.call("shelf/list", fmt.Sprintf(`{"shelf":"b","cursor":%q}`, *first.NextCursor)),
		l.call("shelf/other", fmt.Sprintf(`{"shelf":"a","cursor":%q}`, *first.NextCursor)),
		foreign.call("shelf/list", fmt.Sprintf(`{"shelf":"a","cursor":%q}`, *first.NextCursor)),
		l.call("shelf/list", `{"shelf":"a","cursor":""}`),
		l.call("shelf/list", `{"shelf":"a","cursor":"AAAA"}`),
	} {
		l.fails(refused, mcp.CodeInvalidParams)
	}
}

// A tool that needs the extension refuses clients without it as the extension's methods do.
func TestNeedExtension(t *testing.T) {
	s := newServer(nil, server.Tool("needs", "", func(context.Context, none) (string, error) {
		return "", server.NeedExtension(jobsID)
	}))
	l := join(t, s, v2607)
	m := l.tool("needs", emptyBody)
	l.fails(m, mcp.CodeMissingClientCapability)
	if !strings.Contains(string(m.Error.Data), `"requiredCapabilities":{"extensions":{"com.example/jobs":{}}}`) {
		t.Errorf("data is %s", m.Error.Data)
	}
}

// What cannot be a method is found when the program starts.
func TestMethodRegistration(t *testing.T) {
	panics(t, "the name is empty", func() { server.Method("", about) })
	panics(t, "params of type string", func() { server.Method("a/b", func(*server.Call, string) (mcp.None, error) { return mcp.None{}, nil }) })
	panics(t, "is no JSON object", func() { server.Method("a/b", func(*server.Call, mcp.None) ([]int, error) { return nil, nil }) })
	panics(t, `method "a/b"`, func() { server.Method[mcp.None, mcp.None]("a/b", nil) })
	panics(t, "without a Target", func() { withMethods(nil, server.Method("a/b", about).With(server.MethodOptions{NameHeader: true})) })
	panics(t, "needs an mcp.Cacheable", func() {
		withMethods(nil, server.Method("a/b", func(*server.Call, mcp.None) (*mcp.EmptyResult, error) { return nil, nil }).With(server.MethodOptions{Cache: &server.Cache{}}))
	})
	panics(t, "Asks needs Revisions", func() {
		withMethods(nil, server.Method("a/b", about).With(server.MethodOptions{Asks: true, Revisions: server.AllRevisions}))
	})
	panics(t, "is nil", func() { withMethods(nil, nil) })
	panics(t, "exists already", func() {
		withMethods(nil,
			server.Method("a/b", about).With(server.MethodOptions{Revisions: server.Handshake}),
			server.Method("a/b", about).With(server.MethodOptions{Revisions: server.CoreTasks}))
	})
}

// tasksOfTheCore is what a stranger writes for the revisions in which tasks were part of the
// core: the client asks for one by a member of params, and waits for its result by
// a method that asks in its place.
func tasksOfTheCore() server.Extension {
	type asking struct {
		params   mcp.RawValue
		answered chan mcp.RawValue
	}
	questions, ended := make(chan asking, 1), make(chan mcp.RawValue, 1)
	ask := askerFunc(func(c *server.Call, params mcp.RawValue) (mcp.RawValue, error) {
		q := asking{params, make(chan mcp.RawValue)}
		questions <- q
		return <-q.answered, nil
	})
	return server.Extension{
		ID: "com.example/core-tasks",
		Wrap: func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if _, ok := c.Param("task"); !ok || c.Revisions()&server.CoreTasks == 0 || c.Detached() {
					return next(c)
				}
				_, _, err := c.Detach(next, &server.DetachOptions{
					Asker: ask,
					Done:  func(_ *server.Call, result mcp.RawValue, _ *jsonrpc.Error) { ended <- result },
				})
				return map[string]any{"task": map[string]string{"taskId": "t1", "status": "working"}}, err
			}
		},
		Methods: []*server.ExtensionMethod{server.Method("tasks/result", func(c *server.Call, _ struct {
			TaskID string `json:"taskId"`
		},
		) (mcp.RawValue, error) {
			for {
				select {
				case q := <-questions:
					p := new(mcp.ElicitParams)
					if err := strictjson.Unmarshal(q.params, p); err != nil {
						return nil, err
					}
					p.Meta.Extra = map[string]mcp.RawValue{"io.modelcontextprotocol/related-task": mcp.RawValue(`{"taskId":"t1"}`)}
					answer, err := server.Ask(c, p)
					if err != nil {
						return nil, err
					}
					q.answered <- answer
				case result := <-ended:
					return result, nil
				case <-c.Done():
					return nil, context.Cause(c)
				}
			}
		}).With(server.MethodOptions{Target: "taskId", Revisions: server.CoreTasks, Anyone: true, Asks: true, Long: true})},
	}
}

type askerFunc func(c *server.Call, params mcp.RawValue) (mcp.RawValue, error)

func (f askerFunc) Ask(c *server.Call, _, _ string, params mcp.RawValue) (mcp.RawValue, error) {
	return f(c, params)
}

// Tasks of the revisions in which they were part of the core can be written with
// the same seams: a member of params, a result of another shape, a method that waits
// and asks.
func TestTasksOfTheCore(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(nil, server.Tool("drop", "", func(ctx context.Context, _ none) (string, error) {
					time.Sleep(time.Hour) // of the test's own clock, beyond every limit of a request
					a, err := server.Elicit[sure](ctx, "Drop?")
					return "dropped: " + fmt.Sprint(a.Value.Sure), err
				}))
				s.Extend(tasksOfTheCore())
				l := join(t, s, version)
				if version != v2511 {
					l.fails(l.call("tasks/result", `{"taskId":"t1"}`), jsonrpc.CodeMethodNotFound)
					return
				}
				m := l.call("tools/call", `{"name":"drop","arguments":{},"task":{}}`)
				if got := string(l.result(m)); got != `{"task":{"status":"working","taskId":"t1"}}` {
					t.Fatalf("got %s", got)
				}
				id := l.start("tasks/result", `{"taskId":"t1"}`)
				asked := l.next()
				if asked.Method != mcp.MethodElicit || !strings.Contains(asked.raw, `"io.modelcontextprotocol/related-task":{"taskId":"t1"}`) {
					t.Fatalf("got %s", asked.raw)
				}
				l.WriteLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, accepted))
				if got := l.text(l.wait(id)); got != "dropped: true" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// waiting is a server with a method that waits for something that ends only after it;
// causes are why the context of each request ended.
func waiting() (s *server.Server, causes chan error) {
	causes = make(chan error, 2)
	return withMethods(nil, server.Method("jobs/result", func(c *server.Call, p struct {
		Text string `json:"text,omitzero"`
	},
	) (map[string]string, error) {
		<-c.Done()
		cause := context.Cause(c)
		causes <- cause
		if p.Text != "" {
			return map[string]string{"text": p.Text}, nil
		}
		return nil, cause
	}).With(server.MethodOptions{Anyone: true, Long: true, Revisions: server.AllRevisions})), causes
}

// A method that waits hears of the end of the server at once, and Shutdown does not
// wait for its context.
func TestShutdownEndsLongMethods(t *testing.T) {
	each(t, versions, func(t *testing.T, version string) {
		synctest.Test(t, func(t *testing.T) {
			s, causes := waiting()
			l := join(t, s, version)
			refused, answered := l.start("jobs/result", emptyBody), l.start("jobs/result", `{"text":"so far"}`)
			time.Sleep(100 * time.Hour) // beyond every limit of a request
			if len(l.Lines()) != 0 {
				t.Fatalf("ended before: %s", <-l.Lines())
			}
			ended, began := make(chan error, 1), time.Now()
			go func() { ended <- s.Shutdown(context.Background()) }()
			got := map[string]message{}
			for range 2 {
				m := l.next()
				got[string(m.ID)] = m
			}
			l.fails(got[refused], mcp.CodeShuttingDown)
			if text := string(l.result(got[answered])); !strings.Contains(text, `"text":"so far"`) {
				t.Errorf("got %s", text)
			}
			if err := <-ended; err != nil || time.Since(began) != 0 {
				t.Errorf("Shutdown took %v, %v", time.Since(began), err)
			}
			for range 2 {
				if cause := <-causes; !errors.Is(cause, server.ErrShutdown) {
					t.Errorf("the cause was %v", cause)
				}
			}
		})
	})
}

// A method that waits ends with its transport, too.
func TestEndingTransportEndsLongMethods(t *testing.T) {
	s, causes := waiting()
	ending := make(chan struct{})
	close(ending)
	a := carryUntil(t, s, transport.Route{}, "jobs/result", `{`+newestMeta+`}`, ending)
	if a.answer.Error == nil || a.answer.Error.Code != mcp.CodeShuttingDown {
		t.Errorf("got %+v", a.answer)
	}
	if cause := <-causes; !errors.Is(cause, server.ErrShutdown) {
		t.Errorf("the cause was %v", cause)
	}
}

// Of a target that is no string no header could say the same.
func TestNameHeaderOfOtherKinds(t *testing.T) {
	o := server.MethodOptions{Target: "taskId", NameHeader: true}
	s := withMethods(nil,
		server.Method("a/raw", func(c *server.Call, _ mcp.RawValue) (map[string]string, error) {
			return map[string]string{"served": c.Target()}, nil
		}).With(o),
		server.Method("a/string", func(_ *server.Call, p struct {
			TaskID string `json:"taskId,omitzero"`
		},
		) (map[string]string, error) {
			return map[string]string{"served": p.TaskID}, nil
		}).With(o),
		server.Method("a/any", func(_ *server.Call, p struct {
			TaskID any `json:"taskId"`
		},
		) (map[string]string, error) {
			return map[string]string{"served": fmt.Sprint(p.TaskID)}, nil
		}).With(o))
	meta := strings.Replace(newestMeta, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":`+shelfCaps, 1)
	for _, method := range []string{"a/raw", "a/string", "a/any"} {
		r := transport.Route{Carried: true, Version: v2607, Method: method}
		for value, kind := range map[string]string{`5`: "number", `["x"]`: "array", `null`: "null", `{}`: "object", `true`: "boolean"} {
			a := carry(t, s, r, method, `{"taskId":`+value+`,`+meta+`}`)
			if e := a.answer.Error; e == nil || e.Code != mcp.CodeInvalidParams || !strings.Contains(e.Message, "/taskId: expected string, got "+kind) {
				t.Errorf("%s of %s: %+v", method, value, e)
			}
		}
		if a := carry(t, s, r, method, `{"taskId":"a",`+meta+`}`); a.answer.Error == nil || a.answer.Error.Code != mcp.CodeHeaderMismatch {
			t.Errorf("%s without the header: %+v", method, a.answer)
		}
		r.Name = "a"
		if a := carry(t, s, r, method, `{"taskId":"a",`+meta+`}`); a.answer.Error != nil {
			t.Errorf("%s: %v", method, a.answer.Error)
		}
	}
}

type inherited struct{ *bookParams }

// The target of a method is a member of its params.
func TestTargetIsMember(t *testing.T) {
	extend := func(m *server.ExtensionMethod, target string) {
		newServer(nil).Extend(server.Extension{ID: shelfID, Methods: []*server.ExtensionMethod{m.With(server.MethodOptions{Target: target})}})
	}
	panics(t, `have no member "name", the Target`, func() {
		extend(server.Method("a/b", func(*server.Call, bookParams) (mcp.None, error) { return mcp.None{}, nil }), "name")
	})
	panics(t, `have no member "Title", the Target`, func() {
		extend(server.Method("a/b", func(*server.Call, bookParams) (mcp.None, error) { return mcp.None{}, nil }), "Title")
	})
	panics(t, `have no member "name", the Target`, func() { extend(server.Method("a/b", about), "name") })
	extend(server.Method("a/b", func(*server.Call, inherited) (mcp.None, error) { return mcp.None{}, nil }), "title")
	extend(server.Method("a/b", func(*server.Call, struct {
		Extra map[string]mcp.RawValue `json:",embed"`
	},
	) (mcp.None, error) {
		return mcp.None{}, nil
	}), "name")
	extend(server.Method("a/b", func(*server.Call, mcp.RawValue) (mcp.None, error) { return mcp.None{}, nil }), "name")
}

// An error of the envelope may be that of another server, and is hidden; made into
// one of package mcp it is told as it was.
func TestMethodTellsErrorOfDone(t *testing.T) {
	for data, want := range map[string]string{`{"a":1}`: `{"code":-32602,"message":"why 100%","data":{"a":1}}`, "": `{"code":-32602,"message":"why 100%"}`} {
		e := &jsonrpc.Error{Code: mcp.CodeInvalidParams, Message: "why 100%", Data: mcp.RawValue(data)}
		s := withMethods(nil,
			server.Method("a/told", func(*server.Call, mcp.None) (mcp.None, error) {
				return mcp.None{}, mcp.NewError(e.Code, "%s", e.Message).With(e.Data)
			}),
			server.Method("a/hidden", func(*server.Call, mcp.None) (mcp.None, error) { return mcp.None{}, e }))
		l := joinShelf(t, s, v2607)
		if got := l.call("a/told", emptyBody).raw; !strings.Contains(got, `"error":`+want) {
			t.Errorf("got %s", got)
		}
		if got := l.fails(l.call("a/hidden", emptyBody), jsonrpc.CodeInternalError); !strings.Contains(got, "internal error (ref ") {
			t.Errorf("got %s", got)
		}
	}
}
