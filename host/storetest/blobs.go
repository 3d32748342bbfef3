package storetest

import (
	"bytes"
	"fmt"

	"github.com/parley-mcp/parley/host"
)

var blobs = []check{
	{"a blob is read in parts", testParts},
	{"an unknown blob is ErrNoBlob", testNoBlob},
	{"a blob of the same name replaces the one before", testReplace},
	{"a store keeps no bytes that it was given, and returns none that it keeps", testOwnBlob},
	{"any bytes are kept, under any name", testBlobNames},
	{"big blobs are kept", testBigBlob},
}

// blob tests what is kept under a name.
func (k *kit) blob(session, name string, want []byte) {
	k.Helper()
	got, size, err := k.store.Blob(k.Context(), session, name, 0, 1<<62)
	k.ok("Blob", err)
	if !bytes.Equal(got, want) || size != int64(len(want)) {
		k.Errorf("%d bytes under %.40q, of %d, want %d", len(got), name, size, len(want))
	}
}

func testParts(k *kit) {
	ctx := k.Context()
	k.create("s")
	k.ok("PutBlob", k.store.PutBlob(ctx, "s", "b", []byte("0123456789")))
	const most = 1<<63 - 1
	for _, c := range []struct {
		offset, limit int64
		want          string
	}{
		{0, 10, "0123456789"},
		{0, 3, "012"},
		{3, 4, "3456"},
		{9, 1, "9"},
		{9, 5, "9"},
		{10, 5, ""},
		{11, 5, ""},
		{most, 5, ""},
		{0, most, "0123456789"},
		{5, most, "56789"},
		{most, most, ""},
		{3, 0, ""},
		{3, -1, ""},
		{-3, 5, "01234"},
		{-most - 1, 5, "01234"},
	} {
		got, size, err := k.store.Blob(ctx, "s", "b", c.offset, c.limit)
		k.ok("Blob", err)
		if string(got) != c.want || size != 10 {
			k.Errorf("%d bytes from %d: %q of %d, want %q of 10", c.limit, c.offset, got, size, c.want)
		}
	}
	k.ok("PutBlob", k.store.PutBlob(ctx, "s", "empty", nil))
	k.blob("s", "empty", nil)
}

func testNoBlob(k *kit) {
	k.create("s")
	k.create("other")
	k.ok("PutBlob", k.store.PutBlob(k.Context(), "other", "b", []byte("x")))
	k.ok("PutBlob", k.store.PutBlob(k.Context(), "s", "c", []byte("x")))
	for _, name := range []string{"b", "", "C", "c\x00"} {
		_, _, err := k.store.Blob(k.Context(), "s", name, 0, 1)
		k.fails(fmt.Sprintf("Blob %q", name), err, host.ErrNoBlob)
	}
}

func testReplace(k *kit) {
	k.create("s")
	for _, data := range []string{"first and long", "second", ""} {
		k.ok("PutBlob", k.store.PutBlob(k.Context(), "s", "b", []byte(data)))
		k.blob("s", "b", []byte(data))
	}
}

func testOwnBlob(k *kit) {
	k.create("s")
	data := []byte("0123456789")
	k.ok("PutBlob", k.store.PutBlob(k.Context(), "s", "b", data))
	clear(data)
	for range 2 {
		got, _, err := k.store.Blob(k.Context(), "s", "b", 2, 5)
		k.ok("Blob", err)
		k.blob("s", "b", []byte("0123456789"))
		clear(got)
		_ = append(got, "xxx"...)
	}
}

func testBlobNames(k *kit) {
	k.create("s")
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, name := range hostile {
		k.ok("PutBlob", k.store.PutBlob(k.Context(), "s", name, append(all, name...)))
	}
	for _, name := range hostile {
		k.blob("s", name, append(all, name...))
	}
}

func testBigBlob(k *kit) {
	k.create("s")
	data := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	k.ok("PutBlob", k.store.PutBlob(k.Context(), "s", "b", data))
	k.blob("s", "b", data)
	got, size, err := k.store.Blob(k.Context(), "s", "b", int64(len(data))-3, 100)
	if err != nil || string(got) != "def" || size != int64(len(data)) {
		k.Errorf("the end of %d bytes is %q, error %v", size, got, err)
	}
}
