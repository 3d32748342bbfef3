package front

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Paths of the health of a server.
const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

const (
	// HealthTime is how long a check may take, and healthAge how long its result stands.
	HealthTime = 2 * time.Second
	healthAge  = time.Second
)

// A HealthCheck finds out whether a part of a server works. Its error is for the log.
type HealthCheck struct {
	Name  string
	Check func(ctx context.Context) error
}

// Health answers whether a server is alive and ready. The checks run at most once a second, however
// many ask; strangers are told the names of the checks and no more.
type Health struct {
	checks []HealthCheck
	log    *slog.Logger
	group  sync.WaitGroup // of a run

	mu      sync.Mutex
	last    healthReport
	at      time.Time
	running chan struct{} // closed when the checks have run; nil if they do not
}

// A healthReport is what readyz answers.
type healthReport struct {
	Status string            `json:"status"`           // "ok" or "failed"
	Checks map[string]string `json:"checks,omitempty"` // "ok", "failed" or "timeout"
}

const (
	healthOK      = "ok"
	healthFailed  = "failed"
	healthTimeout = "timeout"
)

// NewHealth returns a Health of checks, which logs what fails.
func NewHealth(log *slog.Logger, checks ...HealthCheck) *Health {
	return &Health{checks: checks, log: log}
}

// Front answers the paths of the health, and has next answer all others.
func (h *Health) Front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != livePath && r.URL.Path != readyPath {
			next.ServeHTTP(w, r)
			return
		}
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "use GET", http.StatusMethodNotAllowed)
			return
		}
		report := healthReport{Status: healthOK}
		if r.URL.Path == readyPath {
			report = h.ready(r.Context())
		}
		header.Set("Content-Type", "application/json")
		if report.Status != healthOK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(&report) // the client is gone
	})
}

// ready is the last report, or a new one if that is too old.
func (h *Health) ready(ctx context.Context) healthReport {
	h.mu.Lock()
	if h.running == nil && (h.at.IsZero() || time.Since(h.at) >= healthAge) {
		h.running = make(chan struct{})
		h.group.Go(h.run)
	}
	running, last := h.running, h.last
	h.mu.Unlock()
	if running == nil {
		return last
	}
	late := time.NewTimer(HealthTime + healthAge)
	defer late.Stop()
	select {
	case <-running:
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.last
	case <-ctx.Done():
	case <-late.C:
	}
	report := healthReport{Status: healthFailed, Checks: map[string]string{}}
	for _, c := range h.checks {
		report.Checks[c.Name] = healthTimeout
	}
	return report
}

// run runs the checks, all at once.
func (h *Health) run() {
	ctx, cancel := context.WithTimeout(context.Background(), HealthTime)
	defer cancel()
	errs := make([]error, len(h.checks))
	var group sync.WaitGroup
	for i, c := range h.checks {
		group.Go(func() { errs[i] = c.Check(ctx) })
	}
	group.Wait()
	report := healthReport{Status: healthOK, Checks: map[string]string{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range h.checks {
		state := healthOK
		switch {
		case errors.Is(errs[i], context.DeadlineExceeded):
			state = healthTimeout
		case errs[i] != nil:
			state = healthFailed
		}
		if state != healthOK {
			report.Status = healthFailed
			if h.last.Checks[c.Name] != state {
				h.log.Error("not ready", "check", c.Name, "error", errs[i].Error())
			}
		} else if before := h.last.Checks[c.Name]; before != "" && before != healthOK {
			h.log.Warn("ready again", "check", c.Name)
		}
		report.Checks[c.Name] = state
	}
	h.last, h.at = report, time.Now()
	close(h.running)
	h.running = nil
}

// Close waits for a run that is under way.
func (h *Health) Close() { h.group.Wait() }
