package chat

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// The keptSessions are those of the store, of which a conversation has one open.
type keptSessions struct {
	p     *group
	host  *host.Host
	store host.Store
	model host.Model // that answers now
	open  *host.Session
}

// errOpenHere says that a session is the one that is open.
var errOpenHere = errors.New("this session is the one that is open")

// show makes the face's session of the one that is open.
func (k *keptSessions) show() ui.Session { return shownSession{&heldSession{k.open, k}, k.p} }

// List implements ui.Sessions.
func (k *keptSessions) List(ctx context.Context) ([]host.SessionInfo, error) {
	return lastUsedFirst(ctx, k.store)
}

// lastUsedFirst lists the sessions of a store.
func lastUsedFirst(ctx context.Context, store host.Store) ([]host.SessionInfo, error) {
	list, err := store.Sessions(ctx)
	slices.SortStableFunc(list, func(a, b host.SessionInfo) int { return b.Used.Compare(a.Used) })
	return list, err
}

// Records implements ui.Sessions.
func (k *keptSessions) Records(ctx context.Context, id string) ([]host.Record, error) {
	records, err := host.History(ctx, k.store, id)
	return k.p.MaskedRecords(records), err
}

// Open implements ui.Sessions.
func (k *keptSessions) Open(ctx context.Context, id string) (ui.Session, error) {
	if id != "" {
		var err error
		if id, err = findSession(ctx, k.store, id); err != nil {
			return nil, err
		}
		if id == k.open.ID() {
			return nil, errOpenHere
		}
	}
	next, err := k.p.session(ctx, k.host, k.store, k.model, id)
	if err != nil {
		return nil, err
	}
	return k.change(next)
}

// Fork implements ui.Sessions.
func (k *keptSessions) Fork(ctx context.Context, id string) (ui.Session, error) {
	if id == k.open.ID() {
		return k.forkAt(ctx, int64(len(k.open.Snapshot().Records)))
	}
	parent, err := k.p.session(ctx, k.host, k.store, k.model, id)
	if err != nil {
		return nil, err
	}
	fork, err := parent.Fork(ctx, int64(len(parent.Snapshot().Records)), nil)
	err = errors.Join(err, parent.Close())
	k.p.releaseSession(parent.ID())
	if err != nil {
		return nil, err
	}
	return k.take(fork)
}

// forkAt goes on with a fork of the session that is open.
func (k *keptSessions) forkAt(ctx context.Context, at int64) (ui.Session, error) {
	fork, err := k.open.Fork(ctx, at, nil)
	if err != nil {
		return nil, err
	}
	return k.take(fork)
}

// take goes on with a session that only this process knows.
func (k *keptSessions) take(s *host.Session) (ui.Session, error) {
	if err := k.p.holdSession(s.ID()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return k.change(s)
}

// change goes on with a session that is held. The error is that of the end of the one before,
// which is not kept if nothing was said in it.
func (k *keptSessions) change(next *host.Session) (ui.Session, error) {
	before := k.open
	k.open = next
	err := before.Close()
	if len(before.Snapshot().Records) == 0 {
		if gone := k.store.DeleteSession(context.Background(), before.ID()); !errors.Is(gone, host.ErrHasForks) {
			err = errors.Join(err, gone)
		}
	}
	k.p.releaseSession(before.ID())
	return k.show(), err
}

// Delete implements ui.Sessions.
func (k *keptSessions) Delete(ctx context.Context, id string) error {
	id, err := findSession(ctx, k.store, id)
	if err != nil {
		return err
	}
	if id == k.open.ID() {
		return errOpenHere
	}
	return k.p.deleteSession(ctx, k.store, id)
}

// A shownSession is the session that is open as faces show it: its errors are without secrets, and an address
// for which a sign-in waits is no message.
type shownSession struct {
	ui.Session
	p *group
}

// Snapshot returns the session as it is now.
func (s shownSession) Snapshot() *host.Snapshot {
	snap := s.Session.Snapshot()
	snap.Records = s.p.MaskedRecords(snap.Records)
	return snap
}

// Watch yields records as they come.
func (s shownSession) Watch(ctx context.Context, since int64) iter.Seq2[host.Record, error] {
	return func(yield func(host.Record, error) bool) {
		for r, err := range s.Session.Watch(ctx, since) {
			if !yield(s.p.MaskedRecord(r), err) {
				return
			}
		}
	}
}

// Send sends a message, or takes it for the address of a page.
func (s shownSession) Send(ctx context.Context, in host.Input) error {
	if s.p.SignIns.TakeAddress(in.Text) {
		return nil
	}
	return s.Session.Send(ctx, in)
}

// A heldSession is the session that is open, which its fork takes the place of.
type heldSession struct {
	*host.Session
	kept *keptSessions
}

// SetModel has another model go on, also with the sessions that are opened after it.
func (s *heldSession) SetModel(m host.Model) error {
	if err := s.Session.SetModel(m); err != nil {
		return err
	}
	s.kept.model = m
	return nil
}

// Fork begins a session after a record.
func (s *heldSession) Fork(ctx context.Context, at int64) (ui.Session, error) {
	return s.kept.forkAt(ctx, at)
}

// A shownHost is a host as faces show it: its status is without secrets, and a person who starts a server
// again is asked again to sign in.
type shownHost struct {
	ui.Host
	console *kit.Console
	signIns []*connect.Tokens
}

// Status returns how each server is.
func (h shownHost) Status() []host.ServerStatus {
	list := h.Host.Status()
	for i := range list {
		list[i].Origin = h.console.Masked(list[i].Origin) // a command line may have some
		for _, err := range []*error{&list[i].Err, &list[i].SkillsErr} {
			*err = kit.MaskError(*err, h.console.Masked)
		}
		list[i].Problems = h.console.MaskedProblems(list[i].Problems)
	}
	return list
}

// Retry starts a server again.
func (h shownHost) Retry(server string) error {
	for _, s := range h.signIns {
		s.AskAgain()
	}
	return h.Host.Retry(server)
}
