package fetch

import (
	"fmt"
	"testing"
	"time"
)

func TestCache(t *testing.T) {
	now := time.Unix(0, 0)
	c := newCache[int](1000, time.Hour)
	c.now = func() time.Time { return now }
	has := func(key string, want bool) {
		t.Helper()
		if _, ok := c.get(key); ok != want {
			t.Errorf("%s is kept: %t, want %t", key, ok, want)
		}
	}
	for i := range 3 {
		c.put(fmt.Sprint(i), i, 50)
	}
	has("0", true) // and is the last that was used
	c.put("3", 3, 50)
	has("1", false)
	has("0", true)
	c.put("large", 0, 1000)
	has("large", false)
	c.put("0", 7, 50)
	if v, _ := c.get("0"); v != 7 {
		t.Errorf("0 is %d, want the new value 7", v)
	}
	now = now.Add(time.Hour)
	for i := range 4 {
		has(fmt.Sprint(i), false)
	}
	if c.used > 0 && c.order.Len() == 0 || len(c.byKey) != c.order.Len() {
		t.Errorf("%d bytes are counted for %d values and %d keys", c.used, c.order.Len(), len(c.byKey))
	}
	if got := newFetcher(&Options{RobotsTime: 48 * time.Hour}).robots.time; got != 24*time.Hour {
		t.Errorf("a robots.txt is kept for %v, want 24 h at most", got)
	}
}
