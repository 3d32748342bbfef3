package streamable

// An owner is who the sessions under one limit key belong to: an identified
// caller, or the anonymous callers of one address. It is in the table while it
// has sessions, and belongs to the lock of that.
type owner struct {
	sessions   int // those too that begin, and end on their own
	registered int // those that count: the table says which

	// The sessions of anonymous callers that nobody uses, a list through the
	// sessions. The oldest was idle the longest.
	oldest, newest *session
	place          int // in the ranking of idle owners
}

// append adds a session that nobody uses any more.
func (o *owner) append(s *session) {
	if s.before = o.newest; s.before != nil {
		s.before.behind = s
	} else {
		o.oldest = s
	}
	o.newest = s
}

// remove takes a session out of those that nobody uses, if it is there.
func (o *owner) remove(s *session) {
	switch {
	case s.before != nil:
		s.before.behind = s.behind
	case o.oldest == s:
		o.oldest = s.behind
	default:
		return
	}
	if s.behind != nil {
		s.behind.before = s.before
	} else {
		o.newest = s.before
	}
	s.before, s.behind = nil, nil
}

// idleOwners ranks the owners that have a session nobody uses. The first has the
// most sessions, and of several such the one that was idle the longest.
func idleOwners() ranking[*owner] {
	return ranking[*owner]{
		above: func(a, b *owner) bool {
			if a.registered != b.registered {
				return a.registered > b.registered
			}
			return a.oldest.used.Before(b.oldest.used)
		},
		place: func(o *owner) *int { return &o.place },
	}
}
