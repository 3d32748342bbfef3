package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// callTime is how long an answer of the API is waited for.
const callTime = 2 * time.Minute

// maxAnswer is the size in bytes of the largest answer that is read.
const maxAnswer = 32 << 20

// A Client does verbs through the API of a server. It may be used by many goroutines at once.
type Client struct {
	http *http.Client
	host string
	key  string
}

// NewClient returns a client of the API at an address that CheckAddress takes. The key is
// empty for a unix socket.
func NewClient(address, key string) (*Client, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true} // one call, and without a proxy
	c := &Client{host: address, key: key, http: &http.Client{
		Transport: transport, Timeout: callTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		c.host = "localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", path)
		}
	}
	return c, nil
}

// Run does a verb. An error that the operator can do something about is an *Error.
func (c *Client) Run(ctx context.Context, v *Verb, parameters []byte) (Result, error) {
	address := "http://" + c.host + prefix + strings.ReplaceAll(v.Path, " ", "/")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(parameters))
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer of the server: %w", err)
	case len(raw) > maxAnswer:
		return nil, errors.New("the answer of the server is too large")
	case response.StatusCode == http.StatusOK:
		return v.readResult(raw)
	}
	var refused refusal
	if json.Unmarshal(raw, &refused) != nil || refused.Error == nil {
		return nil, fmt.Errorf("the server answers with status %d, and is perhaps no authorization server of parley", response.StatusCode)
	}
	return nil, refused.Error
}
