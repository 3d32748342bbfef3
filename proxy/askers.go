package proxy

import "slices"

// maxAskers is how many features are known to ask. Then the one that was noted first
// is forgotten: its next call may run concurrently with one of another caller, and is refused
// to ask once.
const maxAskers = 1024

// A feature is what a call uses: a tool, a prompt or a resource.
type feature struct {
	method string
	name   string // or URI
}

// askers are the features that ask.
type askers struct {
	sure  map[feature]bool // false: a question was refused that may have been its own
	order []feature        // in the order in which they were noted
}

func (s *askers) has(f feature) bool {
	_, ok := s.sure[f]
	return ok
}

// note notes that a feature asks, for sure or perhaps.
func (s *askers) note(f feature, sure bool) {
	if was, ok := s.sure[f]; ok {
		s.sure[f] = was || sure
		return
	}
	if len(s.order) >= maxAskers {
		delete(s.sure, s.order[0])
		s.order = s.order[1:]
	}
	s.sure[f] = sure
	s.order = append(s.order, f)
}

// clear notes that a feature did not ask. What is sure stays so.
func (s *askers) clear(f feature) {
	if sure, ok := s.sure[f]; ok && !sure {
		delete(s.sure, f)
		s.order = slices.DeleteFunc(s.order, func(o feature) bool { return o == f })
	}
}
