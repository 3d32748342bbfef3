package userauth

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/argon2"
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
	got, err := parseHash(dummyHash())
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

// A password is the same however the keyboard makes its letters and blanks. One whose hash is of an
// earlier version, which took 4 letters of 2 bytes and hashed what was typed, is still taken.
func TestPasswordForms(t *testing.T) {
	t.Parallel()
	const old = "a\u0308a\u0308 b" // decomposed: 8 bytes, and 4 characters
	salt := []byte("salt of 16 bytes")
	asTyped := "$argon2id$v=19$m=64,t=1,p=1$" + phc.EncodeToString(salt) + "$" +
		phc.EncodeToString(argon2.IDKey([]byte(old), salt, 1, 64, 1, argonKey))
	composed, err := HashPassword("p\u00e4sswort mit Blank ")
	if err != nil {
		t.Fatal(err)
	}
	h := newHashing()
	for _, c := range []struct {
		hash, password string
		want           bool
	}{
		{composed, "p\u00e4sswort mit Blank ", true},
		{composed, "pa\u0308sswort mit Blank ", true},
		{composed, "p\u00e4sswort\u00a0mit\u00a0Blank\u00a0", true},
		{composed, "p\u00e4sswort mit Blank", false},
		{composed, "passwort mit Blank ", false},
		{asTyped, old, true},
		{asTyped, "\u00e4\u00e4 b", false}, // as with that version
	} {
		if got, err := h.verify(t.Context(), c.hash, c.password); err != nil || got != c.want {
			t.Errorf("%+q: %v, %v; want %v", c.password, got, err, c.want)
		}
	}
	if checkPassword(old) == nil || !possiblePassword(old) {
		t.Errorf("%+q is taken as a new password, or not at the sign-in", old)
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
				_, err := h.verify(ctx, dummyHash(), "password")
				waiting <- err
			}()
		}
		synctest.Wait() // until they stand in line
		if len(h.queue) != cap(h.queue) || len(waiting) > 0 {
			t.Fatalf("%d of %d stand in line, and %d were answered", len(h.queue), cap(h.queue), len(waiting))
		}
		if _, err := h.verify(t.Context(), dummyHash(), "password"); !errors.Is(err, errBusy) {
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
		if _, err := h.verify(t.Context(), dummyHash(), "password"); !errors.Is(err, errBusy) || time.Since(began) != maxQueueTime {
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
