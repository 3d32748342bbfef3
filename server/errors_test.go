package server_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

var errSecret = errors.New("dial db01 as root: no route")

var reference = regexp.MustCompile(`^internal error \(ref ([0-9A-F]{6})\)$`)

// failing makes one of each feature that ends in one way.
func failing(end func() error) []server.Feature {
	return []server.Feature{
		server.Tool("f", "", func(context.Context, none) (string, error) { return "", end() }),
		server.Prompt("f", "", func(context.Context, none) (string, error) { return "", end() }),
		server.Resource("test:f", "f", func(context.Context) (string, error) { return "", end() }),
		server.Template("tpl:{v}", "f", func(context.Context, struct {
			V string `uri:"v"`
		},
		) (string, error) {
			return "", end()
		}).With(server.TemplateOptions{Complete: map[string]server.Completer{
			"v": func(context.Context, string, map[string]string) ([]string, error) { return nil, end() },
		}}),
	}
}

// failures calls each of them and gives what the peer reads.
func (l *line) failures(code int64) map[string]string {
	l.t.Helper()
	out := make(map[string]string)
	for name, m := range map[string]message{
		"prompt":     l.prompt("f", emptyBody),
		"resource":   l.read1("test:f"),
		"template":   l.read1("tpl:1"),
		"completion": l.complete(`{"type":"ref/resource","uri":"tpl:{v}"}`, "v", "", ""),
	} {
		out[name] = l.fails(m, code)
	}
	return out
}

// Any error that was not made for the peer is hidden behind a reference, under
// which the log has it; never code 0 (G12). Proves: SEC-TOOL-6.
func TestErrorsAreHidden(t *testing.T) {
	var text logtest.Log
	s := newServer(&server.Options{Logger: text.Logger()}, failing(func() error { return fmt.Errorf("opening: %w", errSecret) })...)
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		told := l.failures(mcp.CodeInternalError)
		told["tool"] = l.isError(l.tool("f", emptyBody))
		for name, said := range told {
			m := reference.FindStringSubmatch(said)
			if m == nil {
				t.Errorf("%s: %q", name, said)
				continue
			}
			if !strings.Contains(text.String(), "ref="+m[1]) {
				t.Errorf("%s: no %s in the log", name, m[1])
			}
		}
	})
	if !strings.Contains(text.String(), "db01") {
		t.Error("the log does not tell what happened")
	}
}

// A local tool may show them. Proves: SEC-TOOL-6.
func TestErrorsExposed(t *testing.T) {
	s := newServer(&server.Options{ExposeErrors: true}, failing(func() error { return errSecret })...)
	l := join(t, s, v2607)
	told := l.failures(mcp.CodeInternalError)
	told["tool"] = l.isError(l.tool("f", emptyBody))
	for name, said := range told {
		if said != errSecret.Error() {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// Errors made for the peer keep text, code and data, also when wrapped.
func TestErrorsForPeers(t *testing.T) {
	plain := newServer(nil, failing(func() error { return fmt.Errorf("outer: %w", mcp.Errorf("try %d: %w", 2, errSecret)) })...)
	coded := newServer(nil, failing(func() error {
		return fmt.Errorf("outer: %w", mcp.NewError(-31999, "closed on %s", "Sunday").With(map[string]int{"days": 1}))
	})...)
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, plain, v)
		told := l.failures(mcp.CodeInternalError)
		told["tool"] = l.isError(l.tool("f", emptyBody))
		for name, said := range told {
			if said != "try 2: "+errSecret.Error() {
				t.Errorf("%s: %q", name, said)
			}
		}
		l = join(t, coded, v)
		told = l.failures(-31999)
		m := l.tool("f", emptyBody)
		told["tool"] = l.fails(m, -31999)
		for name, said := range told {
			if said != "closed on Sunday" {
				t.Errorf("%s: %q", name, said)
			}
		}
		if string(m.Error.Data) != `{"days":1}` {
			t.Errorf("data %s", m.Error.Data)
		}
	})
}

// Errors of the envelope come to handlers from other servers, by way of a client:
// they are hidden as any other, whatever their code, and MapError is asked.
func TestErrorsOfOtherServers(t *testing.T) {
	upstream := fmt.Errorf("asking upstream: %w", jsonrpc.NewError(mcp.CodeRateLimited, "%v", errSecret))
	hiding := newServer(nil, failing(func() error { return upstream })...)
	o := quiet()
	o.MapError = func(_ context.Context, err error) error {
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return mcp.Errorf("upstream says %d", e.Code)
		}
		return nil
	}
	mapping := newServer(o, failing(func() error { return upstream })...)
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, hiding, v)
		told := l.failures(mcp.CodeInternalError)
		told["tool"] = l.isError(l.tool("f", emptyBody))
		for name, said := range told {
			if !reference.MatchString(said) {
				t.Errorf("%s: %q", name, said)
			}
		}
		l = join(t, mapping, v)
		told = l.failures(mcp.CodeInternalError)
		told["tool"] = l.isError(l.tool("f", emptyBody))
		for name, said := range told {
			if said != "upstream says -31001" {
				t.Errorf("%s: %q", name, said)
			}
		}
	})
}

// A handler that panics, or ends its goroutine, is an internal error with the
// id of its request; what it said is in the log alone, and the server lives
// (G4, M6). Proves: SEC-TOOL-6.
func TestPanics(t *testing.T) {
	for name, end := range map[string]func() error{
		"panic":      func() error { panic("secret db01") },
		"nil":        func() error { var m *mcp.Tool; m.Name = "x"; return nil },
		"error":      func() error { panic(errSecret) },
		"nilpanic":   func() error { panic(nil) },
		"coded":      func() error { panic(mcp.NewError(-31999, "secret db01")) },
		"goexit":     func() error { runtime.Goexit(); return nil },
		"neverAsked": func() error { panic(server.ErrInputPending) },
	} {
		t.Run(name, func(t *testing.T) {
			var text logtest.Log
			o := unlimited()
			o.Logger = text.Logger()
			o.ExposeErrors = true // panics are hidden all the same
			s := newServer(o, append(failing(end), echo())...)
			each(t, bothEras, func(t *testing.T, v string) {
				l := join(t, s, v)
				told := l.failures(mcp.CodeInternalError)
				told["tool"] = l.fails(l.tool("f", emptyBody), mcp.CodeInternalError)
				for feature, said := range told {
					if m := reference.FindStringSubmatch(said); m == nil || !strings.Contains(text.String(), "ref="+m[1]) {
						t.Errorf("%s: %q", feature, said)
					}
				}
				if got := l.text(l.tool("echo", `{"text":"alive"}`)); got != "alive" {
					t.Errorf("got %q", got)
				}
			})
			if !strings.Contains(text.String(), "errors_test.go") {
				t.Error("no stack in the log")
			}
		})
	}
}

// A panic in middleware and in a visibility rule is caught as well.
func TestPanicsAround(t *testing.T) {
	s := newServer(nil, echo())
	s.Use(func(server.Func) server.Func { return func(*server.Call) (server.Result, error) { panic("x") } })
	l := join(t, s, v2607)
	l.fails(l.tool("echo", `{"text":"x"}`), mcp.CodeInternalError)

	s = newServer(nil, echo())
	s.Visible(func(context.Context, server.Item) bool { panic("x") })
	l = join(t, s, v2607)
	l.fails(l.call("tools/list", emptyBody), mcp.CodeInternalError)
}

// wrapping is an error whose methods need a value, which a typed nil is not.
type wrapping struct{ err error }

func (e *wrapping) Error() string { return e.err.Error() }
func (e *wrapping) Unwrap() error { return e.err }

// baseless is a result whose base may be nil.
type baseless struct {
	*mcp.ResultBase
}

// The methods of an author's errors and results may panic as well: the request
// that they belong to is answered, and the server lives.
func TestPanicsOfErrorsAndResults(t *testing.T) {
	var typedNil *wrapping
	for name, end := range map[string]server.Func{
		"error":  func(*server.Call) (server.Result, error) { return nil, typedNil },
		"joined": func(*server.Call) (server.Result, error) { return nil, errors.Join(errSecret, typedNil) },
		"result": func(*server.Call) (server.Result, error) { return &baseless{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := quiet()
			o.ExposeErrors = true
			s := newServer(o, echo())
			s.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					if c.Method() == mcp.MethodPromptsList {
						return end(c)
					}
					return next(c)
				}
			})
			s.Add(server.Prompt("p", "", func(context.Context, none) (string, error) { return "", nil }))
			eras := bothEras
			if name == "result" {
				eras = []string{v2607} // where results have what all have in common
			}
			each(t, eras, func(t *testing.T, v string) {
				l := join(t, s, v)
				if said := l.fails(l.call("prompts/list", emptyBody), mcp.CodeInternalError); !reference.MatchString(said) {
					t.Errorf("%q", said)
				}
				if got := l.text(l.tool("echo", `{"text":"alive"}`)); got != "alive" {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

// An error that cannot be read refuses a handshake, and the end of a detached call
// is told of it.
func TestPanicsOfErrorsElsewhere(t *testing.T) {
	var typedNil *wrapping
	o := quiet()
	o.ExposeErrors = true
	ended := make(chan *jsonrpc.Error, 1)
	s := newServer(o, echo())
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			switch c.Method() {
			case mcp.MethodInitialize:
				return nil, typedNil
			case mcp.MethodToolsCall:
				_, _, err := c.Detach(func(*server.Call) (server.Result, error) { return nil, typedNil },
					&server.DetachOptions{Done: func(_ *server.Call, _ mcp.RawValue, err *jsonrpc.Error) { ended <- err }})
				if err != nil {
					return nil, err
				}
			}
			return next(c)
		}
	})
	l := dial(t, s, v2511, nil)
	l.fails(l.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`), mcp.CodeInternalError)
	l = join(t, s, v2607)
	if got := l.text(l.tool("echo", `{"text":"alive"}`)); got != "alive" {
		t.Errorf("got %q", got)
	}
	if err := <-ended; err == nil || err.Code != mcp.CodeInternalError || !reference.MatchString(err.Message) {
		t.Errorf("the detached call ended with %v", err)
	}
}

// A client is not asked for what it did not declare, down to the parts of a
// capability (G5, M5). If the handler passes the error on, the peer gets
// -32021 with what is missing, or a failed tool in the handshake era.
// Proves: SEC-CAP-1. Ruling 5.
func TestNotCapable(t *testing.T) {
	sampling := func(p *mcp.CreateMessageParams) func(context.Context) error {
		return func(ctx context.Context) error {
			p.MaxTokens = 1
			_, err := server.Sample(ctx, p)
			return err
		}
	}
	asks := map[string]func(context.Context) error{
		"form": func(ctx context.Context) error { _, err := server.Elicit[sure](ctx, "?"); return err },
		"url": func(ctx context.Context) error {
			_, err := server.ElicitURL(ctx, "https://example.com/", "?", func(context.Context) (bool, error) { return true, nil })
			return err
		},
		"sample":  sampling(&mcp.CreateMessageParams{}),
		"tools":   sampling(&mcp.CreateMessageParams{Tools: []mcp.Tool{{Name: "x", InputSchema: mcp.RawValue(`{"type":"object"}`)}}}),
		"context": sampling(&mcp.CreateMessageParams{IncludeContext: mcp.IncludeThisServer}),
		"roots":   func(ctx context.Context) error { _, err := server.Roots(ctx); return err },
	}
	s := newServer(unlimited(), server.Tool("ask", "", func(ctx context.Context, in struct {
		What string `json:"what"`
	},
	) (string, error) {
		err := asks[in.What](ctx)
		var nc *server.NotCapableError
		if errors.Is(err, server.ErrNotCapable) != errors.As(err, &nc) {
			return "", errors.New("not found by errors.Is")
		}
		return "", fmt.Errorf("outer: %w", err)
	}))
	for _, c := range []struct{ what, caps, required string }{
		{"form", `{}`, `{"elicitation":{"form":{}}}`},
		{"form", `{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{}}}`},
		{"url", `{"elicitation":{}}`, `{"elicitation":{"url":{}}}`},
		{"url", `{"elicitation":{"form":{}}}`, `{"elicitation":{"url":{}}}`},
		{"sample", `{}`, `{"sampling":{}}`},
		{"tools", `{"sampling":{}}`, `{"sampling":{"tools":{}}}`},
		{"context", `{"sampling":{"tools":{}}}`, `{"sampling":{"context":{}}}`},
		{"roots", `{"tools":{}}`, `{"roots":{}}`}, // an unknown capability is tolerated
	} {
		for _, v := range bothEras {
			l := dial(t, s, v, nil)
			l.caps = c.caps
			if !l.modern() {
				l.handshake()
			}
			m := l.tool("ask", fmt.Sprintf(`{"what":%q}`, c.what))
			if !l.modern() {
				if got := l.isError(m); !strings.Contains(got, "did not declare") {
					t.Errorf("%s: %q", c.what, got)
				}
				continue
			}
			l.fails(m, mcp.CodeMissingClientCapability)
			if got := string(m.Error.Data); got != `{"requiredCapabilities":`+c.required+`}` {
				t.Errorf("%s: data %s", c.what, got)
			}
		}
	}
	l := join(t, s, v2607)
	l.caps = `{"elicitation":{}}` // means form
	l.asked(l.tool("ask", `{"what":"form"}`))
	old := dial(t, s, v2506, nil)
	old.caps = `{"elicitation":{"form":{},"url":{}}}` // no URL mode in that revision
	old.handshake()
	old.isError(old.tool("ask", `{"what":"url"}`))
}

// Only tools, prompts and resources may ask, and only within a request.
func TestCannotAsk(t *testing.T) {
	var got error
	s := newServer(nil, server.Prompt("p", "", func(context.Context, struct {
		A string `json:"a"`
	},
	) (string, error) {
		return "", nil
	}).With(server.PromptOptions{Complete: map[string]server.Completer{"a": func(ctx context.Context, _ string, _ map[string]string) ([]string, error) {
		_, got = server.Elicit[sure](ctx, "?")
		return nil, got
	}}}))
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, s, v)
		l.fails(l.complete(`{"type":"ref/prompt","name":"p"}`, "a", "", ""), mcp.CodeInternalError)
		if !errors.Is(got, server.ErrCannotAsk) {
			t.Errorf("got %v", got)
		}
	})
	if _, err := server.Elicit[sure](t.Context(), "?"); !errors.Is(err, server.ErrNoCall) {
		t.Errorf("outside of a request: %v", err)
	}
	if _, err := server.Once(t.Context(), "k", func() (int, error) { return 1, nil }); !errors.Is(err, server.ErrNoCall) {
		t.Errorf("once outside of a request: %v", err)
	}
}

// Names of methods from a peer come back short and without control characters.
func TestUnknownMethod(t *testing.T) {
	s := newServer(nil, echo())
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		for _, method := range []string{"nosuch", "tools/call\u0007", "TOOLS/CALL", strings.Repeat("x", 5000)} {
			l.last++
			id := fmt.Sprint(l.last)
			l.WriteLine(strings.Replace(l.request(id, "METHOD", emptyBody), `"METHOD"`, string(mustJSON(t, method)), 1))
			if got := l.fails(l.wait(id), mcp.CodeMethodNotFound); len(got) > 300 || strings.Contains(got, "\u0007") {
				t.Errorf("%.20q gives %q", method, got)
			}
		}
	})
}

// What no client of a revision can do is said of the revision, not of the client.
func TestRevisionCannotAsk(t *testing.T) {
	type form struct {
		City string `json:"city"`
	}
	s := newServer(unlimited(),
		server.Tool("form", "", func(ctx context.Context, _ none) (string, error) {
			_, err := server.Elicit[form](ctx, "q")
			return "", err
		}),
		server.Tool("url", "", func(ctx context.Context, _ none) (string, error) {
			_, err := server.ElicitURL(ctx, "https://example.com", "q", func(context.Context) (bool, error) { return true, nil })
			return "", err
		}),
		server.Tool("tools", "", func(ctx context.Context, _ none) (string, error) {
			_, err := server.Sample(ctx, &mcp.CreateMessageParams{Tools: []mcp.Tool{{Name: "x"}}})
			return "", err
		}),
		server.Tool("roots", "", func(ctx context.Context, _ none) (string, error) {
			_, err := server.Roots(ctx)
			return "", err
		}),
	)
	for _, c := range []struct {
		tool, caps, text string
		versions         []string
	}{
		{"form", allCaps, "has no forms (elicitation)", []string{v2024, v2503}},
		{"url", allCaps, "has no opening URLs (elicitation.url)", []string{v2024, v2503, v2506}},
		{"tools", allCaps, "has no tools in sampling (sampling.tools)", []string{v2024, v2503, v2506}},
		{"form", `{}`, "the client did not declare the capability for forms", []string{v2506, v2511}},
		{"roots", `{}`, "the client did not declare the capability for roots", []string{v2024, v2503, v2506, v2511}},
	} {
		for _, v := range c.versions {
			l := dial(t, s, v, nil)
			l.caps = c.caps
			l.handshake()
			want := c.text
			if strings.HasPrefix(want, "has no") {
				want = "protocol revision " + v + ", which the client speaks, " + want
			}
			if got := l.isError(l.tool(c.tool, emptyBody)); !strings.HasPrefix(got, want) {
				t.Errorf("%s in %s: %q, want %q", c.tool, v, got, want)
			}
		}
	}
}
