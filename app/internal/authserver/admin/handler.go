package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strings"

	"github.com/parley-mcp/parley/oauth"
)

// MinKey is the size in bytes of the shortest key of the API.
const MinKey = 16

// maxBody is the size in bytes of the largest request.
const maxBody = 256 << 10

// prefix is that of the paths of the API.
const prefix = "/v1/"

// HandlerOptions adjust NewHandler.
type HandlerOptions struct {
	// Key is what each request must bring, as a bearer token. Empty: the listener knows its
	// callers, as that of a unix socket does.
	Key string
	// Logger is told what goes wrong here. Default: none.
	Logger *slog.Logger
}

// NewHandler returns the API: POST /v1/user/disable {"name":"ada"} does the verb "user
// disable". It answers with the result, or with {"error":{"code":"not_found","message":...}}.
// A verb that streams answers with lines, and with its result in the trailer Parley-Result; the
// connection ends before that if they are not all. It takes requests to this machine by names of loopback
// alone, and none of browsers.
func NewHandler(a *Admin, o *HandlerOptions) http.Handler {
	h := &handler{admin: a, log: slog.New(slog.DiscardHandler)}
	if o != nil {
		if h.key = o.Key; o.Logger != nil {
			h.log = o.Logger
		}
	}
	return h
}

type handler struct {
	admin *Admin
	key   string
	log   *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lines := newLineWriter(w)
	result, err := h.serve(w, r, lines)
	lines.extend()
	switch {
	case err != nil && lines.begun:
		if r.Context().Err() == nil {
			h.log.ErrorContext(r.Context(), "administration", "error", err.Error())
		}
		panic(http.ErrAbortHandler) // the status was sent, and the client must see that lines are missing
	case err != nil:
		h.refuse(w, r, err)
	case lines.begun:
		lines.end(result)
	default:
		answer(w, http.StatusOK, result)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request, lines *lineWriter) (Result, error) {
	words, under := strings.CutPrefix(r.URL.Path, prefix)
	v := Find(strings.ReplaceAll(words, "/", " "))
	actor, err := h.caller(r)
	if err != nil {
		act := Act{Actor: r.RemoteAddr, Outcome: string(codeOf(err))}
		if v != nil {
			act.Verb = v.Path // others are as long as strangers like
		}
		h.admin.opts.Audit(r.Context(), act)
		return nil, err
	}
	if !under || v == nil {
		return nil, errorf(NotFound, "unknown verb")
	}
	if r.Method != http.MethodPost {
		return nil, errorf(Invalid, "the method must be POST")
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, errorf(Invalid, "the parameters must be application/json")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, errorf(Invalid, "the request is larger than %d bytes", maxBody)
	}
	if err != nil {
		return nil, errorf(Invalid, "cannot read the request")
	}
	if !v.Streams {
		return h.admin.Run(r.Context(), actor, v, raw)
	}
	result, err := h.admin.Stream(r.Context(), actor, v, raw, lines.write)
	if err == nil {
		err = lines.flush()
	}
	return result, err
}

// caller says who makes a request.
func (h *handler) caller(r *http.Request) (string, error) {
	if len(r.Header["Origin"]) > 0 || len(r.Header["Sec-Fetch-Site"]) > 0 {
		return "", errorf(Forbidden, "requests from browser pages are not allowed")
	}
	if h.key == "" {
		return r.RemoteAddr, nil
	}
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = r.Host
	}
	if !oauth.LoopbackHost(name) {
		return "", errorf(Forbidden, "the Host header must name this machine")
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given, want := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(h.key))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
		return "", errorf(Unauthorized, "the key is missing or wrong")
	}
	return "key", nil
}

// A refusal is the answer of an error.
type refusal struct {
	Error *Error `json:"error"`
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = errorf(Internal, "internal error; see the server's log")
		if !errors.Is(err, context.Canceled) {
			h.log.ErrorContext(r.Context(), "administration", "error", err.Error())
		}
	}
	if e.Code == Unauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	answer(w, statuses[e.Code], &refusal{e})
}

func answer(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // an error means that the client disconnected
}
