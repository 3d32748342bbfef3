package host_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// boom is the value of the panics of traps.
const boom = "boom, with a secret"

// A trap panics once, at one call of what a host was given.
type trap struct {
	call string // "Store.Append"
	exit bool   // it ends its goroutine instead, as t.FailNow does

	mu     sync.Mutex
	before int // calls that work
	sprung bool
}

// step is called at the beginning of each call.
func (t *trap) step(call string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if call != t.call || t.sprung {
		return
	}
	if t.before--; t.before < 0 {
		if t.sprung = true; t.exit {
			runtime.Goexit()
		}
		panic(boom)
	}
}

// over reports whether the trap has sprung, and lets it spring no more.
func (t *trap) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	sprung := t.sprung
	t.sprung = true
	return sprung
}

// A trapModel is a scripted model with a trap.
type trapModel struct {
	*scripted
	trap *trap
}

func (m trapModel) Info() host.ModelInfo {
	m.trap.step("Model.Info")
	return m.scripted.Info()
}

func (m trapModel) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	m.trap.step("Model.Generate")
	return func(yield func(host.Piece, error) bool) {
		m.trap.step("the beginning of a turn")
		m.scripted.Generate(ctx, r)(yield)
		m.trap.step("the end of a turn")
	}
}

// A trapStore is a store with a trap. What a method does takes effect before it panics.
type trapStore struct {
	host.Memory
	trap *trap
}

func (s *trapStore) CreateSession(ctx context.Context, in *host.SessionInfo) error {
	s.trap.step("Store.CreateSession")
	return s.Memory.CreateSession(ctx, in)
}

func (s *trapStore) Session(ctx context.Context, id string) (*host.SessionInfo, error) {
	s.trap.step("Store.Session")
	return s.Memory.Session(ctx, id)
}

func (s *trapStore) SetTitle(ctx context.Context, id, title string) error {
	s.trap.step("Store.SetTitle")
	return s.Memory.SetTitle(ctx, id, title)
}

func (s *trapStore) Append(ctx context.Context, session string, records ...host.Record) error {
	s.trap.step("Store.Append")
	err := s.Memory.Append(ctx, session, records...)
	s.trap.step("Store.Append, at its end")
	return err
}

func (s *trapStore) Records(ctx context.Context, session string) ([]host.Record, error) {
	s.trap.step("Store.Records")
	return s.Memory.Records(ctx, session)
}

func (s *trapStore) PutBlob(ctx context.Context, session, name string, data []byte) error {
	s.trap.step("Store.PutBlob")
	return s.Memory.PutBlob(ctx, session, name, data)
}

func (s *trapStore) Blob(ctx context.Context, session, name string, offset, limit int64) ([]byte, int64, error) {
	s.trap.step("Store.Blob")
	return s.Memory.Blob(ctx, session, name, offset, limit)
}

func (s *trapStore) Pin(ctx context.Context, key host.PinKey) (*host.Pin, error) {
	s.trap.step("Store.Pin")
	return s.Memory.Pin(ctx, key)
}

func (s *trapStore) Pins(ctx context.Context, server string) ([]host.Pin, error) {
	s.trap.step("Store.Pins")
	return s.Memory.Pins(ctx, server)
}

func (s *trapStore) PutPin(ctx context.Context, p *host.Pin) error {
	s.trap.step("Store.PutPin")
	return s.Memory.PutPin(ctx, p)
}

func (s *trapStore) PutGrant(ctx context.Context, g *host.Grant) error {
	s.trap.step("Store.PutGrant")
	return s.Memory.PutGrant(ctx, g)
}

func (s *trapStore) Grants(ctx context.Context) ([]host.Grant, error) {
	s.trap.step("Store.Grants")
	return s.Memory.Grants(ctx)
}

func (s *trapStore) RevokeGrant(ctx context.Context, id string, at time.Time) error {
	s.trap.step("Store.RevokeGrant")
	return s.Memory.RevokeGrant(ctx, id, at)
}

func (s *trapStore) Audit(ctx context.Context, e *host.AuditEntry) error {
	s.trap.step("Store.Audit")
	return s.Memory.Audit(ctx, e)
}

// trapSkills are the skills of servers with a trap. A file is never what its entry says.
type trapSkills struct {
	skills.Loader
	trap *trap
}

func (l trapSkills) Offers(c *client.Client) bool {
	l.trap.step("Skills.Offers")
	return l.Loader.Offers(c)
}

func (l trapSkills) List(ctx context.Context, c *client.Client) iter.Seq2[mcp.RawValue, error] {
	l.trap.step("Skills.List")
	return func(yield func(mcp.RawValue, error) bool) {
		l.trap.step("the beginning of a list of skills")
		l.Loader.List(ctx, c)(yield)
		l.trap.step("the end of a list of skills")
	}
}

func (l trapSkills) Get(ctx context.Context, c *client.Client, uri string) (mcp.RawValue, error) {
	l.trap.step("Skills.Get")
	return l.Loader.Get(ctx, c, uri)
}

func (l trapSkills) Check(entry mcp.RawValue) error {
	l.trap.step("Skills.Check")
	return l.Loader.Check(entry)
}

func (l trapSkills) Load(ctx context.Context, c *client.Client, entry mcp.RawValue) (string, error) {
	l.trap.step("Skills.Load")
	return l.Loader.Load(ctx, c, entry)
}

func (l trapSkills) Read(context.Context, *client.Client, mcp.RawValue, string) (uri, mimeType string, data []byte, err error) {
	l.trap.step("Skills.Read")
	return "", "", nil, errors.New("it is another file")
}

func (l trapSkills) Differs(err error) bool {
	l.trap.step("Skills.Differs")
	return l.Loader.Differs(err)
}

// trapPages are the pages of servers with a trap.
type trapPages struct {
	apps.Loader
	trap *trap
}

func (l trapPages) LoadPage(ctx context.Context, c *client.Client, uri string) (html, csp string, meta mcp.RawValue, err error) {
	l.trap.step("Pages.LoadPage")
	return l.Loader.LoadPage(ctx, c, uri)
}

// A trapDialer is a dialer with a trap.
type trapDialer struct {
	transport.Dialer
	trap *trap
}

func (d trapDialer) Key() string {
	d.trap.step("Dialer.Key")
	return d.Dialer.Key()
}

func (d trapDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	d.trap.step("Dialer.Dial")
	l, err := d.Dialer.Dial(ctx, in)
	if err != nil {
		return nil, err
	}
	return trapLink{l, d.trap}, nil
}

// A trapLink is a link with a trap.
type trapLink struct {
	transport.Link
	trap *trap
}

func (l trapLink) Do(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) (*jsonrpc.Incoming, error) {
	l.trap.step("Link.Do")
	return l.Link.Do(ctx, m, r)
}

func (l trapLink) Post(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) error {
	l.trap.step("Link.Post")
	return l.Link.Post(ctx, m, r)
}

func (l trapLink) Close(ctx context.Context) error {
	err := l.Link.Close(ctx)
	l.trap.step("Link.Close")
	return err
}

// A trapHandler is the handler of a logger with a trap.
type trapHandler struct {
	slog.Handler
	trap *trap
}

func (h trapHandler) Enabled(ctx context.Context, level slog.Level) bool {
	h.trap.step("Handler.Enabled")
	return h.Handler.Enabled(ctx, level)
}

func (h trapHandler) Handle(ctx context.Context, r slog.Record) error {
	h.trap.step("Handler.Handle")
	return h.Handler.Handle(ctx, r)
}

func (h trapHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.trap.step("Handler.WithAttrs")
	return trapHandler{h.Handler.WithAttrs(attrs), h.trap}
}

func (h trapHandler) WithGroup(name string) slog.Handler {
	h.trap.step("Handler.WithGroup")
	return trapHandler{h.Handler.WithGroup(name), h.trap}
}

// A lockedBuffer is a buffer that many goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}
