package kit

import (
	"io"
	"sync"

	"github.com/parley-mcp/parley/app/internal/mask"
)

// A SharedWriter writes to standard error, or to the screen while there is one. The log and the program
// can use it concurrently. It masks secrets, and writes are not interleaved.
type SharedWriter struct {
	secrets func() *mask.Masker

	mu sync.Mutex
	w  io.Writer
}

// Divert redirects all output until the returned function is called.
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

// ShareErr replaces s.Err with a SharedWriter, unless it is one already.
func (s *Streams) ShareErr() {
	if _, shared := s.Err.(*SharedWriter); !shared {
		s.Err = &SharedWriter{w: s.Err, secrets: s.Masker}
	}
}
