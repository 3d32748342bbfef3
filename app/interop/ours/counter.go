package ours

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/parley-mcp/parley/server"
)

type countIn struct {
	Key string `json:"key"`
}

// NewCounter is a server with one tool, count, that tells count of each call by its key, and
// reports progress.
func NewCounter(count func(key string) error) *server.Server {
	s := server.New("counter", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Add(server.Tool("count", "Counts a call.", func(ctx context.Context, in countIn) (string, error) {
		if err := count(in.Key); err != nil {
			return "", err
		}
		if err := server.Progress(ctx, 1, 2, "counting"); err != nil {
			return "", err
		}
		return "counted " + in.Key, nil
	}))
	return s
}

// CountInFile adds each key to a file, in a line of its own.
func CountInFile(name string) func(key string) error {
	return func(key string) error {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(key + "\n")
		return errors.Join(err, f.Close())
	}
}
