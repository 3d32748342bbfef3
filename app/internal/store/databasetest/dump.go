package databasetest

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	_ "modernc.org/sqlite"             // the driver
)

// Raw opens a database, beside those who use it.
func Raw(dsn string) (*sql.DB, error) {
	if strings.HasPrefix(dsn, "postgres") {
		return sql.Open("pgx", dsn)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: sqlitePath(dsn), RawQuery: "_pragma=busy_timeout(60000)"}
	return sql.Open("sqlite", u.String())
}

func sqlitePath(dsn string) string { return strings.TrimPrefix(dsn, "sqlite:") }

// Dump is all that is in a database as text, with what is encoded in base64 also in clear: each
// column of each row of each table and, of SQLite, the bytes of its files.
func Dump(ctx context.Context, dsn string) ([]byte, error) {
	text, err := DumpTables(ctx, dsn)
	if err != nil || strings.HasPrefix(dsn, "postgres") {
		return text, err
	}
	for _, name := range []string{"", "-wal", "-journal"} {
		content, err := os.ReadFile(sqlitePath(dsn) + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		text = append(text, Decoded(content)...)
	}
	return text, nil
}

// DumpTables is Dump without the files.
func DumpTables(ctx context.Context, dsn string) (text []byte, err error) {
	db, err := Raw(dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	names := `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`
	if strings.HasPrefix(dsn, "postgres") {
		names = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`
	}
	tables, err := dumpRows(ctx, db, names)
	if err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		return nil, fmt.Errorf("no tables in %s", filepath.Base(dsn))
	}
	for _, table := range tables {
		rows, err := dumpRows(ctx, db, `SELECT * FROM `+table)
		if err != nil {
			return nil, err
		}
		text = append(text, "table "+table+"\n"+strings.Join(rows, "\n")+"\n"...)
	}
	return Decoded(text), nil
}

// dumpRows is each row of a statement as text.
func dumpRows(ctx context.Context, db *sql.DB, statement string) (all []string, err error) {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			texts[i] = fmt.Sprint(v)
		}
		all = append(all, strings.Join(texts, "\t"))
	}
	return all, rows.Err()
}

var encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}`)

// Decoded is a text, followed by what in it is base64, twice if need be.
func Decoded(text []byte) []byte {
	all, last := text, text
	for range 2 {
		var more []byte
		for _, part := range encoded.FindAllString(string(last), -1) {
			plain := strings.NewReplacer("-", "+", "_", "/").Replace(part)
			if len(plain)%4 == 1 { // which no text in base64 has
				plain = plain[:len(plain)-1]
			}
			if raw, err := base64.RawStdEncoding.DecodeString(plain); err == nil {
				more = append(append(more, raw...), '\n')
			}
		}
		all, last = append(all, more...), more
	}
	return all
}
