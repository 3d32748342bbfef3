package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
)

// noSleep takes no time.
func noSleep(context.Context, time.Duration) error { return nil }

// A sink keeps what is written to it.
type sink struct {
	bytes.Buffer

	closed func()
}

func (s *sink) Close() error {
	if s.closed != nil {
		s.closed()
	}
	return nil
}

// A silent stream says nothing until it is closed, and then has an error.
type silent struct {
	err   error
	done  chan struct{}
	close func()
}

func newSilent() *silent {
	s := &silent{err: io.EOF, done: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.done) })
	return s
}

func (s *silent) Read([]byte) (int, error) { <-s.done; return 0, s.err }
func (s *silent) Close() error             { s.close(); return nil }

// through passes bytes through one direction of a proxy.
func through(t *testing.T, o chaos.Options, to chaos.Direction, in io.Reader) (out []byte, events []chaos.Event, err error) {
	t.Helper()
	if o.Sleep == nil {
		o.Sleep = noSleep
	}
	o.Log = func(e chaos.Event) { events = append(events, e) }
	quiet := newSilent()
	end := &sink{}
	from := chaos.Stream{In: io.NopCloser(in), Out: &sink{}}
	other := chaos.Stream{In: quiet, Out: end}
	if to == chaos.ToServer {
		end.closed = quiet.close // the server ends with its input
		err = chaos.New(o).Pipe(t.Context(), from, other)
	} else {
		err = chaos.New(o).Pipe(t.Context(), other, from)
	}
	return end.Bytes(), events, err
}

// recorded are lines as clients and servers write them, and others.
func recorded(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for i := range n {
		switch random.IntN(6) {
		case 0:
			fmt.Fprintf(&b, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d}}`+"\n", i)
		case 1:
			fmt.Fprintf(&b, `{ "id" : "id-%d" ,"result":{"content":[{"type":"text","text":"é\n%s"}]},"jsonrpc":"2.0"}`+"\r\n", i, strings.Repeat("x", random.IntN(9000)))
		case 2:
			b.WriteString("listening on standard input\n\n")
		default:
			fmt.Fprintf(&b, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"id","arguments":{"id":1}},"id":%d}`+"\n", i)
		}
	}
	b.WriteString(`{"jsonrpc":"2.0","id":"last"}`) // no newline
	return b.Bytes()
}

// The same bytes give the same bytes for the same seed, however they come.
func TestPipeDeterminism(t *testing.T) {
	t.Parallel()
	in := recorded(300)
	rates, err := chaos.ParseRates([]string{"all=0.05", "drop=0.001"})
	if err != nil {
		t.Fatal(err)
	}
	different := make(map[string]bool)
	for seed := range uint64(20) {
		for _, to := range []chaos.Direction{chaos.ToServer, chaos.ToClient} {
			o := chaos.Options{Seed: seed, Rates: rates}
			first, events, err := through(t, o, to, bytes.NewReader(in))
			again, eventsAgain, errAgain := through(t, o, to, iotest.OneByteReader(bytes.NewReader(in)))
			if !bytes.Equal(first, again) || !cmp.Equal(events, eventsAgain) || !errors.Is(errAgain, err) {
				t.Errorf("seed %d to the %s: %d bytes (%v), then %d bytes (%v)", seed, to, len(first), err, len(again), errAgain)
			}
			if len(events) == 0 {
				t.Errorf("seed %d to the %s: no fault", seed, to)
			}
			different[string(first)] = true
		}
	}
	if len(different) != 40 {
		t.Errorf("%d different outputs of 20 seeds in 2 directions", len(different))
	}
}

// Each connection of a proxy has faults of its own, the same in every run.
func TestPipeConnections(t *testing.T) {
	t.Parallel()
	run := func() (outs []string) {
		p := chaos.New(chaos.Options{Seed: 7, Rates: chaos.Rates{chaos.BadJSON: 0.5}, To: chaos.ToClient})
		for range 2 {
			end := &sink{}
			if err := p.Pipe(t.Context(), chaos.Stream{In: newSilent(), Out: end}, chaos.Stream{In: io.NopCloser(bytes.NewReader(recorded(40))), Out: &sink{}}); err != nil {
				t.Error(err)
			}
			outs = append(outs, end.String())
		}
		return outs
	}
	first := run()
	if first[0] == first[1] || !cmp.Equal(first, run()) {
		t.Error("the connections are the same, or differ between runs")
	}
}

// The rate of one fault has no influence on where another one is applied.
func TestRatesAreIndependent(t *testing.T) {
	t.Parallel()
	frames := func(rates chaos.Rates) (list []uint64) {
		_, events, err := through(t, chaos.Options{Seed: 3, Rates: rates}, chaos.ToClient, bytes.NewReader(recorded(200)))
		if err != nil {
			t.Error(err)
		}
		for _, e := range events {
			if e.Fault == chaos.Truncate {
				list = append(list, e.Frame)
			}
		}
		return list
	}
	alone := frames(chaos.Rates{chaos.Truncate: 0.2})
	beside := frames(chaos.Rates{chaos.Truncate: 0.2, chaos.Reorder: 0})
	if len(alone) == 0 || !cmp.Equal(alone, beside) {
		t.Errorf("%v, and beside another fault %v", alone, beside)
	}
}

// Faults are as frequent as their rates say, at each place and with each seed.
func TestRatesAreKept(t *testing.T) {
	t.Parallel()
	const frames, seeds, rate = 200, 200, 0.2
	in := strings.Repeat("{}\n", frames)
	bySeed, byFrame := make(map[uint64]int), make(map[uint64]int)
	for seed := range uint64(seeds) {
		_, events, err := through(t, chaos.Options{Seed: seed, Rates: chaos.Rates{chaos.BadJSON: rate}}, chaos.ToClient, strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		bySeed[seed] = len(events)
		for _, e := range events {
			byFrame[e.Frame]++
		}
	}
	all := 0
	for seed, n := range bySeed {
		if all += n; n < 15 || n > 65 {
			t.Errorf("seed %d: %d of %d frames", seed, n, frames)
		}
	}
	for frame := range uint64(frames) {
		if n := byFrame[frame+1]; n < 15 || n > 65 {
			t.Errorf("frame %d: with %d of %d seeds", frame+1, n, seeds)
		}
	}
	if got := float64(all) / (frames * seeds); got < rate-0.01 || got > rate+0.01 {
		t.Errorf("a rate of %v in all", got)
	}
}

// Without faults every byte is passed on, and with --to only one direction has any.
func TestPipeWithoutFaults(t *testing.T) {
	t.Parallel()
	in := recorded(100)
	out, events, err := through(t, chaos.Options{Rates: chaos.Rates{}}, chaos.ToClient, bytes.NewReader(in))
	if err != nil || !bytes.Equal(in, out) || len(events) > 0 {
		t.Errorf("%d bytes of %d, %v, %v", len(out), len(in), events, err)
	}
	out, _, err = through(t, chaos.Options{Rates: chaos.Rates{chaos.BadJSON: 1}, To: chaos.ToClient}, chaos.ToServer, bytes.NewReader(in))
	if err != nil || !bytes.Equal(in, out) {
		t.Errorf("the other direction: %d bytes of %d, %v", len(out), len(in), err)
	}
}

// Each fault does what the table says.
func TestPipeFaults(t *testing.T) {
	t.Parallel()
	const one, two = `{"jsonrpc":"2.0","id":1,"result":{"id":7}}`, `{"jsonrpc":"2.0","id":"b","result":{}}`
	const in = one + "\n" + two + "\n"
	for fault, check := range map[chaos.Fault]func(out string) bool{
		chaos.Delay:     func(out string) bool { return out == in },
		chaos.Slow:      func(out string) bool { return out == in },
		chaos.Drop:      func(out string) bool { return len(out) <= len(one) && strings.HasPrefix(in, out) },
		chaos.Reorder:   func(out string) bool { return out == two+"\n"+one+"\n" },
		chaos.Duplicate: func(out string) bool { return out == one+"\n"+one+"\n"+two+"\n"+two+"\n" },
		chaos.Truncate: func(out string) bool {
			first, second, _ := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
			return strings.HasPrefix(one, first) && len(first) < len(one) && strings.HasPrefix(two, second) && len(second) < len(two)
		},
		chaos.BadJSON: func(out string) bool {
			for line := range strings.Lines(out) {
				if json.Valid([]byte(line)) {
					return false
				}
			}
			return len(out) == len(in)
		},
		chaos.WrongID: func(out string) bool {
			first, second, _ := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
			return json.Valid([]byte(first)) && strings.HasSuffix(first, `,"result":{"id":7}}`) && !strings.Contains(first, `"id":1,`) &&
				json.Valid([]byte(second)) && strings.Contains(second, `"id":"other-`)
		},
	} {
		out, events, err := through(t, chaos.Options{Rates: chaos.Rates{fault: 1}}, chaos.ToClient, strings.NewReader(in))
		if dropped := errors.Is(err, chaos.ErrDropped); dropped != (fault == chaos.Drop) || err != nil && !dropped {
			t.Errorf("%s: %v", fault, err)
		}
		if !check(string(out)) {
			t.Errorf("%s: %s", fault, out)
		}
		if len(events) == 0 || events[0].Fault != fault || events[0].Frame != 1 || events[0].Direction != chaos.ToClient || events[0].Connection != 1 || events[0].Bytes != len(one)+1 {
			t.Errorf("%s: told as %+v", fault, events)
		}
	}
}

// Delays and pauses go by the clock that is given, and have a limit.
func TestPipeTime(t *testing.T) {
	t.Parallel()
	for fault, most := range map[chaos.Fault]time.Duration{chaos.Delay: 100 * 10 * time.Second, chaos.Slow: 100 * 20 * time.Second} {
		var all time.Duration
		o := chaos.Options{Rates: chaos.Rates{fault: 1}, MaxDelay: 10 * time.Second, Sleep: func(_ context.Context, d time.Duration) error {
			all += d
			return nil
		}}
		if _, _, err := through(t, o, chaos.ToClient, bytes.NewReader(recorded(80))); err != nil || all == 0 || all > most {
			t.Errorf("%s: %v, %v, want at most %v", fault, all, err, most)
		}
	}
}

// A line that is too long to be one frame is passed on as it is, at its place.
func TestPipeLongLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", chaos.MaxFrame+70<<10)
	in := `{"id":1}` + "\n" + long + "\n" + `{"id":2}` + "\n" + long
	out, events, err := through(t, chaos.Options{Rates: chaos.Rates{chaos.Duplicate: 1}}, chaos.ToClient, strings.NewReader(in))
	want := strings.Repeat(`{"id":1}`+"\n", 2) + long + "\n" + strings.Repeat(`{"id":2}`+"\n", 2) + long
	if err != nil || string(out) != want || len(events) != 2 || events[1].Frame != 3 {
		t.Errorf("%d bytes, want %d; %v, %v", len(out), len(want), events, err)
	}
}

// What a server says after it has stopped reading arrives, and the end of ctx ends everything.
func TestPipeEnds(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	deaf := &brokenSink{say: func() {
		_, _ = io.WriteString(w, "bye\n") // read to its end
		_ = w.Close()
	}}
	end := &sink{}
	client := chaos.Stream{In: io.NopCloser(bytes.NewReader(recorded(10))), Out: end}
	if err := chaos.New(chaos.Options{Rates: chaos.Rates{}}).Pipe(t.Context(), client, chaos.Stream{In: r, Out: deaf}); err != nil || end.String() != "bye\n" {
		t.Errorf("%q, %v", end.String(), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := chaos.New(chaos.Options{}).Pipe(ctx, chaos.Stream{In: newSilent(), Out: &sink{}}, chaos.Stream{In: newSilent(), Out: &sink{}}); !errors.Is(err, enough) {
		t.Errorf("the end of ctx: %v", err)
	}
}

// A brokenSink takes nothing.
type brokenSink struct {
	once sync.Once
	say  func()
}

func (b *brokenSink) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Close is called at the end of the client's output.
func (b *brokenSink) Close() error { b.once.Do(b.say); return nil }

// What the client reads is closed before what it writes: both may be one stream, and the last
// bytes still on their way.
func TestPipeClosesOutputFirst(t *testing.T) {
	quiet, client := newSilent(), &sink{}
	client.closed = func() {
		select {
		case <-quiet.done:
			t.Error("the client's output was closed before its input")
		default:
		}
	}
	server := chaos.Stream{In: io.NopCloser(strings.NewReader("{}\n")), Out: &sink{}}
	if err := chaos.New(chaos.Options{Sleep: noSleep}).Pipe(t.Context(), chaos.Stream{In: quiet, Out: client}, server); err != nil {
		t.Error(err)
	}
	if got := client.String(); got != "{}\n" {
		t.Errorf("the client reads %q", got)
	}
}

func FuzzPipe(f *testing.F) {
	f.Add(uint64(1), recorded(5))
	f.Add(uint64(2), []byte("\n\r\n{\"id\":null}\n[{\"id\":1}]\n{\"id\" :\t-1.5e3 }\n\xff\n{"))
	rates, err := chaos.ParseRates([]string{"all=0.3", "drop=0.01"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, seed uint64, in []byte) {
		o := chaos.Options{Seed: seed, Rates: rates}
		out, _, err := through(t, o, chaos.ToClient, bytes.NewReader(in))
		if err != nil && !errors.Is(err, chaos.ErrDropped) {
			t.Fatal(err)
		}
		again, _, _ := through(t, o, chaos.ToClient, iotest.HalfReader(bytes.NewReader(in)))
		if !bytes.Equal(out, again) {
			t.Errorf("%q, then %q", out, again)
		}
	})
}
