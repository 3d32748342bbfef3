package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/audit"
)

// What a line of the usual length costs; forced to the disk too, for comparison.
func BenchmarkAppend(b *testing.B) {
	usual := entry{strings.Repeat("x", 350)}
	for name, o := range map[string]*audit.Options{
		"plain": nil, "rotated": {MaxSize: 100 << 20, Keep: 10}, "key": {Key: []byte("0123456789abcdef")},
	} {
		b.Run(name, func(b *testing.B) {
			log := audit.New(filepath.Join(b.TempDir(), "audit"), o)
			for b.Loop() {
				if err := log.Append(b.Context(), usual); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("synced", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "audit")
		log := audit.New(path, nil)
		for b.Loop() {
			if err := log.Append(b.Context(), usual); err != nil {
				b.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			_ = f.Close()
		}
	})
}

// What it costs to verify and to query, by line.
func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "audit")
	log := audit.New(path, nil)
	const lines = 20_000
	all := make([]any, lines)
	for i := range all {
		all[i] = entry{strings.Repeat("x", 350)}
	}
	if err := log.Append(b.Context(), all...); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("verify", func(b *testing.B) {
		b.SetBytes(info.Size())
		for b.Loop() {
			if _, err := audit.Verify(b.Context(), path, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, f := range map[string]*audit.Filter{"query all": {}, "query a user": {User: "ada"}, "query the newest": {Last: 100}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := audit.Query(b.Context(), path, f, func([]byte, *audit.Line) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
