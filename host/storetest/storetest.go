// Package storetest tests implementations of host.Store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) host.Store { return openStore(t, t.TempDir()) })
//	}
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Run tests that stores do what [host.Store] says, also when many goroutines use one. open
// returns an empty store and closes it with t.Cleanup. Each subtest is named after the
// sentence that it tests and has a store of its own; the subtests run in parallel.
func Run(t *testing.T, open func(t testing.TB) host.Store) {
	t.Helper()
	for _, part := range [][]check{sessions, forks, appending, bodies, blobs, pins, grants, audit} {
		for _, c := range part {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.test(&kit{T: t, store: open(t)})
			})
		}
	}
}

// A check is a subtest.
type check struct {
	// name is the sentence of the contract that is tested.
	name string
	test func(k *kit)
}

// A kit is what a subtest works with.
type kit struct {
	*testing.T

	store host.Store
}

// racers is how many goroutines do the same thing at once.
const racers = 8

// epoch is the time of the tests. Stores keep nanoseconds.
var epoch = time.Date(2030, 1, 2, 3, 4, 5, 6_007_008, time.UTC)

// hostile are texts that a store may change, cut off or take for something else.
var hostile = []string{
	"", " ", "it's \"quoted\" \\ `so`", "%s $1 ?1 :a @b", "'; DROP TABLE record; --", "line\r\n\ttab", "a\x00b", "\x00",
	"\u2028\u202e\ufeff", "日本語 \U0001F600", "</script>&amp;", "\x1b[31mred\x1b[0m", strings.Repeat("long ", 1_000),
}

// ok stops the test at an error.
func (k *kit) ok(what string, err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("%s: %v", what, err)
	}
}

// fails tests that an error is another.
func (k *kit) fails(what string, got, want error) {
	k.Helper()
	if !errors.Is(got, want) {
		k.Errorf("%s: error %v, want %v", what, got, want)
	}
}

// refused tests that there is an error.
func (k *kit) refused(what string, err error) {
	k.Helper()
	if err == nil {
		k.Errorf("%s: no error", what)
	}
}

// create adds a session.
func (k *kit) create(id string) {
	k.Helper()
	k.ok("CreateSession", k.store.CreateSession(k.Context(), &host.SessionInfo{ID: id, Created: epoch}))
}

// fork adds a session that goes on after a record of another.
func (k *kit) fork(id, parent string, at int64) {
	k.Helper()
	k.ok("CreateSession", k.store.CreateSession(k.Context(), &host.SessionInfo{ID: id, Parent: parent, At: at, Created: epoch}))
}

// add appends records of texts that say their number, from one number to another.
func (k *kit) add(session string, from, to int64) {
	k.Helper()
	k.ok("Append", k.store.Append(k.Context(), session, numbered(from, to)...))
}

func numbered(from, to int64) []host.Record {
	var list []host.Record
	for n := from; n <= to; n++ {
		list = append(list, record(n, fmt.Sprintf("text %d", n)))
	}
	return list
}

func record(n int64, text string) host.Record {
	return host.Record{N: n, Time: epoch.Add(time.Duration(n)), Body: &host.TextRecord{Text: text}}
}

// has tests which records a session has of its own.
func (k *kit) has(session string, want []host.Record) {
	k.Helper()
	got, err := k.store.Records(k.Context(), session)
	k.ok("Records", err)
	if len(got) != len(want) {
		k.Fatalf("session %.40q has %d records, want %d", session, len(got), len(want))
	}
	for i := range got {
		if got[i].N != want[i].N || !got[i].Time.Equal(want[i].Time) {
			k.Errorf("record %d of %v, want %d of %v", got[i].N, got[i].Time, want[i].N, want[i].Time)
		}
		if g, w := encoded(k, got[i].Body), encoded(k, want[i].Body); !bytes.Equal(g, w) {
			k.Errorf("record %d is %s, want %s", got[i].N, short(g), short(w))
		}
	}
}

// encoded is the JSON of a body, with its kind.
func encoded(t testing.TB, b host.Body) []byte {
	t.Helper()
	raw, err := host.EncodeBody(b)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(b.Kind()+" "), raw...)
}

func short(text []byte) string {
	if len(text) > 300 {
		return fmt.Sprintf("%.300q... of %d bytes", text, len(text))
	}
	return fmt.Sprintf("%q", text)
}

// race calls f from many goroutines at once and returns what they returned.
func race[T any](f func(i int) T) []T {
	out := make([]T, racers)
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range racers {
		wg.Go(func() {
			<-begin
			out[i] = f(i)
		})
	}
	close(begin)
	wg.Wait()
	return out
}

// succeeded counts the errors that are nil.
func succeeded(errs []error) int {
	return len(slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err != nil }))
}

// object is a JSON object with a text in it.
func object(text string) mcp.RawValue {
	raw, err := host.EncodeBody(&host.TextRecord{Text: text})
	if err != nil {
		panic(err) // the texts of the tests are valid
	}
	return raw
}
