package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

var appending = []check{
	{"records are read in their order", testOrder},
	{"a record has the number after the last one, or is ErrConflict", testConflict},
	{"several records are added, or none", testWhole},
	{"each number is written once when many append", testAppendRace},
	{"sessions do not see each other's records", testApart},
	{"a store keeps no slice of records that it was given, and returns none that it keeps", testOwnRecords},
}

func testOrder(k *kit) {
	k.create("s")
	k.ok("Append of nothing", k.store.Append(k.Context(), "s"))
	k.has("s", nil)
	k.add("s", 1, 1)
	k.add("s", 2, 50)
	k.add("s", 51, 200)
	k.has("s", numbered(1, 200))
}

func testConflict(k *kit) {
	ctx := k.Context()
	k.create("s")
	for last := range int64(3) {
		for _, n := range []int64{-1, 0, 1, 2, 3, 4, 5, 1 << 62} {
			if n != last+1 {
				k.fails(fmt.Sprintf("record %d after %d", n, last), k.store.Append(ctx, "s", record(n, "wrong")), host.ErrConflict)
			}
		}
		k.has("s", numbered(1, last))
		k.add("s", last+1, last+1)
	}
}

func testWhole(k *kit) {
	ctx := k.Context()
	k.create("s")
	k.add("s", 1, 2)
	for name, list := range map[string][]host.Record{
		"the first is there": numbered(2, 4),
		"a gap":              append(numbered(3, 4), numbered(6, 6)...),
		"one twice":          append(numbered(3, 4), numbered(4, 4)...),
		"backwards":          append(numbered(4, 4), numbered(3, 3)...),
	} {
		k.fails(name, k.store.Append(ctx, "s", list...), host.ErrConflict)
		k.has("s", numbered(1, 2))
	}
	k.add("s", 3, 4)
	k.has("s", numbered(1, 4))
}

// The winner of a number tries the next one after it, so that none stays without a winner.
func testAppendRace(k *kit) {
	ctx := k.Context()
	k.create("s")
	const most = 20
	wrote := race(func(i int) (won [most + 1]error) {
		for n := int64(1); n <= most; n++ {
			won[n] = k.store.Append(ctx, "s", record(n, fmt.Sprintf("%d of %d", n, i)))
		}
		return won
	})
	var want []host.Record
	for n := int64(1); n <= most; n++ {
		winners := 0
		for i := range wrote {
			if wrote[i][n] == nil {
				winners++
				want = append(want, record(n, fmt.Sprintf("%d of %d", n, i)))
				continue
			}
			k.fails(fmt.Sprintf("record %d", n), wrote[i][n], host.ErrConflict)
		}
		if winners != 1 {
			k.Errorf("record %d was added %d times", n, winners)
		}
	}
	k.has("s", want)
}

func testApart(k *kit) {
	ctx := k.Context()
	ids := []string{"s", "S", "s ", "s\x00", "ſ"}
	for i, id := range ids {
		k.create(id)
		k.ok("Append", k.store.Append(ctx, id, record(1, fmt.Sprint(i))))
	}
	for i, id := range ids {
		k.has(id, []host.Record{record(1, fmt.Sprint(i))})
	}
}

func testOwnRecords(k *kit) {
	ctx := k.Context()
	k.create("s")
	list := numbered(1, 3)
	k.ok("Append", k.store.Append(ctx, "s", list...))
	clear(list)
	for range 2 {
		got, err := k.store.Records(ctx, "s")
		k.ok("Records", err)
		k.has("s", numbered(1, 3))
		clear(got)
	}
}

var bodies = []check{
	{"records of every kind are read as they were written", testKinds},
	{"hostile text is kept", testText},
	{"a record that cannot be written is refused", testUnwritable},
	{"big records are kept", testBig},
}

func testKinds(k *kit) {
	k.create("s")
	var list []host.Record
	for _, text := range hostile {
		for _, b := range samples(k, text) {
			list = append(list, host.Record{N: int64(len(list)) + 1, Time: epoch, Body: b})
		}
	}
	k.ok("Append", k.store.Append(k.Context(), "s", list...))
	k.has("s", list)
}

func testText(k *kit) {
	ctx := k.Context()
	for i, text := range hostile {
		id := fmt.Sprintf("s%d %s", i, text)
		k.create(id)
		want := []host.Record{record(1, text)}
		k.ok("Append", k.store.Append(ctx, id, want...))
		k.has(id, want)
	}
}

func testUnwritable(k *kit) {
	k.create("s")
	for _, b := range []host.Body{
		&host.TextRecord{Text: "a\xffb"},
		&host.StartRecord{Arguments: mcp.RawValue(`{"a":`)},
	} {
		k.refused("Append", k.store.Append(k.Context(), "s", record(1, "before"), host.Record{N: 2, Time: epoch, Body: b}))
		k.has("s", nil)
	}
}

func testBig(k *kit) {
	k.create("s")
	want := []host.Record{record(1, strings.Repeat("0123456789abcdef", 1<<16)), record(2, "after")}
	k.ok("Append", k.store.Append(k.Context(), "s", want...))
	k.has("s", want)
}

// samples are bodies of every kind that is stored, with a text wherever one can be.
func samples(t testing.TB, text string) []host.Body {
	t.Helper()
	list := sampleBodies(text)
	for _, b := range list {
		raw, err := host.EncodeBody(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := host.DecodeBody(b.Kind(), raw); err != nil {
			t.Fatalf("package host cannot read what it wrote: %v", err)
		}
	}
	return list
}
