package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-mcp/parley/oauth"
)

// maxClientID is the size in bytes of the longest client_id.
const maxClientID = 2048

// errDisabled says that a client is there, and may do nothing.
var errDisabled = errors.New("client is disabled")

func errUnknownClient() *oauth.Error {
	return &oauth.Error{Code: oauth.InvalidClient, Description: "unknown client"}
}

// registered returns a client of the configuration or of the store: ErrNotFound if there is none,
// errDisabled if it is disabled.
func (s *Server) registered(ctx context.Context, id string) (*Client, error) {
	if c := s.static[id]; c != nil {
		return c, nil
	}
	if id == "" || len(id) > maxClientID {
		return nil, ErrNotFound
	}
	c, err := s.store.Client(ctx, id, s.now())
	if err != nil {
		return nil, fmt.Errorf("reading a client: %w", err)
	}
	if c.Disabled {
		return nil, errDisabled
	}
	return c, nil
}

// isDocumentClient says whether a client is known by its document alone.
func (s *Server) isDocumentClient(id string) bool { return isDocument(id) && s.static[id] == nil }

// client returns a client that sends a request: one that is registered, or has a document. The error is an
// *oauth.Error with a text that may go out, and wraps nothing; why it was is in the log.
func (s *Server) client(ctx context.Context, id string) (*Client, error) {
	if s.isDocumentClient(id) {
		c, err := s.docs.client(ctx, id)
		if err != nil {
			s.log.InfoContext(ctx, "client ID metadata document was refused", "client", id, "reason", err.Error())
			return nil, &oauth.Error{Code: oauth.InvalidClient, Description: "the client ID metadata document cannot be used"}
		}
		return c, nil
	}
	c, err := s.registered(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, errDisabled):
		return nil, errUnknownClient()
	case err != nil:
		s.log.ErrorContext(ctx, "reading a client", "client", id, "error", err.Error())
		return nil, &oauth.Error{Code: oauth.ServerError, Description: "try again later", Status: http.StatusInternalServerError}
	}
	return c, nil
}

// workloadClient is the client that a workload is: what an operator says of one with its ID holds, and there
// need be none.
func (s *Server) workloadClient(ctx context.Context, id string) (*Client, error) {
	c, err := s.registered(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return &Client{ID: id}, nil
	}
	return c, err
}

// holder is the client, or the workload, that has a token or a grant; nil if it is none of ours any more.
// Documents are not fetched for that.
func (s *Server) holder(ctx context.Context, id string, workload bool) (c *Client, err error) {
	switch {
	case workload:
		c, err = s.workloadClient(ctx, id)
	case s.isDocumentClient(id):
		if s.docs.check(id) == nil {
			c = &Client{ID: id}
		}
	default:
		c, err = s.registered(ctx, id)
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, errDisabled) {
		return nil, nil
	}
	return c, err
}
