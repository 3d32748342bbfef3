package flows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

type order struct {
	Email  string  `json:"email" format:"email" title:"Mail"`
	Size   string  `json:"size" enum:"s,m,l" default:"m"`
	Count  int     `json:"count" min:"1" max:"9" default:"2"`
	Tip    float64 `json:"tip,omitzero"`
	Urgent bool    `json:"urgent" default:"true"`
}

type toppings struct {
	Extra []string `json:"extra" enum:"ham,egg,leek" minlen:"1" maxlen:"2"`
}

// asksFor is a tool that asks a form once and tells what it got.
func asksFor[T any](name string) server.Feature {
	return server.Tool(name, "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
		a, err := server.Elicit[T](ctx, "What would you like?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %+v", a.Action, a.Value), nil
	})
}

// answers are a client's options with one answer to every form.
func answers(answer func() (*mcp.ElicitResult, error)) *client.Options {
	return &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return answer() }}
}

// Proves: FLOW-ELICIT-P: forms with defaults, choices and bounds; accept,
// decline and cancel. Ruling 20: both sides check.
func TestFLOW_ELICIT_P(t *testing.T) {
	build := with(asksFor[order]("order"), asksFor[toppings]("toppings"))
	accept := func(v string) func() (*mcp.ElicitResult, error) {
		return func() (*mcp.ElicitResult, error) { return client.Accept(raw(v)) }
	}
	for name, test := range map[string]struct {
		tool   string
		answer func() (*mcp.ElicitResult, error)
		want   string // "" is an error
	}{
		"defaults":       {"order", accept(`{"email":"a@b.example"}`), "accept {Email:a@b.example Size:m Count:2 Tip:0 Urgent:true}"},
		"all":            {"order", accept(`{"email":"a@b.example","size":"l","count":9,"tip":1.5,"urgent":false}`), "accept {Email:a@b.example Size:l Count:9 Tip:1.5 Urgent:false}"},
		"decline":        {"order", client.Decline, "decline {Email: Size: Count:0 Tip:0 Urgent:false}"},
		"cancel":         {"order", client.CancelElicit, "cancel {Email: Size: Count:0 Tip:0 Urgent:false}"},
		"no mail":        {"order", accept(`{"email":"nobody"}`), ""},
		"no choice":      {"order", accept(`{"email":"a@b.example","size":"xl"}`), ""},
		"too many":       {"order", accept(`{"email":"a@b.example","count":10}`), ""},
		"unknown field":  {"order", accept(`{"email":"a@b.example","more":1}`), ""},
		"required field": {"order", accept(`{}`), ""},
		"multi":          {"toppings", accept(`{"extra":["egg","ham"]}`), "accept {Extra:[egg ham]}"},
		"multi, none":    {"toppings", accept(`{"extra":[]}`), ""},
		"multi, odd":     {"toppings", accept(`{"extra":["jam"]}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.EachEra(t, build, answers(test.answer), func(t *testing.T, era mcptest.Era, c *client.Client) {
				got, err := client.Call[string](t.Context(), c, test.tool, nil)
				ok := test.want != "" && since(era.Version, june) && (test.tool != "toppings" || since(era.Version, autumn))
				if (err == nil) != ok || ok && got != test.want {
					t.Errorf("got %q, %v; want %q", got, err, test.want)
				}
			})
		})
	}
}

// Proves: FLOW-ELICIT-P: what the client is shown is the form, in the words of
// the revision, together with who asks.
func TestFLOW_ELICIT_P_Form(t *testing.T) {
	var seen *client.ElicitRequest
	o := &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		seen = r
		return client.CancelElicit()
	}}
	mcptest.EachEra(t, with(asksFor[order]("order")), o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if !since(era.Version, june) {
			t.Skip("no elicitation in this revision")
		}
		if _, err := c.CallTool(t.Context(), "order", nil, nil); err != nil {
			t.Fatal(err)
		}
		if seen.Server.Name != "flows" || seen.Params.Message != "What would you like?" {
			t.Errorf("question %+v", seen)
		}
		form := seen.Form()
		var names []string
		for _, p := range form.Properties {
			names = append(names, p.Name)
			defaults := since(era.Version, autumn) && (p.Name == "size" || p.Name == "count") || p.Name == "urgent"
			if (p.Schema.Default != nil) != defaults {
				t.Errorf("%s has the default %s", p.Name, p.Schema.Default)
			}
		}
		if !slices.Equal(names, []string{"email", "size", "count", "tip", "urgent"}) || !slices.Equal(form.Required, []string{"email"}) {
			t.Errorf("fields %v, required %v", names, form.Required)
		}
		if size, _ := form.Properties.Lookup("size"); size.Kind() != mcp.FieldChoice || len(size.Options()) != 3 {
			t.Errorf("size %+v", size)
		}
	})
}

// visit is a tool that sends the person to a page, and is content after so
// many looks.
func visit(looks *atomic.Int32, after int32) server.Feature {
	return server.Tool("visit", "Sends the person to a page.", func(ctx context.Context, _ mcp.None) (string, error) {
		ok, err := server.ElicitURL(ctx, "https://pay.example/42", "pay", func(context.Context) (bool, error) { return looks.Add(1) >= after, nil })
		return fmt.Sprint("paid ", ok), err
	})
}

// Proves: FLOW-ELICIT-P, SEC-ELICIT-2 (protocol part). Ruling 18: URL mode.
// Accepting is consent, not the end; 2025-11-25 has an id and a notification
// when all is done; the modern era neither.
func TestFLOW_ELICIT_P_URL(t *testing.T) {
	for _, version := range versions {
		for name, answer := range map[string]func() (*mcp.ElicitResult, error){
			"accept": func() (*mcp.ElicitResult, error) { return client.Accept(nil) }, "decline": client.Decline, "cancel": client.CancelElicit,
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var looks atomic.Int32
					var asked []*client.ElicitRequest
					var complete logtest.List
					o := &client.Options{
						OnElicitURL: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
							asked = append(asked, r)
							return answer()
						},
						OnElicitationComplete: func(_ context.Context, id string) { complete.Add(id) },
					}
					c := mcptest.Join(t, with(visit(&looks, 30)), o, mcptest.Era{Version: version, Transport: "mem"})
					got, err := client.Call[string](t.Context(), c, "visit", nil)
					synctest.Wait()
					if !since(version, autumn) {
						if err == nil || len(asked) > 0 {
							t.Errorf("got %q, asked %v", got, asked)
						}
						return
					}
					if want := fmt.Sprint("paid ", name == "accept"); err != nil || got != want {
						t.Errorf("got %q, %v; want %q", got, err, want)
					}
					if len(asked) != 1 || asked[0].Page.URL != "https://pay.example/42" || asked[0].Page.Host != "pay.example" || asked[0].Form() != nil {
						t.Fatalf("asked %+v", asked)
					}
					id := asked[0].Params.ElicitationID
					if (id != "") != (version == autumn) {
						t.Errorf("elicitationId %q", id)
					}
					if n := looks.Load(); (name == "accept") != (n == 30) || name != "accept" && n > 0 {
						t.Errorf("the server looked %d times", n)
					}
					if said := complete.All(); (version == autumn && name == "accept") != slices.Equal(said, []string{id}) {
						t.Errorf("complete %q, id %q", said, id)
					}
				})
			})
		}
	}
}

// Proves: FLOW-ELICIT-P. Ruling 18: in 2025-11-25 a client treats -32042 by
// visiting the page, waits for notifications/elicitation/complete, and tries
// again.
func TestFLOW_ELICIT_P_Required(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		s := with(server.Tool("mail", "Needs a sign-in.", func(context.Context, mcp.None) (string, error) {
			if runs.Add(1) == 1 {
				return "", mcp.NewError(mcp.CodeURLElicitationRequired, "sign in first").With(mcp.URLElicitationRequiredData{
					Elicitations: []mcp.ElicitParams{{Mode: mcp.ModeURL, Message: "sign in", URL: "https://as.example/", ElicitationID: "e-1"}},
				})
			}
			return "sent", nil
		}))(t, quiet())
		h := &openTap{Server: s}
		var asked []string
		c, err := client.Connect(t.Context(), mem.New(h, nil), &client.Options{
			Versions: []string{autumn},
			OnElicitURL: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				asked = append(asked, r.Page.URL)
				time.AfterFunc(20*time.Second, func() {
					_ = h.conn.Send(context.Background(), &jsonrpc.Outgoing{
						Method: mcp.NotifyElicitationComplete, Params: jsonrpc.Raw(raw(`{"elicitationId":"e-1"}`)),
					})
				})
				return client.Accept(nil)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		start := time.Now()
		got, err := client.Call[string](t.Context(), c, "mail", nil)
		if err != nil || got != "sent" || runs.Load() != 2 || !slices.Equal(asked, []string{"https://as.example/"}) {
			t.Errorf("got %q, %v after %d runs, asked %v", got, err, runs.Load(), asked)
		}
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("tried again after %v, want the moment it was complete", took)
		}
	})
}

// openTap remembers the connection of a server.
type openTap struct {
	*server.Server
	conn transport.Conn
}

func (h *openTap) Open(c transport.Conn) (transport.Session, error) {
	h.conn = c
	return h.Server.Open(c)
}

// Proves: FLOW-ELICIT-P. Ruling 19 and the four drivers: several questions, one after
// another and at once, with what was done once; the same handler in each era.
func TestFLOW_ELICIT_P_Rounds(t *testing.T) {
	var tickets atomic.Int32
	build := with(server.Tool("drop", "Asks in rounds.", func(ctx context.Context, in struct {
		Table string `json:"table"`
	},
	) (string, error) {
		ticket, err := server.Once(ctx, "ticket", func() (int32, error) { return tickets.Add(1), nil })
		if err != nil {
			return "", err
		}
		var said []string
		for i := range 3 {
			a, err := server.Elicit[struct {
				N int `json:"n"`
			}](ctx, fmt.Sprintf("%s %d", in.Table, i))
			if err != nil {
				return "", fmt.Errorf("question %d: %w", i, err)
			}
			said = append(said, fmt.Sprint(a.Value.N))
		}
		type yes struct {
			Yes bool `json:"yes"`
		}
		results := make(chan error, 2)
		for _, key := range []string{"left", "right"} {
			go func() {
				_, err := server.Elicit[yes](ctx, "both", &server.AskOptions{Key: key})
				results <- err
			}()
		}
		if err := errors.Join(<-results, <-results); err != nil {
			return "", err
		}
		return fmt.Sprintf("%d: %s", ticket, strings.Join(said, " ")), nil
	}))
	var n atomic.Int32
	o := &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		if r.Params.Message == "both" {
			return client.Accept(map[string]any{"yes": true})
		}
		return client.Accept(map[string]any{"n": n.Add(1)})
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if !since(era.Version, june) {
			t.Skip("no elicitation in this revision")
		}
		n.Store(0)
		before := tickets.Load()
		got, err := client.Call[string](t.Context(), c, "drop", map[string]any{"table": "t"})
		if want := fmt.Sprintf("%d: 1 2 3", before+1); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
		if tickets.Load() != before+1 {
			t.Errorf("%d tickets for one call", tickets.Load()-before)
		}
	})
}

// Proves: SEC-ELICIT-2 (protocol part), SEC-CAP-1. Ruling 5: a handler learns that a
// client cannot be asked; what the peer gets depends on the era.
func TestSEC_ELICIT_2(t *testing.T) {
	var looks atomic.Int32
	build := with(visit(&looks, 1), asksFor[toppings]("form"))
	mcptest.EachEra(t, build, &client.Options{}, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for tool, capability := range map[string]string{"visit": `{"elicitation":{"url":{}}}`, "form": `{"elicitation":{"form":{}}}`} {
			r, err := c.CallTool(t.Context(), tool, nil, nil)
			if era.Version != newest {
				if err != nil || !r.IsError {
					t.Errorf("%s: %+v, %v; want a failed tool", tool, r, err)
				}
				continue
			}
			var e *jsonrpc.Error
			if !errors.As(err, &e) || e.Code != mcp.CodeMissingClientCapability {
				t.Errorf("%s: %v", tool, err)
				continue
			}
			message{t, string(e.Data)}.want(capability, "requiredCapabilities")
		}
	})
}

// Proves: FLOW-ELICIT-P. Ruling 18: -32042 belongs to 2025-11-25 alone; elsewhere
// the peer gets the text, and no code that it cannot know.
func TestFLOW_ELICIT_P_RequiredElsewhere(t *testing.T) {
	build := with(server.Tool("mail", "Needs a sign-in.", func(context.Context, mcp.None) (string, error) {
		return "", mcp.NewError(mcp.CodeURLElicitationRequired, "sign in first").With(mcp.URLElicitationRequiredData{})
	}))
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		want := int64(mcp.CodeInternalError)
		if era.Version == autumn {
			want = mcp.CodeURLElicitationRequired
		}
		if _, err := c.CallTool(t.Context(), "mail", nil, nil); code(err) != want || !strings.Contains(err.Error(), "sign in first") {
			t.Errorf("%v, want code %d", err, want)
		}
	})
}
