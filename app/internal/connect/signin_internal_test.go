package connect

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/transport"
)

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
		if got, _ := ExitAccess(err); got != tt.code {
			t.Errorf("%v: exit code %d, want %d", err, got, tt.code)
		}
		got, explained := ExplainAccess(err)
		if !explained {
			got = err.Error() // is clear as it is
		}
		if !strings.Contains(got, tt.want) || strings.Contains(got, "--header") {
			t.Errorf("%v: %q, want %q in it and no other way", err, got, tt.want)
		}
	}
	if err := (&login.Error{Err: errNotNow}); !errors.Is(err, transport.ErrDenied) {
		t.Error("the transports do not see that access was denied")
	}
}

// A message is not taken for the address of the page that a sign-in ended at.
func TestAddressOrMessage(t *testing.T) {
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
