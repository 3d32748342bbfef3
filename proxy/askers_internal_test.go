package proxy

import (
	"fmt"
	"testing"
)

// The features that ask are bounded: the first that was noted is forgotten first.
func TestAskers(t *testing.T) {
	s := askers{sure: make(map[feature]bool)}
	of := func(i int) feature { return feature{"resources/read", fmt.Sprint("x:///", i)} }
	for i := range 3 * maxAskers {
		s.note(of(i), i%2 == 0)
	}
	if len(s.sure) != maxAskers || len(s.order) != maxAskers {
		t.Errorf("%d are known, in an order of %d", len(s.sure), len(s.order))
	}
	if s.has(of(0)) || !s.has(of(3*maxAskers-1)) {
		t.Error("the wrong one was forgotten")
	}
	sure, suspected := of(3*maxAskers-2), of(3*maxAskers-1)
	s.clear(sure)
	s.clear(suspected)
	if !s.has(sure) || s.has(suspected) || len(s.order) != maxAskers-1 {
		t.Error("what is sure is not forgotten, what is suspected is")
	}
	s.note(suspected, false)
	s.note(suspected, true)
	s.clear(suspected)
	if !s.has(suspected) {
		t.Error("what became sure is not forgotten")
	}
}
