package cli_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"

	_ "modernc.org/sqlite" // opens the store
)

// rewrite is a program that changes an entry of the audit log in the store at the path of its
// first argument.
func rewrite() {
	db, err := sql.Open("sqlite", "file:"+os.Args[1])
	if err == nil {
		_, err = db.Exec(`DROP TRIGGER audit_update`)
	}
	if err == nil {
		_, err = db.Exec(`UPDATE audit SET why = 'all is well' WHERE n = 2`)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
