package front

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// asked is what a server answers at a path.
func asked(h http.Handler, method, path string) (status int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// However many ask, the checks run once a second; what fails is named, and logged once.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		var broken atomic.Pointer[error]
		var logged bytes.Buffer
		health := NewHealth(slog.New(slog.NewTextHandler(&logged, nil)),
			HealthCheck{Name: "one", Check: func(context.Context) error { runs.Add(1); return nil }},
			HealthCheck{Name: "two", Check: func(context.Context) error {
				time.Sleep(time.Millisecond) // its work, in fake time
				if err := broken.Load(); err != nil {
					return *err
				}
				return nil
			}},
		)
		h := health.Front(http.NotFoundHandler())
		expect := func(when string, status int, body string) {
			t.Helper()
			if gotStatus, got := asked(h, http.MethodGet, readyPath); gotStatus != status || got != body {
				t.Errorf("%s: %d %s, want %d %s", when, gotStatus, got, status, body)
			}
		}
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() { expect("at first", http.StatusOK, `{"status":"ok","checks":{"one":"ok","two":"ok"}}`) })
		}
		group.Wait()
		secret := errors.New("postgres://swordfish")
		broken.Store(&secret)
		expect("within the second", http.StatusOK, `{"status":"ok","checks":{"one":"ok","two":"ok"}}`)
		if n := runs.Load(); n != 1 {
			t.Errorf("%d runs", n)
		}
		for range 3 {
			time.Sleep(healthAge)
			expect("later", http.StatusServiceUnavailable, `{"status":"failed","checks":{"one":"ok","two":"failed"}}`)
		}
		if n := strings.Count(logged.String(), "swordfish"); n != 1 || runs.Load() != 4 {
			t.Errorf("logged %d times in %d runs:\n%s", n, runs.Load(), &logged)
		}
		broken.Store(nil)
		time.Sleep(healthAge)
		expect("at last", http.StatusOK, `{"status":"ok","checks":{"one":"ok","two":"ok"}}`)
		for _, c := range []struct {
			method, path string
			status       int
		}{
			{http.MethodGet, livePath, 200},
			{http.MethodHead, readyPath, 200},
			{http.MethodPost, readyPath, 405},
			{http.MethodGet, livePath + "/", 404},
			{http.MethodGet, "/", 404},
		} {
			if status, _ := asked(h, c.method, c.path); status != c.status {
				t.Errorf("%s %s: %d, want %d", c.method, c.path, status, c.status)
			}
		}
	})
}

// A check that hangs, also one that heeds no deadline, holds nobody up for long, and no second one
// begins meanwhile.
func TestHealthHangs(t *testing.T) {
	for name, heeds := range map[string]bool{"to the deadline": true, "beyond it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var runs atomic.Int32
				health := NewHealth(slog.New(slog.DiscardHandler), HealthCheck{Name: "one", Check: func(ctx context.Context) error {
					runs.Add(1)
					if heeds {
						<-ctx.Done()
						return ctx.Err()
					}
					<-release
					return nil
				}})
				h := health.Front(http.NotFoundHandler())
				start := time.Now()
				var group sync.WaitGroup
				for range 10 {
					group.Go(func() {
						status, body := asked(h, http.MethodGet, readyPath)
						if status != http.StatusServiceUnavailable || body != `{"status":"failed","checks":{"one":"timeout"}}` {
							t.Errorf("%d %s", status, body)
						}
						if status, _ := asked(h, http.MethodGet, livePath); status != http.StatusOK {
							t.Errorf("not even alive: %d", status)
						}
					})
				}
				group.Wait()
				if took := time.Since(start); took > HealthTime+healthAge || runs.Load() != 1 {
					t.Errorf("%v, %d runs", took, runs.Load())
				}
				close(release)
				health.Close()
			})
		})
	}
}
