package openai_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/modeltest"
	"github.com/parley-mcp/parley/app/internal/model/openai"
	"github.com/parley-mcp/parley/app/internal/racetest"
)

// The streams of testdata give the same pieces, however they are split on the way.
func TestStreams(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) < 9 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sse")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := hello()
			r.Stop = []string{"END"}
			var first string
			for i, in := range splits(text) {
				at := &transport{Replies: []reply{{Body: in}}}
				got := show(model(t, at), r)
				if i == 0 {
					first = got
				}
				if got != first {
					t.Fatalf("split %d:\n%s\nwant\n%s", i, got, first)
				}
				if at.Closed != 1 {
					t.Fatalf("split %d: the body was closed %d times", i, at.Closed)
				}
			}
			golden(t, name+".pieces", first)
		})
	}
}

// A stream that ends too early is an error, wherever it ends. What came before was yielded.
func TestCutStream(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/openai-text.sse")
	if err != nil {
		t.Fatal(err)
	}
	whole := show(model(t, streams(string(text))), hello())
	finished := strings.Index(string(text), `"finish_reason":"stop"`)
	ended := finished + strings.Index(string(text[finished:]), "\n")
	for i := range modeltest.Places(ended) {
		got := show(model(t, streams(string(text[:i]))), hello())
		before, after, ok := strings.Cut(got, "error ")
		if !ok || after != "openai ended its answer in the middle; what came before is kept; try again\n" || !strings.HasPrefix(whole, before) {
			t.Fatalf("cut at %d: %s", i, got)
		}
	}
	for _, c := range []struct{ name, stream, want string }{
		{"in a call", events(delta(`"content":"I look"`), delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`)), `text "I look"` + "\n"},
		{"in reasoning", events(delta(`"reasoning":"Hm"`)), ""},
	} {
		want := c.want + "error openai ended its answer in the middle; what came before is kept; try again\n"
		if got := show(model(t, streams(c.stream)), hello()); got != want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// What servers do beside the published format.
func TestUnusualStreams(t *testing.T) {
	t.Parallel()
	const end = "stop end\n"
	for _, c := range []struct{ name, stream, want string }{
		{"nothing is said", events(finish("stop"), done), end},
		{"nothing at all, but an end", events(done), end},
		{"no [DONE]", events(delta(`"content":"Hi"`), finish("stop")), `text "Hi"` + "\n" + end},
		{"no reason, but [DONE]", events(delta(`"content":"Hi"`), done), `text "Hi"` + "\n" + end},
		{"after [DONE]", events(delta(`"content":"Hi"`), finish("stop"), done, "more"), `text "Hi"` + "\n" + end},
		{"unknown events and members", events(`{"object":"ping","x":[1]}`, `[]`, `7`, delta(`"content":"Hi","x":{}`), finish("stop")), `text "Hi"` + "\n" + end},
		{"members of other types", events(`{"choices":[{"index":0,"delta":{"content":5,"tool_calls":"no","reasoning":{}}}],"usage":"much"}`, finish("stop")), "usage {Input:0 Output:0 CacheRead:0 CacheWrite:0 Cost:0}\n" + end},
		{"another choice", events(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, finish("stop")), end},
		{"parts of content", events(delta(`"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"Hi"}]`), finish("stop")), `text "Hi"` + "\n" + end},
		{"negative usage", events(finish("stop"), `{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":-1,"cost":-2}}`, done), "usage {Input:0 Output:0 CacheRead:0 CacheWrite:0 Cost:0}\n" + end},
		{"length", events(delta(`"content":"Hi"`), finish("length")), `text "Hi"` + "\nstop length\n"},
		{"filter", events(delta(`"content":"Hi"`), finish("content_filter")), `text "Hi"` + "\nstop refusal\n"},
		{"unknown reason", events(delta(`"content":"Hi"`), finish("boredom")), `text "Hi"` + "\nstop other\n"},
		{"an end in other words", events(delta(`"content":"Hi"`), finish("eos")), `text "Hi"` + "\n" + end},
		{"an end in capitals", events(delta(`"content":"Hi"`), finish("STOP")), `text "Hi"` + "\n" + end},
		{"an end of Cohere", events(delta(`"content":"Hi"`), finish("COMPLETE")), `text "Hi"` + "\n" + end},
		{"a bound in capitals", events(delta(`"content":"Hi"`), finish("MAX_TOKENS")), `text "Hi"` + "\nstop length\n"},
		{"a filter of Z.ai", events(delta(`"content":"Hi"`), finish("sensitive")), `text "Hi"` + "\nstop refusal\n"},
		{"a fault of Z.ai", events(delta(`"content":"Hi"`), finish("network_error")), `text "Hi"` + "\nerror openai broke the answer off, and gave as the reason: network_error\n"},
		{"a bound in other words", events(delta(`"content":"Hi"`), finish("max_tokens")), `text "Hi"` + "\nstop length\n"},
		{"unknown reason and no text", events(finish("bore\\u001bdom")), `text "[openai ended for the reason \"bore\\x1bdom\", and said nothing]"` + "\nstop other\n"},
		{"calls without calls", events(finish("tool_calls")), end},
		{"no id, two of one id", events(delta(`"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"f"}},{"index":2,"id":"a","function":{"name":"g"}}]`), finish("stop")), `call "call_1" "f" {}` + "\n" + `call "a" "f" {}` + "\n" + `call "a_1" "g" {}` + "\nstop calls\n"},
		{"no index", events(delta(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`), delta(`"tool_calls":[{"function":{"arguments":":1}"}}]`), delta(`"tool_calls":[{"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}]`), finish("tool_calls")), `call "a" "f" {"x":1}` + "\n" + `call "b" "f" {"x":2}` + "\nstop calls\n"},
		{"neither index nor id", events(delta(`"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]`), delta(`"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":2}"}}]`), finish("tool_calls")), `call "call_1" "f" {"x":1}` + "\n" + `call "call_2" "f" {"x":2}` + "\nstop calls\n"},
		{"the name again and again", events(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`), delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]`), finish("tool_calls")), `call "a" "f" {"x":1}` + "\nstop calls\n"},
		{"mixed parts of calls", events(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"g"}}]`), delta(`"tool_calls":[{"index":1,"function":{"arguments":"{\"y\":1}"}},{"index":0,"function":{"arguments":"{\"x\":1}"}}]`), finish("tool_calls")), `call "a" "f" {"x":1}` + "\n" + `call "b" "g" {"y":1}` + "\nstop calls\n"},
		{"arguments as an object", events(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x": "<1>"}}}]`), finish("tool_calls")), `call "a" "f" {"x": "<1>"}` + "\nstop calls\n"},
		{"arguments that are no JSON", events(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"unheard of","arguments":"{x: 1"}}]`), finish("length")), `call "a" "unheard of" {x: 1` + "\nstop length\n"},
		{"reasoning only", events(delta(`"reasoning_content":"Hm"`), finish("stop")), `reasoning of openai@models.example "Hm" {"reasoning_content":"Hm"}` + "\n" + end},
		{"reasoning between texts", events(delta(`"reasoning":"A"`), delta(`"content":"a"`), delta(`"reasoning":"B"`), delta(`"content":"b"`), finish("stop")), `reasoning of openai@models.example "A" {"reasoning":"A"}` + "\n" + `text "a"` + "\n" + `reasoning of openai@models.example "B" {"reasoning":"B"}` + "\n" + `text "b"` + "\n" + end},
		{"a summary without an index", events(delta(`"reasoning_details":[{"type":"reasoning.summary","summary":"A"},{"type":"reasoning.summary","summary":"B","id":null}]`), finish("stop")), `reasoning of openai@models.example "AB" {"reasoning_details":[{"summary":"AB","type":"reasoning.summary"}]}` + "\n" + end},
		{"two blocks with an index", events(delta(`"reasoning_details":[{"type":"reasoning.text","text":"A","index":0},{"type":"reasoning.text","text":"B","index":1}]`), finish("stop")), `reasoning of openai@models.example "AB" {"reasoning_details":[{"type":"reasoning.text","text":"A","index":0},{"type":"reasoning.text","text":"B","index":1}]}` + "\n" + end},
		{"two signed blocks without an index", events(delta(`"reasoning_details":[{"type":"reasoning.text","text":"A","signature":"s"},{"type":"reasoning.text","text":"B"}, 7]`), finish("stop")), `reasoning of openai@models.example "AB" {"reasoning_details":[{"type":"reasoning.text","text":"A","signature":"s"},{"type":"reasoning.text","text":"B"},7]}` + "\n" + end},
		{"text that is no UTF-8", events(delta("\"content\":\"a\xffb\""), delta(`"content":"\ud83d"`), finish("stop")), `text "a�b"` + "\n" + `text "�"` + "\n" + end},
		{"two lines of data", "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n", `text "Hi"` + "\n" + end},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := show(model(t, streams(c.stream)), hello()); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// Errors within a stream.
func TestStreamErrors(t *testing.T) {
	t.Parallel()
	const hi = `text "Hi"` + "\n"
	for _, c := range []struct{ name, stream, want string }{
		{"an error", events(delta(`"content":"Hi"`), `{"error":{"message":"The server had an error\u001b[31m","type":"server_error"}}`), hi + `error openai stopped with an error: The server had an error\u{1b}[31m` + "\n"},
		{"OpenRouter", events(delta(`"content":"Hi"`), `{"id":"gen-1","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), hi + "error openai stopped with an error: Provider disconnected\n"},
		{"vLLM", events(delta(`"content":"Hi"`), `{"object":"error","message":"out of memory","type":"InternalServerError","code":500}`), hi + "error openai stopped with an error: out of memory\n"},
		{"a text", events(`{"error":"model runner has stopped"}`), "error openai stopped with an error: model runner has stopped\n"},
		{"no words", events(`{"object":"error"}`), "error openai stopped with an error, and did not say which\n"},
		{"the word alone", events(delta(`"content":"Hi"`), finish("abort")), hi + "error openai broke the answer off, and gave as the reason: abort\n"},
		{"no error", events(`{"error":null,"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`), hi + "stop end\n"},
		{"no JSON", events(delta(`"content":"Hi"`), `{"choices":`), hi + `error openai sent an event that is no JSON, or too deep: {"choices":` + "\n"},
		{"the key", events(`{"error":{"message":"Incorrect key ` + testKey + `"}}`), "error openai stopped with an error: Incorrect key [key]\n"},
		{"the key, and no JSON", events(strings.Repeat("x", 490) + testKey), "error openai sent an event that is no JSON, or too deep: " + strings.Repeat("x", 456) + "…\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := show(model(t, streams(c.stream)), hello()); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// Long and deep streams end with the text or with an error, not with the memory.
func TestLongStreams(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	const mib = 1 << 20
	long := strings.Repeat("x", 10*mib)
	calls := delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"` + strings.Repeat("1", mib) + `"}}]`)
	for _, c := range []struct{ name, stream, want string }{
		{"10 MiB in a line", events(delta(`"content":"`+long+`"`), finish("stop")), `text "` + long + `"` + "\nstop end\n"},
		{"17 MiB in a line", "data: " + strings.Repeat("x", 17*mib), "error openai sends too much at once: an event of the stream is longer than 16 MiB; try again, or another model\n"},
		{"17 MiB of a call", events(strings.Split(strings.TrimSuffix(strings.Repeat(calls+"\n", 17), "\n"), "\n")...), "error openai sent more than 16 MiB of reasoning and calls in one turn\n"},
		{"17 MiB of reasoning", strings.Repeat(events(delta(`"reasoning":"`+strings.Repeat("x", mib)+`"`)), 17), "error openai sent more than 16 MiB of reasoning and calls in one turn\n"},
		{"300000 calls", strings.Repeat(events(delta(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}, {"id":"b"}]`)), 150_000), "error openai sent more than 16 MiB of reasoning and calls in one turn\n"},
		{"200000 calls with an index", manyCalls(200_000), "error openai sent more than 1024 calls in one turn\n"},
		{"the name with each of 200000 parts", namedParts(200_000), `call "call_1" "f" {"a":"` + strings.Repeat("}", 200_000) + `"}` + "\nstop calls\n"},
		{"deep", events(delta(`"x":` + strings.Repeat("[", 20_000))), "error openai sent an event that is no JSON, or too deep: " + (`{"choices":[{"index":0,"delta":{"x":` + strings.Repeat("[", 1000))[:456] + "…\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := show(model(t, streams(c.stream)), hello())
			if got != c.want {
				t.Errorf("got %d bytes, which begin %.300s", len(got), got)
			}
		})
	}
}

// manyCalls is one event with calls that all begin there.
func manyCalls(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `%s{"index":%d}`, map[bool]string{true: ","}[i > 0], i)
	}
	return events(delta(`"tool_calls":[`+b.String()+`]`), finish("stop"))
}

// namedParts is a call in parts that all have its name.
func namedParts(n int) string {
	part := func(text string) string { return `{"function":{"name":"f","arguments":"` + text + `"}}` }
	return events(delta(`"tool_calls":[`+part(`{\"a\":\"`)+strings.Repeat(","+part("}"), n)+`,`+part(`\"}`)+`]`), finish("stop"))
}

// Texts that a stream takes into many parts are put together in time that grows with them.
func BenchmarkReasoning(b *testing.B) {
	part := events(delta(`"reasoning_details":[{"type":"reasoning.text","text":"abcd","index":0}]`))
	text := strings.Repeat(part, 20_000) + events(finish("stop"))
	for b.Loop() {
		m, err := openai.New(&openai.Options{Model: "m", BaseURL: "http://127.0.0.1:1", Client: client(streams(text))})
		if err != nil {
			b.Fatal(err)
		}
		if got := show(m, hello()); !strings.HasSuffix(got, "stop end\n") {
			b.Fatal(got)
		}
	}
}

// Whatever a server sends, the turn ends with a reason or with an error, and gives no other
// piece after it; ids of calls are different, and arguments are there.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{ // short ones: long ones take the fuzzer a minute each
		events(delta(`"content":"Hi"`), finish("stop"), done),
		events(delta(`"reasoning_details":[{"type":"reasoning.text","text":"a"}]`), finish("length")),
		events(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), finish("tool_calls")),
		events(`{"choices":[],"usage":{"prompt_tokens":1}}`, `{"error":{"message":"no"}}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		modeltest.CheckTurn(t, model(t, streams(string(stream))))
	})
}
