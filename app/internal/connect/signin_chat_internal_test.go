package connect

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/oauth/login"
)

// On the screen the address of the page that a sign-in ended at is typed as a message is. It is
// not sent to the model; what else is typed meanwhile is, and an address that nobody waits for.
func TestAddressOnScreen(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:4175/callback?code=a&state=b"
	synctest.Test(t, func(t *testing.T) {
		said := new(strings.Builder)
		p := &SignIns{Console: &kit.Console{Streams: &kit.Streams{Err: said}}, OnScreen: true}
		var sent []string
		send := func(text string) {
			if !p.TakeAddress(text) {
				sent = append(sent, text)
			}
		}
		send(address)
		got := make(chan string)
		go func() {
			line, err := p.pastedAddress(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- line
		}()
		synctest.Wait()
		send("hello")
		send(address)
		if line := <-got; line != address {
			t.Errorf("the sign-in got %q", line)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.pastedAddress(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting ended with %v", err)
		}
		send(address)
		if want := []string{address, "hello", address}; !slices.Equal(sent, want) {
			t.Errorf("sent: %q, want %q", sent, want)
		}
		if text := said.String(); text != "The address was used for the sign-in, not sent as a message.\n" {
			t.Errorf("said: %q", text)
		}
	})
}

// Where nobody can be asked, the person is told what to do, and not that they have refused.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{true, false} {
		p := &SignIns{Console: &kit.Console{Streams: &kit.Streams{InTerminal: terminal}}, Chatting: true}
		err := p.confirm(t.Context(), login.Prompt{Resource: "https://a.example/mcp", Issuer: "https://as.example"})
		if text, _ := ExplainAccess(&login.Error{Err: err}); !errors.As(err, new(*login.SignInRequiredError)) ||
			text != "https://a.example/mcp wants you to sign in: run 'parley login https://a.example/mcp'" {
			t.Errorf("terminal %v: %q, of %v", terminal, text, err)
		}
	}
}

// Two sign-ins that wait at once each get an address: the one that refuses waits after the other.
func TestAddressesOfTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &SignIns{Console: &kit.Console{Streams: &kit.Streams{Err: io.Discard}}, OnScreen: true}
		got := map[string]string{"one": "", "two": ""}
		wait := func(name string) {
			go func() {
				for !strings.HasSuffix(got[name], name) { // else it is refused
					line, err := p.pastedAddress(t.Context())
					if err != nil {
						return
					}
					got[name] = line
				}
			}()
			synctest.Wait()
		}
		wait("one")
		wait("two")
		for range 2 {
			if !p.TakeAddress("?code=a&state=two") {
				t.Error("no sign-in took the address")
			}
			synctest.Wait()
		}
		if got["two"] != "?code=a&state=two" {
			t.Errorf("the second sign-in got %q", got["two"])
		}
		if !p.TakeAddress("?code=a&state=one") {
			t.Error("no sign-in took the address")
		}
		synctest.Wait()
		if got["one"] != "?code=a&state=one" {
			t.Errorf("the first sign-in got %q", got["one"])
		}
	})
}
