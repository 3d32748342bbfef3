package local

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A headFile has the number and the hash of an entry near the end of the audit log, beside
// the database: one line of a fixed length, written in its place. It never has an entry that
// was not committed, so that a process may be killed at any moment.
type headFile struct{ path string }

// errHead says that the file has something else.
var errHead = errors.New("its line is not a number and a hash")

// headLine is what the file has.
func headLine(n int64, h hash) string { return fmt.Sprintf("%020d %s", n, &h) }

// read returns what the file has. One that is not there is os.ErrNotExist.
func (f headFile) read() (n int64, h hash, err error) {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return 0, h, err
	}
	number, digits, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	n, err = strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || hex.DecodedLen(len(digits)) != len(h) {
		return 0, h, fmt.Errorf("read %s: %w", f.path, errHead)
	}
	if _, err := hex.Decode(h[:], []byte(digits)); err != nil {
		return 0, h, fmt.Errorf("read %s: %w", f.path, errHead)
	}
	return n, h, nil
}

// write writes the line in its place. A file that is not there yet gets its name once it
// has a line: a process may be killed between two steps.
func (f headFile) write(n int64, h hash) error {
	line := []byte(headLine(n, h) + "\n")
	file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return f.create(line)
	}
	if err != nil {
		return err
	}
	_, err = file.WriteAt(line, 0)
	return errors.Join(err, file.Close())
}

func (f headFile) create(line []byte) error {
	file, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*") // for its owner alone
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // it is of no use
	}
	return err
}

// noteHead writes the last entry that was committed to the file. The transaction keeps other
// writers out. A file that does not fit the log stays as it is, since it is what shows that
// the log was changed.
func (d *DB) noteHead(ctx context.Context, tx *sql.Tx, n int64, last hash) error {
	old, h, err := d.head.read()
	switch {
	case errors.Is(err, os.ErrNotExist):
		if n > 0 {
			return nil
		}
	case err != nil || old >= n:
		return nil //nolint:nilerr // VerifyAudit says it
	case old > 0:
		var stored []byte
		err := tx.QueryRowContext(ctx, `SELECT hash FROM audit WHERE n = $1`, old).Scan(&stored)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if string(stored) != string(h[:]) {
			return nil
		}
	}
	return d.head.write(n, last)
}
