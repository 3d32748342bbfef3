package guard

import (
	"fmt"
	"testing"
	"time"
)

// The cache never exceeds its size, and drops what ended, then what was used
// longest ago, roughly.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	const size = 160
	c := newCache(size)
	now := time.Unix(1000, 0)
	key := func(i int) digest { return digestOf(fmt.Sprint("token", i)) }
	hot := key(-1)
	for i := range 10 * size {
		now = now.Add(time.Millisecond)
		c.put(key(i), &verified{until: now.Add(time.Hour)}, now)
		c.put(hot, &verified{until: now.Add(time.Hour)}, now)
		n := 0
		for j := range c.shards {
			n += len(c.shards[j].entries)
		}
		if n > size {
			t.Fatalf("%d entries, want %d at most", n, size)
		}
		if c.get(key(i), now) == nil || c.get(hot, now) == nil {
			t.Fatalf("entry %d: what was used a moment ago is gone", i)
		}
	}
	recent := 0
	for i := 9 * size; i < 10*size; i++ {
		if c.get(key(i), now) != nil {
			recent++
		}
	}
	if recent < size/2 {
		t.Errorf("of the %d newest, %d are there", size, recent)
	}
	if c.get(key(10*size-1), now.Add(2*time.Hour)) != nil {
		t.Error("what has ended counts")
	}
}

// The digest of a long token is that of all of it.
func TestDigestOfLongToken(t *testing.T) {
	t.Parallel()
	long := make([]byte, maxToken)
	a, b := append(long, 'a'), append(append([]byte(nil), long...), 'b')
	if digestOf(string(a)) == digestOf(string(b)) {
		t.Error("the end of a token does not count")
	}
}
