package storetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

var pins = []check{
	{"a pin is read as it was put, or is nil", testPin},
	{"PutPin replaces", testPinAgain},
	{"DeletePin removes one pin, or nothing", testDeletePin},
	{"pins are listed in the order of their keys", testPins},
}

var grants = []check{
	{"a grant is read as it was put", testGrant},
	{"a grant with the same id stays as it is", testGrantAgain},
	{"grants are listed, the oldest first", testGrants},
	{"RevokeGrant keeps the first time", testRevoke},
	{"an unknown grant is ErrNoGrant", testNoGrant},
}

var audit = []check{
	{"entries are added by many at once", testAudit},
}

func newPin(server, tool, text string) *host.Pin {
	return &host.Pin{
		PinKey: host.PinKey{Server: server, Tool: tool},
		Digest: "digest " + text, Definition: object(text), Time: epoch,
	}
}

// samePin tests what a pin is.
func (k *kit) samePin(got, want *host.Pin) {
	k.Helper()
	if got == nil {
		k.Errorf("no pin of %+v", want.PinKey)
		return
	}
	if got.PinKey != want.PinKey || got.Digest != want.Digest || !got.Time.Equal(want.Time) ||
		!bytes.Equal(got.Definition, want.Definition) {
		k.Errorf("pin %+v, want %+v", got, want)
	}
}

// pinned tests which pins a server has, or all servers.
func (k *kit) pinned(server string, want ...*host.Pin) {
	k.Helper()
	list, err := k.store.Pins(k.Context(), server)
	k.ok("Pins", err)
	if len(list) != len(want) {
		k.Fatalf("%d pins of %.40q, want %d", len(list), server, len(want))
	}
	for i := range list {
		k.samePin(&list[i], want[i])
	}
}

func testPin(k *kit) {
	ctx := k.Context()
	for i, text := range hostile {
		want := newPin(fmt.Sprintf("%d%s", i, text), text, text)
		given := *want
		given.Definition = bytes.Clone(want.Definition)
		k.ok("PutPin", k.store.PutPin(ctx, &given))
		clear(given.Definition)
		for range 2 {
			got, err := k.store.Pin(ctx, want.PinKey)
			k.ok("Pin", err)
			k.samePin(got, want)
			if got != nil {
				clear(got.Definition)
				got.Digest = "changed"
			}
		}
		k.pinned(want.Server, want)
	}
	for _, raw := range []string{`{"b": 1,  "a":2}`, " null\n", ""} {
		want := newPin("raw", "tool", "")
		want.Definition = mcp.RawValue(raw)
		k.ok("PutPin", k.store.PutPin(ctx, want))
		k.pinned("raw", want)
	}
	for _, key := range []host.PinKey{{}, {Server: "none"}, {Server: "raw"}, {Server: "raw", Tool: "Tool"}, {Tool: "tool"}} {
		if got, err := k.store.Pin(ctx, key); got != nil || err != nil {
			k.Errorf("pin of %+v: %+v, error %v", key, got, err)
		}
	}
}

func testPinAgain(k *kit) {
	k.ok("PutPin", k.store.PutPin(k.Context(), newPin("s", "t", "first")))
	other := newPin("s", "", "instructions")
	k.ok("PutPin", k.store.PutPin(k.Context(), other))
	second := newPin("s", "t", "second")
	second.Time = epoch.Add(time.Hour)
	k.ok("PutPin", k.store.PutPin(k.Context(), second))
	k.pinned("s", other, second)
}

func testDeletePin(k *kit) {
	ctx := k.Context()
	instructions, tool := newPin("s", "", "instructions"), newPin("s", "t", "first")
	for _, p := range []*host.Pin{instructions, tool, newPin("other", "t", "d")} {
		k.ok("PutPin", k.store.PutPin(ctx, p))
	}
	for _, key := range []host.PinKey{{Server: "other", Tool: "t"}, {Server: "other", Tool: "t"}, {Server: "none"}, {Server: "s", Tool: "T"}, {Tool: "t"}} {
		k.ok("DeletePin", k.store.DeletePin(ctx, key))
	}
	k.pinned("", instructions, tool)
	k.ok("DeletePin", k.store.DeletePin(ctx, instructions.PinKey))
	k.pinned("", tool)
	k.ok("PutPin", k.store.PutPin(ctx, instructions))
	k.pinned("", instructions, tool)
}

func testPins(k *kit) {
	var want []*host.Pin
	for _, key := range [][2]string{{"", "t"}, {"B", "t"}, {"a", ""}, {"a", "T"}, {"a", "a"}, {"a", "b"}, {"a\x00", "a"}, {"b", "a"}, {"é", "a"}} {
		want = append(want, newPin(key[0], key[1], "d"))
	}
	k.pinned("")
	for _, i := range []int{4, 0, 8, 2, 6, 1, 7, 3, 5} {
		k.ok("PutPin", k.store.PutPin(k.Context(), want[i]))
	}
	k.pinned("", want...)
	k.pinned("a", want[2:6]...)
	k.pinned("A")
	k.pinned("a*")
}

func newGrant(id, session string) *host.Grant {
	return &host.Grant{
		ID: id, Session: session, Digest: "digest", Created: epoch,
		Skill: &host.GrantSkill{Server: "docs <&>", Owner: "docs 1", URI: "skill://pdf/SKILL.md", Digest: "sha256:1"},
		Rule: policy.Rule{
			Effect: policy.Allow, Kind: policy.KindTool, Server: policy.Quote("files"), Name: "read_*",
			Where: []policy.Predicate{
				{Pointer: "/path", Op: policy.OpInside, Dirs: []string{"/home/ada"}},
				{Pointer: "/a", Op: policy.OpEquals, Values: []mcp.RawValue{mcp.RawValue(`{"b":"\u0000<&>","a":1.0}`)}},
			},
			Reason: "because <&>",
		},
	}
}

// granted tests which grants there are.
func (k *kit) granted(want ...*host.Grant) {
	k.Helper()
	list, err := k.store.Grants(k.Context())
	k.ok("Grants", err)
	if len(list) != len(want) {
		k.Fatalf("%d grants, want %d", len(list), len(want))
	}
	for i := range list {
		g, w := list[i], *want[i]
		if !g.Created.Equal(w.Created) || !g.Expires.Equal(w.Expires) || !g.Revoked.Equal(w.Revoked) {
			k.Errorf("grant %.40q of %v, until %v, revoked %v; want %v, %v, %v",
				g.ID, g.Created, g.Expires, g.Revoked, w.Created, w.Expires, w.Revoked)
		}
		if g.Expires.IsZero() != w.Expires.IsZero() || g.Revoked.IsZero() != w.Revoked.IsZero() {
			k.Errorf("grant %.40q: a time that is not set is", g.ID)
		}
		for _, t := range []*host.Grant{&g, &w} {
			t.Created, t.Expires, t.Revoked = time.Time{}, time.Time{}, time.Time{}
		}
		got, wanted := encoded(k, &host.AnswerRecord{Grant: &g}), encoded(k, &host.AnswerRecord{Grant: &w})
		if !bytes.Equal(got, wanted) {
			k.Errorf("grant %s, want %s", short(got), short(wanted))
		}
	}
}

func testGrant(k *kit) {
	var want []*host.Grant
	for i, text := range hostile {
		g := newGrant(fmt.Sprintf("%03d%s", i, text), text)
		g.Digest = text
		g.Rule.Where = append(g.Rule.Where, policy.Predicate{Pointer: "/t", Op: policy.OpEquals, Values: []mcp.RawValue{object(text)}})
		if i%2 == 0 {
			g.Expires = epoch.Add(time.Duration(i+1) * time.Minute)
		}
		k.ok("PutGrant", k.store.PutGrant(k.Context(), g))
		want = append(want, g)
	}
	bare := &host.Grant{ID: "bare", Rule: policy.Rule{Effect: policy.Allow}, Created: epoch.Add(1), Revoked: epoch.Add(2)}
	k.ok("PutGrant", k.store.PutGrant(k.Context(), bare))
	k.granted(append(want, bare)...)
}

func testGrantAgain(k *kit) {
	ctx := k.Context()
	first := newGrant("g", "s")
	k.ok("PutGrant", k.store.PutGrant(ctx, first))
	wider := newGrant("g", "other")
	wider.Rule, wider.Expires = policy.Rule{Effect: policy.Allow}, epoch.Add(time.Hour)
	k.ok("PutGrant again", k.store.PutGrant(ctx, wider))
	k.granted(first)
	k.ok("RevokeGrant", k.store.RevokeGrant(ctx, "g", epoch))
	k.ok("PutGrant of one that is revoked", k.store.PutGrant(ctx, first))
	revoked := *first
	revoked.Revoked = epoch
	k.granted(&revoked)
	for i, err := range race(func(i int) error {
		g := newGrant("raced", "s")
		g.Digest = fmt.Sprint(i)
		return k.store.PutGrant(ctx, g)
	}) {
		k.ok(fmt.Sprintf("PutGrant %d", i), err)
	}
	list, err := k.store.Grants(ctx)
	if err != nil || len(list) != 2 {
		k.Errorf("%d grants, error %v", len(list), err)
	}
}

func testGrants(k *kit) {
	k.granted()
	ids := []string{"c", "b", "a", "old", "new"}
	made := map[string]*host.Grant{}
	for _, id := range ids {
		made[id] = newGrant(id, "s")
	}
	made["old"].Created = epoch.Add(-time.Hour)
	made["new"].Created = epoch.Add(1)
	for _, id := range ids {
		k.ok("PutGrant", k.store.PutGrant(k.Context(), made[id]))
	}
	k.granted(made["old"], made["a"], made["b"], made["c"], made["new"])
}

func testRevoke(k *kit) {
	ctx := k.Context()
	a, b := newGrant("a", "s"), newGrant("b", "s")
	a.Expires = epoch.Add(time.Hour)
	k.ok("PutGrant", k.store.PutGrant(ctx, a))
	k.ok("PutGrant", k.store.PutGrant(ctx, b))
	k.ok("RevokeGrant", k.store.RevokeGrant(ctx, "a", epoch.Add(time.Minute)))
	k.ok("RevokeGrant again", k.store.RevokeGrant(ctx, "a", epoch.Add(time.Second)))
	k.ok("RevokeGrant again", k.store.RevokeGrant(ctx, "a", epoch.Add(time.Hour)))
	a.Revoked = epoch.Add(time.Minute)
	k.granted(a, b)
	for _, err := range race(func(i int) error { return k.store.RevokeGrant(ctx, "b", epoch.Add(time.Duration(i))) }) {
		k.ok("RevokeGrant", err)
	}
	list, err := k.store.Grants(ctx)
	k.ok("Grants", err)
	b.Revoked = list[1].Revoked
	if late := b.Revoked.Sub(epoch); late < 0 || late >= racers {
		k.Errorf("revoked %v after the time", late)
	}
	k.ok("RevokeGrant again", k.store.RevokeGrant(ctx, "b", epoch.Add(time.Hour)))
	k.granted(a, b)
}

func testNoGrant(k *kit) {
	k.ok("PutGrant", k.store.PutGrant(k.Context(), newGrant("a", "s")))
	for _, id := range []string{"none", "", "A", "a\x00", "%"} {
		k.fails("RevokeGrant", k.store.RevokeGrant(k.Context(), id, epoch), host.ErrNoGrant)
	}
	k.granted(newGrant("a", "s"))
}

func testAudit(k *kit) {
	for _, errs := range race(func(i int) (errs []error) {
		for _, text := range hostile {
			errs = append(errs, k.store.Audit(k.Context(), &host.AuditEntry{
				Time: epoch.Add(time.Duration(i)), Session: text, Record: int64(i), Event: "called", Kind: policy.KindTool,
				Server: text, Name: text, Why: text, Arguments: text,
			}))
		}
		return append(errs, k.store.Audit(k.Context(), &host.AuditEntry{}))
	}) {
		for _, err := range errs {
			k.ok("Audit", err)
		}
	}
}
