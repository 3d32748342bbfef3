package cassette_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/cassette"
)

const first = `{"parley":"cassette","version":1}` + "\n"

// file makes a cassette of lines; > begins what the client sent, < what the server did.
func file(lines ...string) string {
	text := first
	for i, line := range lines {
		from := map[byte]string{'>': cassette.Client, '<': cassette.Server}[line[0]]
		text += fmt.Sprintf(`{"ms":%d,"from":%q,"message":%s}`, i, from, line[1:]) + "\n"
	}
	return text + `{"ms":99,"end":true}` + "\n"
}

// talk has the lines sent to a cassette, and returns what came back after each: until is how many
// lines come altogether.
func talk(t *testing.T, text string, until int, lines ...string) []string {
	t.Helper()
	c, err := cassette.Open(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- c.Serve(t.Context(), far) }()
	asked := make(chan struct{}) // closed when a question has come
	go func() {
		for _, line := range lines {
			if strings.Contains(line, `"replay-1"`) {
				<-asked
			}
			if _, err := io.WriteString(near, line+"\n"); err != nil {
				t.Error(err)
			}
		}
	}()
	var got []string
	all := make([]byte, 0, 1024)
	once := sync.OnceFunc(func() { close(asked) })
	defer once()
	for len(got) < until {
		b := make([]byte, 64<<10)
		n, err := near.Read(b)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		all = append(all, b[:n]...)
		if bytes.Contains(all, []byte(`"replay-1"`)) {
			once()
		}
		got = strings.Split(strings.TrimSuffix(string(all), "\n"), "\n")
		if !bytes.HasSuffix(all, []byte{'\n'}) {
			got = got[:len(got)-1]
		}
	}
	if err := near.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	return got
}

// What the client sends may differ from the recording in what does not count.
func TestServe(t *testing.T) {
	recorded := file(
		`>{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"a"}}}`,
		`<{"result":{"protocolVersion":"2025-06-18"},"jsonrpc":"2.0","id":1}`,
		`>{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`<{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		`>{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"x":1},"_meta":{"progressToken":2}}}`,
		`>{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b","arguments":{"key":"«redacted:0a0a0a»"}}}`,
		`<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":2}}`,
		`<{"jsonrpc":"2.0","id":3,"result":{"content":"b"}}`,
		`<{"jsonrpc":"2.0","id":2,"result":{"content":"a1"}}`,
		`>{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","arguments":{"x":1}}}`,
		`<{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"a2"}}`,
		`>{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"asks"}}`,
		`<{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"?"}}`,
		`>{"jsonrpc":"2.0","id":5,"result":{"action":"decline"}}`,
		`<{"jsonrpc":"2.0","id":5,"result":{"content":"declined"}}`,
		`>{"jsonrpc":"2.0","id":6,"method":"tools/list"}`,
	)
	for _, test := range []struct {
		name string
		send []string
		want []string
	}{
		{
			"any client",
			[]string{`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"b"}}}`},
			[]string{`{"jsonrpc":"2.0","id":"x","result":{"protocolVersion":"2025-06-18"}}`},
		},
		{
			"what follows a notification",
			[]string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`},
			[]string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`},
		},
		{"other order, other ids, other tokens", []string{
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"key":"the secret"},"name":"b"}}`,
			`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"arguments":{"x":1.0},"name":"a"}}`,
			`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"_meta":{"more":1},"arguments":{"x":1},"name":"a"}}`,
			`{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"arguments":{"x":1},"name":"a"}}`,
		}, []string{
			`{"jsonrpc":"2.0","id":7,"result":{"content":"b"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"t"}}`,
			`{"jsonrpc":"2.0","id":8,"result":{"content":"a1"}}`,
			`{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"a2"}}`,
			`{"jsonrpc":"2.0","id":10,"error":{"code":-32603,"message":"a2"}}`,
		}},
		{
			"a question",
			[]string{`{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"asks"}}`, `{"jsonrpc":"2.0","id":"replay-1","result":{}}`},
			[]string{`{"jsonrpc":"2.0","id":"replay-1","method":"elicitation/create","params":{"message":"?"}}`, `{"jsonrpc":"2.0","id":11,"result":{"content":"declined"}}`},
		},
		{"a ping", []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`}, []string{`{"jsonrpc":"2.0","id":1,"result":{}}`}},
		{
			"a batch",
			[]string{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},5]`},
			[]string{`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		},
		{
			"no such method",
			[]string{`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`},
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the cassette has no prompts/list; it has initialize, tools/call (4), tools/list; it is of revision 2025-06-18"}}`},
		},
		{
			"no such params",
			[]string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"c"}}`},
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"the cassette has no tools/call with these params; it has it with {\"arguments\":{\"x\":1},\"name\":\"a\"}`},
		},
		{
			"no answer in the recording",
			[]string{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`},
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the recording ended before the answer`},
		},
		{
			"no messages",
			[]string{`hello`, ``, `{}`, `{"a":1,"a":2}`},
			[]string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := talk(t, recorded, len(test.want), test.send...)
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("message %d is\n%s\nwant\n%s", i, got[i], want)
				}
			}
		})
	}
}

// A subscription stays open, and has the id of the one who subscribes.
func TestServeSubscription(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":`
	got := talk(t, file(
		`>{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{}}}`,
		`<{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+meta+`2}}}`,
		`<{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
		`<{"jsonrpc":"2.0","id":2,"result":{}}`,
	), 2, `{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{}}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	want := []string{
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + meta + `"s"}}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %s, want %s", got[i], want[i])
		}
	}
}

// endless is a line without end, of so many bytes.
func endless(n int64) io.ReaderAt { return &zeros{n} }

type zeros struct{ n int64 }

func (z *zeros) ReadAt(p []byte, at int64) (int, error) {
	if at >= z.n {
		return 0, io.EOF
	}
	n := copy(p, first[min(at, int64(len(first))):])
	for i := n; i < len(p); i++ {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestOpenBad(t *testing.T) {
	request := `{"ms":1,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}` + "\n"
	for _, test := range []struct {
		name, want string
		file       io.ReaderAt
	}{
		{"empty", "the file is empty", strings.NewReader("")},
		{"another file", "is no cassette", strings.NewReader("hello\n")},
		{"other JSON", "is no cassette", strings.NewReader("{}\n")},
		{"a long line first", "is no cassette", strings.NewReader(strings.Repeat("x", 1<<20))},
		{"a newer version", "version 2 of the format, and this program reads up to 1", strings.NewReader(`{"parley":"cassette","version":2,"program":"parley 9"}` + "\n")},
		{"no version", "version 0 of the format", strings.NewReader(`{"parley":"cassette"}` + "\n")},
		{"cut off", "line 3: the last line was cut off", strings.NewReader(first + request + request[:40])},
		{"edited", "line 2: it is no line of a cassette", strings.NewReader(first + "hello\n" + request)},
		{"a member twice", "line 2: it is no line of a cassette: duplicate", strings.NewReader(first + `{"ms":1,"ms":2,"from":"client","text":"x"}` + "\n" + request)},
		{"an unknown sender", `line 2: "from" is "me"`, strings.NewReader(first + `{"ms":1,"from":"me","text":"x"}` + "\n")},
		{"nothing in it", `line 2: it has neither "message" nor "text"`, strings.NewReader(first + `{"ms":1,"from":"client"}` + "\n")},
		{"more after the end", "line 3: something follows", strings.NewReader(first + `{"ms":1,"end":true}` + "\n" + request)},
		{"a gigabyte in one line", "line 2: it is longer than", endless(1 << 30)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := cassette.Open(test.file); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// many is a cassette of the same line, many times.
type many struct {
	line string
	n    int64
}

func (m *many) ReadAt(p []byte, at int64) (int, error) {
	for i := range p {
		switch here := at + int64(i); {
		case here < int64(len(first)):
			p[i] = first[here]
		case here >= m.n:
			return i, io.EOF
		default:
			p[i] = m.line[(here-int64(len(first)))%int64(len(m.line))]
		}
	}
	return len(p), nil
}

// A cassette of a gigabyte is refused when it has too many lines, and is no more in memory than its
// places.
func TestOpenHuge(t *testing.T) {
	racetest.SkipSerial(t)
	if testing.Short() {
		t.Skip("reads a million lines")
	}
	line := `{"ms":1,"from":"server","text":"x"}` + "\n"
	if _, err := cassette.Open(&many{line, 1 << 30}); err == nil || !strings.Contains(err.Error(), "more than 1000000 frames") {
		t.Error(err)
	}
	long := `{"ms":1,"from":"server","text":"` + strings.Repeat("x", 10<<20) + `"}` + "\n"
	c, err := cassette.Open(&many{long, int64(len(first) + 5*len(long))})
	if err != nil {
		t.Fatal(err)
	}
	if frames, others := c.Frames(); frames != 5 || others != 5 || c.Complete() {
		t.Error(frames, others)
	}
}

// A server of bytes.
type process struct {
	io.Reader
	io.WriteCloser
}

func (p *process) End()                           { _ = p.Close() }
func (p *process) Shutdown(context.Context) error { return p.Close() }

// Whatever goes through comes out as it was, and what can be read again is recorded.
func TestRelay(t *testing.T) {
	const sent = `{"jsonrpc":"2.0","id":1,"method":"x","params":{"password":"hunter2x"}}` + "\r\n\n  {\"a\":1}  \n[1]\nhalf"
	const said = "log line\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1,\"a\":2}}\n\xff\xfe\nhunter2x"
	var kept bytes.Buffer
	r, err := cassette.Record(&kept, cassette.Header{Server: "s"}, mask.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	near, host := net.Pipe()
	fromServer, server := io.Pipe()
	toServer, input := io.Pipe()
	got := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(toServer)
		got <- string(all)
		_, _ = io.WriteString(server, said)
		_ = server.Close()
	}()
	heard := make(chan string, 1)
	go func() {
		if _, err := io.WriteString(near, sent); err != nil {
			t.Error(err)
		}
		_ = toServer // the server answers at the end of its input
		all, _ := io.ReadAll(near)
		heard <- string(all)
	}()
	over := make(chan error, 1)
	go func() { over <- r.Relay(t.Context(), &halfOpen{host, int64(len(sent))}, &process{fromServer, input}) }()
	if text := <-got; text != sent {
		t.Errorf("the server got %q", text)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if text := <-heard; text != said {
		t.Errorf("the client got %q", text)
	}
	frames, err := r.Close()
	if err != nil || frames != 8 {
		t.Error(frames, err, kept.String())
	}
	if text := kept.String(); strings.Contains(text, "hunter2x") || !strings.Contains(text, "not strict JSON") || !strings.Contains(text, `"text":"half"`) {
		t.Error(text)
	}
	if _, err := cassette.Open(bytes.NewReader(kept.Bytes())); err != nil {
		t.Error(err)
	}
}

// A halfOpen stream has an end of input after so many bytes.
type halfOpen struct {
	net.Conn

	left int64
}

func (h *halfOpen) Read(p []byte) (int, error) {
	if h.left == 0 {
		return 0, io.EOF
	}
	n, err := h.Conn.Read(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	return n, err
}

// The end of the context ends both sides.
func TestRelayEnds(t *testing.T) {
	r, err := cassette.Record(io.Discard, cassette.Header{}, mask.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	near, host := net.Pipe()
	fromServer, server := io.Pipe()
	_, input := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- r.Relay(ctx, host, &process{fromServer, ended{input, server}}) }()
	stopped := errors.New("stopped")
	cancel(stopped)
	if err := <-over; !errors.Is(err, stopped) {
		t.Error(err)
	}
	if _, err := near.Read(make([]byte, 1)); err == nil {
		t.Error("the client's stream is open")
	}
}

// A server that reads no more ends by itself, unless it is told to end before.
type deaf struct {
	written chan struct{}
	told    atomic.Bool
}

var errFailed = errors.New("it failed")

func (d *deaf) Write([]byte) (int, error)      { close(d.written); return 0, io.ErrClosedPipe }
func (d *deaf) End()                           { d.told.Store(true) }
func (d *deaf) Shutdown(context.Context) error { return nil }
func (d *deaf) Read([]byte) (int, error) {
	<-d.written
	time.Sleep(time.Second) // of the bubble
	if d.told.Load() {
		return 0, io.EOF
	}
	return 0, errFailed
}

// A server that fails while the client writes to it was not told to end: its failure is the error.
func TestRelayFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := cassette.Record(io.Discard, cassette.Header{}, mask.New(nil))
		if err != nil {
			t.Fatal(err)
		}
		near, host := net.Pipe()
		go func() { _, _ = io.WriteString(near, "{}\n") }()
		if err := r.Relay(t.Context(), host, &deaf{written: make(chan struct{})}); !errors.Is(err, errFailed) {
			t.Errorf("error %v, want %v", err, errFailed)
		}
	})
}

// An ended input ends the output, too.
type ended struct {
	io.WriteCloser
	other io.Closer
}

func (e ended) Close() error { return errors.Join(e.other.Close(), e.WriteCloser.Close()) }

// A recorder that cannot write says so in the end.
func TestRecordFails(t *testing.T) {
	r, err := cassette.Record(&full{left: 200}, cassette.Header{}, mask.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		r.Add(cassette.Client, time.Now(), 0, []byte(`{"jsonrpc":"2.0","method":"x"}`))
	}
	if _, err := r.Close(); err == nil || !strings.Contains(err.Error(), "writing the cassette: no space") {
		t.Error(err)
	}
}

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no space")
	}
	return len(p), nil
}

// Whatever the lines of a cassette are, it is read or refused, and serves.
func FuzzOpen(f *testing.F) {
	f.Add(`{"ms":1,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}` + "\n" + `{"ms":2,"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{}}}`)
	f.Add(`{"ms":1,"from":"server","text":"x"}` + "\n" + `{"ms":1,"end":true}`)
	f.Add(`{"ms":1,"from":"client","message":[{"jsonrpc":"2.0","method":"ping","id":null}],"link":2}`)
	f.Fuzz(func(t *testing.T, lines string) {
		c, err := cassette.Open(strings.NewReader(first + lines))
		if err != nil {
			return
		}
		var out bytes.Buffer
		in := strings.NewReader("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n[1]\n")
		if err := c.Serve(t.Context(), stream{in, &out}); err != nil {
			t.Error(err)
		}
		if out.Len() == 0 {
			t.Error("no answer")
		}
	})
}

type stream struct {
	io.Reader
	io.Writer
}

func (stream) Close() error { return nil }
