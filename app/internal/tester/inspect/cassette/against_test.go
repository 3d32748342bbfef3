package cassette_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/cassette"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
)

// revisions are one of each era, and the first.
var revisions = []string{"2026-07-28", "2025-11-25", "2024-11-05"}

// shop is a server that asks, and says how much something costs.
func shop(price int) *server.Server {
	s := server.New("shop", "1", nil)
	s.Add(server.Tool("order", "Orders a thing.", func(ctx context.Context, in struct {
		Thing string `json:"thing"`
	},
	) (string, error) {
		answer, err := server.Elicit[struct {
			Colour string `json:"colour"`
		}](ctx, "Which colour?")
		if err != nil {
			return "", err
		}
		if err := server.Progress(ctx, 1, 2, "painting"); err != nil {
			return "", err
		}
		return fmt.Sprintf("a %s %s for %d", answer.Value.Colour, in.Thing, price), nil
	}), server.Tool("price", "Says the price.", func(context.Context, mcp.None) (int, error) { return price, nil }))
	return s
}

// visit has a session with a server.
func visit(t *testing.T, c *client.Client) []string {
	t.Helper()
	var said []string
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, tool.Name)
	}
	var progress []string
	if c.Version() >= "2025-06-18" { // which knows elicitation
		text, err := client.Call[string](t.Context(), c, "order", map[string]string{"thing": "bicycle"},
			&client.CallOptions{OnProgress: func(_, _ float64, m string) { progress = append(progress, m) }})
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, text, strings.Join(progress, " "))
	}
	price, err := client.Call[int](t.Context(), c, "price", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return append(said, fmt.Sprint(price))
}

func options(version string) *client.Options {
	return &client.Options{Versions: []string{version}, OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(map[string]string{"colour": "green"})
	}}
}

// Proves: a session with a question and progress is recorded, served again to the same
// client, and compared with the same server twice without a difference, and with another one.
func TestAgainst(t *testing.T) {
	for _, version := range revisions {
		t.Run(version, func(t *testing.T) {
			var kept bytes.Buffer
			r, err := cassette.Record(&kept, cassette.Header{}, mask.New(nil))
			if err != nil {
				t.Fatal(err)
			}
			c, err := client.Connect(t.Context(), mem.New(shop(5), &mem.Options{Tap: r.Tap}), options(version))
			if err != nil {
				t.Fatal(err)
			}
			want := visit(t, c)
			if _, err := r.Close(); err != nil {
				t.Fatal(err)
			}
			open := func() *cassette.Cassette {
				read, err := cassette.Open(bytes.NewReader(kept.Bytes()))
				if err != nil {
					t.Fatal(err)
				}
				return read
			}

			near, far := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- open().Serve(t.Context(), far) }()
			again, err := client.Connect(t.Context(), stdio.Conn(near), options(version))
			if err != nil {
				t.Fatalf("%v\n%s", err, kept.String())
			}
			if got := visit(t, again); !slices.Equal(got, want) {
				t.Errorf("replayed: got %q, want %q", got, want)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}

			for range 2 {
				report, err := open().Against(t.Context(), mem.New(shop(5), nil), nil)
				if err != nil || report.Compared < 3 || len(report.Differences) > 0 {
					t.Errorf("the same server: %s, %v\n%s", shown(t, report), err, kept.String())
				}
			}
			report, err := open().Against(t.Context(), mem.New(shop(6), nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range report.Differences {
				if d.Method != "tools/call" || len(d.Changes) == 0 {
					t.Errorf("differs: %+v", d)
				}
			}
			if n := len(report.Differences); n == 0 || n > 2 {
				t.Errorf("another server: %s", shown(t, report))
			}
			ignoring, err := open().Against(t.Context(), mem.New(shop(6), nil), &cassette.AgainstOptions{
				Ignore: []string{"/result/content/*/text", "/result/structuredContent"},
			})
			if err != nil || len(ignoring.Differences) > 0 {
				t.Errorf("another server, ignoring: %s, %v", shown(t, ignoring), err)
			}
		})
	}
}

func shown(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
