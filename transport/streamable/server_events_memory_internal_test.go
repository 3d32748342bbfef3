package streamable

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func (s *memoryStore) fill(t *testing.T, stream string, from, to uint64, size int) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		s.add("", "s", stream, seq, seq, event(seq, size))
	}
}

// event is an event of size bytes, which begins with its number.
func event(seq uint64, size int) []byte {
	begin := fmt.Sprint(seq, " ")
	return []byte(begin + strings.Repeat("x", size-len(begin)-2) + "\n\n")
}

// listAfter lists the numbers of the events after seq, up to the last.
func (s *memoryStore) listAfter(t *testing.T, stream string, seq uint64) string {
	t.Helper()
	last := seq
	if in := s.sessions["s"]; in != nil && in.streams[stream] != nil {
		last = in.streams[stream].last
	}
	text, err := s.after("s", stream, seq, last)
	if errors.Is(err, ErrEventsGone) {
		return "gone"
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for e := range strings.SplitSeq(string(bytes.Join(text, nil)), "\n\n") {
		if number, _, ok := strings.Cut(e, " "); ok {
			list = append(list, number)
		}
	}
	return strings.Join(list, " ")
}

func (s *memoryStore) check(t *testing.T, stream string, seq uint64, want string) {
	t.Helper()
	if got := s.listAfter(t, stream, seq); got != want {
		t.Errorf("after %d of %s: %s, want %s", seq, stream, got, want)
	}
}

// Proves: SEC-DOS-1: what is kept is bounded by stream, by session and in time.
func TestMemoryStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryStore(100, math.MaxInt, time.Minute)
		s.check(t, "a", 0, "gone")
		s.fill(t, "a", 1, 5, 20)
		s.check(t, "a", 0, "1 2 3 4 5")
		s.check(t, "a", 3, "4 5")
		s.check(t, "a", 5, "")
		s.fill(t, "a", 6, 6, 20)
		s.check(t, "a", 0, "gone")
		s.check(t, "a", 1, "2 3 4 5 6")
		s.fill(t, "a", 7, 7, 500) // alone it may be larger
		s.check(t, "a", 6, "7")
		s.check(t, "a", 5, "gone")
		s.forget("s", "a")
		s.check(t, "a", 7, "gone")

		for i := range 10 {
			s.fill(t, fmt.Sprint(i), 1, 5, 20)
			time.Sleep(time.Second)
		}
		if size := s.sessions["s"].size; size > 500 {
			t.Errorf("a session keeps %d bytes", size)
		}
		s.check(t, "0", 0, "gone")
		s.check(t, "9", 0, "1 2 3 4 5")
		time.Sleep(56 * time.Second)
		s.expire(time.Now())
		s.check(t, "6", 0, "gone")
		s.check(t, "9", 0, "1 2 3 4 5")
		time.Sleep(time.Minute)
		s.expire(time.Now())
		if size := s.sessions["s"].size; size != 0 {
			t.Errorf("%d bytes are kept for too long", size)
		}
		s.forget("s", "")
		if len(s.sessions) != 0 {
			t.Errorf("a forgotten session is kept: %v", s.sessions)
		}
		if s.size != 0 || len(s.owners) != 0 || len(s.largest.items) != 0 {
			t.Errorf("of nothing %d bytes of %d owners are counted", s.size, len(s.owners))
		}
	})
}

// Proves: SEC-DOS-1: all together are bounded, and who has the most makes room.
func TestMemoryStoreTotal(t *testing.T) {
	const each = 1000 + chunkCost
	s := newMemoryStore(math.MaxInt, 10*each, time.Minute)
	put := func(owner, session, stream string, seq uint64, size int) {
		t.Helper()
		s.add(owner, session, stream, seq, seq, event(seq, size))
		sum := 0
		for _, o := range s.owners {
			n := 0
			for k := o.oldest; k != nil; k = k.behind {
				n += len(k.text) + chunkCost
			}
			if n != o.size {
				t.Fatalf("%s has %d bytes, counted as %d", o.key, n, o.size)
			}
			sum += n
		}
		if sum != s.size || sum > s.total {
			t.Fatalf("%d bytes, counted as %d, want at most %d", sum, s.size, s.total)
		}
	}
	kept := func(session, stream string, seq uint64, want bool) {
		t.Helper()
		l := s.sessions[session].streams[stream]
		if _, err := s.after(session, stream, seq, l.last); (err == nil) != want {
			t.Errorf("after %d of %s in %s: %v, want it kept: %v", seq, stream, session, err, want)
		}
	}
	for seq := range uint64(3) {
		put("few", "f", "1", seq+1, 1000)
	}
	for i := range 20 {
		put("many", fmt.Sprint("m", i%4), "1", uint64(i/4+1), 1000)
	}
	kept("f", "1", 0, true)
	kept("m0", "1", 4, true)  // of 20 the newest seven
	kept("m0", "1", 3, false) // whatever session they are of
	kept("m1", "1", 3, true)
	kept("m1", "1", 2, false)
	put("new", "n", "1", 1, 4000)
	kept("n", "1", 0, true)
	kept("f", "1", 0, true)
	put("new", "n", "1", 2, 100*each) // alone it is too much, and nobody else loses
	kept("n", "1", 1, false)
	kept("n", "1", 2, true)
	kept("f", "1", 0, true)
}
