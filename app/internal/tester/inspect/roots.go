package inspect

import (
	"context"
	"errors"
	"slices"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// rootsResult is what is written of roots, in the form of the Inspector.
func rootsResult(list []mcp.Root) (*Outcome, error) {
	return encoded(map[string]any{"roots": append([]mcp.Root{}, list...)})
}

// roots are those of the target. The server is not asked.
func roots(_ context.Context, t *Target, _ *Args) (*Outcome, error) { return rootsResult(t.Roots) }

// setRoots gives the server other roots while it is connected, and tells it so in revisions
// that know of it.
func setRoots(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	if a.Roots == nil {
		return nil, missing(methodSetRoots, "--roots-json")
	}
	s.mu.Lock()
	s.set = a.Roots
	s.mu.Unlock()
	if err := s.client.RootsChanged(ctx); err != nil {
		return nil, err
	}
	// The connection stays until the server has had the time to ask for them, if it does so at once.
	if err := s.client.Ping(ctx); err != nil && !errors.As(err, new(*jsonrpc.Error)) {
		return nil, err
	}
	return rootsResult(a.Roots)
}

// roots are what the server is told when it asks.
func (s *Session) roots() []mcp.Root {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != nil {
		return slices.Clone(s.set)
	}
	return s.target.Roots
}
