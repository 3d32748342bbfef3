package admin_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A guarded is an MCP server behind a guard that asks the second authorization server, and sees
// within seen that a token was revoked.
type guarded struct {
	t   *testing.T
	url string

	guard.Verifier
	mu    sync.Mutex
	asked map[string]int // by token
	more  chan struct{}  // closed at the next question
}

const seen = 2 * time.Second

func newGuarded(t *testing.T, s *site) *guarded {
	t.Helper()
	g := &guarded{
		t: t, asked: map[string]int{}, more: make(chan struct{}),
		Verifier: guard.Introspection(s.first, &guard.IntrospectionOptions{
			Endpoint: s.second + "/introspect", ClientID: "guard", ClientSecret: "secret-of-guard",
		}),
	}
	made, err := guard.New(resource, g, &guard.Options{RequireFresh: seen})
	if err != nil {
		t.Fatal(err)
	}
	tools := server.New("guarded", "1.0.0", nil)
	tools.Add(server.Text("test:a", "a", "text"))
	endpoint := streamable.NewHandler(tools, nil)
	ts := httptest.NewServer(made.Protect(endpoint))
	t.Cleanup(func() {
		made.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = endpoint.Shutdown(ctx) // streams that are still open are cut off
		ts.Close()
		_ = tools.Shutdown(context.Background())
	})
	g.url = ts.URL + streamable.Path
	return g
}

// Verify counts. A busy machine may need more time than the guard leaves for the answer, which is that of
// the moment all the same.
func (g *guarded) Verify(ctx context.Context, token string) (*guard.Token, error) {
	g.mu.Lock()
	g.asked[token]++
	close(g.more)
	g.more = make(chan struct{})
	g.mu.Unlock()
	return g.Verifier.Verify(context.WithoutCancel(ctx), token)
}

// count is how often a token was asked about, and a channel that is closed at the next question.
func (g *guarded) count(token string) (int, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[token], g.more
}

// send sends a request of the newest revision with a token.
func (g *guarded) send(token, method, params string) *http.Response {
	g.t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta+`}}`))
	if err != nil {
		g.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method,
	} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	return response
}

// listen opens a subscription with a token; the channel is closed when it ends.
func (g *guarded) listen(token string) <-chan struct{} {
	g.t.Helper()
	response := g.send(token, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["test:a"]},`) //nolint:bodyclose // the goroutine below does
	lines := bufio.NewReader(response.Body)
	for line := ""; !strings.Contains(line, "acknowledged"); {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			g.t.Fatalf("%s: no acknowledgement: %v", response.Status, err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, lines) // ends with the stream
	}()
	return ended
}

// open reports whether a stream is open after its token was verified anew, and whether the token lets
// requests in then.
func (g *guarded) open(token string, ended <-chan struct{}) (stream, requests bool) {
	g.t.Helper()
	stream = true
	for from, _ := g.count(token); stream; {
		n, more := g.count(token)
		if n >= from+2 { // one that began later is over
			break
		}
		select {
		case <-ended:
			stream = false
		case <-more:
		}
	}
	response := g.send(token, "server/discover", "")
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusUnauthorized {
		g.t.Errorf("with the token: %s", response.Status)
	}
	return stream, response.StatusCode == http.StatusOK
}

// What each act of an operator ends at a guard with a bound: access tokens, and streams that are
// open, within it, and nothing else.
// Proves: the column of guards with --require-fresh, in docs/guide/authorization-users.md
func TestEndsAtGuard(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		g := newGuarded(t, s)
		s.addUser("bystander")
		bystander := s.signIn("app", "bystander")
		theirs := g.listen(bystander.access)
		var running sync.WaitGroup
		for i, act := range endings {
			user := "user" + string(rune('a'+i))
			s.addUser(user)
			p := s.signIn("app", user)
			ended := g.listen(p.access)
			s.act(act.acts, user)
			running.Go(func() {
				stream, requests := g.open(p.access, ended)
				if stream == act.want.access || requests == act.want.access {
					t.Errorf("%s: stream open %v, requests let in %v, want both %v", act.what, stream, requests, !act.want.access)
				}
			})
		}
		running.Wait()
		if stream, requests := g.open(bystander.access, theirs); !stream || !requests {
			t.Errorf("of another user: stream open %v, requests let in %v", stream, requests)
		}
	})
}
