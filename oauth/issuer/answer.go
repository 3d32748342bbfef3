package issuer

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

// bodyTimeout is how long the body of a request may take to come, whatever the
// http.Server around it permits.
const bodyTimeout = 20 * time.Second

// readBody reads a body of at most limit bytes. If it does not come in time,
// the deadline stays, so that nothing waits for the rest of it either.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not everything that writes answers can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, err
	}
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

// bodyStatus is the status for a body that readBody did not read.
func bodyStatus(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// answerJSON answers with a JSON text that no cache keeps, unless the caller
// has set Cache-Control. A value that cannot be encoded is a defect of ours and
// answered with 500.
func answerJSON(w http.ResponseWriter, status int, v any) {
	data, err := wire.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	writeJSON(w, status, data)
}

func writeJSON(w http.ResponseWriter, status int, data []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
		h.Set("Pragma", "no-cache")
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that hung up does not need it
}

// refuseJSON answers with an error. Its texts are fixed ones that callers
// choose; reason, which may be empty, is what the log alone is told.
func (s *Server) refuseJSON(w http.ResponseWriter, r *http.Request, e *oauth.Error, reason string) {
	status := e.Status
	if status == 0 {
		status = http.StatusBadRequest
	}
	level, text := slog.LevelInfo, "request was refused"
	if status >= http.StatusInternalServerError {
		level, text = slog.LevelError, "request failed" // by a fault of ours
	}
	s.log.Log(r.Context(), level, text, "path", r.URL.Path, "error", e.Code,
		"description", e.Description, "reason", reason, "remote", s.opts.Remote(r))
	answerJSON(w, status, e)
}

// refuseRate answers a client that asks too often.
func (s *Server) refuseRate(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	setRetryAfter(w.Header(), wait)
	s.refuseJSON(w, r, &oauth.Error{
		Code: oauth.TemporarilyUnavailable, Description: "too many requests", Status: http.StatusTooManyRequests,
	}, "")
}

// setRetryAfter rounds up: a client that comes exactly then is let in.
func setRetryAfter(h http.Header, wait time.Duration) {
	h.Set("Retry-After", strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second))))
}

// asError is the OAuth error in err; anything else is a failure of ours.
func asError(err error) *oauth.Error {
	if e, ok := errors.AsType[*oauth.Error](err); ok {
		return e
	}
	return failure()
}
