package provider_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-mcp/parley/app/internal/model/provider"
)

// all reads the events of a stream.
func all(in io.Reader) (events []string, err error) {
	r := provider.NewReader(in)
	for {
		event, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, event.Name+"="+string(event.Data))
	}
}

var streams = []struct {
	name, in string
	want     []string
	err      error
}{
	{"nothing", "", nil, io.EOF},
	{"one", "data: a\n\n", []string{"=a"}, io.EOF},
	{"a name", "event: x\ndata: a\n\ndata: b\n\n", []string{"x=a", "=b"}, io.EOF},
	{"lines", "data: a\ndata:b\ndata\ndata:  c\n\n", []string{"=a\nb\n\n c"}, io.EOF},
	{"comments and other fields", ": hi\nid: 1\nretry: 5\nfoo\n\n:\ndata: a\n\n", []string{"=a"}, io.EOF},
	{"a name without data", "event: x\n\ndata: a\n\n", []string{"=a"}, io.EOF},
	{"carriage returns", "data: a\r\rdata: b\r\r", []string{"=a", "=b"}, io.EOF},
	{"both", "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []string{"=a\nb", "=c"}, io.EOF},
	{"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", []string{"=a", "=b", "=c"}, io.EOF},
	{"byte order mark", "\ufeffdata: a\n\n", []string{"=a"}, io.EOF},
	{"a mark later is text", "data: a\n\n\ufeffdata: b\n\n", []string{"=a"}, io.EOF},
	{"half a mark", "\xef\xbb", nil, io.ErrUnexpectedEOF},
	{"other characters", "data: žluťoučký 🦜\n\n", []string{"=žluťoučký 🦜"}, io.EOF},
	{"no empty line at the end", "data: a\n\ndata: b\n", []string{"=a", "=b"}, io.EOF},
	{"cut in a line", "data: a\n\ndata: b", []string{"=a"}, io.ErrUnexpectedEOF},
	{"cut in a character", "data: a\n\ndata: \xf0\x9f", []string{"=a"}, io.ErrUnexpectedEOF},
	{"cut in a name", "data: a\n\neve", []string{"=a"}, io.ErrUnexpectedEOF},
	{"empty data", "data\n\n", []string{"="}, io.EOF},
}

// A chunked reader gives its parts one after the other.
type chunked struct{ parts [][]byte }

func (c *chunked) Read(p []byte) (int, error) {
	for len(c.parts) > 0 && len(c.parts[0]) == 0 {
		c.parts = c.parts[1:]
	}
	if len(c.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.parts[0])
	c.parts[0] = c.parts[0][n:]
	return n, nil
}

// Where a stream is split makes no difference.
func TestReader(t *testing.T) {
	for _, test := range streams {
		t.Run(test.name, func(t *testing.T) {
			check := func(how string, in io.Reader) {
				t.Helper()
				got, err := all(in)
				if !slices.Equal(got, test.want) || !errors.Is(err, test.err) {
					t.Fatalf("%s: %q, %v; want %q, %v", how, got, err, test.want, test.err)
				}
			}
			check("whole", strings.NewReader(test.in))
			check("byte by byte", iotest.OneByteReader(strings.NewReader(test.in)))
			check("with its end", iotest.DataErrReader(strings.NewReader(test.in)))
			for i := range test.in {
				for j := i; j <= len(test.in); j++ {
					check("in three", &chunked{[][]byte{[]byte(test.in[:i]), []byte(test.in[i:j]), []byte(test.in[j:])}})
				}
			}
		})
	}
}

func TestReaderKeepsData(t *testing.T) {
	r := provider.NewReader(strings.NewReader("data: first\n\ndata: other\n\n"))
	first, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if string(first.Data) != "first" {
		t.Errorf("the first event's data is %q after the next one was read", first.Data)
	}
}

func TestReaderError(t *testing.T) {
	failed := errors.New("no network")
	got, err := all(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(failed)))
	if !errors.Is(err, failed) || !slices.Equal(got, []string{"=a"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// An endless reader never ends its line.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestReaderBounds(t *testing.T) {
	long := "data: " + strings.Repeat("x", 10<<20) + "\n\n"
	got, err := all(strings.NewReader(long))
	if len(got) != 1 || len(got[0]) != 10<<20+1 || !errors.Is(err, io.EOF) {
		t.Errorf("10 MB of one line: %d events, %v", len(got), err)
	}
	source := &endless{}
	if _, err := all(source); !errors.Is(err, provider.ErrTooLong) {
		t.Errorf("a line without an end: %v", err)
	}
	if source.read > provider.MaxEvent+1<<20 {
		t.Errorf("%d bytes were read of a line without an end", source.read)
	}
	lines := io.MultiReader(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17)))
	if _, err := all(lines); !errors.Is(err, provider.ErrTooLong) {
		t.Errorf("lines without an end: %v", err)
	}
}

func FuzzReader(f *testing.F) {
	for _, test := range streams {
		f.Add([]byte(test.in), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		want, wantErr := all(bytes.NewReader(in))
		step := int(size%31) + 1
		got, err := all(&chunked{slices.Collect(slices.Chunk(bytes.Clone(in), step))})
		if !slices.Equal(got, want) || !errors.Is(err, wantErr) {
			t.Errorf("in parts of %d: %q, %v; whole: %q, %v", step, got, err, want, wantErr)
		}
		for _, event := range got {
			if strings.Contains(event, "\r") {
				t.Errorf("a line end is in an event: %q", event)
			}
		}
	})
}
