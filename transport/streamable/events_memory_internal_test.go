package streamable

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func (s *memoryStore) fill(t *testing.T, stream string, from, to uint64, size int) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		e := Event{Session: "s", Stream: stream, Seq: seq, Data: []byte(strings.Repeat("x", size))}
		if err := s.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *memoryStore) after(t *testing.T, stream string, seq uint64) string {
	t.Helper()
	events, err := s.After(t.Context(), "s", stream, seq)
	if errors.Is(err, ErrEventsGone) {
		return "gone"
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range events {
		list = append(list, fmt.Sprint(e.Seq))
	}
	return strings.Join(list, " ")
}

func (s *memoryStore) check(t *testing.T, stream string, seq uint64, want string) {
	t.Helper()
	if got := s.after(t, stream, seq); got != want {
		t.Errorf("after %d of %s: %s, want %s", seq, stream, got, want)
	}
}

// Proves: SEC-DOS-1: what is kept is bounded by stream, by session and in time.
func TestMemoryStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryStore(100, time.Minute)
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
		if err := s.Forget(t.Context(), "s", "a"); err != nil {
			t.Fatal(err)
		}
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
		if err := s.Forget(t.Context(), "s", ""); err != nil || len(s.sessions) != 0 {
			t.Errorf("a forgotten session is kept: %v, %v", s.sessions, err)
		}
	})
}
