//go:build !linux

package filesystem

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
)

// readEntries reads at most so many entries of an open directory.
func readEntries(ctx context.Context, f *os.File, most int) (list []entry, err error) {
	if f, err = listable(f); err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	for len(list) < most {
		if err := servers.Ended(ctx); err != nil {
			return nil, err
		}
		part, err := f.ReadDir(min(1_000, most-len(list)))
		for _, e := range part {
			list = append(list, entry{e.Name(), e.Type()})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
