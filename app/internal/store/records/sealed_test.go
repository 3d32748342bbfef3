package records_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/app/internal/store/seal"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/issuer/storetest"
)

func newKey(t testing.TB) *seal.Key {
	t.Helper()
	key, _ := seal.GenerateKey()
	return key
}

func openWith(t testing.TB, dsn string, key *seal.Key) *records.DB {
	t.Helper()
	db, err := records.Open(t.Context(), dsn, &records.Options{SecretsKey: key, Connections: 4, Wait: 10 * time.Minute})
	return databasetest.Opened(t, db, err)
}

// A store whose secrets are sealed is a store as any other.
func TestSealedStore(t *testing.T) {
	t.Parallel()
	for name, make := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "postgres" {
				databasetest.NeedPostgres(t)
			}
			storetest.Test(t, func(t testing.TB) issuer.Store { return openWith(t, make(t), newKey(t)) })
		})
	}
}

// raw opens a database beside the store.
func raw(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := databasetest.Raw(dsn)
	return databasetest.Opened(t, db, err)
}

func execute(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

const filled = 1203 // more than two portions

// fill stores a key, secrets and many records.
func fill(t testing.TB, db *records.DB) {
	t.Helper()
	for i := range filled {
		id := strconv.Itoa(i)
		if err := db.SetRecord(t.Context(), "trip", id, []byte("swordfish "+id), epoch.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for _, slot := range []string{"ES256/1", "secret/1"} {
		addKey(t, db, slot)
	}
}

// fillInClear has a process without a key store what fill does, and end.
func fillInClear(t testing.TB, dsn string) {
	t.Helper()
	db, err := records.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, db)
	if s, err := db.Secrets(t.Context()); err != nil || *s != (records.Secrets{}) {
		t.Errorf("without a key: %+v, error %v", s, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// openFilled is a server with a key and what fill stores.
func openFilled(t testing.TB, dsn string, key *seal.Key) *records.DB {
	t.Helper()
	db := openWith(t, dsn, key)
	fill(t, db)
	return db
}

func addKey(t testing.TB, db *records.DB, slot string) {
	t.Helper()
	k, err := db.AddKey(t.Context(), &issuer.Key{
		ID: slot, Slot: slot, Algorithm: "A", Private: []byte("swordfish " + slot), Created: epoch, Retires: epoch, Expires: epoch.Add(time.Hour),
	}, epoch)
	if err != nil || string(k.Private) != "swordfish "+slot {
		t.Fatalf("%+v, error %v", k, err)
	}
}

// check reads what fill stored.
func check(t testing.TB, db *records.DB) {
	t.Helper()
	for i := range filled {
		id := strconv.Itoa(i)
		if data, err := db.Record(t.Context(), "trip", id, epoch); err != nil || string(data) != "swordfish "+id {
			t.Fatalf("record %s is %q, error %v", id, data, err)
		}
	}
	keys, err := db.Keys(t.Context(), epoch)
	if err != nil || len(keys) != 2 || string(keys[0].Private) != "swordfish ES256/1" || string(keys[1].Private) != "swordfish secret/1" {
		t.Fatalf("keys are %+v, error %v", keys, err)
	}
}

// found says whether the secrets of fill are in a dump of the database or, in SQLite, in its files.
func found(t testing.TB, dsn string) bool {
	t.Helper()
	dump, err := databasetest.Dump(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(dump, []byte("swordfish"))
}

// Secrets that are there are sealed when the database is opened with a key for the first time, so
// that no dump and no file has them, and are read with the key alone.
func TestSealExisting(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		fillInClear(t, dsn)
		if !found(t, dsn) {
			t.Fatal("secrets in clear are not found: this test proves nothing")
		}
		key := newKey(t)
		check(t, openWith(t, dsn, key))
		if found(t, dsn) {
			t.Error("there are secrets in clear")
		}
		check(t, openWith(t, dsn, key))

		if _, err := records.Open(ctx, dsn, &records.Options{SecretsKey: newKey(t)}); !errors.Is(err, seal.ErrWrongKey) {
			t.Errorf("opened with another key: error %v", err)
		}
		without := open(t, dsn)
		if s, err := without.Secrets(ctx); err != nil || s.DataKey != 1 || s.Key != key.ID() || s.Created.IsZero() {
			t.Errorf("after: %+v, error %v", s, err)
		}
		if _, err := without.Keys(ctx, epoch); !errors.Is(err, records.ErrSealed) {
			t.Errorf("keys without the key: error %v", err)
		}
		if _, err := without.Record(ctx, "trip", "1", epoch); !errors.Is(err, records.ErrSealed) {
			t.Errorf("a record without the key: error %v", err)
		}
		if list, err := without.KeyList(ctx, epoch); err != nil || len(list) != 2 || list[0].Private != nil || list[0].ID != "ES256/1" {
			t.Errorf("the list of keys without the key: %+v, error %v", list, err)
		}
		if _, err := without.AddUser(ctx, "ada", "hash", epoch); err != nil {
			t.Errorf("a user is added without the key: %v", err)
		}
		check(t, openWith(t, dsn, key))
		// What an operator does to keys needs no key.
		if k, err := without.RetireKey(ctx, "ES256/1", epoch, epoch); err != nil || k.Private != nil {
			t.Errorf("a key is retired without the key: %+v, error %v", k, err)
		}
		if k, err := without.RevokeKey(ctx, "ES256/1", epoch); err != nil || k.Private != nil {
			t.Errorf("a key is revoked without the key: %+v, error %v", k, err)
		}
	})
}

// A process that has a database open without a key, while another one seals it, writes no secret in
// clear, is told so, and is not in the way.
func TestSealBesideKeyless(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		keyless := open(t, dsn)
		fill(t, keyless)
		var writing sync.WaitGroup
		var started sync.WaitGroup
		started.Add(4)
		for i := range 4 {
			writing.Go(func() {
				for n := 0; ; n++ {
					err := keyless.SetRecord(ctx, "late", fmt.Sprint(i, " ", n), []byte("swordfish"), epoch.Add(time.Hour))
					if errors.Is(err, records.ErrSealed) && n > 0 {
						return
					}
					if err != nil {
						t.Errorf("write %d: %v", n, err)
						return
					}
					if n == 0 {
						started.Done()
					}
				}
			})
		}
		started.Wait()
		key := newKey(t)
		var opening sync.WaitGroup
		for range 2 {
			opening.Go(func() { check(t, openWith(t, dsn, key)) })
		}
		opening.Wait()
		writing.Wait()
		if err := keyless.CheckSecrets(ctx); !errors.Is(err, records.ErrSealed) {
			t.Errorf("the process without a key: error %v", err)
		}
		if _, err := keyless.AddKey(ctx, &issuer.Key{ID: "x", Slot: "x", Private: []byte("swordfish"), Expires: epoch.Add(time.Hour)}, epoch); !errors.Is(err, records.ErrSealed) {
			t.Errorf("it adds a key: error %v", err)
		}
		check(t, openWith(t, dsn, key)) // all rows open, those of the other process too
		dump, err := databasetest.DumpTables(ctx, dsn)
		if err != nil || bytes.Contains(dump, []byte("swordfish")) {
			t.Errorf("there are secrets in clear, or error %v", err)
		}
	})
}

// A value that was changed, cut off, moved from another row or put there in clear is an error that
// names the row.
func TestSealedDamage(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		ctx, key := t.Context(), newKey(t)
		db := openWith(t, dsn, key)
		beside := raw(t, dsn)
		for _, hash := range []string{"a", "b"} {
			if err := db.SetRecord(ctx, "trip", hash, []byte("value of "+hash), epoch.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		addKey(t, db, "ES256/1")
		addKey(t, db, "ES256/2")
		var sealed []byte
		if err := beside.QueryRowContext(ctx, `SELECT data FROM records WHERE hash = 'b'`).Scan(&sealed); err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(sealed)
		changed[len(changed)-3] ^= 1
		for what, value := range map[string][]byte{
			"moved": sealed, "changed": changed, "cut off": sealed[:40], "another version": bytes.Replace(sealed, []byte(":1:"), []byte(":2:"), 1),
			"of an unknown key": bytes.Replace(sealed, []byte(":1:1:"), []byte(":1:9:"), 1), "in clear": []byte(`{"page":"x"}`), "empty": {},
		} {
			execute(t, beside, `UPDATE records SET data = $1 WHERE hash = 'a'`, value)
			_, err := db.Record(ctx, "trip", "a", epoch)
			var e *records.SealError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), `records "data" "trip" "a"`) {
				t.Errorf("%s: error %v", what, err)
			}
			if err != nil && strings.Contains(err.Error(), string(sealed[20:40])) {
				t.Errorf("%s: the error shows the value: %v", what, err)
			}
			if _, err := db.RotateSecrets(ctx, key, &records.RotateOptions{Reseal: true, Wait: time.Nanosecond}); !errors.As(err, &e) {
				t.Errorf("%s: sealed anew with error %v", what, err)
			}
			execute(t, beside, `UPDATE records SET data = $1 WHERE hash = 'a'`, value)
			if _, err := db.TakeRecord(ctx, "trip", "a", epoch); !errors.As(err, &e) {
				t.Errorf("%s: taken with error %v", what, err)
			}
			if err := db.SetRecord(ctx, "trip", "a", []byte("value of a"), epoch.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		execute(t, beside, `UPDATE keys SET data = (SELECT k.data FROM keys k WHERE k.slot = 'ES256/1') WHERE slot = 'ES256/2'`)
		if _, err := db.Keys(ctx, epoch); !errors.Is(err, seal.ErrDamaged) || !strings.Contains(err.Error(), `keys "private" "ES256/2"`) {
			t.Errorf("a private key in the place of another: error %v", err)
		}
		execute(t, beside, `UPDATE data_keys SET wrapped = 'x' WHERE id = 1`)
		if _, err := records.Open(ctx, dsn, &records.Options{SecretsKey: key}); !errors.Is(err, seal.ErrDamaged) || !strings.Contains(err.Error(), "data_keys 1") {
			t.Errorf("a damaged data key: error %v", err)
		}
	})
}

// The outer key is replaced while another process has the database open, which notices nothing; a
// new data key it reads in time. What was sealed stays readable, and the old key opens the database
// no more.
func TestRotateSecrets(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		first, second := newKey(t), newKey(t)
		server, operator := openFilled(t, dsn, first), openWith(t, dsn, first)
		if n, err := operator.RotateSecrets(ctx, second, nil); err != nil || n != 1 {
			t.Fatalf("data key %d, error %v", n, err)
		}
		check(t, server)
		if _, err := records.Open(ctx, dsn, &records.Options{SecretsKey: first}); !errors.Is(err, seal.ErrWrongKey) {
			t.Errorf("opened with the old key: error %v", err)
		}
		check(t, openWith(t, dsn, second))

		var sealedBefore []byte
		if err := raw(t, dsn).QueryRowContext(ctx, `SELECT data FROM records WHERE hash = '1'`).Scan(&sealedBefore); err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		var over atomic.Bool
		done.Go(func() { // a server that writes and reads meanwhile
			for i := 0; !over.Load(); i++ {
				id := "during " + strconv.Itoa(i)
				if err := server.SetRecord(ctx, "trip", id, []byte(id), epoch.Add(time.Hour)); err != nil {
					t.Errorf("write while the secrets are sealed anew: %v", err)
					return
				}
				if data, err := server.TakeRecord(ctx, "trip", id, epoch); err != nil || string(data) != id {
					t.Errorf("read while the secrets are sealed anew: %q, %v", data, err)
					return
				}
			}
		})
		records.OnWait(operator, server.CheckSecrets) // as a server does every second
		n, err := operator.RotateSecrets(ctx, second, &records.RotateOptions{Reseal: true})
		over.Store(true)
		done.Wait()
		if err != nil || n != 2 {
			t.Fatalf("data key %d, error %v", n, err)
		}
		if err := server.CheckSecrets(ctx); err != nil {
			t.Error(err)
		}
		check(t, server)
		check(t, operator)
		check(t, openWith(t, dsn, second))
		var keys, old int
		var bridge string
		if err := raw(t, dsn).QueryRowContext(ctx, `SELECT (SELECT count(*) FROM data_keys),
			(SELECT count(*) FROM records WHERE data = $1), bridge FROM data_keys WHERE id = 2`, sealedBefore).Scan(&keys, &old, &bridge); err != nil ||
			keys != 1 || old != 0 || bridge != "" {
			t.Errorf("%d data keys, bridge %q, value %d, error %v", keys, bridge, old, err)
		}
		late := openWith(t, dsn, second)
		if _, err := open(t, dsn).RotateSecrets(ctx, second, nil); !errors.Is(err, records.ErrSealed) {
			t.Errorf("rotated without the key: error %v", err)
		}
		check(t, late)
	})
}

// Of operators who replace the key at once, by others, one does, and the rest are told that it is
// another one by now. Those who make new data keys at once do so one after the other.
func TestRotateSecretsAtOnce(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		first := newKey(t)
		server := openFilled(t, dsn, first)
		var won *seal.Key
		var mu sync.Mutex
		var rotating sync.WaitGroup
		operators := [4]*records.DB{}
		for i := range operators {
			operators[i] = openWith(t, dsn, first)
		}
		for _, db := range operators {
			next := newKey(t)
			rotating.Go(func() {
				_, err := db.RotateSecrets(ctx, next, nil)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && won == nil:
					won = next
				case err == nil:
					t.Error("two operators replaced the key")
				case !errors.Is(err, seal.ErrWrongKey):
					t.Errorf("replaced with error %v", err)
				}
			})
		}
		rotating.Wait()
		if won == nil {
			t.Fatal("nobody replaced the key")
		}
		for i := range 3 {
			operators[i] = openWith(t, dsn, won)
		}
		for _, db := range operators[:3] {
			records.OnWait(db, server.CheckSecrets) // it has the first key, and reads the new ones in time
			rotating.Go(func() {
				if _, err := db.RotateSecrets(ctx, won, &records.RotateOptions{Reseal: true}); err != nil {
					t.Errorf("sealed anew with error %v", err)
				}
			})
		}
		rotating.Wait()
		check(t, server)
		check(t, openWith(t, dsn, won))
		if s, err := server.Secrets(ctx); err != nil || s.DataKey != 4 || s.Key != won.ID() {
			t.Errorf("%+v, error %v", s, err)
		}
	})
}
