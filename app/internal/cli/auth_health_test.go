package cli_test

import (
	"database/sql"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
)

// eventually asks for a page until it has a status and a text.
func (p *place) eventually(url string, status int, text string) (body string) {
	p.t.Helper()
	late := time.After(patience)
	for {
		got, body := get(p.t, url, "")
		if got == status && strings.Contains(body, text) {
			return body
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-late:
			p.t.Fatalf("%s is %d %s, want %d and %q", url, got, body, status, text)
		}
	}
}

// An authorization server says whether it is alive, and whether its database works; strangers learn
// nothing else.
func TestAuthHealth(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			p := newEmptyPlace(t)
			dsn := database(t)
			if name == "sqlite" {
				dsn = p.dir + "/issuer.db"
			}
			at := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database", dsn,
				"--client", killClient+"="+killRedirect, "--resource", killResource+"=read")
			expectHealth(t, at, "/readyz", http.StatusOK, `{"status":"ok","checks":{"audit":"ok","database":"ok","signing_key":"ok"}}`)
			expectHealth(t, at, "/livez", http.StatusOK, `{"status":"ok"}`)
			driver, place := "pgx", dsn
			if name == "sqlite" {
				driver, place = "sqlite", "file:"+dsn+"?_pragma=busy_timeout(10000)"
			}
			db, err := sql.Open(driver, place)
			if err != nil {
				t.Fatal(err)
			}
			rename := func(from, to string) {
				t.Helper()
				if _, err := db.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
					t.Fatal(err)
				}
			}
			rename("schema_version", "gone")
			body := p.eventually(at+"/readyz", http.StatusServiceUnavailable, `"database":"failed"`)
			if strings.Contains(body, "schema") {
				t.Errorf("without its tables: %s", body)
			}
			if !p.saw(`msg="not ready" check=database`) {
				t.Errorf("the operator is not told:\n%s", p.said)
			}
			if status, _ := get(t, at+"/livez", ""); status != http.StatusOK {
				t.Errorf("not alive: %d", status)
			}
			rename("gone", "schema_version")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			p.eventually(at+"/readyz", http.StatusOK, "")
			p.stop()
		})
	}
}

// A relay stands in front of a database: while it is frozen nothing goes through, and connections
// stay open; while it is away connections are cut, and new ones too.
type relay struct {
	address string
	frozen  sync.RWMutex

	mu    sync.Mutex
	away  bool
	conns map[net.Conn]bool // from clients
}

// goAway cuts all connections, and new ones until comeBack.
func (r *relay) goAway() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = true
	for c := range r.conns {
		_ = c.Close() // that it is closed already is no matter
	}
}

func (r *relay) comeBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = false
}

// enter keeps a connection, or says that the relay is away.
func (r *relay) enter(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away {
		r.conns[c] = true
	}
	return !r.away
}

func (r *relay) leave(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: ln.Addr().String(), conns: map[net.Conn]bool{}}
	var group sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); group.Wait() })
	group.Go(func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			if !r.enter(from) {
				_ = from.Close()
				continue
			}
			group.Go(func() {
				defer r.leave(from)
				there, err := net.Dial("tcp", to)
				if err != nil {
					t.Error(err)
					_ = from.Close()
					return
				}
				group.Go(func() { r.copy(there, from) })
				r.copy(from, there)
			})
		}
	})
	return r
}

// copy copies until one end is closed, and closes both.
func (r *relay) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.frozen.RLock()
		if n > 0 && err == nil {
			_, err = to.Write(buffer[:n])
		}
		r.frozen.RUnlock()
		if err != nil {
			return
		}
	}
}

// A database that does not answer is told within the time that a balancer waits, and its server is
// ready again when it does.
func TestAuthHealthDatabaseHangs(t *testing.T) {
	racetest.SkipSerial(t)
	databasetest.NeedPostgres(t)
	if ranInOwnProcess(t) {
		return
	}
	dsn, err := url.Parse(databasetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, dsn.Host)
	dsn.Host = r.address
	p := newEmptyPlace(t)
	at := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database", dsn.String(),
		"--client", killClient+"="+killRedirect, "--resource", killResource+"=read")
	p.eventually(at+"/readyz", http.StatusOK, "")
	r.frozen.Lock()
	thaw := sync.OnceFunc(r.frozen.Unlock)
	defer thaw()
	p.eventually(at+"/readyz", http.StatusServiceUnavailable, `"database":"timeout"`)
	if status, _ := get(t, at+"/livez", ""); status != http.StatusOK {
		t.Errorf("not alive: %d", status)
	}
	thaw()
	p.eventually(at+"/readyz", http.StatusOK, "")
	p.stop()
}
