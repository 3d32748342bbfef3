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

// callTime is how long an answer of the API is waited for. Verbs that may take minutes have no such limit.
const callTime = 2 * time.Minute

// maxAnswer is the size in bytes of the largest answer that is read at once, and maxAnswerLine that of a
// line.
const (
	maxAnswer     = 32 << 20
	maxAnswerLine = 2 << 20
)

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
		Transport:     transport,
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

// Run does a verb. An error that the operator can do something about is an *Error. Verbs that stream are
// for Stream.
func (c *Client) Run(ctx context.Context, v *Verb, parameters []byte) (Result, error) {
	return c.post(ctx, v, parameters, func(response *http.Response) (Result, error) {
		raw, err := readAnswer(response)
		if err != nil {
			return nil, err
		}
		return v.readResult(raw)
	})
}

// Stream does a verb that streams, as Run does, and gives each line of the answer to visit; it is valid
// until visit returns. An answer that is cut off is an error that wraps io.ErrUnexpectedEOF.
func (c *Client) Stream(ctx context.Context, v *Verb, parameters []byte, visit func(line []byte) error) (Result, error) {
	return c.post(ctx, v, parameters, func(response *http.Response) (Result, error) {
		if err := readLines(response.Body, visit); err != nil {
			return nil, err
		}
		raw := response.Trailer.Get(resultTrailer)
		if raw == "" {
			return nil, errCutOff
		}
		return v.readResult([]byte(raw))
	})
}

// post asks for a verb, and has read read an answer that is no refusal.
func (c *Client) post(
	ctx context.Context, v *Verb, parameters []byte, read func(*http.Response) (Result, error),
) (Result, error) {
	if !v.long {
		limited, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		ctx = limited
	}
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
	if response.StatusCode == http.StatusOK {
		return read(response)
	}
	raw, err := readAnswer(response)
	if err != nil {
		return nil, err
	}
	var refused refusal
	if json.Unmarshal(raw, &refused) != nil || refused.Error == nil {
		return nil, fmt.Errorf("the server returned status %d and might not be a Parley authorization server", response.StatusCode)
	}
	return nil, refused.Error
}

// readAnswer reads an answer that is one JSON text.
func readAnswer(response *http.Response) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the server's response: %w", err)
	case len(raw) > maxAnswer:
		return nil, errors.New("the server's response is too large")
	}
	return raw, nil
}
