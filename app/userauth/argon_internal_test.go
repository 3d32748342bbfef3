package userauth

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The work for nobody is that for somebody.
func TestNobodyIsAsMuchWork(t *testing.T) {
	t.Parallel()
	some, err := HashPassword("some password")
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseHash(some)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseHash(dummyHash)
	if err != nil {
		t.Fatal(err)
	}
	if got.memory != want.memory || got.passes != want.passes || got.threads != want.threads || len(got.key) != len(want.key) {
		t.Errorf("nobody has %+v, somebody %+v", got, want)
	}
}

// The vector is of the reference implementation (test.c of phc-winner-argon2).
func TestVerify(t *testing.T) {
	t.Parallel()
	const vector = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	h := newHashing()
	for password, want := range map[string]bool{"password": true, "Password": false, "": false} {
		if got, err := h.verify(t.Context(), vector, password); err != nil || got != want {
			t.Errorf("verify %q: %v, %v; want %v", password, got, err, want)
		}
	}
	for _, bad := range []string{
		"", "plain", vector[1:], strings.Replace(vector, "argon2id", "argon2i", 1), strings.Replace(vector, "v=19", "v=16", 1),
		strings.Replace(vector, "m=256", "m=99999999", 1), strings.Replace(vector, "t=2", "t=99999", 1), strings.Replace(vector, "p=1", "p=0", 1),
		strings.Replace(vector, "t=2", "t=2 ", 1), strings.Replace(vector, "$c29tZXNhbHQ", "$", 1), vector + "=", vector + "$x",
	} {
		if _, err := h.verify(t.Context(), bad, "password"); !errors.Is(err, errHash) {
			t.Errorf("hash %q: error %v", bad, err)
		}
	}
}

// Two are computed at once, some wait, and the rest is told so.
func TestHashingIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHashing()
		for range hashesAtOnce {
			h.workers <- struct{}{}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiting := make(chan error, hashesAtOnce+hashesWaiting)
		for range cap(waiting) {
			go func() {
				_, err := h.verify(ctx, dummyHash, "password")
				waiting <- err
			}()
		}
		synctest.Wait() // until they stand in line
		if len(h.queue) != cap(h.queue) || len(waiting) > 0 {
			t.Fatalf("%d of %d stand in line, and %d were answered", len(h.queue), cap(h.queue), len(waiting))
		}
		if _, err := h.verify(t.Context(), dummyHash, "password"); !errors.Is(err, errBusy) {
			t.Errorf("one too many: error %v", err)
		}
		cancel()
		for range cap(waiting) {
			if err := <-waiting; !errors.Is(err, errBusy) {
				t.Errorf("one who left: error %v", err)
			}
		}
		// Who stays is told so in the end as well.
		began := time.Now()
		if _, err := h.verify(t.Context(), dummyHash, "password"); !errors.Is(err, errBusy) || time.Since(began) != maxQueueTime {
			t.Errorf("one who waits: error %v after %v", err, time.Since(began))
		}
	})
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	th := newThrottle(func() time.Time { return now })
	fail := func(user, address string) time.Duration {
		_, wait := th.begin(unknownBuckets(user, address))
		return wait
	}
	// At one time as many get through as are free, whatever becomes of them.
	through := 0
	for range 64 {
		if fail("u", "a") == 0 {
			through++
		}
	}
	if through != pairRule.free {
		t.Errorf("%d attempts at once, want %d", through, pairRule.free)
	}
	// The delay is bounded.
	var wait, longest time.Duration
	for range 40 {
		wait = fail("u", "a")
		now, longest = now.Add(wait), max(longest, wait)
	}
	if longest != pairRule.longest {
		t.Errorf("after many failures the wait is %v, want %v", longest, pairRule.longest)
	}
	// From many addresses the user is slow, though less.
	now, longest = now.Add(2*forgetAfter), 0
	for i := range 100 {
		wait = fail("v", strconv.Itoa(i))
		now, longest = now.Add(wait), max(longest, wait)
	}
	if longest != userRule.longest {
		t.Errorf("guesses from many addresses wait %v, want %v", longest, userRule.longest)
	}
	// Success takes back itself alone: who has an account does not get to
	// guess at others without end.
	now = now.Add(2 * forgetAfter)
	for i := range 2 * addressRule.free {
		if a, wait := th.begin(unknownBuckets("mine", "b")); wait == 0 {
			a.succeed()
		}
		wait = fail(strconv.Itoa(i), "b")
	}
	if wait == 0 {
		t.Error("successes hide guesses from the same address")
	}
	if a, wait := th.begin(unknownBuckets("mine", "d")); wait > 0 {
		t.Errorf("after success elsewhere: %v", wait)
	} else {
		a.forget()
	}
	// The table is bounded.
	clear(th.tries)
	const limit = 10
	th.limit = limit
	for i := range 100 {
		fail("table"+strconv.Itoa(i), strconv.Itoa(i))
	}
	if len(th.tries) > limit {
		t.Errorf("%d entries", len(th.tries))
	}
}
