package connect

import (
	"errors"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
)

// withLocal opens the person's store for as long as fn runs.
func WithStore(fn func(db *local.DB) error) error {
	db, err := OpenStore()
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// openLocal opens the person's sessions, grants, pins and audit log.
func OpenStore() (*local.DB, error) {
	path, err := kit.Path("sessions.db")
	if err != nil {
		return nil, err
	}
	return local.Open(path)
}
