package tasks_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	store "github.com/parley-mcp/parley/app/internal/store/tasks"
	"github.com/parley-mcp/parley/ext/tasks"
)

// A link is a connection of TCP to PostgreSQL that can be cut and stopped.
type link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	conns []net.Conn
	open  chan struct{} // closed while bytes pass
}

// newLink returns a link, and a URL that leads over it.
func newLink(t *testing.T, dsn string) (*link, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{to: u.Host, open: make(chan struct{})}
	close(l.open)
	if l.listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { l.accept(&wg) })
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.resume()
		l.cut()
		wg.Wait()
	})
	u.Host = l.listener.Addr().String()
	return l, u.String()
}

func (l *link) accept(wg *sync.WaitGroup) {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, from, to)
		l.mu.Unlock()
		wg.Go(func() { l.copy(to, from) })
		wg.Go(func() { l.copy(from, to) })
	}
}

func (l *link) copy(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		open := l.open
		l.mu.Unlock()
		<-open
		if _, werr := to.Write(buf[:n]); errors.Join(err, werr) != nil {
			return
		}
	}
}

// stop lets nothing pass any more, and ends no connection.
func (l *link) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *link) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// cut ends all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// calls are the methods of a store that go to the database.
func calls(db *store.DB, l tasks.Lease) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Create":  func(ctx context.Context) error { _, _, err := db.Create(ctx, newTask("new"), time.Minute); return err },
		"Get":     func(ctx context.Context) error { return second(db.Get(ctx, l.ID, "ada")) },
		"List":    func(ctx context.Context) error { return second(db.List(ctx, tasks.Query{All: true, Most: 1})) },
		"Answer":  func(ctx context.Context) error { return second(db.Answer(ctx, l.ID, "ada", nil)) },
		"Claim":   func(ctx context.Context) error { return second(db.Claim(ctx, time.Minute, 1, nil)) },
		"Renew":   func(ctx context.Context) error { return second(db.Renew(ctx, []tasks.Lease{l}, time.Minute)) },
		"Change":  func(ctx context.Context) error { return second(db.Change(ctx, l, tasks.Change{})) },
		"Answers": func(ctx context.Context) error { return second(db.Answers(ctx, l)) },
		"Expire":  func(ctx context.Context) error { return second(db.Expire(ctx)) },
		"Watch":   func(ctx context.Context) error { return db.Watch(ctx, func() {}, func(string) {}) },
	}
}

// watch begins to watch, and returns what will have the error of Watch.
func watch(t *testing.T, db *store.DB) <-chan error {
	t.Helper()
	over, ready := make(chan error, 1), make(chan struct{})
	go func() { over <- db.Watch(t.Context(), func() { close(ready) }, func(string) {}) }()
	<-ready
	return over
}

// recovers waits until all methods but Watch succeed again: each connection that was cut
// may fail once.
func recovers(t *testing.T, db *store.DB, l tasks.Lease) {
	t.Helper()
	for name, call := range calls(db, l) {
		if name == "Watch" || name == "Create" {
			continue
		}
		var err error
		for range 40 {
			if err = call(t.Context()); err == nil {
				break
			}
			clearError(t, name, err)
		}
		if err != nil {
			t.Errorf("%s does not succeed again: %v", name, err)
		}
	}
	create(t, db, "after that")
	ctx, cancel := context.WithCancel(t.Context())
	if err := db.Watch(ctx, cancel, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch does not succeed again: %v", err)
	}
}

// clearError tests that an error says what happened, and not that there is no task.
func clearError(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || errors.Is(err, tasks.ErrUnknown) || errors.Is(err, tasks.ErrLost) || strings.Contains(err.Error(), "database fails") {
		t.Errorf("%s: error %v", what, err)
	}
}

// The database ends all connections, as it does when it is restarted: Watch returns, and
// the store recovers.
func TestPostgresEndsConnections(t *testing.T) {
	t.Parallel()
	dsn := databasetest.Postgres(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	name := u.Query().Get("search_path")
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	db := open(t, u.String())
	l := create(t, db, "t")
	var wg sync.WaitGroup
	for range 16 { // as many connections
		wg.Go(func() { _ = second(db.Change(t.Context(), l, tasks.Change{})) })
	}
	wg.Wait()
	over := watch(t, db)
	databasetest.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, name[:min(len(name), 63)])
	clearError(t, "Watch", <-over)
	recovers(t, db, l)
}

// All connections are cut in the middle: Watch returns with an error that says so, and the
// store recovers.
func TestPostgresIsCut(t *testing.T) {
	t.Parallel()
	link, dsn := newLink(t, databasetest.Postgres(t))
	db := open(t, dsn)
	l := create(t, db, "t")
	over := watch(t, db)
	link.cut()
	clearError(t, "Watch", <-over)
	recovers(t, db, l)
}

// The database does not answer any more, and ends no connection: calls end with their
// contexts. When it answers again, the store recovers.
func TestPostgresIsSilent(t *testing.T) {
	t.Parallel()
	link, dsn := newLink(t, databasetest.Postgres(t))
	db := open(t, dsn)
	l := create(t, db, "t")
	link.stop()
	for name, call := range calls(db, l) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v", name, err)
		}
		cancel()
	}
	link.resume()
	recovers(t, db, l)
}

// A connection of Watch that is silent is tested, and Watch goes on. One that does not
// answer any more ends it.
func TestPostgresWatchIsSilent(t *testing.T) {
	t.Parallel()
	link, dsn := newLink(t, databasetest.Postgres(t))
	db, short, other := open(t, dsn), open(t, dsn), open(t, dsn)
	store.SetSilence(db, 10*time.Millisecond, time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	over, ready, ids := make(chan error, 1), make(chan struct{}), make(chan string, 10)
	go func() { over <- db.Watch(ctx, func() { close(ready) }, func(id string) { ids <- id }) }()
	<-ready
	select {
	case err := <-over:
		t.Fatalf("Watch returns %v", err)
	case <-time.After(100 * time.Millisecond): // it is tested meanwhile
	}
	create(t, other, "t")
	if id := <-ids; id != "t" {
		t.Errorf("Watch tells of %q", id)
	}
	stop()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returns %v", err)
	}
	store.SetSilence(short, 50*time.Millisecond, 50*time.Millisecond)
	err := short.Watch(t.Context(), link.stop, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("Watch returns %v", err)
	}
}
