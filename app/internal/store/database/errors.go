package database

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// meanings are what an operator can do something about.
var meanings = map[string]string{
	"25P03": ": the transaction was idle for longer than idle_in_transaction_session_timeout",
	"28000": ": this user may not come in",
	"28P01": ": user or password is wrong",
	"3D000": ": there is no such database",
	"3F000": ": there is no such schema; see search_path in the URL",
	"25006": ": it can only be read, as a standby; name the server that takes changes",
	"42501": ": this user may not do that",
	"53100": ": its disk is full; make room there",
	"53300": ": it has too many connections",
	"57P01": ": it ended the connection; try again",
	"57P03": ": it is starting or stopping; try again",
}

// A SQLiteError is a failure of SQLite without the values in its text.
type SQLiteError struct {
	// Code is the extended result code.
	Code int
}

func (e *SQLiteError) Error() string {
	return "SQLite answers " + strconv.Itoa(e.Code) + sqliteMeanings[e.Code&0xff]
}

// Damaged says whether the file is damaged, cut off, or no database.
func (e *SQLiteError) Damaged() bool {
	primary := e.Code & 0xff
	return primary == sqliteCorrupt || primary == sqliteNoDatabase
}

// sqliteMeanings are those of primary result codes.
var sqliteMeanings = map[int]string{
	sqliteBusy:     ": another program writes to the file, for longer than is waited",
	sqliteReadOnly: ": the file can only be read; the user of this program must be able to write to it, its folder and its disk",
	sqliteIO:       ": the file cannot be read or written; look whether its disk is full or fails",
	sqliteFull:     ": the disk is full; make room on it",
	sqliteCantOpen: ": the file cannot be opened; the user of this program must be able to read and write it and its folder",

	sqliteCorrupt:    ": the file is damaged",
	sqliteNoDatabase: ": the file is no database",
}

// lost says whether a transaction lost to another one, or its connection before it was
// committed, and may be tried again.
func lost(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "40001" || e.Code == "40P01" // serialization, deadlock
	}
	return pgconn.SafeToRetry(err)
}

// cannotWrite says whether an error is about the database as a whole: nothing can be written to it
// until somebody has done something, or it is back.
func cannotWrite(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "25006" || e.Code == "53100" || e.Code == "58030" // read only, disk full, input or output
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqliteReadOnly, sqliteIO, sqliteFull, sqliteCantOpen:
			return true
		}
	}
	return false
}

// ErrUnreadable says that a row holds what this program does not write.
var ErrUnreadable = errors.New("what is stored cannot be read")

// Errors of Open, for errors.Is.
var (
	// ErrForeign says that the file is a database of another program.
	ErrForeign = errors.New("the file is a database of another program")
	// ErrCutOff says that the file ends in the middle of a page.
	ErrCutOff = errors.New("the file is cut off in the middle of a page")
	// ErrEmptied says that the file is empty, but not its write-ahead log ("-wal"): it was
	// removed or cut off while it was in use, or after a crash.
	ErrEmptied = errors.New("the file is empty or was removed, but what was written to it last is still beside it")
)

// usual are errors that hold no values.
var usual = []error{
	ErrUnreadable, context.Canceled, context.DeadlineExceeded, sql.ErrConnDone, sql.ErrTxDone,
}
