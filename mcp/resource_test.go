package mcp_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// The way for large contents gives what the plain encoding gives.
func TestReadResourceResultAppendJSON(t *testing.T) {
	r := &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{
		{URI: "a:b", Text: "héllo \"\n", MIMEType: "text/plain"},
		{URI: "a:c", Blob: []byte{}, Meta: mcp.Meta{"k": mcp.RawValue(`1`)}},
		{URI: "a:d", Blob: bytes.Repeat([]byte{0, 250, 7}, 5000)},
		{URI: "a:e"},
	}}
	r.ResultType, r.TTLMs = mcp.ResultComplete, new(int64(5))
	want, err := wire.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.AppendJSON([]byte("before"))
	if err != nil || !bytes.HasPrefix(got, []byte("before{")) || !wire.Equal(got[len("before"):], want) {
		t.Errorf("got %.200s, %v, want %.200s", got, err, want)
	}
	if empty, err := new(mcp.ReadResourceResult).AppendJSON(nil); err != nil || string(empty) != `{"contents":[]}` {
		t.Errorf("empty result is %s, %v", empty, err)
	}
}

// What is written in pieces is what is appended, and its length is known.
func TestReadResourceResultWriteJSON(t *testing.T) {
	for _, size := range []int{49_151, 49_152, 49_153, 98_304, 200_000} {
		blob := make([]byte, size)
		for i := range blob {
			blob[i] = byte(i * i)
		}
		r := &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{
			{URI: "a:b", Blob: blob, MIMEType: "image/png"}, {URI: "a:c", Text: "é"}, {URI: "a:d", Blob: []byte{}}, {URI: "a:e", Blob: blob[:1]},
		}}
		r.ResultType = mcp.ResultComplete
		want, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := r.WriteJSON(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes: %d were written, not the %d that were appended: %v", size, got.Len(), len(want), err)
		}
		if n := r.JSONSize(); n != int64(len(want)) && size > 49_152 {
			t.Errorf("%d bytes: JSONSize is %d, want %d", size, n, len(want))
		}
	}
}

func TestReadResourceResultJSONSize(t *testing.T) {
	large := make([]byte, 1<<20)
	for name, contents := range map[string][]mcp.ResourceContents{
		"none":           nil,
		"small blob":     {{URI: "a:b", Blob: large[:1000]}},
		"large text":     {{URI: "a:b", Blob: large}, {URI: "a:c", Text: string(large)}},
		"cannot be said": {{URI: "a:b", Blob: large}, {URI: "\xff"}},
	} {
		r := &mcp.ReadResourceResult{Contents: contents}
		if n := r.JSONSize(); n != -1 {
			t.Errorf("%s: JSONSize is %d", name, n)
		}
	}
	r := &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: "a:b", Blob: large}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 8 {
		if err := r.WriteJSON(io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	// A pool's buffers count too, which the race detector takes away at random.
	if each := (after.TotalAlloc - before.TotalAlloc) / 8; each > 256<<10 {
		t.Errorf("writing 1 MiB allocates %d bytes", each)
	}
}

// A stuckWriter fails when it has been given too much, and still holds the last
// text then, as an HTTP/2 stream does that is reset.
type stuckWriter struct {
	writes, most int
	last         []byte
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	if w.writes++; w.writes > w.most {
		w.last = p
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// What a writer that failed may still read is not written over by another result.
func TestReadResourceResultWriteJSONFails(t *testing.T) {
	of := func(b byte) *mcp.ReadResourceResult {
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: "a:b", Blob: bytes.Repeat([]byte{b}, 200_000)}}}
	}
	for most := range 4 {
		w := &stuckWriter{most: most}
		if err := of(1).WriteJSON(w); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("after %d writes: %v", most, err)
		}
		held := bytes.Clone(w.last)
		for range 8 {
			if err := of(2).WriteJSON(io.Discard); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(held, w.last) {
			t.Errorf("after %d writes: the memory was used again", most)
		}
	}
}

// Many small blobs do not make many writes.
func TestReadResourceResultWriteJSONSmall(t *testing.T) {
	r := &mcp.ReadResourceResult{Contents: make([]mcp.ResourceContents, 10_000)}
	for i := range r.Contents {
		r.Contents[i] = mcp.ResourceContents{URI: "a:b", Blob: make([]byte, 30)}
	}
	w := &stuckWriter{most: 50}
	if r.JSONSize() < 0 || r.WriteJSON(w) != nil {
		t.Errorf("%d writes of %d bytes", w.writes, r.JSONSize())
	}
}

// FuzzReadResourceResult holds the three encodings to the same bytes.
func FuzzReadResourceResult(f *testing.F) {
	f.Add("a:b", "text", "", 0, 1)
	f.Add("a:\"b", "\u2028<\x00", "image/png", 49_152, 3)
	f.Add("\xff", "\xff", "x", 100_000, 2)
	f.Fuzz(func(t *testing.T, uri, text, kind string, size, n int) {
		blob := make([]byte, max(0, size)%300_000)
		for i := range blob {
			blob[i] = byte(i * 7)
		}
		r := &mcp.ReadResourceResult{}
		r.ResultType = kind
		for i := range max(0, n) % 5 {
			r.Contents = append(r.Contents, mcp.ResourceContents{URI: uri, Text: text}, mcp.ResourceContents{URI: uri, MIMEType: kind, Blob: blob[i*len(blob)/5:]})
		}
		want, wantErr := wire.Marshal(r)
		got, err := r.AppendJSON([]byte(">"))
		if (err == nil) != (wantErr == nil) || err != nil && string(got) != ">" {
			t.Fatalf("AppendJSON: %v; the codec: %v", err, wantErr)
		}
		var written bytes.Buffer
		if err := r.WriteJSON(&written); (err == nil) != (wantErr == nil) {
			t.Fatalf("WriteJSON: %v; the codec: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if !wire.Equal(got[1:], want) || !bytes.Equal(written.Bytes(), got[1:]) {
			t.Fatalf("%.200s was appended, %.200s written; the codec has %.200s", got, written.Bytes(), want)
		}
		if n := r.JSONSize(); n >= 0 && n != int64(len(want)) {
			t.Fatalf("JSONSize is %d, want %d", n, len(want))
		}
	})
}

func BenchmarkReadResourceResult(b *testing.B) {
	r := &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: "a:d", Blob: make([]byte, 10<<20)}}}
	b.ReportAllocs()
	b.SetBytes(10 << 20)
	for b.Loop() {
		if _, err := r.AppendJSON(nil); err != nil {
			b.Fatal(err)
		}
	}
}
