package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/model/anthropic"
	"github.com/parley-mcp/parley/app/internal/model/modeltest"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/host"
)

// A recorded stream says the same however it is split.
func TestStreams(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d streams, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sse")
		t.Run(name, func(t *testing.T) {
			in := recorded(t, name)
			if !strings.HasPrefix(in, ": made after https://") {
				t.Error("the stream does not say where it is from")
			}
			at := answers(strings.NewReader(in))
			want := show(model(t, at), hello())
			golden(t, name+".txt", want)
			secret(t, at, want)
			lines := strings.NewReader(strings.ReplaceAll(in, "\n", "\r\n"))
			for i, in := range append(modeltest.Splits([]byte(in)), lines) { // the last one has carriage returns
				if got := show(model(t, answers(in)), hello()); got != want {
					t.Fatalf("split %d: got\n%s\nwant\n%s", i, got, want)
				}
			}
		})
	}
}

// A stream that stops in the middle is an error, and what came before was yielded.
func TestCut(t *testing.T) {
	const cut = "error anthropic ended its answer in the middle; what came before is kept; try again\n"
	for _, name := range []string{"text", "calls", "thinking"} {
		in := recorded(t, name)
		whole := show(model(t, answers(strings.NewReader(in))), hello())
		for i := range modeltest.Places(len(in) - len("\n\n")) { // the last event needs no empty line after it
			at := answers(strings.NewReader(in[:i]))
			got := show(model(t, at), hello())
			before, ok := strings.CutSuffix(got, cut)
			if !ok || !strings.HasPrefix(whole, before) {
				t.Fatalf("%s, cut at byte %d: got\n%s\nwant the beginning of\n%s", name, i, got, whole)
			}
			if at.Closed != 1 {
				t.Fatalf("%s, cut at byte %d: the body was closed %d times", name, i, at.Closed)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	m := model(t, answers(strings.NewReader(recorded(t, "calls"))), func(o *anthropic.Options) {
		o.Info = host.ModelInfo{InputPrice: 3, OutputPrice: 15}
	})
	for p, err := range m.Generate(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Usage == nil {
			continue
		}
		want := host.Usage{Input: 1672, Output: 89, CacheRead: 1000, CacheWrite: 200, Cost: p.Usage.Cost}
		if *p.Usage != want {
			t.Errorf("usage %+v, want %+v", *p.Usage, want)
		}
		if cost := fmt.Sprintf("%.6f", p.Usage.Cost); cost != "0.003801" { // (472 + 100 + 250) * 3 + 89 * 15
			t.Errorf("cost %s", cost)
		}
	}
}

// lines makes a stream of events of the data given.
func lines(data ...string) io.Reader {
	return strings.NewReader("data: " + strings.Join(data, "\n\ndata: ") + "\n\n")
}

const (
	over      = `{"type":"message_stop"}`
	beginCall = `{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"b"}}`
)

// A badAnswer is one, and what is shown of it.
type badAnswer struct {
	name  string
	reply reply
	want  string
}

func (b *badAnswer) check(t *testing.T) {
	at := &transport{Replies: []reply{b.reply}}
	got := show(model(t, at), hello())
	if got != b.want {
		t.Errorf("got\n%.500s\nwant\n%.500s", got, b.want)
	}
	secret(t, at, got)
}

func TestBadAnswers(t *testing.T) {
	for _, test := range []badAnswer{
		{"HTML", reply{Kind: "text/html", Body: strings.NewReader("<html>")}, "error anthropic answers with text/html where a stream of events was asked for; is the base URL right?\n"},
		{"no JSON", reply{Body: lines("<b>\x1b[2J")}, `error anthropic sends an event that is no JSON of the Messages API: <b>\u{1b}[2J` + "\n"},
		{"another API", reply{Body: lines(`{"object":"chat.completion.chunk","choices":[]}`, "[DONE]")}, `error anthropic sends an event that is no JSON of the Messages API: [DONE]` + "\n"},
		{"deep JSON", reply{Body: lines(`{"type":"news","a":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`, over)}, "usage {Input:0 Output:0 CacheRead:0 CacheWrite:0 Cost:0}\nstop end\n"},
		{"too deep JSON", reply{Body: lines(`{"type":"news","a":` + strings.Repeat("[", 1<<20))}, `error anthropic sends an event that is no JSON of the Messages API: {"type":"news","a":` + strings.Repeat("[", 429) + "…\n"},
		{"blocks that are none", reply{Body: lines(`{"type":"content_block_start"}`, `{"type":"content_block_stop"}`, `{"type":"content_block_start","content_block":7}`, over)}, "usage {Input:0 Output:0 CacheRead:0 CacheWrite:0 Cost:0}\nstop end\n"},
		{"a new reason", reply{Body: lines(`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`, over)}, "text \"[anthropic ended the answer: pause_turn]\"\nusage {Input:0 Output:0 CacheRead:0 CacheWrite:0 Cost:0}\nstop other\n"},
		{"no end of a block", reply{Body: lines(beginCall, over)}, "call \"a\" \"b\" {}\nusage {Input:0 Output:0 CacheRead:0 CacheWrite:0 Cost:0}\nstop calls\n"},
		{"the key across what was cut", reply{Body: lines(strings.Repeat("x", 70) + testKey)}, "error anthropic sends an event that is no JSON of the Messages API: " + strings.Repeat("x", 70) + "[key]\n"},
		{"an error with the key", reply{Body: lines(`{"type":"error","error":{"type":"api_error","message":"` + testKey + `"}}`)}, "error anthropic failed: [key]; try again later\n"},
		{"an error without words", reply{Body: lines(`{"type":"error"}`)}, "error anthropic failed; try again later\n"},
		{"too many requests", reply{Body: lines(`{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."}}`)}, "error anthropic has had too many requests: Slow down; try again later\n"},
		{"an error in its place", reply{Kind: "application/json", Body: strings.NewReader(`{"type":"error","error":{"type":"api_error","message":"No."}}`)}, "error anthropic answers with an error: No.\n"},
		{"400", reply{Status: 400, Body: strings.NewReader(`{"error":{"message":"messages: too many"}}`)}, "error anthropic refuses the request (status 400): messages: too many\n"},
		{"too long", reply{Status: 400, Body: strings.NewReader(`{"error":{"message":"prompt is too long: 200001 tokens > 200000 maximum"}}`)}, "error anthropic refuses the request (status 400): prompt is too long: 200001 tokens > 200000 maximum; /compact makes it shorter\n"},
		{"401", reply{Status: 401, Body: strings.NewReader(`{"error":{"message":"invalid x-api-key ` + testKey + `"}}`)}, "error anthropic refuses the key: invalid x-api-key [key]; 'parley model key set anthropic' sets another one\n"},
	} {
		t.Run(test.name, test.check)
	}
}

func TestLongAnswers(t *testing.T) {
	racetest.SkipSerial(t)
	long := strings.Repeat("x", 10<<20)
	for _, test := range []badAnswer{
		{"a long line", reply{Body: lines(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"`+long+`"}}`, over)}, fmt.Sprintf("text %q\nusage {Input:0 Output:0 CacheRead:0 CacheWrite:0 Cost:0}\nstop end\n", long)},
		{"too much", reply{Body: lines(beginCall, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"`+long+`"}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"`+long+`"}}`)}, "error anthropic answers with more than 16 MiB\n"},
	} {
		t.Run(test.name, test.check)
	}
}

// A request that failed is made again.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
		at := answers(strings.NewReader(overloaded), strings.NewReader(overloaded), strings.NewReader(recorded(t, "sequence")))
		at.Replies[0].Status, at.Replies[1].Status = 529, 500
		var told []string
		m := model(t, at, func(o *anthropic.Options) {
			o.Waiting = func(reason error, _ time.Duration) { told = append(told, reason.Error()) }
		})
		got := show(m, hello())
		want := "text \"1, 2\"\nusage {Input:7 Output:4 CacheRead:0 CacheWrite:0 Cost:0}\nstop sequence\n"
		if got != want || len(told) != 2 || told[0] != "anthropic is overloaded: Overloaded; try again later" {
			t.Errorf("%s told %q", got, told)
		}
	})
}

// A model that takes no temperature is asked without one, from then on.
func TestTemperature(t *testing.T) {
	at := answers(strings.NewReader(`{"type":"error","error":{"type":"invalid_request_error","message":"`+"`temperature`"+` is deprecated for this model."}}`),
		strings.NewReader(recorded(t, "sequence")), strings.NewReader(recorded(t, "sequence")))
	at.Replies[0].Status = 400
	m := model(t, at)
	r := hello()
	warm := 1.5
	r.Temperature = &warm
	for range 2 {
		if got := show(m, r); !strings.HasSuffix(got, "stop sequence\n") {
			t.Error(got)
		}
	}
	for i, want := range []bool{true, false, false} {
		if got := strings.Contains(at.Bodies[i], `"temperature":1,`); got != want {
			t.Errorf("request %d: %s", i+1, at.Bodies[i])
		}
	}
	if warm != 1.5 {
		t.Error("the host's request was changed")
	}
}

// A consumer that stops, and a context that ends, end the request; a real server sees it.
func TestEnd(t *testing.T) {
	ended := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`+"\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	defer server.Close()
	m := model(t, server.Client().Transport, func(o *anthropic.Options) { o.BaseURL = server.URL + "/v1/" })

	for p, err := range m.Generate(t.Context(), hello()) {
		if p.Text != "a" || err != nil {
			t.Errorf("%+v, %v", p, err)
		}
		break
	}
	<-ended

	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for p, err := range m.Generate(ctx, hello()) {
		if p.Text == "a" {
			cancel(enough)
		}
		last = err
	}
	if !errors.Is(last, enough) {
		t.Errorf("the end of the context: %v", last)
	}
	<-ended
}
