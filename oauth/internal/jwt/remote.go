package jwt

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
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
	expires time.Time // of the set
	ended   time.Time // when the last fetch ended, however it did
	err     error     // of the last fetch
	flight  *flight   // the fetch under way, or nil
	closed  bool
}

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
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// fetchTimeout bounds a fetch as a whole: also the finding of the URL.
const fetchTimeout = time.Minute

// What a Remote says that has no set: it was closed, or its set is too old
// although the last fetch went well, which only a clock that jumps can do.
var (
	errClosed = errors.New("key source is closed")
	errOld    = errors.New("key set is too old")
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
	if r.o.Now == nil {
		r.o.Now = time.Now
	}
	return r
}

// Find returns the keys with this id that fit the algorithm. If there is none
// the set is fetched anew, unless that was done a moment ago. The error is that
// of the fetch, or of the last one if it failed and there is another under way
// or none due, or that of ctx while waiting; it is for logs.
func (r *Remote) Find(ctx context.Context, id, algorithm string) ([]crypto.PublicKey, error) {
	keys, f, err := r.lookup(id, algorithm, true)
	if f == nil {
		return keys, err
	}
	select {
	case <-f.done:
		keys, _, err = r.lookup(id, algorithm, false)
		return keys, err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the key set: %w", context.Cause(ctx))
	}
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
// starts if one is due. Without mayFetch it answers in any case.
func (r *Remote) lookup(id, algorithm string, mayFetch bool) ([]crypto.PublicKey, *flight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errClosed
	}
	now := r.o.Now()
	var keys []crypto.PublicKey
	usable := r.set != nil && now.Before(r.expires.Add(max(r.o.StaleIfError, 0)))
	if usable {
		keys = r.set.find(id, algorithm)
	}
	fresh := usable && now.Before(r.expires)
	if fresh && len(keys) > 0 {
		return keys, nil, nil
	}
	if mayFetch && r.flight == nil && (r.ended.IsZero() || now.Sub(r.ended) >= r.o.MinInterval) {
		r.start()
	}
	switch {
	case len(keys) > 0 && (r.err != nil || r.flight == nil || !mayFetch):
		// The server errs: no caller waits for it while there is an old key.
		return keys, nil, nil
	case usable && r.err != nil:
		// The key may be a new one, so that the token is not called bad; and
		// a client that makes ids up must not fill memory with waiting requests.
		return nil, nil, r.err
	case mayFetch && r.flight != nil:
		return nil, r.flight, nil
	case !usable:
		return nil, nil, cmp.Or(r.err, errOld)
	default:
		return nil, nil, nil
	}
}

// start makes the fetch, which belongs to no caller that waits for it: it has a
// context of its own and ends by its own timeout.
func (r *Remote) start() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	f := &flight{done: make(chan struct{}), cancel: cancel}
	r.flight = f
	r.running.Go(func() {
		defer cancel()
		set, age, err := r.fetch(ctx)
		r.mu.Lock()
		r.ended, r.err, r.flight = r.o.Now(), err, nil
		if err == nil {
			r.set, r.expires = set, r.ended.Add(age)
		}
		r.mu.Unlock()
		close(f.done)
	})
}

// fetch returns a set and how long it is fresh.
func (r *Remote) fetch(ctx context.Context) (*Set, time.Duration, error) {
	target, err := r.url(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("find the key set: %w", err)
	}
	response, err := r.fetcher.Get(ctx, target, http.Header{"Accept": {"application/jwk-set+json, application/json"}})
	if err != nil {
		return nil, 0, fmt.Errorf("fetch the key set: %w", err)
	}
	if response.Status != http.StatusOK {
		return nil, 0, fmt.Errorf("fetch the key set: status %d", response.Status)
	}
	set, err := ParseSet(response.Body)
	if err != nil {
		return nil, 0, fmt.Errorf("fetch the key set: %w", err)
	}
	age := r.o.MaxAge
	if told, ok := maxAge(response.Header); ok {
		age = min(age, told)
	}
	return set, max(age, r.o.MinInterval), nil
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
