package records

import (
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Tables of the first version come up to date: users, clients, grants and keys stay as they were.
func TestMigrate(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		old, err := database.Open(ctx, dsn, database.Options{
			Version: "schema_version", Migrations: migrations[:1], Holds: "keys", NoRows: issuer.ErrNotFound,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`INSERT INTO users (name, subject, created, hash) VALUES ('ada', 's', 5, 'hash')`,
			`INSERT INTO clients (id, dynamic, digest, created, expires, data) VALUES ('c', 0, '', 5, 0, '{}')`,
			`INSERT INTO grants (id, client_id, subject, revoked, created, expires, data)
				VALUES ('g', 'c', 's', 0, 5, 4000000000, '{"scopes":["a"],"resource":"https://mcp.example/mcp"}')`,
			`INSERT INTO grants (id, client_id, subject, revoked, created, expires, data) VALUES ('h', 'c', '', 0, 5, 4000000000, '{}')`,
			`INSERT INTO keys (slot, id, created, retires, expires, data)
				VALUES ('ES256/9/1', 'k', 5, 4000000000, 4000000001, '{"algorithm":"ES256","private":"AAAA"}')`,
			`INSERT INTO keys (slot, id, created, retires, expires, data)
				VALUES ('secret/9/1', 'secret/9/1', 5, 4000000000, 4000000001, '{"algorithm":"secret","private":"AAAA"}')`,
			`INSERT INTO consents (key, subject, client_id, expires, data) VALUES ('k', 's', 'c', 4000000000, '{}')`,
		} {
			if _, err := old.Exec(ctx, "insert", statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := Open(ctx, dsn, nil)
		databasetest.Opened(t, db, err)
		now := time.Unix(10, 0)
		g, err := db.Grant(ctx, "g", now)
		if err != nil || g.Resource != "https://mcp.example/mcp" || len(g.Scopes) != 1 {
			t.Errorf("the grant is %+v, %v", g, err)
		}
		if g, err := db.Grant(ctx, "h", now); err != nil || g.Resource != "" {
			t.Errorf("the grant without a resource is %+v, %v", g, err)
		}
		c, err := db.Client(ctx, "c", now)
		if err != nil || c.Stamp == "" {
			t.Fatalf("the client is %+v, %v", c, err)
		}
		made := &issuer.Grant{ID: "made", ClientID: "c", ClientStamp: c.Stamp, Created: now, Expires: now.Add(time.Hour)}
		if err := db.AddGrant(ctx, made); err != nil {
			t.Errorf("a grant to the client: %v", err)
		}
		if k, err := db.RevokeKey(ctx, "k", now); err != nil || k.State != issuer.KeyRevoked || len(k.Private) != 0 {
			t.Errorf("the key is revoked: %+v, %v", k, err)
		}
		if keys, err := db.Keys(ctx, now); err != nil || len(keys) != 1 || keys[0].ID != "k" {
			t.Errorf("keys after one was revoked: %+v, %v", keys, err)
		}
		// What was granted under the password of now stays so.
		if ok, err := db.Current(ctx, "s", issuer.Hash("hash")); err != nil || !ok {
			t.Errorf("the stamp of a grant is not current: %v, %v", ok, err)
		}
		if left, err := db.Consents(ctx, Filter{}, "", 10, now); err != nil || len(left) != 0 {
			t.Errorf("consents that do not tell their resource: %+v, %v", left, err)
		}
	})
}
