package eventstream_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/eventstream"
)

// all reads until an error.
func all(r io.Reader, limit int) ([]eventstream.Event, error) {
	var events []eventstream.Event
	for er := eventstream.NewReader(r, limit); ; {
		e, err := er.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func text(data string) eventstream.Event { return eventstream.Event{Data: []byte(data)} }

// streams are texts and what they mean (HTML standard, 9.2.6).
var streams = []struct {
	name, text string
	want       []eventstream.Event
}{
	{"empty", "", nil},
	{"one", "data: x\n\n", []eventstream.Event{text("x")}},
	{"three lines", "data: YHOO\ndata: +2\ndata: 10\n\n", []eventstream.Event{text("YHOO\n+2\n10")}},
	{"one space alone goes", "data:x\n\ndata: x\n\ndata:  x \n\n", []eventstream.Event{text("x"), text("x"), text(" x ")}},
	{"line ends", "data: a\r\n\r\ndata: b\r\rdata: c\n\ndata: d\r\n\ndata: e\r\n\r", []eventstream.Event{text("a"), text("b"), text("c"), text("d"), text("e")}},
	{"mixed line ends in an event", "data: a\rdata: b\r\ndata: c\n\r\n", []eventstream.Event{text("a\nb\nc")}},
	{"byte order mark", "\ufeffdata: x\n\n", []eventstream.Event{text("x")}},
	{"byte order mark later", "data: x\n\n\ufeffdata: y\n\n", []eventstream.Event{text("x")}},
	{"comments", ":\n\n: hello\n\n:data: no\ndata: x\n:\ndata: y\n\n", []eventstream.Event{text("x\ny")}},
	{"unknown fields", "foo: bar\ndata: x\nDATA: y\n data: z\n\n", []eventstream.Event{text("x")}},
	{"field without colon", "data\n\ndata\ndata\n\n", []eventstream.Event{text(""), text("\n")}},
	{"more colons", "data: a:b: c\n\n", []eventstream.Event{text("a:b: c")}},
	{"end in an event", "data: x\n\ndata: y\n", []eventstream.Event{text("x")}},
	{"end in a line", "data: x\n\ndata: y", []eventstream.Event{text("x")}},
	{"type", "event: endpoint\ndata: /m\n\nevent: message\ndata: x\n\ndata: y\n\n", []eventstream.Event{
		{Type: "endpoint", Data: []byte("/m")}, {Type: "message", Data: []byte("x")}, text("y"),
	}},
	{"type alone", "event: ping\n\ndata: x\n\n", []eventstream.Event{text("x")}},
	{"type taken back", "event: ping\nevent:\ndata: x\n\n", []eventstream.Event{text("x")}},
	{"id", "id: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n", []eventstream.Event{
		{ID: "1", HasID: true, Data: []byte("x")}, text("y"), {HasID: true, Data: []byte("z")},
	}},
	{"id with NUL", "id: 1\x002\ndata: x\n\n", []eventstream.Event{text("x")}},
	{"id alone", "id: 1\n\n", []eventstream.Event{{ID: "1", HasID: true}}},
	{"priming", "id: 1\ndata:\n\n", []eventstream.Event{{ID: "1", HasID: true, Data: []byte{}}}},
	{"retry", "retry: 1500\n\n", []eventstream.Event{{Retry: 1500 * time.Millisecond, HasRetry: true}}},
	{"retry, the last counts", "retry: 1\nretry: 0\n\n", []eventstream.Event{{HasRetry: true}}},
	{"retry clipped", "retry: 99999999999999999999999999\n\n", []eventstream.Event{{Retry: 24 * time.Hour, HasRetry: true}}},
	{"retry that is no number", "retry: -1\nretry: 1.5\nretry: 0x1\nretry:\nretry: 1 \nretry: \u0661\ndata: x\n\n", []eventstream.Event{text("x")}},
	{"invalid UTF-8", "data: \xff\xfe\n\n", []eventstream.Event{text("\xff\xfe")}},
	{"blank lines", "\n\r\n\r\r\n\ndata: x\n\n\n\n", []eventstream.Event{text("x")}},
	{"long", "data: " + strings.Repeat("x", 300_000) + "\n\ndata: y\n\n", []eventstream.Event{text(strings.Repeat("x", 300_000)), text("y")}},
	{"many", strings.Repeat("data: abc\n\n", 3), []eventstream.Event{text("abc"), text("abc"), text("abc")}},
}

func TestNext(t *testing.T) {
	for _, test := range streams {
		t.Run(test.name, func(t *testing.T) {
			sources := map[string]io.Reader{
				"whole":          strings.NewReader(test.text),
				"bytes":          iotest.OneByteReader(strings.NewReader(test.text)),
				"halves":         iotest.HalfReader(strings.NewReader(test.text)),
				"data with EOF":  iotest.DataErrReader(strings.NewReader(test.text)),
				"empty readings": &hesitant{r: strings.NewReader(test.text)},
			}
			for name, source := range sources {
				got, err := all(source, 1<<20)
				if err != io.EOF { //nolint:errorlint // exactly io.EOF is promised
					t.Errorf("%s: ended with %v, want io.EOF", name, err)
				}
				if !reflect.DeepEqual(test.want, got) { // much faster than cmp for long data
					t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(test.want, got))
				}
			}
		})
	}
}

// A hesitant reader gives nothing every other time.
type hesitant struct {
	r    io.Reader
	turn bool
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.turn = !h.turn; h.turn {
		return 0, nil
	}
	return h.r.Read(p)
}

// TestNextDoesNotWait checks that an event is there with its last \r: the \n
// that may follow comes with the next event, perhaps much later.
func TestNextDoesNotWait(t *testing.T) {
	pr, pw := io.Pipe()
	defer pr.Close()
	go func() {
		for _, part := range []string{"data: a\r\n\r", "\ndata: b\r\r", "data: c\r\r\n"} {
			_, _ = pw.Write([]byte(part)) // returns once it was read: nothing more is there to read then
		}
	}()
	r := eventstream.NewReader(pr, 100)
	for _, want := range []string{"a", "b", "c"} {
		e, err := r.Next()
		if err != nil || string(e.Data) != want {
			t.Errorf("Next gives %q, %v; want %q", e.Data, err, want)
		}
	}
}

// Proves: SEC-DOS-1.
func TestLimit(t *testing.T) {
	const limit = 100
	tests := []struct {
		name, text string
		events     int
		want       error
	}{
		{"exact", "data: " + strings.Repeat("x", limit-6) + "\n\n", 1, io.EOF},
		{"one over", "data: " + strings.Repeat("x", limit-5) + "\n\n", 0, eventstream.ErrTooLong},
		{"many lines", strings.Repeat("data: 0123\n", 10) + "\n", 1, io.EOF},
		{"one line more", strings.Repeat("data: 0123\n", 11) + "\n", 0, eventstream.ErrTooLong},
		{"unknown fields", strings.Repeat("foo\n", 34) + "\n", 0, eventstream.ErrTooLong},
		{"endless line", strings.Repeat("x", 10*limit), 0, eventstream.ErrTooLong},
		{"endless comment", ":" + strings.Repeat("x", 10*limit), 0, eventstream.ErrTooLong},
		{"long comment", ":" + strings.Repeat("x", limit) + "\n", 0, eventstream.ErrTooLong},
		{"many comments", strings.Repeat(": alive\n", limit) + "data: x\n\n", 1, io.EOF},
		{"many signs of life", strings.Repeat(":\n\n", limit) + "data: x\n\n", 1, io.EOF},
		{"comments reset nothing", strings.Repeat("data: 0123\n:\n", 11) + "\n", 0, eventstream.ErrTooLong},
		{"types alone", strings.Repeat("event: 0123\n\n", limit), 0, io.EOF},
		{"the event before counts not", strings.Repeat("data: "+strings.Repeat("x", limit-6)+"\n\n", 3), 3, io.EOF},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, source := range []io.Reader{strings.NewReader(test.text), iotest.OneByteReader(strings.NewReader(test.text))} {
				events, err := all(source, limit)
				if !errors.Is(err, test.want) || len(events) != test.events {
					t.Errorf("%d events, then %v; want %d, then %v", len(events), err, test.events, test.want)
				}
			}
		})
	}
}

func TestTooLongStays(t *testing.T) {
	r := eventstream.NewReader(strings.NewReader(strings.Repeat("x", 50)+"\n\ndata: y\n\n"), 10)
	for range 3 {
		if e, err := r.Next(); !errors.Is(err, eventstream.ErrTooLong) {
			t.Errorf("Next gives %q, %v; want ErrTooLong", e.Data, err)
		}
	}
}

// TestLimitBoundsReading checks that a reader does not take in much more than
// its limit of a line without end.
func TestLimitBoundsReading(t *testing.T) {
	src := &endless{}
	if _, err := all(src, 1<<16); !errors.Is(err, eventstream.ErrTooLong) {
		t.Errorf("an endless line ended with %v, want ErrTooLong", err)
	}
	if src.n > 4<<16 {
		t.Errorf("%d bytes were read of an endless line, the limit is %d", src.n, 1<<16)
	}
}

type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.n += len(p)
	return len(p), nil
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	r := eventstream.NewReader(io.MultiReader(strings.NewReader("data: x\n\ndata"), iotest.ErrReader(broken)), 100)
	if e, err := r.Next(); err != nil || string(e.Data) != "x" {
		t.Errorf("Next gives %q, %v; want the event that is whole", e.Data, err)
	}
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, broken) {
			t.Errorf("Next gives %v, want the error of the source", err)
		}
	}
	if _, err := all(silent{}, 100); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that gives nothing ends with %v, want io.ErrNoProgress", err)
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

// TestDataIsOwn checks that an event's data outlives the next ones.
func TestDataIsOwn(t *testing.T) {
	events, _ := all(strings.NewReader("data: aaaa\n\ndata: bbbb\n\n"), 100)
	copy(events[0].Data, "zzzz")
	_ = append(events[0].Data, '!')
	if string(events[1].Data) != "bbbb" {
		t.Errorf("writing to one event changed another to %q", events[1].Data)
	}
}

// TestManyShortLines fills a buffer that one long line made big with lines of
// one kind of end, which are all found, without the buffer being searched to
// its end for the other kind again and again.
func TestManyShortLines(t *testing.T) {
	const lines = 1 << 17
	for _, end := range []string{"\r", "\n", "\r\n"} {
		source := ":" + strings.Repeat("x", 1<<20) + end + strings.Repeat("a"+end, lines) + "data: x" + end + end
		events, err := all(strings.NewReader(source), 16<<20)
		if len(events) != 1 || !errors.Is(err, io.EOF) {
			t.Errorf("line end %q: %d events, then %v; want 1, then io.EOF", end, len(events), err)
		}
	}
}

// FuzzReader reads what strangers send: however it arrives, it means the
// same, is within the limit, and survives being written again.
func FuzzReader(f *testing.F) {
	for _, s := range streams {
		if len(s.text) < 1000 {
			f.Add([]byte(s.text), 64)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		limit &= 0xffff
		whole, err := all(bytes.NewReader(stream), limit)
		slow, slowErr := all(iotest.OneByteReader(bytes.NewReader(stream)), limit)
		if diff := cmp.Diff(whole, slow); diff != "" || !errors.Is(slowErr, err) {
			t.Fatalf("byte by byte it ended with %v, whole with %v (-whole +slow):\n%s", slowErr, err, diff)
		}
		var again []byte
		for i := range whole {
			if len(whole[i].Data)+len(whole[i].ID)+len(whole[i].Type) > limit {
				t.Fatalf("event %d exceeds the limit of %d bytes", i, limit)
			}
			again = eventstream.Append(eventstream.AppendComment(again), &whole[i])
			if whole[i].Data == nil {
				whole[i].Data = []byte{} // is written as an empty line
			}
		}
		if bytes.HasPrefix(stream, []byte("\ufeff")) {
			again = append([]byte("\ufeff"), again...)
		}
		back, err := all(bytes.NewReader(again), 1<<20)
		if diff := cmp.Diff(whole, back); diff != "" || !errors.Is(err, io.EOF) {
			t.Fatalf("written again it ended with %v (-want +got):\n%s", err, diff)
		}
	})
}

// FuzzAppend writes what handlers send: one event comes back, with all the
// text of its data.
func FuzzAppend(f *testing.F) {
	f.Add("message", "1", []byte("{}"), int64(1000))
	f.Add("a\nb", "\x00", []byte("a\r\nb\rc\n"), int64(-5))
	f.Add("", "", []byte("\r\n\r\n"), int64(0))
	f.Fuzz(func(t *testing.T, kind, id string, data []byte, retry int64) {
		retry &= 1<<40 - 1
		stream := eventstream.Append(nil, &eventstream.Event{
			Type: kind, ID: id, HasID: true, Data: data,
			Retry: time.Duration(retry) * time.Millisecond, HasRetry: true,
		})
		want := eventstream.Event{
			Data:  bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n")),
			Retry: min(time.Duration(retry)*time.Millisecond, 24*time.Hour), HasRetry: true,
		}
		if len(want.Data) == 0 {
			want.Data = []byte{}
		}
		if !strings.ContainsAny(kind, "\r\n") {
			want.Type = kind
		}
		if !strings.ContainsAny(id, "\r\n\x00") {
			want.ID, want.HasID = id, true
		}
		got, err := all(bytes.NewReader(stream), 1<<30)
		if diff := cmp.Diff([]eventstream.Event{want}, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%q is read with %v (-want +got):\n%s", stream, err, diff)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"200B", 200}, {"1MiB", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			event := eventstream.Append(nil, &eventstream.Event{Type: "message", Data: bytes.Repeat([]byte("x"), c.size)})
			r := eventstream.NewReader(&repeat{event: event}, 2<<20)
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A repeat gives one event again and again.
type repeat struct {
	event []byte
	at    int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.event[r.at:])
	r.at = (r.at + n) % len(r.event)
	return n, nil
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"200B", 200}, {"1MiB", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			e := &eventstream.Event{Type: "message", Data: bytes.Repeat([]byte("x"), c.size)}
			var buf []byte
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			for b.Loop() {
				buf = eventstream.Append(buf[:0], e)
			}
		})
	}
}
