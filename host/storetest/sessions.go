package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/host"
)

var sessions = []check{
	{"a session is what was created", testCreate},
	{"an id is taken once", testTaken},
	{"a session that is not there is ErrNoSession", testNoSession},
	{"sessions are listed, the newest first", testList},
	{"Used is the time of the last record", testUsed},
	{"SetTitle changes the title alone", testTitle},
	{"DeleteSession removes records and blobs, and nothing else", testDelete},
}

var forks = []check{
	{"a fork goes on after its record, and its parent stays as it is", testFork},
	{"a fork needs a parent with the record", testForkOf},
	{"a session with forks stays", testHasForks},
	{"one of a fork and the end of its parent happens", testForkRace},
}

// same tests what a session is.
func (k *kit) same(got, want *host.SessionInfo) {
	k.Helper()
	g, w := *got, *want
	if !g.Created.Equal(w.Created) {
		k.Errorf("session %.40q was created at %v, want %v", g.ID, g.Created, w.Created)
	}
	g.Created, w.Created = time.Time{}, time.Time{}
	g.Used, w.Used = time.Time{}, time.Time{} // testUsed
	if g != w {
		k.Errorf("session %+v, want %+v", g, w)
	}
}

func testCreate(k *kit) {
	ctx := k.Context()
	for i, text := range hostile {
		want := &host.SessionInfo{
			ID: fmt.Sprintf("s%d %s", i, text), Title: text,
			Created: epoch.In(time.FixedZone("there", 3600)).Add(time.Duration(i)),
		}
		given := *want
		k.ok("CreateSession", k.store.CreateSession(ctx, &given))
		given = host.SessionInfo{ID: "changed"}
		for range 2 {
			got, err := k.store.Session(ctx, want.ID)
			k.ok("Session", err)
			k.same(got, want)
			*got = host.SessionInfo{ID: "changed", Title: "changed"}
		}
		k.has(want.ID, nil)
	}
}

func testTaken(k *kit) {
	ctx := k.Context()
	k.ok("CreateSession", k.store.CreateSession(ctx, &host.SessionInfo{ID: "s", Title: "first", Created: epoch}))
	k.add("s", 1, 2)
	k.refused("a second session of the id",
		k.store.CreateSession(ctx, &host.SessionInfo{ID: "s", Title: "second", Created: epoch.Add(time.Hour)}))
	got, err := k.store.Session(ctx, "s")
	k.ok("Session", err)
	k.same(got, &host.SessionInfo{ID: "s", Title: "first", Created: epoch})
	k.has("s", numbered(1, 2))
	errs := race(func(i int) error {
		return k.store.CreateSession(ctx, &host.SessionInfo{ID: "new", Title: fmt.Sprint(i), Created: epoch})
	})
	if n := succeeded(errs); n != 1 {
		k.Errorf("%d sessions of one id were created: %v", n, errs)
	}
	got, err = k.store.Session(ctx, "new")
	k.ok("Session", err)
	if i := slices.Index(errs, nil); got.Title != fmt.Sprint(i) {
		k.Errorf("session %q is kept, but %d was created", got.Title, i)
	}
}

func testNoSession(k *kit) {
	ctx := k.Context()
	k.create("other")
	for _, id := range []string{"none", "", "OTHER", "other ", "other\x00", "%", "o*"} {
		_, err := k.store.Session(ctx, id)
		k.fails("Session", err, host.ErrNoSession)
		k.fails("SetTitle", k.store.SetTitle(ctx, id, "title"), host.ErrNoSession)
		k.fails("DeleteSession", k.store.DeleteSession(ctx, id), host.ErrNoSession)
		k.fails("Append", k.store.Append(ctx, id, numbered(1, 1)...), host.ErrNoSession)
		k.fails("Append of nothing", k.store.Append(ctx, id), host.ErrNoSession)
		_, err = k.store.Records(ctx, id)
		k.fails("Records", err, host.ErrNoSession)
		k.fails("PutBlob", k.store.PutBlob(ctx, id, "b", []byte("x")), host.ErrNoSession)
		_, _, err = k.store.Blob(ctx, id, "b", 0, 1)
		k.fails("Blob", err, host.ErrNoSession)
	}
	k.has("other", nil)
}

func testList(k *kit) {
	ctx := k.Context()
	k.listed()
	for i, id := range []string{"c", "a", "d", "b", "old"} {
		at := epoch
		switch i {
		case 3:
			at = at.Add(1) // a nanosecond
		case 4:
			at = at.Add(-24 * 365 * time.Hour)
		}
		k.ok("CreateSession", k.store.CreateSession(ctx, &host.SessionInfo{ID: id, Created: at}))
	}
	k.listed("b", "a", "c", "d", "old")
}

func testUsed(k *kit) {
	ctx := k.Context()
	used := func(id string, want time.Time) {
		k.Helper()
		got, err := k.store.Session(ctx, id)
		k.ok("Session", err)
		if !got.Used.Equal(want) {
			k.Errorf("session %q was used at %v, want %v", id, got.Used, want)
		}
	}
	later := epoch.Add(time.Hour)
	k.ok("CreateSession", k.store.CreateSession(ctx, &host.SessionInfo{ID: "s", Created: epoch, Used: later}))
	used("s", epoch)
	body := &host.NoticeRecord{Text: "n"}
	k.ok("Append", k.store.Append(ctx, "s", host.Record{N: 1, Time: epoch.Add(2 * time.Hour), Body: body}, host.Record{N: 2, Time: later, Body: body}))
	used("s", later)
	k.ok("SetTitle", k.store.SetTitle(ctx, "s", "title"))
	used("s", later)
	k.ok("CreateSession", k.store.CreateSession(ctx, &host.SessionInfo{ID: "f", Parent: "s", At: 2, Created: later.Add(1)}))
	used("f", later.Add(1))
	list, err := k.store.Sessions(ctx)
	k.ok("Sessions", err)
	if len(list) != 2 || !list[0].Used.Equal(later.Add(1)) || !list[1].Used.Equal(later) {
		k.Errorf("sessions %+v", list)
	}
}

func (k *kit) listed(want ...string) {
	k.Helper()
	list, err := k.store.Sessions(k.Context())
	k.ok("Sessions", err)
	var got []string
	for i := range list {
		got = append(got, list[i].ID)
		one, err := k.store.Session(k.Context(), list[i].ID)
		k.ok("Session", err)
		k.same(&list[i], one)
	}
	if !slices.Equal(got, want) {
		k.Errorf("sessions %q, want %q", got, want)
	}
}

func testTitle(k *kit) {
	ctx := k.Context()
	k.create("s")
	k.create("other")
	k.add("s", 1, 1)
	for _, title := range hostile {
		k.ok("SetTitle", k.store.SetTitle(ctx, "s", title))
		got, err := k.store.Session(ctx, "s")
		k.ok("Session", err)
		k.same(got, &host.SessionInfo{ID: "s", Title: title, Created: epoch})
	}
	got, err := k.store.Session(ctx, "other")
	k.ok("Session", err)
	k.same(got, &host.SessionInfo{ID: "other", Created: epoch})
	k.has("s", numbered(1, 1))
}

func testDelete(k *kit) {
	ctx := k.Context()
	for _, id := range []string{"s", "other"} {
		k.create(id)
		k.add(id, 1, 3)
		k.ok("PutBlob", k.store.PutBlob(ctx, id, "b", []byte("blob")))
	}
	g := newGrant("g", "s")
	k.ok("PutGrant", k.store.PutGrant(ctx, g))
	k.ok("PutPin", k.store.PutPin(ctx, newPin("server", "tool", "d")))
	k.ok("DeleteSession", k.store.DeleteSession(ctx, "s"))
	k.listed("other")
	_, err := k.store.Session(ctx, "s")
	k.fails("Session", err, host.ErrNoSession)
	_, err = k.store.Records(ctx, "s")
	k.fails("Records", err, host.ErrNoSession)
	_, _, err = k.store.Blob(ctx, "s", "b", 0, 1)
	k.fails("Blob", err, host.ErrNoSession)
	k.has("other", numbered(1, 3))
	k.blob("other", "b", []byte("blob"))
	k.granted(g)
	k.pinned("", newPin("server", "tool", "d"))

	k.create("s") // anew
	k.has("s", nil)
	_, _, err = k.store.Blob(ctx, "s", "b", 0, 1)
	k.fails("Blob of a later session", err, host.ErrNoBlob)
	k.add("s", 1, 1)
}

func testFork(k *kit) {
	ctx := k.Context()
	k.create("parent")
	k.add("parent", 1, 5)
	k.fork("fork", "parent", 3)
	got, err := k.store.Session(ctx, "fork")
	k.ok("Session", err)
	k.same(got, &host.SessionInfo{ID: "fork", Parent: "parent", At: 3, Created: epoch})
	k.has("fork", nil)
	for _, n := range []int64{1, 3, 5, 6} {
		k.fails(fmt.Sprintf("record %d of a fork at 3", n), k.store.Append(ctx, "fork", numbered(n, n)...), host.ErrConflict)
	}
	k.add("fork", 4, 7)
	k.add("parent", 6, 6)
	k.fork("forks fork", "fork", 7)
	k.add("forks fork", 8, 8)
	k.fork("at the beginning", "parent", 0)
	k.add("at the beginning", 1, 1)
	k.has("parent", numbered(1, 6))
	k.has("fork", numbered(4, 7))
	k.has("forks fork", numbered(8, 8))
	k.has("at the beginning", numbered(1, 1))
}

func testForkOf(k *kit) {
	ctx := k.Context()
	k.create("parent")
	k.add("parent", 1, 2)
	k.fork("fork", "parent", 2)
	k.fails("a fork of what is not there",
		k.store.CreateSession(ctx, &host.SessionInfo{ID: "f", Parent: "none", Created: epoch}), host.ErrNoSession)
	for _, f := range []host.SessionInfo{
		{ID: "f", Parent: "parent", At: 3},
		{ID: "f", Parent: "parent", At: -1},
		{ID: "f", Parent: "fork", At: 3},
		{ID: "f", At: 1},
		{ID: "f", Parent: "f"},
	} {
		f.Created = epoch
		k.refused(fmt.Sprintf("a fork of %q after record %d", f.Parent, f.At), k.store.CreateSession(ctx, &f))
	}
	k.listed("fork", "parent")
}

func testHasForks(k *kit) {
	ctx := k.Context()
	k.create("parent")
	k.add("parent", 1, 2)
	k.fork("fork", "parent", 1)
	k.fork("forks fork", "fork", 1)
	for _, id := range []string{"parent", "fork"} {
		k.fails("DeleteSession", k.store.DeleteSession(ctx, id), host.ErrHasForks)
	}
	k.listed("fork", "forks fork", "parent")
	k.has("parent", numbered(1, 2))
	for _, id := range []string{"forks fork", "fork", "parent"} {
		k.ok("DeleteSession", k.store.DeleteSession(ctx, id))
	}
	k.listed()
}

func testForkRace(k *kit) {
	ctx := k.Context()
	for round := range 10 {
		parent, fork := fmt.Sprintf("parent %d", round), fmt.Sprintf("fork %d", round)
		k.create(parent)
		errs := race(func(i int) error {
			switch i {
			case 0:
				return k.store.CreateSession(ctx, &host.SessionInfo{ID: fork, Parent: parent, Created: epoch})
			case 1:
				return k.store.DeleteSession(ctx, parent)
			}
			_, err := k.store.Sessions(ctx)
			return err
		})
		switch {
		case errs[0] == nil:
			k.fails("DeleteSession", errs[1], host.ErrHasForks)
		case errs[1] == nil:
			k.fails("CreateSession", errs[0], host.ErrNoSession)
		default:
			k.Errorf("neither happened: %v, %v", errs[0], errs[1])
		}
	}
}
