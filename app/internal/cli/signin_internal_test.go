package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/transport"
)

// What one part gave up to wait for goes to the next one; nothing is lost, and
// nothing is read that nobody asked for.
func TestTypist(t *testing.T) {
	t.Parallel()
	in, person := io.Pipe()
	k := newLineReader(in)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.line(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("waiting ended with %v", err)
	}
	go func() {
		_, _ = io.WriteString(person, "one\r\ntwo\nthree\n")
		_, _ = io.WriteString(person, "four")
		person.Close()
	}()
	first, err := k.line(t.Context())
	if err != nil || first != "one" {
		t.Errorf("%q, %v, want the line that was given up", first, err)
	}
	small := make([]byte, 3)
	n, err := k.Read(small)
	if err != nil || string(small[:n]) != "two" {
		t.Errorf("%q, %v, want the beginning of a line", small[:n], err)
	}
	rest, err := io.ReadAll(k)
	if err != nil || string(rest) != "\nthree\nfour" {
		t.Errorf("%q, %v, want the rest", rest, err)
	}
	if _, err := k.line(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want the end", err)
	}
}

// Strangers' names never get into a command that the person may copy.
// Attack: a scope that ends the quotes.
func TestWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://example.com/mcp":   "https://example.com/mcp",
		"files:write":               "files:write",
		"http://[::1]:8080/mcp":     "http://[::1]:8080/mcp",
		"a'; rm -rf ~; '":           "…",
		"$(id)":                     "…",
		"--issuer":                  "…",
		"":                          "…",
		"https://example.com/a?b=c": "…",
		"ü":                         "…",
	} {
		if got := kit.SafeWord(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		resource, address string
		want              bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://a.example/mcp", "https://A.example:443/mcp/x?y", true},
		{"https://a.example", "https://a.example/mcp", true},
		{"https://a.example/", "https://a.example/mcp", true},
		{"https://a.example/mcp", "https://a.example/mcpx", false},
		{"https://a.example/mcp", "https://a.example/", false},
		{"https://a.example", "https://a.example.evil.example/", false},
		{"https://a.example", "http://a.example/", false},
	} {
		u, err := url.Parse(tt.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := kit.Covers(tt.resource, u); got != tt.want {
			t.Errorf("%s covers %s: %v, want %v", tt.resource, tt.address, got, tt.want)
		}
	}
}

// Each way in which a sign-in ends has its exit code and its advice.
func TestAccessErrors(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{
			&accessError{address: "ws://a.example/ws", err: &login.SignInRequiredError{Resource: "https://a.example", Issuer: "https://as.example", Why: login.ReasonSignIn}},
			kit.ExitConsent, "ws://a.example/ws wants you to sign in: run 'parley login ws://a.example/ws'",
		},
		{
			&login.SignInRequiredError{Resource: "https://a.example/mcp", Scopes: []string{"r", "w'"}, Why: login.ReasonStepUp},
			kit.ExitConsent, "https://a.example/mcp wants you to sign in for more scopes (r w'): run 'parley login https://a.example/mcp --scope r --scope …'",
		},
		{
			&accessError{address: "https://a.example", err: fmt.Errorf("authorize a request: %w", errNotNow)},
			kit.ExitConsent, "https://a.example: you chose not to sign in",
		},
		{
			&accessError{address: "https://a.example", err: &login.DiscoveryError{Step: login.StepServer, Err: dial, Advice: "check the network"}},
			kit.ExitUnreachable, "https://a.example: authorization server metadata: dial tcp: connection refused; check the network",
		},
		{
			&login.DiscoveryError{Step: login.StepRegister, Err: errors.New("not registered"), Advice: "give its id with Options.Credentials"},
			kit.ExitConsent, "give its id with --client-id",
		},
		{&login.AuthorizationError{Issuer: "https://as.example", Code: "access_denied"}, kit.ExitConsent, "was denied"},
	} {
		err := fmt.Errorf("server %q: %w", "a", tt.err)
		if got := exitCode(err); got != tt.code {
			t.Errorf("%v: exit code %d, want %d", err, got, tt.code)
		}
		if got := explain(err); !strings.Contains(got, tt.want) || strings.Contains(got, "--header") {
			t.Errorf("%v: %q, want %q in it and no other way", err, got, tt.want)
		}
	}
	if err := (&login.Error{Err: errNotNow}); !errors.Is(err, transport.ErrDenied) {
		t.Error("the transports do not see that access was denied")
	}
}

func TestStatusText(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	got := statusText([]login.Status{
		{Resource: "https://a.example/mcp", Issuer: "https://as.example", ClientID: "c\x1b[1m", Scopes: []string{"r", "w"}, Expires: now.Add(10 * time.Minute), Refreshable: true, Current: true},
		{Resource: "https://b.example", Issuer: "https://old.example", ClientID: "d", Expires: now.Add(-time.Second), Bound: true},
		{Resource: "https://c.example", Issuer: "https://as.example", ClientID: "e", Current: true},
	}, "the drawer", now)
	want := `https://a.example/mcp
  authorization server: https://as.example
  client:               c\u{1b}[1m
  scopes:               r w
  token:                expires in 10 minutes, and is renewed by itself
https://b.example
  authorization server: https://old.example (not used any more)
  client:               d
  scopes:               none
  token:                has expired, and cannot be renewed: sign in again then; bound to a key
https://c.example
  authorization server: https://as.example
  client:               e
  scopes:               none
  token:                nobody knows how long it lasts
Tokens are kept in the drawer.
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a person types while a sign-in waits for an address is a message of the
// conversation, in order, and is thrown away with what was typed ahead.
func TestMessageWhileSigningIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		k := newLineReader(in)
		k.leave("one")
		k.leave("two")
		read := func() string {
			buf := make([]byte, 64)
			n, err := k.Read(buf)
			if err != nil {
				t.Error(err)
			}
			return string(buf[:n])
		}
		if first, second := read(), read(); first != "one\n" || second != "two\n" {
			t.Errorf("%q and %q", first, second)
		}
		got := make(chan string)
		go func() { got <- read() }()
		synctest.Wait()
		k.leave("three")
		if text := <-got; text != "three\n" {
			t.Errorf("%q", text)
		}
		k.leave("four")
		k.discard()
		go func() { got <- read() }()
		go func() { _, _ = io.WriteString(out, "five\n") }()
		if text := <-got; text != "five\n" {
			t.Errorf("%q", text)
		}
		_ = out.Close()
	})
	for line, want := range map[string]bool{
		"http://127.0.0.1:4175/callback?code=a&state=b": true, "?code=a": true, " code=a&state=b ": true, "https://as.example/login": true,
		"http://127.0.0.1:4175/callback?code=a&st\n  ate=b": true, "read https://a.example/x?y=z and tell me": false,
		"add a=2 b=3": false, "hello": false, "": false, "what is 2 + 3?": false,
	} {
		if isAddress(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}
