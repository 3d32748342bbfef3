package kit

import (
	"io"
	"sync"

	"github.com/parley-mcp/parley/app/internal/mask"
)

// A SharedWriter is standard error, to which the log and the program write at once, or the
// screen while there is one. Each write is whole, and the secrets in it are masked.
type SharedWriter struct {
	secrets func() *mask.Masker

	mu sync.Mutex
	w  io.Writer
}

// Divert has everything go elsewhere until the function that it returns is called.
func (s *SharedWriter) Divert(to io.Writer) (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.w
	s.w = to
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.w = before
	}
}

func (s *SharedWriter) Write(p []byte) (int, error) {
	text := s.secrets().Known(string(p))
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.WriteString(s.w, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ShareErr makes s.Err a SharedWriter, unless it is one.
func (s *Streams) ShareErr() {
	if _, shared := s.Err.(*SharedWriter); !shared {
		s.Err = &SharedWriter{w: s.Err, secrets: s.Masker}
	}
}
