package host

import (
	"context"
	"errors"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A Store keeps what outlives a process: sessions, what the person agreed to,
// and the audit log. Its methods may be called by many goroutines at once, and each
// takes effect whole or not at all. What a method has returned from survives the end
// of the process. A session that is not there is [ErrNoSession]. The store keeps
// none of the slices that it is given, and those that it returns are the caller's.
// Package storetest tests implementations.
type Store interface {
	// CreateSession adds a session without records. It fails if the id is taken, if
	// the parent of a fork is not there, or if its At is greater than the number of
	// the parent's last record.
	CreateSession(ctx context.Context, s *SessionInfo) error
	// Session returns a session, or an error that is [ErrNoSession].
	Session(ctx context.Context, id string) (*SessionInfo, error)
	// Sessions returns all sessions, the newest first; those of one time are in the
	// order of their ids.
	Sessions(ctx context.Context) ([]SessionInfo, error)
	// SetTitle changes the title of a session.
	SetTitle(ctx context.Context, id, title string) error
	// DeleteSession removes a session with its records and blobs. A session that has
	// forks stays: the error is [ErrHasForks].
	DeleteSession(ctx context.Context, id string) error
	// Append adds records to a session. The first has the number after that of the
	// last one, or of SessionInfo.At in a new fork; else nothing is added and the
	// error is [ErrConflict]: another process writes to the session. The records are
	// read again as [EncodeBody] writes them: without white space around JSON tokens.
	// One that it cannot write, such as text that is not UTF-8, is an error, and
	// nothing is added. A host gives it no record with what looks like a secret in the
	// arguments of a call.
	Append(ctx context.Context, session string, records ...Record) error
	// Records returns the session's own records in order, not those of the session
	// that it is a fork of.
	Records(ctx context.Context, session string) ([]Record, error)
	// PutBlob keeps bytes beside the records of a session, under a name. It replaces
	// what was there under the name.
	PutBlob(ctx context.Context, session, name string, data []byte) error
	// Blob returns a part of them, at most limit bytes from offset, and their
	// length. Beyond the end, and with a limit of 0 or less, the part is empty; an
	// offset below 0 is 0. An unknown name is [ErrNoBlob].
	Blob(ctx context.Context, session, name string, offset, limit int64) (part []byte, size int64, err error)

	// Pin returns what the person agreed to under a key, or nil.
	Pin(ctx context.Context, key PinKey) (*Pin, error)
	// Pins returns the pins of a server, or all if server is empty, in the order of
	// their keys.
	Pins(ctx context.Context, server string) ([]Pin, error)
	// PutPin adds or replaces a pin.
	PutPin(ctx context.Context, p *Pin) error
	// DeletePin removes a pin, so that the person is asked anew. One that is not there is
	// no error.
	DeletePin(ctx context.Context, key PinKey) error

	// PutGrant adds a grant. One with the same id stays as it is. The Source of its
	// rule is not kept.
	PutGrant(ctx context.Context, g *Grant) error
	// Grants returns all grants, also those that are over, the oldest first; those of
	// one time are in the order of their ids.
	Grants(ctx context.Context) ([]Grant, error)
	// RevokeGrant ends a grant. An unknown id is [ErrNoGrant]; one that is revoked
	// keeps its time.
	RevokeGrant(ctx context.Context, id string, at time.Time) error

	// Audit adds an entry to the audit log, which only grows.
	Audit(ctx context.Context, e *AuditEntry) error
}

// Errors of stores, for errors.Is.
var (
	// ErrNoSession says that no session has the id.
	ErrNoSession = errors.New("no such session")
	// ErrHasForks says that a session cannot be deleted because others go on from it.
	ErrHasForks = errors.New("the session has forks, which need it; delete them first")
	// ErrConflict says that another process writes to the session.
	ErrConflict = errors.New("another process has written to the session; open it again")
	// ErrNoBlob says that nothing is kept under the name.
	ErrNoBlob = errors.New("nothing is kept under this name")
	// ErrNoGrant says that no grant has the id.
	ErrNoGrant = errors.New("no such grant")
)

// SessionInfo describes a session.
type SessionInfo struct {
	ID string `json:"id"`
	// Parent is the session that this one is a fork of, or empty; it has the
	// parent's records up to At.
	Parent  string    `json:"parent,omitzero"`
	At      int64     `json:"at,omitzero"`
	Title   string    `json:"title,omitzero"`
	Created time.Time `json:"created"`
	// Used is the time of its own last record, or Created if it has none. A store sets it
	// in what it returns, and does not keep what it is given.
	Used time.Time `json:"used,omitzero"`
}

// A PinKey names what a pin is about: a tool of a server, "skill " and the URI of a skill
// of it, or with an empty Tool the server's instructions.
type PinKey struct {
	// Server is the name of the server, with a digest of the key of its entry.
	Server string `json:"server"`
	Tool   string `json:"tool,omitzero"`
}

// A Pin is a definition that the person has agreed to.
type Pin struct {
	PinKey
	// Digest is that of Definition.
	Digest string `json:"digest"`
	// Definition is what was agreed to, for showing what has changed.
	Definition mcp.RawValue `json:"definition"`
	Time       time.Time    `json:"time"`
}

// A Grant is what the person agreed to for longer than once.
type Grant struct {
	ID string `json:"id"`
	// Rule allows what was agreed to.
	Rule policy.Rule `json:"rule"`
	// Entry is Server.Key of the server that it was given for: another server of the
	// same name has nothing of it.
	Entry string `json:"entry,omitzero"`
	// Digest is that of the tool's definition, or of a skill's entry; the grant ends when
	// it changes. Empty for grants that are not about one of them.
	Digest string `json:"digest,omitzero"`
	// Skill is set in a grant for a tool that runs code: it counts only while the model
	// acts on the skill.
	Skill   *GrantSkill `json:"skill,omitzero"`
	Session string      `json:"session,omitzero"`
	Created time.Time   `json:"created"`
	Expires time.Time   `json:"expires,omitzero"`
	Revoked time.Time   `json:"revoked,omitzero"`
}

// Over says why the grant holds no more at a time, or returns "".
func (g *Grant) Over(now time.Time) string {
	switch {
	case !g.Revoked.IsZero():
		return "revoked"
	case !g.Expires.IsZero() && !now.Before(g.Expires):
		return "expired"
	}
	return ""
}

// An AuditEntry says what was decided, or done, about one thing.
type AuditEntry struct {
	Time time.Time `json:"time"`
	// Session and Record say where it stands in a log, if it does.
	Session string `json:"session,omitzero"`
	Record  int64  `json:"record,omitzero"`
	// Event is what happened: "allowed", "refused", "approved", "called", "granted",
	// "revoked", "pinned", "unpinned".
	Event  string      `json:"event"`
	Kind   policy.Kind `json:"kind,omitzero"`
	Server string      `json:"server,omitzero"`
	Name   string      `json:"name,omitzero"`
	// Why says which rule, grant or person decided.
	Why string `json:"why,omitzero"`
	// Arguments is the SHA-256 of the arguments, in hexadecimal digits: the log
	// holds no content.
	Arguments string `json:"arguments,omitzero"`
}
