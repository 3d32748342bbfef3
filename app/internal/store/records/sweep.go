package records

import (
	"context"
	"fmt"
	"time"
)

// portion is how many rows a sweep removes at once, so that a writer
// does not wait for long.
const portion = 500

// sweeps are the tables with what names a row in them, and when it goes.
var sweeps = []struct{ table, key, gone string }{
	{"clients", "id", "expires <> 0 AND expires <= $1"},
	{"grants", "id", "expires <= $1"},
	{"codes", "hash", "expires <= $1"},
	{"refresh_tokens", "hash", "gone <= $1"},
	{"revoked_tokens", "id", "expires <= $1"},
	{"used_ids", "key", "expires <= $1"},
	{"consents", "key", "expires <= $1"},
	{"sessions", "id", "expires <= $1"},
	{"records", "kind, hash", "expires <= $1"},
	{"keys", "slot", "expires <= $1"},
}

// Sweep implements issuer.Store.
func (d *grants) Sweep(ctx context.Context, now time.Time) (int, error) {
	total := 0
	for _, s := range sweeps {
		// The condition stands twice: PostgreSQL looks again at a row that
		// another transaction changed meanwhile, as with a client that is being used.
		statement := fmt.Sprintf(`DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s WHERE %s LIMIT %d) AND %s`,
			s.table, s.key, s.key, s.table, s.gone, portion, s.gone)
		for n := portion; n == portion; {
			var err error
			if n, err = d.db.Exec(ctx, "sweep", statement, unix(now)); err != nil {
				return total, err
			}
			total += n
		}
	}
	return total, nil
}
