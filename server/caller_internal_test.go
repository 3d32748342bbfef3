package server

import (
	"strconv"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/principal"
)

// Proves that remembering a key does not change it, whoever called before.
func TestKeyOfCaller(t *testing.T) {
	var s callers
	who := []*principal.Principal{nil, {}, principal.Local, {Remote: "2001:db8::1"}, {Remote: "2001:db8::2"}, {Subject: "a", Remote: "192.0.2.1"}, {Remote: strings.Repeat("x", 1000)}}
	for i := range 200 {
		who = append(who, &principal.Principal{Remote: "192.0.2." + strconv.Itoa(i)})
	}
	for range 2 {
		for _, p := range who {
			if got, want := s.keyOf(p), p.LimitKey(); got != want {
				t.Errorf("%+v counts as %q, want %q", p, got, want)
			}
		}
	}
	p := &principal.Principal{Remote: "192.0.2.1"}
	s.keyOf(p)
	if n := testing.AllocsPerRun(100, func() { s.keyOf(p) }); n > 0 {
		t.Errorf("a key that is known takes %v allocations", n)
	}
}

func TestCallersAreForgotten(t *testing.T) {
	s := callers{byKey: make(map[string]*caller)}
	busy := s.at("busy")
	busy.inFlight = 1
	for i := range 3 * maxIdleCallers {
		who := s.at(strconv.Itoa(i))
		who.inFlight++
		who.inFlight--
		s.dropIdle(who)
	}
	s.dropIdle(busy)
	if len(s.byKey) > maxIdleCallers+1 || s.at("busy") != busy {
		t.Errorf("%d callers are remembered", len(s.byKey))
	}
}
