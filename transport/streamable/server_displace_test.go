package streamable_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A crowd opens sessions of callers at several addresses, a second apart.
type crowd struct{ *site }

// anonymous opens a session for an anonymous caller at an address.
func (c crowd) anonymous(address string) (id string) {
	c.Helper()
	return c.opened(c.initialize(address, ""))
}

// named opens a session for a caller with a name.
func (c crowd) named(user string) (id string) {
	c.Helper()
	return c.opened(c.initialize("192.0.2.9", user))
}

func (c crowd) initialize(address, user string) outcome {
	c.Helper()
	c.user = user
	time.Sleep(time.Second)
	return c.send(http.MethodPost, rpc(0, "initialize", initialize), "X-Address", address)
}

func (c crowd) opened(r outcome) (id string) {
	c.Helper()
	c.check("initialize", r, 200)
	synctest.Wait() // what made place has ended
	return r.header.Get("Mcp-Session-Id")
}

// alive checks which sessions of a caller there are, the oldest first. It uses
// them in that order.
func (c crowd) alive(user string, want []bool, ids ...string) {
	c.Helper()
	for i, id := range ids {
		c.user = user
		status := map[bool]int{true: 200, false: 404}[want[i]]
		c.check(fmt.Sprintf("session %d of %q", i, user), c.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", id), status)
	}
}

// listen opens a stream in each session, so that it is in use.
func (c crowd) listen(ids ...string) {
	c.Helper()
	for _, id := range ids {
		c.user = ""
		c.follow(http.MethodGet, "", "Mcp-Session-Id", id).primed()
	}
}

// When there is no room, the address with the most sessions gives up the one
// that was idle the longest; an address that has the most itself, one of its
// own. Callers with names lose none.
//
// Proves: SEC-DOS-1.
func TestAttackFullOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{newPipes(t, newPeer(nil), &streamable.Options{MaxSessions: 10})}
		ada := c.named("ada")
		var many, few []string
		for range 6 {
			many = append(many, c.anonymous("192.0.2.2"))
		}
		for range 3 {
			few = append(few, c.anonymous("192.0.2.3"))
		}
		first := c.anonymous("192.0.2.4") // the tenth; anonymous callers may have nine
		c.alive("", []bool{false, true, true, true, true, true}, many...)
		many = many[1:]
		bob := c.named("bob") // the eleventh
		c.alive("", []bool{false, true, true, true, true}, many...)
		many = many[1:]
		many = append(many, c.anonymous("192.0.2.2")) // nobody has more
		c.alive("", []bool{false, true, true, true, true}, many...)
		many = many[1:]
		c.alive("", []bool{true, true, true}, few...)

		c.listen(many...)
		second := c.anonymous("192.0.2.5") // those with the most are all in use
		c.alive("", []bool{false, true, true}, few...)
		few = few[1:]
		r := c.initialize("192.0.2.2", "") // it has the most itself, and needs them
		c.check("the caller with the most", r, 429, "-31002", "10 sessions", "(MaxSessions)")
		c.alive("", []bool{true, true}, few...)
		c.listen(few...)
		c.listen(first, second)
		c.check("all in use", c.initialize("192.0.2.6", "eve"), 429, "10 sessions", "(MaxSessions)")
		c.alive("", []bool{true, true, true, true}, many...)
		c.alive("", []bool{true, true, true, true}, append(few, first, second)...)
		c.alive("ada", []bool{true}, ada)
		c.alive("bob", []bool{true}, bob)
	})
}

// Anonymous callers whose sessions are all in use leave room for those with a
// name.
//
// Proves: SEC-DOS-1.
func TestAttackFullOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{newPipes(t, newPeer(nil), &streamable.Options{MaxSessions: 10})}
		for i := range 9 {
			c.listen(c.anonymous(fmt.Sprintf("192.0.2.2%d", i)))
		}
		c.check("one more", c.initialize("192.0.2.6", ""), 429, "-31002", "9 sessions", "nine tenths of MaxSessions", "sign in")
		ada := c.named("ada")
		c.check("one more", c.initialize("192.0.2.6", ""), 429, "10 sessions", "(MaxSessions)")
		c.alive("ada", []bool{true}, ada)
	})
}

// Of addresses with as many sessions the one idle for the longest ends.
func TestDisplacedOfEquals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{newPipes(t, newPeer(nil), &streamable.Options{MaxSessions: 5})}
		var ids []string
		for i := range 5 {
			ids = append(ids, c.anonymous(fmt.Sprintf("192.0.2.1%d", i)))
		}
		c.alive("", []bool{true, true}, ids[:2]...) // the third is now the oldest
		c.anonymous("192.0.2.20")
		c.alive("", []bool{true, true, false, true, true}, ids...)
	})
}

// A handshake that fails, over HTTP or in Restore, ends no other session.
func TestRefusedDisplacesNone(t *testing.T) {
	for name, opts := range map[string]streamable.Options{
		"altogether": {MaxSessions: 2}, "of an address": {MaxSessionsPerAddress: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := crowd{newPipes(t, notesServer(), &opts)}
				ids := []string{c.anonymous("192.0.2.2"), c.anonymous("192.0.2.2")}
				there := func(what string, want ...bool) {
					t.Helper()
					synctest.Wait()
					c.user = ""
					for i, id := range ids {
						status := map[bool]int{true: 200, false: 404}[want[i]]
						c.check(what, c.send(http.MethodPost, rpc(1, "ping", ""), "Mcp-Session-Id", id), status)
					}
				}
				c.check("a bad handshake", c.send(http.MethodPost, rpc(0, "initialize", `"protocolVersion":1`), "X-Address", "192.0.2.2"), 200, "error")
				there("after a bad handshake", true, true)
				who := &principal.Principal{Remote: "192.0.2.2"}
				open := []byte(rpc(0, "initialize", initialize))
				for _, messages := range [][][]byte{{open, open}, {open, []byte(rpc(1, "resources/subscribe", `"uri":"note://2"`))}} {
					if err := c.h.Restore(t.Context(), "moved", who, messages); err == nil {
						t.Error("restored from messages that cannot be")
					}
				}
				if err := c.h.Restore(t.Context(), ids[1], who, [][]byte{open}); err == nil {
					t.Error("restored under an id that is in use")
				}
				there("after Restore has failed", true, true)
				if err := c.h.Restore(t.Context(), "moved", who, [][]byte{open}); err != nil {
					t.Error(err)
				}
				there("after Restore", false, true)
			})
		})
	}
}
