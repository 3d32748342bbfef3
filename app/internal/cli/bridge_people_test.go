package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/websocket"
)

// peopleResource is what the tokens of people are made out to.
const peopleResource = "https://mcp.example/mcp"

// tokensOf serves an authorization server, and returns its issuer and a token of each person.
func tokensOf(t *testing.T, names ...string) (issuerURL string, tokens []string) {
	t.Helper()
	mux := http.NewServeMux()
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	store := issuer.NewMemory()
	for i, name := range names {
		s, err := issuer.New(site.URL, store, issuer.AutoApprove(name), &issuer.Options{
			Resources: []issuer.Resource{{URI: peopleResource, Scopes: []issuer.Scope{{Name: "use"}}}},
			Clients:   []issuer.StaticClient{{ID: killClient, Metadata: oauth.ClientMetadata{RedirectURIs: []string{killRedirect}}}},
			Audit:     func(context.Context, issuer.Event) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			mux.Handle("/", s) // all have the same keys
		}
		tokens = append(tokens, tokenFrom(t, s, site.URL))
	}
	return site.URL, tokens
}

// tokenFrom gets an access token of the one person whom an authorization server lets in.
func tokenFrom(t *testing.T, s http.Handler, issuerURL string) string {
	t.Helper()
	verifier := oauth.NewVerifier()
	request := url.Values{
		"response_type": {"code"}, "client_id": {killClient}, "redirect_uri": {killRedirect}, "resource": {peopleResource}, "scope": {"use"},
		"state": {"state"}, "code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {"S256"},
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, issuerURL+"/authorize?"+request.Encode(), nil))
	back, err := url.Parse(w.Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "client_id": {killClient}, "redirect_uri": {killRedirect}, "resource": {peopleResource},
		"code": {back.Query().Get("code")}, "code_verifier": {verifier},
	}
	r := httptest.NewRequest(http.MethodPost, issuerURL+"/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w = httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var answer struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Access == "" {
		t.Fatalf("no token: %d %v", w.Code, err)
	}
	return answer.Access
}

// A tokenHolder is a person at a bridge, who sends what it likes.
type tokenHolder struct {
	t          *testing.T
	url, token string
}

// send sends a request of HTTP.
func (v *tokenHolder) send(method, body string, header ...string) *response {
	v.t.Helper()
	return v.sendTo(v.url, method, body, header...)
}

func (v *tokenHolder) sendTo(address, method, body string, header ...string) *response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + v.token}, "Accept": {"application/json, text/event-stream"}}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = res.Body.Close() })
	return &response{res.StatusCode, res.Header, res.Body}
}

// A response is one of HTTP, whose body is closed at the end of the test.
type response struct {
	status int
	header http.Header
	body   io.Reader
}

// refused sends what must be refused with a status, in whose text nothing of another person is.
func (v *tokenHolder) refused(what string, status int, method, body string, header ...string) {
	v.t.Helper()
	res := v.send(method, body, header...)
	text, _ := io.ReadAll(io.LimitReader(res.body, 1<<20)) // of an error
	if res.status != status || strings.Contains(string(text), "name?") {
		v.t.Errorf("%s: status %d, want %d: %s", what, res.status, status, text)
	}
}

// session begins a session of a revision with a handshake, and returns its id.
func (v *tokenHolder) session() string {
	v.t.Helper()
	res := v.send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	id := res.header.Get("Mcp-Session-Id")
	if _, err := io.Copy(io.Discard, res.body); err != nil || id == "" {
		v.t.Fatalf("no session: status %d, %v", res.status, err)
	}
	v.accepted(v.send(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id))
	return id
}

// accepted checks that a notification or an answer was taken.
func (v *tokenHolder) accepted(res *response) {
	v.t.Helper()
	if res.status != http.StatusAccepted {
		v.t.Errorf("status %d, want 202", res.status)
	}
}

// An eventReader reads the messages of an event stream.
type eventReader struct {
	t    *testing.T
	in   *bufio.Scanner
	last string // the id of the last event that had one
}

func events(t *testing.T, res *response) *eventReader {
	t.Helper()
	if res.status != http.StatusOK || !strings.HasPrefix(res.header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("no event stream: status %d", res.status)
	}
	return &eventReader{t: t, in: bufio.NewScanner(res.body)}
}

// until returns the next message that holds a text.
func (e *eventReader) until(part string) string {
	e.t.Helper()
	for e.in.Scan() {
		if id, ok := strings.CutPrefix(e.in.Text(), "id: "); ok {
			e.last = id
		}
		if data, ok := strings.CutPrefix(e.in.Text(), "data: "); ok && strings.Contains(data, part) {
			return data
		}
	}
	e.t.Fatalf("the stream has ended without %q: %v", part, e.in.Err())
	return ""
}

// Nothing of one person at a bridge is another's: what waits for an answer, sessions, subscriptions,
// streams that can be resumed, and calls under way can be seen, answered and ended by nobody else.
//
// Proves: FLOW-AUTH.
func TestBridgePeople(t *testing.T) {
	for _, behind := range bridgedEras {
		t.Run("server "+behind, func(t *testing.T) {
			t.Parallel()
			authority, tokens := tokensOf(t, "ada", "eve")
			address, _ := startBridge(t, []string{"--protocol", behind, "--auth", authority, "--resource", peopleResource}, "interviewer", t.TempDir())
			ada, eve := &tokenHolder{t, address, tokens[0]}, &tokenHolder{t, address, tokens[1]}
			ada.refused("nobody", http.StatusUnauthorized, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization", "Bearer x")
			t.Run("client 2025-11-25", func(t *testing.T) { sessionsApart(t, ada, eve) })
			t.Run("client 2025-11-25 over HTTP+SSE", func(t *testing.T) { streamsApart(t, ada, eve) })
			t.Run("client "+stateless, func(t *testing.T) { roundsApart(t, ada, eve) })
		})
	}
}

// sessionsApart has eve try what she can with ada's session, question, call and stream.
func sessionsApart(t *testing.T, ada, eve *tokenHolder) {
	ada, eve = &tokenHolder{t, ada.url, ada.token}, &tokenHolder{t, eve.url, eve.token}
	hers, own := ada.session(), eve.session()
	stream := events(t, ada.send(http.MethodPost, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"interview"}}`, "Mcp-Session-Id", hers))
	var question struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal([]byte(stream.until("First name?")), &question); err != nil {
		t.Fatal(err)
	}
	answer := func(name string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":%q}}}`, question.ID, name)
	}
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	eve.refused("an answer in ada's session", http.StatusNotFound, http.MethodPost, answer("eve"), "Mcp-Session-Id", hers)
	eve.refused("a call in ada's session", http.StatusNotFound, http.MethodPost, `{"jsonrpc":"2.0","id":8,"method":"ping"}`, "Mcp-Session-Id", hers)
	eve.refused("a cancellation in ada's session", http.StatusNotFound, http.MethodPost, cancel, "Mcp-Session-Id", hers)
	eve.refused("ada's stream", http.StatusNotFound, http.MethodGet, "", "Mcp-Session-Id", hers)
	eve.refused("ada's stream, resumed", http.StatusNotFound, http.MethodGet, "", "Mcp-Session-Id", hers, "Last-Event-ID", stream.last)
	eve.refused("the end of ada's session", http.StatusNotFound, http.MethodDelete, "", "Mcp-Session-Id", hers)
	if stream.last == "" {
		t.Error("the events of a session have no ids")
	}
	// In a session of her own it is another question, another call and another stream.
	_, _ = io.Copy(io.Discard, eve.send(http.MethodPost, answer("eve"), "Mcp-Session-Id", own).body)
	eve.accepted(eve.send(http.MethodPost, cancel, "Mcp-Session-Id", own))
	eve.refused("ada's stream, resumed in eve's session", http.StatusBadRequest, http.MethodGet, "", "Mcp-Session-Id", own, "Last-Event-ID", stream.last)
	ada.accepted(ada.send(http.MethodPost, answer("ada"), "Mcp-Session-Id", hers))
	if err := json.Unmarshal([]byte(stream.until("Last name?")), &question); err != nil {
		t.Fatal(err)
	}
	ada.accepted(ada.send(http.MethodPost, answer("lovelace"), "Mcp-Session-Id", hers))
	stream.until("accept ada, accept lovelace")
}

// streamsApart has eve post to the stream of ada.
func streamsApart(t *testing.T, ada, eve *tokenHolder) {
	ada, eve = &tokenHolder{t, ada.url, ada.token}, &tokenHolder{t, eve.url, eve.token}
	site := strings.TrimSuffix(ada.url, streamable.Path)
	stream := events(t, ada.sendTo(site+"/sse", http.MethodGet, ""))
	hers := site + stream.until("/sse")
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if res := eve.sendTo(hers, http.MethodPost, ping); res.status != http.StatusNotFound {
		t.Errorf("eve posts to the stream of ada: status %d", res.status)
	}
	ada.accepted(ada.sendTo(hers, http.MethodPost, strings.Replace(ping, `"id":1`, `"id":2`, 1)))
	if got := stream.until(`"id":`); !strings.Contains(got, `"id":2`) {
		t.Errorf("ada is told %s", got)
	}
}

// roundsApart has eve try what she can with ada's requestState, subscription and call.
func roundsApart(t *testing.T, ada, eve *tokenHolder) {
	hers, other := ada.joins(t), eve.joins(t)
	asked, _, err := interviewRound(t.Context(), hers.Client, nil, nil)
	if err != nil || asked == nil {
		t.Fatalf("no question: %v", err)
	}
	for who, c := range map[string]*client.Client{"eve": other.Client, "a session of eve": eve.joinsSocket(t).Client} {
		again, result, err := interviewRound(t.Context(), c, named(asked, "eve"), asked.RequestState)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != mcp.CodeInvalidParams || !strings.Contains(e.Message, "requestState") {
			t.Errorf("%s sends the answer of ada: %v, %s, %v", who, again, result, err)
		}
	}
	sub, err := hers.Subscribe(t.Context(), "memo://now")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	begun, over := make(chan struct{}, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := hers.CallTool(ctx, "hang", nil, &client.CallOptions{OnProgress: func(float64, float64, string) {
			select {
			case begun <- struct{}{}:
			default:
			}
		}})
		over <- err
	}()
	select {
	case <-begun:
	case err := <-over:
		t.Fatalf("ada's call has ended: %v", err)
	}
	for id := range 40 { // whatever the ids of ada's subscription and call are
		body := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"_meta":{"io.modelcontextprotocol/protocolVersion":%q}}}`, id, stateless)
		_, _ = io.Copy(io.Discard, eve.send(http.MethodPost, body, "MCP-Protocol-Version", stateless, "Mcp-Method", "notifications/cancelled").body)
	}
	other.calls("touch", "touched", nil) // in her own process
	select {
	case err := <-over:
		t.Errorf("ada's call was ended: %v", err)
	case <-hers.updated:
		t.Error("ada is told of what eve has changed")
	default:
	}
	cancel()
	<-over             //nolint:errcheck // it was cancelled
	hers.hearsChange() // the subscription goes on
	asked, result, err := interviewRound(t.Context(), hers.Client, named(asked, "ada"), asked.RequestState)
	if err != nil || asked == nil {
		t.Fatalf("no second question, but %s, %v", result, err)
	}
	if _, result, err = interviewRound(t.Context(), hers.Client, named(asked, "lovelace"), asked.RequestState); err != nil || !strings.Contains(result, "accept ada, accept lovelace") {
		t.Errorf("ada's own answers: %s, %v", result, err)
	}
}

// joins connects a client of the stateless revision.
func (v *tokenHolder) joins(t *testing.T) *bridgedClient {
	t.Helper()
	d := streamable.URL(v.url)
	d.Header = v.header
	return joinBridge(t, d, stateless)
}

// joinsSocket connects one over a WebSocket, which is a session.
func (v *tokenHolder) joinsSocket(t *testing.T) *bridgedClient {
	t.Helper()
	d := websocket.URL("ws" + strings.TrimPrefix(strings.TrimSuffix(v.url, streamable.Path), "http") + "/ws")
	d.Header = v.header
	return joinBridge(t, d, stateless)
}

func (v *tokenHolder) header(context.Context) (http.Header, error) {
	return http.Header{"Authorization": {"Bearer " + v.token}}, nil
}

// interviewRound sends one round of a call of interview: it returns what is asked, or the result.
func interviewRound(ctx context.Context, c *client.Client, answers mcp.InputResponses, state *string) (*mcp.InputRequiredResult, string, error) {
	var raw mcp.RawValue
	params := &mcp.CallToolParams{Name: "interview"}
	params.InputResponses, params.RequestState = answers, state
	err := c.Request(ctx, mcp.MethodToolsCall, params, &raw, &client.CallOptions{ResultTypes: []string{mcp.ResultInputRequired}})
	if err != nil || !strings.Contains(string(raw), `"input_required"`) {
		return nil, string(raw), err
	}
	asked := new(mcp.InputRequiredResult)
	return asked, "", json.Unmarshal(raw, asked)
}

// named answers all that is asked with a name.
func named(asked *mcp.InputRequiredResult, name string) mcp.InputResponses {
	out := make(mcp.InputResponses)
	for key := range asked.InputRequests {
		out[key] = mcp.RawValue(fmt.Sprintf(`{"action":"accept","content":{"name":%q}}`, name))
	}
	return out
}
