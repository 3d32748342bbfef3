package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

func serve(t *testing.T, s *server.Server) string {
	t.Helper()
	endpoint := streamable.NewHandler(s, nil)
	ts := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		if err := endpoint.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
	})
	return ts.URL
}

type seat struct {
	Name  string `json:"name"`
	Seats int    `json:"seats" default:"2" max:"8"`
}

// curious is a server with a tool for each kind of question.
func curious(visited chan struct{}) *server.Server {
	s := server.New("curious", "1.0.0", nil)
	s.Add(
		server.Tool("book", "Asks for a form.", func(ctx context.Context, _ mcp.None) (string, error) {
			a, err := server.Elicit[seat](ctx, "Who?")
			if err != nil || !a.Accepted() {
				return "nobody", err
			}
			return a.Value.Name + strings.Repeat("+", a.Value.Seats), server.Progress(ctx, 1, 1, "done")
		}),
		server.Tool("pay", "Sends to a page.", func(ctx context.Context, _ mcp.None) (bool, error) {
			return server.ElicitURL(ctx, "https://pay.example/1", "Please pay.", func(context.Context) (bool, error) {
				close(visited)
				return true, nil
			})
		}),
		server.Tool("joke", "Asks the model.", func(ctx context.Context, _ mcp.None) (string, error) {
			r, err := server.Sample(ctx, &mcp.CreateMessageParams{
				MaxTokens: 10, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("A joke?")}}},
			})
			if err != nil {
				return "", err
			}
			return r.Content[0].(*mcp.TextContent).Text, nil
		}),
		server.Tool("roots", "Asks for directories.", func(ctx context.Context, _ mcp.None) (string, error) {
			roots, err := server.Roots(ctx)
			if err != nil {
				return "", err
			}
			return roots[0].URI, nil
		}),
	)
	return s
}

func TestAnswers(t *testing.T) {
	url := serve(t, curious(make(chan struct{})))
	for _, test := range []struct{ tool, typed, want string }{
		{"book", "Ada\n3\n", "Ada+++"},
		{"book", "Ada\n\n", "Ada++"},
		{"book", "Ada\n9\n", "That does not fit"},
		{"book", "", "nobody"},
		{"pay", "n\n", "at pay.example"},
		{"pay", "n\n", "false"},
		{"pay", "y\n", "true"},
		{"joke", "Knock knock\n", "Knock knock"},
		{"roots", "", "/calltool"},
	} {
		var out strings.Builder
		p := &person{in: bufio.NewScanner(strings.NewReader(test.typed)), out: &out}
		if err := run(t.Context(), p, []string{"call", url, test.tool}); err != nil {
			t.Errorf("%s: %v", test.tool, err)
		}
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("%s, typed %q:\n%s\nwant %q", test.tool, test.typed, out.String(), test.want)
		}
	}
}

// Without an answer of the model there is no call.
func TestRefused(t *testing.T) {
	p := &person{in: bufio.NewScanner(strings.NewReader("\n")), out: io.Discard}
	err := run(t.Context(), p, []string{"call", serve(t, curious(nil)), "joke"})
	if !errors.Is(err, client.ErrInputRefused) {
		t.Errorf("%v", err)
	}
}

func TestWatch(t *testing.T) {
	s := server.New("clock", "1.0.0", nil)
	s.Add(server.Text("clock:///now", "now", "noon"))
	url := serve(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, &person{in: bufio.NewScanner(strings.NewReader("")), out: w}, []string{"watch", url, "clock:///now"})
	}()
	lines := bufio.NewScanner(r)
	for _, want := range []string{"noon", "one"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q, want %q", lines.Text(), want)
		}
		s.Add(server.Text("clock:///now", "now", "one"))
		s.ResourceUpdated("clock:///now")
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the end: %v", err)
	}
}
