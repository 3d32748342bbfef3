package connect

import (
	"context"
	"errors"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
)

// WithStore opens the user's store for as long as fn runs.
func WithStore(fn func(db *local.DB) error) error {
	db, err := OpenStore()
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// OpenStore opens the user's sessions, grants, pins and audit log.
func OpenStore() (*local.DB, error) {
	path, err := kit.Path("sessions.db")
	if err != nil {
		return nil, err
	}
	return local.Open(path)
}

// WithConfig reads the user's configuration, or the one file that is named, and opens the user's store for as
// long as fn runs.
func (c *Connector) WithConfig(ctx context.Context, file string, fn func(cfg *config.Config, db *local.DB) error) error {
	return WithStore(func(db *local.DB) error {
		cfg, err := c.LoadConfig(ctx, file, db)
		if err != nil {
			return err
		}
		return fn(cfg, db)
	})
}
