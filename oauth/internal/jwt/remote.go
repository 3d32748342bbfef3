package jwt

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A Remote is a Source at a jwks_uri: fetched when first needed, by one
// goroutine at a time while others wait for it (until their own context
// ends), throttled for unknown key ids, stale while the server errs.
type Remote struct {
	fetcher *oauth.Fetcher
	url     func(context.Context) (string, error)
	o       RemoteOptions
	running sync.WaitGroup

	mu      sync.Mutex
	set     *Set
	tag     entityTag // of the set
	began   time.Time // when the fetch of the set began, or as long before as a cache had kept it
	expires time.Time // of the set
	ended   time.Time // when the last fetch ended, however it did
	err     error     // of the last fetch
	flight  *flight   // the fetch under way, or nil
	closed  bool
	absent  map[absentKey]time.Time // keys that the set lacks, and when they were first asked for
}

// An absentKey stands for an id and an algorithm.
type absentKey [sha256.Size]byte

const (
	// maxAbsent is how many absent keys are remembered, absentAge for how long.
	maxAbsent = 1000
	absentAge = time.Minute
)

// An entityTag is that of what an address answered.
type entityTag struct{ address, tag string }

// flight is one fetch.
type flight struct {
	done   chan struct{}
	cancel context.CancelFunc
}

// RemoteOptions adjust a Remote.
type RemoteOptions struct {
	// MaxAge is how long a set is used at most before it is fetched anew;
	// Cache-Control of the answer may shorten it, down to MinInterval.
	// Default 1 h.
	MaxAge time.Duration
	// MinInterval is the least time between two fetches, whatever key ids
	// tokens name. Default 10 s.
	MinInterval time.Duration
	// StaleIfError is how long an old set is used beyond its age while
	// fetching fails. Default 24 h; negative: not at all.
	StaleIfError time.Duration
	// Limit is how long a set is used at all, counted from when its fetch began,
	// or from when a cache between fetched it, as its Age header says; only who waits for a fetch uses the
	// set that it brings even if it took longer. The set is fetched again when half of the
	// time is over, while the old one is used; MaxAge and MinInterval are
	// bounded by a half and a quarter of it. Default 0: no limit.
	Limit time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// A DoubtError says that a set lacks a key, and that the key may have been published since the set
// was fetched: the token may be good. The set is fetched again after Wait at the earliest.
type DoubtError struct{ Wait time.Duration }

func (e *DoubtError) Error() string {
	return fmt.Sprintf("key is not in the key set, which may have changed: next fetch in %v", e.Wait)
}

// fetchTimeout bounds a fetch as a whole: also the finding of the URL.
const fetchTimeout = time.Minute

// What a Remote says that has no set: it was closed, or its set is too old
// although the last fetch went well, which only a clock that jumps can do.
var (
	errClosed = errors.New("key source is closed")
	errOld    = errors.New("key set is too old")
	errNoKeys = errors.New("key set has no keys that signatures can be verified with")
)

// NewRemote makes a Remote. url is called when a fetch is due, so that a
// jwks_uri may come out of metadata that is fetched then.
func NewRemote(f *oauth.Fetcher, url func(context.Context) (string, error), o *RemoteOptions) *Remote {
	r := &Remote{fetcher: f, url: url}
	if o != nil {
		r.o = *o
	}
	r.o.MaxAge = cmp.Or(r.o.MaxAge, time.Hour)
	r.o.MinInterval = cmp.Or(r.o.MinInterval, 10*time.Second)
	r.o.StaleIfError = cmp.Or(r.o.StaleIfError, 24*time.Hour)
	if r.o.Limit > 0 {
		r.o.MaxAge = min(r.o.MaxAge, r.o.Limit/2)
		r.o.MinInterval = min(r.o.MinInterval, r.o.Limit/4)
		r.o.StaleIfError = r.o.Limit
	}
	if r.o.Now == nil {
		r.o.Now = time.Now
	}
	return r
}

// Find returns the keys with this id that fit the algorithm. If there is none
// the set is fetched anew, unless that was done a moment ago: then the error is a *[DoubtError],
// until the set was fetched since the key was first asked for. Another error is that
// of the fetch, or of the last one if it failed and there is another under way
// or none due, or that of ctx while waiting; it is for logs.
func (r *Remote) Find(ctx context.Context, id, algorithm string) ([]crypto.PublicKey, error) {
	keys, _, err := r.FindUntil(ctx, id, algorithm)
	return keys, err
}

// FindUntil is Find, and says until when the keys may be used without asking again: the zero time
// if there is no Limit.
func (r *Remote) FindUntil(ctx context.Context, id, algorithm string) ([]crypto.PublicKey, time.Time, error) {
	asked := r.o.Now()
	keys, until, f, err := r.lookup(id, algorithm, asked, true)
	if f == nil {
		return keys, until, err
	}
	select {
	case <-f.done:
		keys, until, _, err = r.lookup(id, algorithm, asked, false)
		return keys, until, err
	case <-ctx.Done():
		return nil, time.Time{}, fmt.Errorf("wait for the key set: %w", context.Cause(ctx))
	}
}

// Ready says whether there is a set with keys that may be used. If there is none it is fetched, when a
// fetch is due; the error is as that of Find. A set that is not fresh any more is fetched anew, and may be
// used meanwhile.
func (r *Remote) Ready(ctx context.Context) error {
	f, err := r.prepare(true)
	if f == nil {
		return err
	}
	select {
	case <-f.done:
		_, err := r.prepare(false)
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the key set: %w", context.Cause(ctx))
	}
}

// prepare says whether the set may be used, or returns the fetch to wait for, which it starts if one is
// due. Without mayFetch it answers in any case: the caller has waited for a fetch.
func (r *Remote) prepare(mayFetch bool) (*flight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	now := r.o.Now()
	usable := r.set != nil && (r.usable(now) || !mayFetch && r.o.Limit > 0 && r.err == nil)
	fresh := usable && now.Before(r.expires) && !now.Before(r.began)
	if mayFetch && !fresh && r.flight == nil && r.due(now, usable) {
		r.start(now)
	}
	switch {
	case usable && len(r.set.keys) == 0:
		return nil, errNoKeys
	case usable:
		return nil, nil
	case mayFetch && r.flight != nil:
		return r.flight, nil
	}
	return nil, cmp.Or(r.err, errOld)
}

// Close ends a fetch that is under way and waits for it. Find finds nothing
// afterwards.
func (r *Remote) Close() {
	r.mu.Lock()
	r.closed = true
	if r.flight != nil {
		r.flight.cancel()
	}
	r.mu.Unlock()
	r.running.Wait()
}

// lookup answers from what is there, or returns the fetch to wait for, which it
// starts if one is due. Without mayFetch it answers in any case: the caller has waited for a fetch.
func (r *Remote) lookup(id, algorithm string, asked time.Time, mayFetch bool) ([]crypto.PublicKey, time.Time, *flight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, time.Time{}, nil, errClosed
	}
	now := r.o.Now()
	var keys []crypto.PublicKey
	waited := r.o.Limit > 0 && !mayFetch && r.err == nil // for a set that may have taken longer than the limit
	usable := r.set != nil && (waited || r.usable(now))
	if usable {
		keys = r.set.find(id, algorithm)
	}
	fresh := usable && now.Before(r.expires) && !now.Before(r.began)
	if fresh && len(keys) > 0 {
		return keys, r.until(), nil, nil
	}
	if mayFetch && r.flight == nil && r.due(now, usable) {
		r.start(now)
	}
	switch {
	case len(keys) > 0 && (r.err != nil || r.flight == nil || !mayFetch || r.o.Limit > 0):
		// The server errs, or there is a limit, within which the old key is good: no
		// caller waits for the server while there is one.
		return keys, r.until(), nil, nil
	case usable && r.err != nil:
		// The key may be a new one, so that the token is not called bad; and
		// a client that makes ids up must not fill memory with waiting requests.
		return nil, time.Time{}, nil, r.err
	case mayFetch && r.flight != nil:
		return nil, time.Time{}, r.flight, nil
	case !usable:
		return nil, time.Time{}, nil, cmp.Or(r.err, errOld)
	default:
		return nil, time.Time{}, nil, r.doubt(id, algorithm, asked, now)
	}
}

// due says whether the set, usable or not, may be fetched.
func (r *Remote) due(now time.Time, usable bool) bool {
	if r.o.Limit > 0 && !usable && r.err == nil {
		return true // the limit is what holds the fetches apart
	}
	return r.ended.IsZero() || now.Sub(r.ended) >= r.o.MinInterval || now.Before(r.ended)
}

// usable says whether the set that there is may be used, fresh or not.
func (r *Remote) usable(now time.Time) bool {
	if r.o.Limit > 0 {
		return now.Before(r.until()) && !now.Before(r.began)
	}
	return now.Before(r.expires.Add(max(r.o.StaleIfError, 0)))
}

// until is when the set is not used any more because of the limit, or the zero time.
func (r *Remote) until() time.Time {
	if r.o.Limit <= 0 {
		return time.Time{}
	}
	return r.began.Add(r.o.Limit)
}

// doubt returns nil if the set was fetched since a key that it lacks was first asked for: no such
// key was published then. Else it is a *DoubtError. A stranger who guesses the id of a coming key
// gains at most that its tokens are refused until the next fetch.
func (r *Remote) doubt(id, algorithm string, asked, now time.Time) error {
	key := absentKey(sha256.Sum256([]byte(algorithm + " " + id)))
	if first, ok := r.absent[key]; ok && !now.Before(first) && now.Sub(first) < absentAge {
		asked = first
	} else {
		r.noteAbsent(key, asked, now)
	}
	if !r.began.Before(asked) {
		return nil
	}
	return &DoubtError{max(0, r.ended.Add(r.o.MinInterval).Sub(now))}
}

// noteAbsent notes when a key was first asked for, if there is room.
func (r *Remote) noteAbsent(key absentKey, asked, now time.Time) {
	if len(r.absent) >= maxAbsent {
		maps.DeleteFunc(r.absent, func(_ absentKey, first time.Time) bool { return now.Sub(first) >= absentAge })
	}
	if len(r.absent) >= maxAbsent {
		return
	}
	if r.absent == nil {
		r.absent = map[absentKey]time.Time{}
	}
	r.absent[key] = asked
}

// start makes the fetch, which belongs to no caller that waits for it: it has a
// context of its own and ends by its own timeout.
func (r *Remote) start(began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	f := &flight{done: make(chan struct{}), cancel: cancel}
	r.flight = f
	known := r.tag
	if r.set == nil {
		known = entityTag{}
	}
	r.running.Go(func() {
		defer cancel()
		got, err := r.fetch(ctx, known)
		r.mu.Lock()
		r.ended, r.err, r.flight = r.o.Now(), err, nil
		if err == nil {
			if got.set != nil {
				r.set, r.tag = got.set, got.tag
			}
			r.began, r.expires = began, r.ended.Add(got.fresh)
			if r.o.Limit > 0 {
				r.began = began.Add(-got.kept)
				r.expires = r.began.Add(got.fresh)
			}
		}
		r.mu.Unlock()
		close(f.done)
	})
}

// A fetched is what a fetch brought.
type fetched struct {
	set   *Set // nil: that of before is still good
	tag   entityTag
	fresh time.Duration // how long it is fresh
	kept  time.Duration // how long a cache had kept it
}

// fetch fetches a set, if it is not the one that is known by its tag.
func (r *Remote) fetch(ctx context.Context, known entityTag) (*fetched, error) {
	target, err := r.url(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the key set: %w", err)
	}
	header := http.Header{"Accept": {"application/jwk-set+json, application/json"}}
	if known.tag != "" && known.address == target {
		header.Set("If-None-Match", known.tag)
	}
	if r.o.Limit > 0 {
		header.Set("Cache-Control", "no-cache") // RFC 9111, section 5.2.1.4
	}
	response, err := r.fetcher.Get(ctx, target, header)
	if err != nil {
		return nil, fmt.Errorf("fetch the key set: %w", err)
	}
	got := &fetched{fresh: r.o.MaxAge, kept: keptFor(response.Header)}
	switch {
	case response.Status == http.StatusOK:
		if got.set, err = ParseSet(response.Body); err != nil {
			return nil, fmt.Errorf("fetch the key set: %w", err)
		}
		if response.URL == target {
			got.tag = entityTag{target, response.Header.Get("ETag")}
		}
	case response.Status != http.StatusNotModified || header.Get("If-None-Match") == "":
		return nil, fmt.Errorf("fetch the key set: status %d", response.Status)
	}
	if told, ok := maxAge(response.Header); ok {
		got.fresh = min(got.fresh, told)
	}
	got.fresh = max(got.fresh, r.o.MinInterval)
	if r.o.Limit > 0 && got.kept >= r.o.Limit {
		return nil, fmt.Errorf("fetch the key set: a cache had kept it for %v, and the limit is %v", got.kept, r.o.Limit)
	}
	return got, nil
}

// keptFor reads Age (RFC 9111, section 5.1). What cannot be read says nothing.
func keptFor(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Age"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// maxAge reads Cache-Control (RFC 9111, section 5.2.2). What cannot be read
// says nothing.
func maxAge(h http.Header) (age time.Duration, ok bool) {
	for _, line := range h.Values("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(name) {
			case "no-store", "no-cache":
				return 0, true
			case "max-age":
				seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
				if err == nil && !ok {
					age, ok = time.Duration(seconds)*time.Second, true
				}
			}
		}
	}
	return age, ok
}
