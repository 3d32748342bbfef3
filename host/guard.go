package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// recovered returns a panic of what the caller runs as an error, joined with the one that is
// there. The stack is in the log under the reference that the error names. It is deferred.
//
// The host defers it around each call of what it was given that a panic would otherwise leave
// half done: on the host's own goroutines, in a run, or while a mutex is held.
func recovered(log *slog.Logger, what string, err *error) {
	if v := recover(); v != nil {
		*err = errors.Join(*err, panicked(log, what, v))
	}
}

// panicked logs a panic, and returns the error that the person and the model see of it.
func panicked(log *slog.Logger, what string, v any) error {
	b := make([]byte, 3)
	rand.Read(b)
	ref := fmt.Sprintf("%X", b)
	log.Error("the host recovered from a panic", "in", what, "ref", ref, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	return fmt.Errorf("internal error in %s (ref %s); the log has the details", what, ref)
}

// describe calls Info of a model.
func (h *Host) describe(m Model) (info ModelInfo, err error) {
	defer recovered(h.opts.Logger, "Model.Info", &err)
	return m.Info(), nil
}

// A describedModel is a model with its description.
type describedModel struct {
	Model
	info ModelInfo
}

// describeAll calls Info of models.
func (h *Host) describeAll(models ...Model) ([]describedModel, error) {
	list := make([]describedModel, len(models))
	for i, m := range models {
		info, err := h.describe(m)
		if err != nil {
			return nil, err
		}
		list[i] = describedModel{m, info}
	}
	return list, nil
}

// checkModel returns an error if a session cannot use the model, or its servers
// Options.SampleModels.
func (h *Host) checkModel(m Model) error {
	if m == nil {
		return errors.New("the model is nil; pass one that answers")
	}
	for i, m := range h.opts.SampleModels {
		if m == nil {
			return fmt.Errorf("model %d of Options.SampleModels is nil; leave it out", i+1)
		}
	}
	return nil
}

// A guardedHandler is a handler of a logger whose panics lose a record and nothing else.
type guardedHandler struct{ of slog.Handler }

// unlogged drops a panic of a logger: nothing is left that could report it. It is deferred.
func unlogged() { _ = recover() }

// Enabled reports whether records of a level are logged.
func (g guardedHandler) Enabled(ctx context.Context, level slog.Level) bool {
	defer unlogged()
	return g.of.Enabled(ctx, level)
}

// Handle logs a record.
func (g guardedHandler) Handle(ctx context.Context, r slog.Record) error {
	defer unlogged()
	return g.of.Handle(ctx, r)
}

// WithAttrs returns the handler with attributes, or as it is if it panics.
func (g guardedHandler) WithAttrs(attrs []slog.Attr) (with slog.Handler) {
	with = g
	defer unlogged()
	return guardedHandler{g.of.WithAttrs(attrs)}
}

// WithGroup returns the handler with a group, or as it is if it panics.
func (g guardedHandler) WithGroup(name string) (with slog.Handler) {
	with = g
	defer unlogged()
	return guardedHandler{g.of.WithGroup(name)}
}

// A guardedSkills calls a SkillLoader, and returns its panics as errors.
type guardedSkills struct {
	of  SkillLoader
	log *slog.Logger
}

// offers calls Offers.
func (g *guardedSkills) offers(c *client.Client) (ok bool, err error) {
	defer recovered(g.log, "Skills.Offers", &err)
	return g.of.Offers(c), nil
}

// get calls Get.
func (g *guardedSkills) get(ctx context.Context, c *client.Client, uri string) (entry mcp.RawValue, err error) {
	defer recovered(g.log, "Skills.Get", &err)
	return g.of.Get(ctx, c, uri)
}

// load calls Load.
func (g *guardedSkills) load(ctx context.Context, c *client.Client, entry mcp.RawValue) (text string, err error) {
	defer recovered(g.log, "Skills.Load", &err)
	return g.of.Load(ctx, c, entry)
}

// read calls Read.
func (g *guardedSkills) read(ctx context.Context, c *client.Client, entry mcp.RawValue, path string) (uri, mimeType string, data []byte, err error) {
	defer recovered(g.log, "Skills.Read", &err)
	return g.of.Read(ctx, c, entry, path)
}

// differs calls Differs with the error of load or read, and returns that error.
func (g *guardedSkills) differs(failed error) (differs bool, err error) {
	err = failed
	defer recovered(g.log, "Skills.Differs", &err)
	return g.of.Differs(failed), failed
}

// loadPage calls LoadPage of Options.Pages.
func (h *Host) loadPage(ctx context.Context, c *client.Client, uri string) (html, csp string, meta mcp.RawValue, err error) {
	defer recovered(h.opts.Logger, "Pages.LoadPage", &err)
	return h.opts.Pages.LoadPage(ctx, c, uri)
}

// A guardedStore is a store whose panics are errors: like any other error of a store, one of
// Append leaves it unknown what was written.
type guardedStore struct {
	of  Store
	log *slog.Logger
}

// CreateSession adds a session.
func (g *guardedStore) CreateSession(ctx context.Context, s *SessionInfo) (err error) {
	defer recovered(g.log, "Store.CreateSession", &err)
	return g.of.CreateSession(ctx, s)
}

// Session returns a session.
func (g *guardedStore) Session(ctx context.Context, id string) (info *SessionInfo, err error) {
	defer recovered(g.log, "Store.Session", &err)
	return g.of.Session(ctx, id)
}

// Sessions returns all sessions.
func (g *guardedStore) Sessions(ctx context.Context) (list []SessionInfo, err error) {
	defer recovered(g.log, "Store.Sessions", &err)
	return g.of.Sessions(ctx)
}

// SetTitle changes the title of a session.
func (g *guardedStore) SetTitle(ctx context.Context, id, title string) (err error) {
	defer recovered(g.log, "Store.SetTitle", &err)
	return g.of.SetTitle(ctx, id, title)
}

// DeleteSession removes a session.
func (g *guardedStore) DeleteSession(ctx context.Context, id string) (err error) {
	defer recovered(g.log, "Store.DeleteSession", &err)
	return g.of.DeleteSession(ctx, id)
}

// Append adds records to a session.
func (g *guardedStore) Append(ctx context.Context, session string, records ...Record) (err error) {
	defer recovered(g.log, "Store.Append", &err)
	return g.of.Append(ctx, session, records...)
}

// Records returns the records of a session.
func (g *guardedStore) Records(ctx context.Context, session string) (list []Record, err error) {
	defer recovered(g.log, "Store.Records", &err)
	return g.of.Records(ctx, session)
}

// PutBlob keeps bytes of a session.
func (g *guardedStore) PutBlob(ctx context.Context, session, name string, data []byte) (err error) {
	defer recovered(g.log, "Store.PutBlob", &err)
	return g.of.PutBlob(ctx, session, name, data)
}

// Blob returns a part of them.
func (g *guardedStore) Blob(ctx context.Context, session, name string, offset, limit int64) (part []byte, size int64, err error) {
	defer recovered(g.log, "Store.Blob", &err)
	return g.of.Blob(ctx, session, name, offset, limit)
}

// Pin returns a pin.
func (g *guardedStore) Pin(ctx context.Context, key PinKey) (pin *Pin, err error) {
	defer recovered(g.log, "Store.Pin", &err)
	return g.of.Pin(ctx, key)
}

// Pins returns the pins of a server.
func (g *guardedStore) Pins(ctx context.Context, server string) (list []Pin, err error) {
	defer recovered(g.log, "Store.Pins", &err)
	return g.of.Pins(ctx, server)
}

// PutPin adds a pin.
func (g *guardedStore) PutPin(ctx context.Context, p *Pin) (err error) {
	defer recovered(g.log, "Store.PutPin", &err)
	return g.of.PutPin(ctx, p)
}

// DeletePin removes a pin.
func (g *guardedStore) DeletePin(ctx context.Context, key PinKey) (err error) {
	defer recovered(g.log, "Store.DeletePin", &err)
	return g.of.DeletePin(ctx, key)
}

// PutGrant adds a grant.
func (g *guardedStore) PutGrant(ctx context.Context, grant *Grant) (err error) {
	defer recovered(g.log, "Store.PutGrant", &err)
	return g.of.PutGrant(ctx, grant)
}

// Grants returns all grants.
func (g *guardedStore) Grants(ctx context.Context) (list []Grant, err error) {
	defer recovered(g.log, "Store.Grants", &err)
	return g.of.Grants(ctx)
}

// RevokeGrant ends a grant.
func (g *guardedStore) RevokeGrant(ctx context.Context, id string, at time.Time) (err error) {
	defer recovered(g.log, "Store.RevokeGrant", &err)
	return g.of.RevokeGrant(ctx, id, at)
}

// Audit adds an entry to the audit log.
func (g *guardedStore) Audit(ctx context.Context, e *AuditEntry) (err error) {
	defer recovered(g.log, "Store.Audit", &err)
	return g.of.Audit(ctx, e)
}
