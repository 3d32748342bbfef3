package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

// An AuditEntry is an entry of the audit log.
type AuditEntry struct {
	// N is its number, from 1, without gaps.
	N int64 `json:"n"`
	host.AuditEntry
	// Hash is the SHA-256 of the entry and the hash before it, in hexadecimal digits.
	Hash string `json:"hash"`
}

// ErrAuditChanged says that the audit log is not what was written.
var ErrAuditChanged = errors.New("the audit log was changed")

// A hash is that of an entry, with all before it. Before the first entry it is zero.
type hash [sha256.Size]byte

func (h *hash) String() string { return hex.EncodeToString(h[:]) }

// An entry is an audit entry as it is stored.
type entry struct {
	n, time, record int64
	// texts are the columns of textColumns.
	texts          [7]string
	previous, hash []byte
}

const auditColumns = `n, time, record, session, event, kind, server, name, why, arguments, previous, hash`

func newEntry(n int64, e *host.AuditEntry, previous hash) *entry {
	r := &entry{
		n: n, time: nanos(e.Time), record: e.Record,
		texts:    [...]string{e.Session, e.Event, string(e.Kind), e.Server, e.Name, e.Why, e.Arguments},
		previous: previous[:],
	}
	sum := r.sum(previous)
	r.hash = sum[:]
	return r
}

func (e *entry) columns() []any {
	t := &e.texts
	return []any{&e.n, &e.time, &e.record, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &e.previous, &e.hash}
}

func (e *entry) values() []any {
	t := &e.texts
	return []any{e.n, e.time, e.record, t[0], t[1], t[2], t[3], t[4], t[5], t[6], e.previous, e.hash}
}

// audit is the entry for callers.
func (e *entry) audit() AuditEntry {
	return AuditEntry{e.n, host.AuditEntry{
		Time: moment(e.time), Record: e.record, Session: e.texts[0], Event: e.texts[1], Kind: policy.Kind(e.texts[2]),
		Server: e.texts[3], Name: e.texts[4], Why: e.texts[5], Arguments: e.texts[6],
	}, hex.EncodeToString(e.hash)}
}

// sum is the hash of the entry: SHA-256 of the hash before it, then number, time and record,
// 8 bytes each, the most significant first, then the texts in the order of auditColumns, each
// after its length in 8 bytes.
func (e *entry) sum(previous hash) hash {
	b := previous[:]
	b = b[:len(b):len(b)]
	for _, n := range []int64{e.n, e.time, e.record} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	for _, t := range e.texts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(t)))
		b = append(b, t...)
	}
	return sha256.Sum256(b)
}

// Audit implements host.Store.
func (d *DB) Audit(ctx context.Context, e *host.AuditEntry) error {
	d.audited.Store(true)
	return d.change(ctx, "add to the audit log", func(tx *sql.Tx) error {
		n, last, err := lastEntry(ctx, tx)
		if err != nil {
			return err
		}
		if err := d.noteHead(ctx, tx, n, last); err != nil {
			return err
		}
		next := newEntry(n+1, e, last)
		if _, err := tx.ExecContext(ctx, `INSERT INTO audit (`+auditColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, next.values()...); err != nil {
			return err
		}
		// A head that does not fit shows that the log was changed, and stays.
		_, err = tx.ExecContext(ctx, `INSERT INTO audit_head (one, n, hash)
			SELECT 1, $1, $2 WHERE $1 = 1 OR EXISTS (SELECT 1 FROM audit_head)
			ON CONFLICT (one) DO UPDATE SET n = excluded.n, hash = excluded.hash
			WHERE audit_head.n = excluded.n - 1 AND audit_head.hash = $3`, next.n, next.hash, last[:])
		return err
	})
}

// lastEntry is the number and the hash of the last entry.
func lastEntry(ctx context.Context, tx *sql.Tx) (n int64, h hash, err error) {
	var stored []byte
	err = tx.QueryRowContext(ctx, `SELECT n, hash FROM audit ORDER BY n DESC LIMIT 1`).Scan(&n, &stored)
	copy(h[:], stored)
	return n, h, noRow(err, nil)
}

// AuditEntries returns at most limit entries of the audit log, those from number from on, the
// oldest first.
func (d *DB) AuditEntries(ctx context.Context, from int64, limit int) ([]AuditEntry, error) {
	var list []AuditEntry
	err := d.view(ctx, "read the audit log", func(tx *sql.Tx) error {
		return each(ctx, tx, func(scan func(...any) error) error {
			var e entry
			err := scan(e.columns()...)
			list = append(list, e.audit())
			return err
		}, `SELECT `+auditColumns+` FROM audit WHERE n >= $1 ORDER BY n LIMIT $2`, from, max(limit, 0))
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// VerifyAudit reads the whole audit log and returns the number of entries that are as they
// were written. The error is [ErrAuditChanged], and names the first entry that is not, if
// an entry was changed, removed, moved or put in, or if entries at the end were removed: the
// number and the hash of the last entry stand in another table, and those of the last entry but
// one in the file PATH.audit, of the last one once the DB was closed.
//
// It does not find what was done by a program that knows all of this: hashes without a key
// can be computed anew by all that may write to the folder. Against that, keep the hash of the
// last entry ([DB.AuditEntries]) elsewhere and compare it. It does not find the removal of the
// very last entry from both tables as long as no DB was closed since it was added.
func (d *DB) VerifyAudit(ctx context.Context) (n int64, err error) {
	const doing = "verify the audit log"
	// Before the entries are read, which then are as many or more.
	headN, headHash, headErr := d.head.read()
	var c chain
	err = d.view(ctx, doing, func(tx *sql.Tx) error {
		err := each(ctx, tx, func(scan func(...any) error) error {
			var e entry
			if err := scan(e.columns()...); err != nil {
				return err
			}
			c.add(&e)
			if e.n == headN && c.fault == "" && c.last != headHash {
				c.fault = fmt.Sprintf("entry %d is not the one of which %s has the hash", e.n, d.head.path)
			}
			if c.fault != "" {
				return ErrAuditChanged
			}
			return nil
		}, `SELECT `+auditColumns+` FROM audit ORDER BY n`)
		if err != nil {
			return err
		}
		return c.end(ctx, tx)
	})
	if err == nil {
		c.fault = d.checkHead(c.n, c.last, headN, headErr)
	}
	if c.fault != "" {
		return c.n, fmt.Errorf("%s: %w: %s", doing, ErrAuditChanged, c.fault)
	}
	return c.n, err
}

// A chain follows the hashes of entries.
type chain struct {
	n    int64
	last hash
	// fault says what is wrong, or is empty.
	fault string
}

func (c *chain) add(e *entry) {
	sum := e.sum(c.last)
	switch {
	case e.n <= c.n:
		c.fault = fmt.Sprintf("entry %d was put in", e.n)
	case e.n != c.n+1:
		c.fault = fmt.Sprintf("entry %d is missing", c.n+1)
	case !bytes.Equal(e.previous, c.last[:]):
		c.fault = fmt.Sprintf("entry %d was changed, or the one before it was replaced", e.n)
	case !bytes.Equal(e.hash, sum[:]):
		c.fault = fmt.Sprintf("entry %d was changed", e.n)
	default:
		c.n, c.last = e.n, sum
	}
}

// end compares the last entry with what audit_head says of it.
func (c *chain) end(ctx context.Context, tx *sql.Tx) error {
	var n int64
	var h []byte
	err := tx.QueryRowContext(ctx, `SELECT n, hash FROM audit_head`).Scan(&n, &h)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if c.n == 0 {
			return nil
		}
		c.fault = "the row of audit_head is missing"
	case err != nil:
		return err
	case n > c.n:
		c.fault = fmt.Sprintf("entries %d to %d, the last ones, are missing", c.n+1, n)
	case n < c.n || !bytes.Equal(h, c.last[:]):
		c.fault = fmt.Sprintf("entry %d is not the one that audit_head names", c.n)
	default:
		return nil
	}
	return ErrAuditChanged
}

// checkHead compares the number of entries with the file beside the database.
func (d *DB) checkHead(n int64, last hash, headN int64, err error) (fault string) {
	switch {
	case errors.Is(err, os.ErrNotExist) && n == 0:
		return ""
	case err != nil:
		return fmt.Sprintf("%v: nothing says whether entries at the end were removed; restore the file beside the database, "+
			"or to accept the log as it is, write to it: %s", err, headLine(n, last))
	case headN > n:
		return fmt.Sprintf("entries %d to %d are missing: %s has the hash of the last one", n+1, headN, d.head.path)
	}
	return ""
}
