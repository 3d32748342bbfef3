package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// What the fixture is told to know, and the suite to ask for.
	issuerClient   = "conformance"
	issuerResource = "http://127.0.0.1/mcp"
	// visitTime bounds one visit of the browser, callbackTime the wait for the
	// suite to listen for what comes back.
	visitTime    = 2 * time.Minute
	callbackTime = 2 * time.Minute
)

// runIssuer starts the fixture for authorization servers and runs the
// scenarios for those against it, for the newest revision: in one go, since the
// second needs what the first finds out. The suite prints an authorization URL
// for a person to open, which is done here.
func runIssuer(ctx context.Context, s *suite, program, output string, got map[scenario]*result) error {
	args := []string{"--client", issuerClient, "--resource", issuerResource}
	return withServer(ctx, program, args, filepath.Join(output, "issuer.log"), func(issuer string) error {
		port, err := freePort(ctx)
		if err != nil {
			return fmt.Errorf("finding a port for the suite: %w", err)
		}
		newest := revisions[len(revisions)-1]
		dir := filepath.Join(output, legIssuer+"-"+newest)
		say("%s %s", legIssuer, newest)
		err = visited(ctx, issuer, port, func(ctx context.Context, l *lines) error {
			// The status says no more than the results.
			_, err := s.run(ctx, dir, l, "authorization", "--url", issuer, "--client-id", issuerClient,
				"--resource", issuerResource, "--spec-version", newest, "--port", strconv.Itoa(port))
			return err
		})
		if err != nil {
			return fmt.Errorf("scenarios for authorization servers: %w", err)
		}
		return collect(dir, legIssuer, newest, got)
	})
}

// visited runs the suite, and concurrently a browser that opens the URL of the
// issuer that the suite prints. A visit that fails ends the suite, which would
// wait for minutes.
func visited(ctx context.Context, issuer string, port int, run func(context.Context, *lines) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &lines{prefix: issuer + "/", found: make(chan string, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case target := <-l.found:
			if err := browse(ctx, target, port); err != nil {
				cancel(fmt.Errorf("opening the authorization URL: %w", err))
			}
		case <-ctx.Done():
		}
	}()
	err := run(ctx, l)
	cancel(nil)
	<-ended
	return err
}

// lines finds the first line that begins with a prefix and has a query in what
// is written.
type lines struct {
	prefix string
	found  chan string // of 1
	rest   []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.rest = rest
		text := strings.TrimSpace(string(line))
		if !strings.HasPrefix(text, l.prefix) || !strings.Contains(text, "?") {
			continue
		}
		select {
		case l.found <- text:
		default: // there was one before
		}
	}
}

// browse opens a URL as a browser does, with cookies, and goes where it is sent
// on this machine: in the end back to the suite, once that listens.
func browse(ctx context.Context, target string, port int) error {
	ctx, cancel := context.WithTimeout(ctx, visitTime+callbackTime)
	defer cancel()
	if err := awaitPort(ctx, port); err != nil {
		return err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{
		Jar:       jar,
		Transport: &http.Transport{DisableKeepAlives: true},
		Timeout:   visitTime,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Hostname() != "127.0.0.1" || len(via) > 10 {
				return errors.New("the way leads elsewhere, or in circles")
			}
			return nil
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	resp, err := browser.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the code
		}
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if at := resp.Request.URL; resp.StatusCode != http.StatusOK || at.Port() != strconv.Itoa(port) {
		return fmt.Errorf("it ended at %s%s with %s", at.Host, at.Path, resp.Status)
	}
	return nil
}

// awaitPort waits until a process listens at a port of this machine: the suite
// prints the URL a moment before it does.
func awaitPort(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, callbackTime)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the suite does not listen for the answer: %w", err)
		}
	}
}

// freePort finds a port that is not in use now.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(errors.New("the listener has no port"), l.Close())
	}
	return addr.Port, l.Close()
}
