package authserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	auditlog "github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/contrib/prometheus/metrics"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// auditFlags say where the audit of an authorization server is.
type auditFlags struct {
	file    string
	keyFile string
	maxSize string
	keep    int
}

// add adds the flags of a server, which alone renames files.
func (f *auditFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.file, "audit-file", "", "`FILE` to append audit events to, as JSON lines (default: standard error)")
	set.StringVar(&f.maxSize, "audit-max-size", "100MiB", "`SIZE` at which to rename the audit file and start a new one")
	set.IntVar(&f.keep, "audit-keep", 10, "how `many` renamed audit files to keep; 0 keeps all")
	f.addKey(set)
}

func (f *auditFlags) addKey(set *pflag.FlagSet) {
	set.StringVar(&f.keyFile, "audit-key-file", "", "`FILE` with a key, on one line, that authenticates audit lines: without it, lines cannot be changed or forged")
}

// options makes those of the log. set are the flags of the command.
func (f *auditFlags) options(set *pflag.FlagSet) (*auditlog.Options, error) {
	if f.file == "" {
		for _, name := range []string{"audit-key-file", "audit-max-size", "audit-keep"} {
			if set.Changed(name) {
				return nil, kit.Usagef("--%s requires --audit-file", name)
			}
		}
		return nil, nil
	}
	key, err := auditKey(f.keyFile)
	if err != nil {
		return nil, err
	}
	size, err := parseSize(f.maxSize)
	const least = 4 << 10
	switch {
	case err != nil || size < least:
		return nil, kit.Usagef("--audit-max-size %q: must be at least 4KiB, such as 100MiB", f.maxSize)
	case f.keep < 0:
		return nil, kit.Usagef("--audit-keep %d: must be the number of files to keep, or 0 for all", f.keep)
	}
	return &auditlog.Options{MaxSize: size, Keep: f.keep, Key: key}, nil
}

// auditKey reads the key of the audit; nil without a file.
func auditKey(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	key, err := kit.ReadSecret("--audit-key-file", file)
	if err == nil && len(key) < admin.MinKey {
		err = kit.Usagef("--audit-key-file: the key must have at least %d bytes; run 'openssl rand -hex 32' to generate one", admin.MinKey)
	}
	return []byte(key), err
}

// parseSize reads a number of bytes, such as 100MiB.
func parseSize(text string) (int64, error) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			text, shift = number, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("invalid size %q", text)
	}
	return n << shift, nil
}

const (
	// auditWait is how long a line waits for the lock of the audit file.
	auditWait = 5 * time.Second
	// auditRetry is how long after a line could not be written it is tried again at the earliest.
	auditRetry = time.Second
	// maxPending is how many lines wait to be written at most; what comes then is lost.
	maxPending = 1000
)

// An audit writes what happens at an authorization server: as lines for people to standard error, or
// as JSON lines into a file. Lines that cannot be written wait until they can; meanwhile ready is false,
// and the server refuses what would make more.
type audit struct {
	p       *group
	log     *auditlog.Log // nil: for people
	names   *subjectNames // nil: only those that events have
	lines   *metrics.Counter
	failing atomic.Bool // there are pending lines

	mu      sync.Mutex
	pending []any
	lost    int // lines for which there was no room
	failure error
	tried   time.Time
}

// openAudit opens an audit: that of a file, or, without one, that for people. o may be nil.
func (g *group) openAudit(file string, o *auditlog.Options) (*audit, error) {
	a := &audit{
		p:     g,
		lines: metrics.NewCounter("parley_auth_audit_lines_total", "Lines of the audit, by whether they were written.", "outcome"),
	}
	if file == "" {
		return a, nil
	}
	// The file is opened for each line, because others append to it; that it can be is tried now.
	a.log = auditlog.New(file, o)
	if err := a.log.Check(); err != nil {
		return nil, kit.Usagef("--audit-file %s: %w", file, err)
	}
	return a, nil
}

// An auditEntry is an event as JSON.
type auditEntry struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Outcome string    `json:"outcome,omitzero"`
	// Of acts of an operator.
	Actor      string         `json:"actor,omitzero"`
	Parameters map[string]any `json:"parameters,omitzero"`
	// Of what people and clients do.
	Client     string   `json:"client,omitzero"`
	ClientName string   `json:"clientName,omitzero"`
	User       string   `json:"user,omitzero"` // the subject
	UserName   string   `json:"userName,omitzero"`
	Grant      string   `json:"grant,omitzero"`
	Resource   string   `json:"resource,omitzero"`
	Scopes     []string `json:"scopes,omitzero"`
	Type       string   `json:"grantType,omitzero"`
	Remote     string   `json:"remote,omitzero"`
	Reason     string   `json:"reason,omitzero"`
	Count      int      `json:"count,omitzero"`
	// Of the log itself, see package audit.
	RemovedBytes int64  `json:"removedBytes,omitzero"`
	RemovedLines uint64 `json:"removedLines,omitzero"`
}

// text is an entry in one line, for people.
func (e *auditEntry) text() string {
	var b strings.Builder
	b.WriteString(host.EscapeLine(e.Event))
	if e.Outcome != "" {
		b.WriteString(" " + host.EscapeLine(e.Outcome))
	}
	if e.Actor != "" {
		fmt.Fprintf(&b, " by %q", host.EscapeLine(e.Actor))
	}
	for _, part := range [][2]string{
		{"client", e.Client},
		{"user", e.User},
		{"clientName", e.ClientName},
		{"userName", e.UserName},
		{"resource", e.Resource},
		{"scopes", oauth.JoinScope(e.Scopes)},
		{"grant", e.Type},
		{"from", e.Remote},
		{"because", e.Reason},
	} {
		if part[1] != "" {
			fmt.Fprintf(&b, " %s=%q", part[0], host.EscapeLine(part[1]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Parameters)) {
		fmt.Fprintf(&b, " %s=%q", host.EscapeLine(name), host.EscapeLine(fmt.Sprint(e.Parameters[name])))
	}
	for _, number := range []struct {
		name string
		n    int64
	}{{"times", int64(e.Count)}, {"removedBytes", e.RemovedBytes}, {"removedLines", int64(e.RemovedLines)}} {
		if number.n > 0 {
			fmt.Fprintf(&b, " %s=%d", number.name, number.n)
		}
	}
	return b.String()
}

// event takes one event.
func (a *audit) event(ctx context.Context, e issuer.Event) {
	entry := &auditEntry{
		Event: e.Name, Outcome: e.Outcome, Client: e.Client, ClientName: boundedName(e.ClientName),
		User: e.Subject, UserName: boundedName(e.SubjectName), Grant: e.Grant,
		Resource: e.Resource, Scopes: e.Scopes, Type: e.GrantType, Remote: e.Remote, Reason: e.Reason, Count: e.Count,
	}
	if a.names != nil && e.Subject != "" {
		entry.UserName = boundedName(a.names.of(ctx, e.Subject, e.SubjectName))
	}
	a.write(entry)
}

// act takes an act of an operator.
func (a *audit) act(_ context.Context, act admin.Act) {
	a.write(&auditEntry{
		Event: strings.TrimSpace("admin " + act.Verb), Outcome: act.Outcome, Actor: act.Actor,
		User: act.Subject, Parameters: boundedParameters(act.Parameters),
	})
}

// maxAuditText is how many bytes of a name, or of a parameter, are kept.
const maxAuditText = 1000

// boundedName is a name as it stands in the audit: escaped, so that it is one line and looks as it is,
// and at most so long.
func boundedName(name string) string {
	name = host.EscapeLine(name)
	if len(name) > maxAuditText {
		name = strings.ToValidUTF8(name[:maxAuditText], "") + "…"
	}
	return name
}

// boundedParameters are parameters that fit into a line.
func boundedParameters(parameters map[string]any) map[string]any {
	const most = 20
	bounded := make(map[string]any, len(parameters))
	for name, value := range parameters {
		switch value := value.(type) {
		case string:
			bounded[name] = boundedName(value)
		case []string:
			list := make([]string, 0, min(len(value), most+1))
			for _, text := range value[:min(len(value), most)] {
				list = append(list, boundedName(text))
			}
			if len(value) > most {
				list = append(list, fmt.Sprintf("and %d more", len(value)-most))
			}
			bounded[name] = list
		default:
			bounded[name] = value
		}
	}
	return bounded
}

// write writes an entry, or its line for people.
func (a *audit) write(entry *auditEntry) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.log == nil {
		a.p.Note("%s %s", now.Format(time.TimeOnly), entry.text())
		a.lines.Add(1, "written")
		return
	}
	entry.Time = now.UTC()
	if len(a.pending) == maxPending && now.Sub(a.tried) >= auditRetry {
		a.flush()
	}
	if len(a.pending) == maxPending {
		a.lost++
		a.lines.Add(1, "lost")
		return
	}
	a.pending = append(a.pending, entry)
	if len(a.pending) == 1 || now.Sub(a.tried) >= auditRetry {
		a.flush()
	}
}

// flush writes the pending lines, all or none. It is called under the lock.
func (a *audit) flush() {
	a.tried = time.Now()
	entries := a.pending
	if a.lost > 0 {
		entries = append(slices.Clip(entries), &auditEntry{Time: a.tried.UTC(), Event: "audit lost", Count: a.lost})
	}
	// A request whose client is gone is written all the same.
	ctx, cancel := context.WithTimeout(context.Background(), auditWait)
	defer cancel()
	err := a.log.Append(ctx, entries...)
	switch {
	case err == nil && a.failure != nil:
		a.p.Note("parley: can write the audit file again: wrote %d waiting lines, lost %d", len(a.pending), a.lost)
	case err != nil && a.failure == nil:
		a.p.Note("parley: cannot write the audit file; the server refuses sign-ins and tokens until it can: %v", err)
	}
	a.failure = err
	a.failing.Store(err != nil)
	if err == nil {
		a.lines.Add(int64(len(a.pending)), "written")
		a.pending, a.lost = nil, 0
	}
}

// ready reports whether what happens can be written. What could not be is tried again.
func (a *audit) ready() bool {
	if !a.failing.Load() {
		return true
	}
	if !a.mu.TryLock() {
		return false // another request tries
	}
	defer a.mu.Unlock()
	if len(a.pending) > 0 && time.Since(a.tried) >= auditRetry {
		a.flush()
	}
	return len(a.pending) == 0
}

// Close writes what is pending, and what cannot be written to standard error.
func (a *audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pending) > 0 {
		a.flush()
	}
	if a.failure == nil {
		return nil
	}
	for _, entry := range a.pending {
		raw, err := json.Marshal(entry)
		if err == nil {
			a.p.Note("parley: not in the audit file: %s", raw)
		}
	}
	a.lines.Add(int64(len(a.pending)), "lost")
	lost := len(a.pending) + a.lost
	a.pending = nil
	a.p.Note("parley: %d lines are not in the audit file: %v", lost, a.failure) // an interruption hides errors
	return fmt.Errorf("writing the audit file: %w", a.failure)
}

// figures are what metrics tell of the audit.
func (a *audit) figures() metrics.Page {
	return metrics.Page{a.lines, gauge{
		"parley_auth_audit_pending_lines", "Lines that wait until the audit file can be written.", nil,
		func() []metrics.Sample {
			a.mu.Lock()
			defer a.mu.Unlock()
			return []metrics.Sample{{Value: float64(len(a.pending))}}
		},
	}}
}

// gated are the endpoints that are refused while the audit cannot be written: those that sign somebody
// in, let a client in, give tokens, or change an account. Keys, introspection and revocation go on,
// for what was issued.
var gated = map[string]string{
	"authorize": "", "consent": "", "login": "", "device": "", "account": "", "password": "", "invitation": "",
	"token": "json", "register": "json", "device_authorization": "json",
}

// gate stands in front of the server, and refuses what cannot be written down.
func (a *audit) gate(next http.Handler, endpoint func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, ok := gated[endpoint(r)]
		if !ok || r.Method == http.MethodOptions || a.ready() {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Retry-After", strconv.Itoa(int(2*auditRetry/time.Second)))
		h.Set("Cache-Control", "no-store")
		if kind == "" {
			http.Error(w, "This server is temporarily unavailable. Try again in a moment.", http.StatusServiceUnavailable)
			return
		}
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "Retry-After")
		h.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(&oauth.Error{Code: oauth.TemporarilyUnavailable, Description: "try again in a moment"}) // the client is gone
	})
}

// subjectNames find the names of people by their subjects, and keep the last ones.
type subjectNames struct {
	find func(ctx context.Context, subject string) (string, error)

	mu   sync.Mutex
	kept map[string]keptName
}

// A keptName is a name, or that there is none.
type keptName struct {
	name  string
	until time.Time
}

const (
	maxKeptNames  = 1000
	keptNamesTime = 10 * time.Minute
	namesWait     = time.Second
)

// of is the name of a user; told is the name that is known already, or "".
func (s *subjectNames) of(ctx context.Context, subject, told string) string {
	now := time.Now()
	s.mu.Lock()
	kept, ok := s.kept[subject]
	s.mu.Unlock()
	if told == "" && ok && now.Before(kept.until) {
		return kept.name
	}
	name := told
	if name == "" {
		// A request whose client is gone is written all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), namesWait)
		defer cancel()
		found, err := s.find(ctx, subject)
		if err != nil && !errors.Is(err, issuer.ErrNotFound) {
			return kept.name // an old one is better than none
		}
		name = cmp.Or(found, kept.name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || len(s.kept) >= maxKeptNames {
		s.kept = make(map[string]keptName)
	}
	s.kept[subject] = keptName{name, now.Add(keptNamesTime)}
	return name
}
