package provider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/model/provider"
)

const (
	events = "text/event-stream"
	json   = "application/json"
)

func TestBaseURL(t *testing.T) {
	for _, test := range []struct {
		in   string
		key  bool
		want string // or the beginning of the error
	}{
		{"https://api.example.com", true, "https://api.example.com"},
		{" https://api.example.com/v1// \n", true, "https://api.example.com/v1"},
		{"http://127.0.0.1:11434/v1", true, "http://127.0.0.1:11434/v1"},
		{"http://localhost:11434/v1/", true, "http://localhost:11434/v1"},
		{"http://[::1]:8080", true, "http://[::1]:8080"},
		{"http://192.168.1.5:8080", false, "http://192.168.1.5:8080"},
		{"http://192.168.1.5:8080", true, "error: the base URL \"http://192.168.1.5:8080\" is http, and not on this machine"},
		{"http://models.localhost:1/v1", false, "http://models.localhost:1/v1"},
		{"http://models.localhost:1/v1", true, "error: the base URL \"http://models.localhost:1/v1\" is http, and its name may lead to another machine"},
		{"sk-proj-abcdefghij0123456789abcdefghij0123456789", true, "error: the base URL \"[redacted: OpenAI API key]\" is none"},
		{"http://localhost.example.com", true, "error: the base URL \"http://localhost.example.com\" is http"},
		{"", false, "error: the base URL \"\" is none; it looks like"},
		{"localhost:11434/v1", false, "error: the base URL \"localhost:11434/v1\" is none"},
		{"http://:80", false, "error: the base URL \"http://:80\" is none"},
		{"ftp://example.com", false, "error: the base URL \"ftp://example.com\" begins with neither"},
		{"https://me:" + testKey + "@example.com", true, "error: the base URL has a user name or password"},
		{"https://me:" + testKey + "@exa mple.com", true, "error: the base URL is none"},
		{"https://example.com/v1?key=" + testKey, true, "error: the base URL has a query"},
		{"https://example.com/v1?", true, "error: the base URL has a query"},
		{"https://example.com/v1#a", true, "error: the base URL has a query or a fragment"},
	} {
		got, err := provider.BaseURL(test.in, test.key)
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, test.want) || err == nil && got != test.want {
			t.Errorf("BaseURL(%q): %s; want %s", test.in, got, test.want)
		}
		if err != nil && strings.Contains(err.Error(), testKey) {
			t.Errorf("BaseURL(%q): the secret is in the error", test.in)
		}
	}
}

func TestKey(t *testing.T) {
	for in, want := range map[string]string{
		"": "", testKey: testKey, " \t" + testKey + "\r\n": testKey,
	} {
		if got, err := provider.Key(in); got != want || err != nil {
			t.Errorf("Key(%q): %q, %v", in, got, err)
		}
	}
	for _, in := range []string{testKey + "\n" + testKey, "a b", "a\x00b", "a\x1b[2J", "schlüssel", "a\u200bb"} {
		_, err := provider.Key(in)
		mustFail(t, err, "the key has a blank, a line break or another character in it that no key has; was more than the key copied?")
	}
}

func TestStream(t *testing.T) {
	e, at := endpoint(reply{kind: events + "; charset=utf-8", body: "event: x\ndata: a\n\ndata: b\n\n"})
	e.Header = http.Header{"X-Version": {"7"}}
	got, err := read(t.Context(), e)
	if want := []string{"x=a", "=b"}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("%q, %v", got, err)
	}
	req := at.reqs[0]
	for name, want := range map[string]string{
		"Authorization": "Bearer " + testKey, "Content-Type": json, "Accept": events, "X-Version": "7", "User-Agent": "parley",
	} {
		if req.Header.Get(name) != want {
			t.Errorf("header %s is %q", name, req.Header.Get(name))
		}
	}
	if req.Method != http.MethodPost || req.URL.String() != "https://models.example/v1/chat" || at.bodies[0] != `{"a":"<b>"}`+"\n" {
		t.Errorf("%s %s %s", req.Method, req.URL, at.bodies[0])
	}
	if at.closed != 1 {
		t.Errorf("the body was closed %d times", at.closed)
	}
}

// A consumer that stops leaves nothing: synctest fails when a goroutine is left.
func TestStreamStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, at := endpoint(reply{kind: events, body: "data: a\n\ndata: b\n\n"})
		for _, err := range e.Stream(t.Context(), "/chat", nil) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if at.closed != 1 || at.reqs[0].Context().Err() == nil {
			t.Errorf("closed %d times; the request's context: %v", at.closed, at.reqs[0].Context().Err())
		}
	})
}

func TestNoKey(t *testing.T) {
	e, at := endpoint(reply{status: http.StatusUnauthorized, body: `{}`})
	e.Key = ""
	_, err := read(t.Context(), e)
	mustFail(t, err, "acme wants a key; set it with 'parley model key set acme'; with noKey in parley.jsonc, or --no-key, none is sent")
	if _, sent := at.reqs[0].Header["Authorization"]; sent {
		t.Error("an empty key was sent")
	}
}

// Requests are tried again after the time that the provider wants.
func TestRetry(t *testing.T) {
	ok := reply{kind: events, body: "data: a\n\n"}
	for _, test := range []struct {
		name     string
		fail     reply
		tries    int           // that are made
		min, max time.Duration // between the first two
	}{
		{"429", reply{status: 429}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"529", reply{status: 529}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"500", reply{status: 500}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"408", reply{status: 408}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"409", reply{status: 409}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"no connection", reply{err: errors.New("connection refused")}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"seconds", reply{status: 429, header: map[string]string{"Retry-After": "7"}}, 2, 7 * time.Second, 7 * time.Second},
		{"a fraction", reply{status: 503, header: map[string]string{"Retry-After": "1.5"}}, 2, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"milliseconds", reply{status: 429, header: map[string]string{"Retry-After-Ms": "20", "Retry-After": "7"}}, 2, 20 * time.Millisecond, 20 * time.Millisecond},
		{"a date", reply{status: 429, header: map[string]string{"Retry-After": "Sat, 01 Jan 2000 00:00:09 GMT"}}, 2, 9 * time.Second, 9 * time.Second},
		{"a date that is over", reply{status: 429, header: map[string]string{"Retry-After": "Fri, 31 Dec 1999 00:00:00 GMT"}}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"nonsense", reply{status: 429, header: map[string]string{"Retry-After": "NaN"}}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"in the body", reply{status: 429, body: `[{"error":{"details":[{},{"retryDelay":"3s"}]}}]`}, 2, 3 * time.Second, 3 * time.Second},
		{"more than it waits", reply{status: 429, header: map[string]string{"Retry-After": "61"}}, 1, 0, 0},
		{"longer than silence", reply{status: 429, header: map[string]string{"Retry-After": "60"}}, 2, time.Minute, time.Minute},
		{"not to be tried", reply{status: 500, header: map[string]string{"X-Should-Retry": "false"}}, 1, 0, 0},
		{"to be tried", reply{status: 400, header: map[string]string{"X-Should-Retry": "true"}}, 2, 300 * time.Millisecond, 500 * time.Millisecond},
		{"400", reply{status: 400}, 1, 0, 0},
		{"501", reply{status: 501}, 1, 0, 0},
		{"redirect", reply{status: 307, header: map[string]string{"Location": "https://other.example/"}}, 1, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, at := endpoint(test.fail, ok)
				e.Silence = 5 * time.Second
				var told []time.Duration
				e.Waiting = func(reason error, wait time.Duration) {
					told = append(told, wait)
					if reason == nil || strings.Contains(reason.Error(), testKey) {
						t.Errorf("the reason is %v", reason)
					}
				}
				got, err := read(t.Context(), e)
				if len(at.at) != test.tries || len(told) != test.tries-1 {
					t.Fatalf("%d tries, %d waits told; want %d tries (%v)", len(at.at), len(told), test.tries, err)
				}
				if test.tries == 1 {
					if err == nil {
						t.Error("no error")
					}
					return
				}
				if err != nil || !slices.Equal(got, []string{"=a"}) {
					t.Errorf("%q, %v", got, err)
				}
				if wait := at.at[1].Sub(at.at[0]); wait < test.min || wait > test.max || wait != told[0] {
					t.Errorf("it waited %v, and told %v", wait, told[0])
				}
				if at.bodies[0] != at.bodies[1] {
					t.Errorf("the second body is %q", at.bodies[1])
				}
			})
		})
	}
}

func TestRetryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, at := endpoint(reply{status: 529, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`})
		e.MaxTries = 5
		_, err := read(t.Context(), e)
		mustFail(t, err, "acme is overloaded: Overloaded; try again later")
		if len(at.at) != 5 {
			t.Errorf("%d tries", len(at.at))
		}
		for i := 1; i < len(at.at)-1; i++ {
			if at.at[i+1].Sub(at.at[i]) <= at.at[i].Sub(at.at[i-1]) {
				t.Errorf("wait %d is not longer than the one before: %v", i+1, at.at)
			}
		}
	})
}

// The end of the caller's context ends a wait, and a request, at once.
func TestRetryCancelled(t *testing.T) {
	for _, fail := range []reply{{status: 429, header: map[string]string{"Retry-After": "50"}}, {hang: true}} {
		synctest.Test(t, func(t *testing.T) {
			e, at := endpoint(fail)
			enough := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
			defer cancel()
			begin := time.Now()
			_, err := read(ctx, e)
			if !errors.Is(err, enough) || time.Since(begin) != time.Second || len(at.at) != 1 {
				t.Errorf("%v after %v and %d tries", err, time.Since(begin), len(at.at))
			}
		})
	}
}

// pulse writes events to a stream, one every interval, and then hangs.
func pulse(ctx context.Context, count int, interval time.Duration) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	go func() {
		for range count {
			time.Sleep(interval) // the clock of synctest
			_, _ = io.WriteString(w, ": still here\n")
		}
		_, _ = io.WriteString(w, "data: a\n\n")
	}()
	return r
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := endpoint(reply{hang: true})
		begin := time.Now()
		_, err := read(t.Context(), e)
		mustFail(t, err, "acme has sent nothing for 5m0s; try again, or another model")
		if time.Since(begin) != provider.DefaultSilence {
			t.Errorf("after %v", time.Since(begin))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		at := &hanging{}
		e := &provider.Endpoint{Provider: "acme", URL: "https://models.example", Client: &http.Client{Transport: at}, Silence: time.Minute}
		begin := time.Now()
		got, err := read(t.Context(), e)
		mustFail(t, err, "acme has sent nothing for 1m0s; try again, or another model")
		if !slices.Equal(got, []string{"=a"}) || time.Since(begin) != 10*50*time.Second+time.Minute {
			t.Errorf("%q after %v", got, time.Since(begin))
		}
	})
}

// A hanging transport sends a sign of life every 50 seconds, ten times, and an event; then nothing.
type hanging struct{}

func (*hanging) RoundTrip(req *http.Request) (*http.Response, error) {
	body := io.NopCloser(pulse(req.Context(), 10, 50*time.Second))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {events}}, Body: body}, nil
}

func TestBroken(t *testing.T) {
	e, _ := endpoint(
		reply{kind: events, body: "data: a\n\ndata: {"},
		reply{kind: events, stream: io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(errors.New("connection reset")))},
		reply{kind: events, stream: io.MultiReader(strings.NewReader("data: a\n\n"), &endless{})},
	)
	for _, want := range []string{
		"acme ended its answer in the middle; what came before is kept; try again",
		"acme ended its answer in the middle: connection reset; what came before is kept; try again",
		"acme sends too much at once: an event of the stream is longer than 16 MiB; try again, or another model",
	} {
		got, err := read(t.Context(), e)
		mustFail(t, err, want)
		if !slices.Equal(got, []string{"=a"}) {
			t.Errorf("what came before is %q", got)
		}
	}
	mustFail(t, e.Cut(), "acme ended its answer in the middle; what came before is kept; try again")
	if !errors.Is(e.Cut(), io.ErrUnexpectedEOF) {
		t.Error("Cut is no io.ErrUnexpectedEOF")
	}
}

// A server that redirects does not get the key anywhere else.
func TestRedirect(t *testing.T) {
	e, at := endpoint(reply{status: http.StatusTemporaryRedirect, header: map[string]string{"Location": "https://other.example/"}}, reply{body: "{}"})
	e.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	err := e.JSON(t.Context(), http.MethodGet, "/models", nil, &struct{}{})
	mustFail(t, err, "acme answers with a redirect (status 307), which is not followed; is the base URL right?")
	if len(at.reqs) != 1 {
		t.Errorf("%d requests were made", len(at.reqs))
	}
}

func TestJSON(t *testing.T) {
	e, at := endpoint(reply{kind: json, body: `{"data":[1,2]}`})
	var answer struct{ Data []int }
	if err := e.JSON(t.Context(), http.MethodGet, "/models", nil, &answer); err != nil || !slices.Equal(answer.Data, []int{1, 2}) {
		t.Fatalf("%+v, %v", answer, err)
	}
	req := at.reqs[0]
	if req.Body != nil || req.Header.Get("Content-Type") != "" || req.Header.Get("Accept") != json || at.closed != 1 {
		t.Errorf("headers %v, closed %d times", req.Header, at.closed)
	}
	for _, test := range []struct {
		reply reply
		want  string
	}{
		{reply{kind: "text/html", body: "<!DOCTYPE html><p>Welcome"}, "acme answers with a page (HTML); is the base URL right?"},
		{reply{body: "\n <HTML>"}, "acme answers with a page (HTML); is the base URL right?"},
		{reply{kind: json, body: `[1]`}, "acme answers with something that is no JSON of the kind that was asked for; is the base URL right?"},
		{reply{kind: json, body: ``}, "acme answers with something that is no JSON of the kind that was asked for; is the base URL right?"},
		{reply{kind: json, body: strings.Repeat("[", 100_000)}, "acme answers with something that is no JSON of the kind that was asked for; is the base URL right?"},
		{reply{kind: json, stream: &endless{}}, "acme answers with more than 16 MiB"},
	} {
		e, _ := endpoint(test.reply)
		mustFail(t, e.JSON(t.Context(), http.MethodGet, "/models", nil, &answer), test.want)
	}
	if err := e.JSON(t.Context(), http.MethodPost, "/models", make(chan int), &answer); err == nil {
		t.Error("a body that is no JSON was sent")
	}
}
