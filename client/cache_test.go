package client_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// reads is a server whose reads are counted, with the given hints.
func reads(hints string) *script {
	return &script{on: map[string]func(*req) (any, error){mcp.MethodResourcesRead: func(r *req) (any, error) {
		return raw(fmt.Sprintf(`{"resultType":"complete","contents":[{"uri":%s,"text":"x"}]%s}`, text(r.in, "uri"), hints)), nil
	}}}
}

// Proves: FLOW-CACHE. Ruling 22, G9: what is kept, for how long.
func TestCacheTime(t *testing.T) {
	for name, test := range map[string]struct {
		hints string
		wait  time.Duration
		asked int
	}{
		"fresh":          {`,"ttlMs":1000,"cacheScope":"private"`, 999 * time.Millisecond, 1},
		"stale":          {`,"ttlMs":1000,"cacheScope":"private"`, time.Second, 2},
		"zero":           {`,"ttlMs":0,"cacheScope":"private"`, 0, 2},
		"negative":       {`,"ttlMs":-5,"cacheScope":"private"`, 0, 2},
		"absent":         {``, 0, 2},
		"not a number":   {`,"ttlMs":"1000"`, 0, 2},
		"fraction":       {`,"ttlMs":1000.5`, 0, 2},
		"huge":           {`,"ttlMs":9223372036854775807`, 24*time.Hour - 1, 1},
		"capped":         {`,"ttlMs":9223372036854775807`, 24 * time.Hour, 2},
		"beyond integer": {`,"ttlMs":1e300`, 0, 2},
		"no scope":       {`,"ttlMs":1000`, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := reads(test.hints)
				c := connect(t, s, nil)
				for range 2 {
					if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil && !strings.Contains(name, "number") && !strings.Contains(name, "fraction") && !strings.Contains(name, "beyond") {
						t.Fatal(err)
					}
					time.Sleep(test.wait) // of fake time
				}
				if n := len(s.got(mcp.MethodResourcesRead)); n != test.asked {
					t.Errorf("asked %d times, want %d", n, test.asked)
				}
			})
		})
	}
}

// Ruling 22: the key is method and params; NoCache asks; results are copies.
func TestCacheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := reads(`,"ttlMs":60000,"cacheScope":"public"`)
		c := connect(t, s, nil)
		for _, uri := range []string{"a:1", "a:2", "a:1", "a:2"} {
			r, err := c.ReadResource(t.Context(), uri, &client.CallOptions{Meta: map[string]mcp.RawValue{"k": raw(`1`)}})
			if err != nil || r.Contents[0].URI != uri || r.Contents[0].Text != "x" {
				t.Fatalf("%+v, %v", r, err)
			}
			r.Contents[0].Text = "written to"
		}
		if n := len(s.got(mcp.MethodResourcesRead)); n != 2 {
			t.Errorf("asked %d times", n)
		}
		if _, err := c.ReadResource(t.Context(), "a:1", &client.CallOptions{NoCache: true}); err != nil || len(s.got(mcp.MethodResourcesRead)) != 3 {
			t.Errorf("NoCache did not ask: %v", err)
		}
	})
}

// What a result may depend on is in the key: the members of _meta that the
// caller gave, in whatever order they are written, or that middleware added, and
// the capabilities of the call. NoCache keeps nothing either.
func TestCacheKeyOfOptions(t *testing.T) {
	type options = client.CallOptions
	tenant := func(value string) *options {
		return &options{Meta: map[string]mcp.RawValue{"com.example/tenant": raw(value)}}
	}
	for name, test := range map[string]struct {
		added string // by middleware to the second call
		calls []*options
		asked int
	}{
		"tenants":        {"", []*options{tenant(`"ada"`), tenant(`"bob"`), nil}, 3},
		"one tenant":     {"", []*options{tenant(`{"id":1,"of":"x"}`), tenant(`{ "of":"x", "id":1 }`)}, 1},
		"no JSON":        {"", []*options{tenant(`"ada`)}, 0},
		"capabilities":   {"", []*options{nil, {Capabilities: &mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}}, {Capabilities: &mcp.ClientCapabilities{}}}, 3},
		"one capability": {"", []*options{{Capabilities: &mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}}, {Capabilities: &mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}}}, 1},
		"NoCache":        {"", []*options{{NoCache: true}, nil, nil}, 2},
		"middleware":     {"bob", []*options{tenant(`"ada"`), tenant(`"bob"`), nil}, 3},
		"by middleware":  {"bob", []*options{nil, nil}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := reads(`,"ttlMs":60000,"cacheScope":"private"`)
				o, reads := &client.Options{}, 0
				if test.added != "" {
					o.Middleware = []client.Middleware{func(next client.Func) client.Func {
						return func(ctx context.Context, r *client.Request) (client.Result, error) {
							if r.Method() == mcp.MethodResourcesRead {
								if reads++; reads == 1 {
									if err := r.SetMeta("com.example/other", test.added); err != nil {
										t.Error(err)
									}
								}
							}
							return next(ctx, r)
						}
					}}
				}
				c := connect(t, s, o)
				for i, o := range test.calls {
					if _, err := c.ReadResource(t.Context(), "a:1", o); (err != nil) != (name == "no JSON") {
						t.Errorf("call %d: %v", i, err)
					}
				}
				if n := len(s.got(mcp.MethodResourcesRead)); n != test.asked {
					t.Errorf("asked %d times, want %d", n, test.asked)
				}
			})
		})
	}
}

// A result is for clients of the revision that it was asked for in: another one
// words it otherwise.
func TestCacheAcrossRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := client.NewCache(0, 0)
		s := &script{versions: []string{modern, newest}, on: map[string]func(*req) (any, error){mcp.MethodToolsList: func(r *req) (any, error) {
			name := "of-" + newest
			if meta(r.in, mcp.MetaProtocolVersion) != "" {
				name = "of-" + modern
			}
			return raw(fmt.Sprintf(`{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[{"name":%q,"inputSchema":{"type":"object"}}]}`, name)), nil
		}}}
		for _, version := range []string{modern, newest, modern, newest} {
			c := dial(t, mem.New(s, &mem.Options{Key: "s"}), &client.Options{Cache: cache, Eras: client.NewEraMemory(), Versions: []string{version}})
			for tool, err := range c.Tools(t.Context()) {
				if err != nil || tool.Name != "of-"+version {
					t.Errorf("the tools of revision %s: %v, %v", version, tool, err)
				}
			}
		}
		if n := len(s.got(mcp.MethodToolsList)); n != 2 {
			t.Errorf("asked %d times, want once for each revision", n)
		}
	})
}

// Ruling 22, G9: private results stay with their principal and server, also in
// a shared cache; public ones are for all.
func TestCachePrincipals(t *testing.T) {
	for hints, want := range map[string]int{`,"ttlMs":60000,"cacheScope":"private"`: 3, `,"ttlMs":60000`: 3, `,"ttlMs":60000,"cacheScope":"public"`: 2} {
		synctest.Test(t, func(t *testing.T) {
			cache := client.NewCache(0, 0)
			s := reads(hints)
			for _, who := range []struct{ principal, key string }{{"ann", "s"}, {"bob", "s"}, {"ann", "s"}, {"ann", "other"}} {
				c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Key: who.key}), &client.Options{Cache: cache, Principal: who.principal, Eras: client.NewEraMemory()})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil {
					t.Error(err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			if n := len(s.got(mcp.MethodResourcesRead)); n != want {
				t.Errorf("%s: asked %d times, want %d", hints, n, want)
			}
		})
	}
}

// Clients whose principals nobody named share nothing but what is public. Proves:
// R11. Attack: wrong-user cache.
func TestAttackWrongUserCache(t *testing.T) {
	for hints, want := range map[string]int{`,"ttlMs":60000,"cacheScope":"private"`: 2, `,"ttlMs":60000,"cacheScope":"public"`: 1} {
		synctest.Test(t, func(t *testing.T) {
			cache, s := client.NewCache(0, 0), reads(hints)
			for range 2 {
				c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Key: "s"}), &client.Options{Cache: cache, Eras: client.NewEraMemory()})
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil {
						t.Error(err)
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			if n := len(s.got(mcp.MethodResourcesRead)); n != want {
				t.Errorf("%s: asked %d times, want %d", hints, n, want)
			}
		})
	}
}

// A persona is a RoundTripper in whose place another person signs in before a
// request of the method tools/call.
type persona struct {
	next http.RoundTripper
	who  string
}

func (p *persona) RoundTrip(r *http.Request) (*http.Response, error) {
	if methodOf(r) == mcp.MethodToolsCall {
		resume := transport.PauseTimeouts(r.Context())
		p.who = "bob"
		resume()
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+p.who)
	return p.next.RoundTrip(r)
}

// Whoever signs in sees nothing of what the one before was told in private, also
// if it was on its way then; what is public stays. Proves: R11. Attack:
// wrong-user cache.
func TestAttackWrongUserCacheAfterSignIn(t *testing.T) {
	for scope, want := range map[string][]string{"private": {"ada", "ada", "bob", "bob"}, "public": {"ada", "ada", "ada", "ada"}} {
		for _, principal := range []string{"", "ada"} {
			synctest.Test(t, func(t *testing.T) {
				asked, late := 0, make(chan struct{})
				s := &site{on: map[string]func(*http.Request, string) *http.Response{
					mcp.MethodResourcesRead: func(r *http.Request, id string) *http.Response {
						who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
						if asked++; asked == 2 {
							<-late
						}
						return result(id, fmt.Sprintf(`{"resultType":"complete","contents":[{"uri":"a:b","text":%q}],"ttlMs":60000,"cacheScope":%q}`, who, scope))
					},
				}}
				d := &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: &persona{s, "ada"}}}
				c, err := client.Connect(t.Context(), d, &client.Options{Eras: client.NewEraMemory(), Principal: principal})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				var got []string
				read := func(uri string) string {
					r, err := c.ReadResource(t.Context(), uri, nil)
					if err != nil {
						t.Error(err)
						return ""
					}
					return r.Contents[0].Text
				}
				got = append(got, read("a:b"))
				slow := make(chan string)
				go func() { slow <- read("a:slow") }()
				synctest.Wait()
				got = append(got, read("a:b"))
				if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil {
					t.Error(err)
				}
				close(late)
				<-slow
				got = append(got, read("a:b"), read("a:b"))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", scope, diff)
				}
				if after := read("a:slow"); after != "bob" {
					t.Errorf("%s: what was on its way was kept: %s", scope, after)
				}
			})
		}
	}
}

// Ruling 19, G9: what took more than one round is never kept.
func TestCacheRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodResourcesRead: func(*req) (any, error) {
			if n++; n%2 == 1 {
				return raw(required(`"a":`+form, "")), nil
			}
			return raw(`{"resultType":"complete","contents":[],"ttlMs":60000,"cacheScope":"public"}`), nil
		}}}
		c := connect(t, s, answering())
		for range 2 {
			if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil {
				t.Fatal(err)
			}
		}
		if n != 4 {
			t.Errorf("asked %d times, want 4", n)
		}
	})
}

// SEC-DOS-1: the cache is bounded, and the least recently used goes first.
func TestCacheBounds(t *testing.T) {
	for name, test := range map[string]struct{ entries, bytes, asked int }{
		"entries": {2, 0, 4}, "bytes": {0, 1000, 4}, "nothing": {-1, 0, 5}, "no bytes": {0, -1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := reads(`,"ttlMs":60000,"cacheScope":"private"`)
				c := connect(t, s, &client.Options{CacheEntries: test.entries, CacheBytes: test.bytes})
				for _, uri := range []string{"a:1", "a:2", "a:1", "a:3", "a:2"} {
					if _, err := c.ReadResource(t.Context(), uri, nil); err != nil {
						t.Fatal(err)
					}
				}
				if n := len(s.got(mcp.MethodResourcesRead)); n != test.asked {
					t.Errorf("asked %d times, want %d", n, test.asked)
				}
			})
		})
	}
}

// Proves: FLOW-LIST-CHANGED. Ruling 22: a notice makes what was kept stale,
// also what is still on its way.
func TestCacheInvalidation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := reads(`,"ttlMs":60000,"cacheScope":"private"`)
		late := make(chan struct{})
		s.on[mcp.MethodListen] = listen
		plain := s.on[mcp.MethodResourcesRead]
		s.on[mcp.MethodResourcesRead] = func(r *req) (any, error) {
			if text(r.in, "uri") == `"a:slow"` {
				<-late
			}
			return plain(r)
		}
		c := connect(t, s, &client.Options{})
		sub, err := c.Subscribe(t.Context(), "a:b", "a:slow")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sub.Close() })
		read := func(uri string) {
			t.Helper()
			if _, err := c.ReadResource(t.Context(), uri, nil); err != nil {
				t.Error(err)
			}
		}
		read("a:b")
		go read("a:slow")
		s.await(mcp.MethodResourcesRead, 2)
		id := s.await(mcp.MethodListen, 1).ID
		for _, uri := range []string{"a:b", "a:slow"} {
			_ = s.last().tell(t.Context(), mcp.NotifyResourcesUpdated, updated(id, uri))
		}
		synctest.Wait()
		close(late)
		synctest.Wait()
		read("a:b")
		read("a:slow")
		if n := len(s.got(mcp.MethodResourcesRead)); n != 4 {
			t.Errorf("asked %d times, want 4", n)
		}
	})
}

func updated(id jsonrpc.ID, uri string) string {
	return fmt.Sprintf(`{"uri":%q,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, uri, id)
}

// listen acknowledges all that is asked for and stays.
func listen(r *req) (any, error) {
	_ = r.tell(mcp.NotifySubscriptionsAcknowledged, fmt.Sprintf(`{"notifications":%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, text(r.in, "notifications"), r.in.ID))
	return nil, errSilent
}
