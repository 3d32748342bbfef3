package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
)

// Proves: parley login --device, from the first request to a call with the tokens, while a person
// uses a browser elsewhere; and that the person can end it.
func TestLoginDevice(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	p := newPlace(t, "--allow-device")
	const codeAddress = `(http://\S+/device\?user_code=\S+)`
	begin := func(interrupts chan os.Signal) (said, out *output, code chan int) {
		said, out, code = new(output), new(output), make(chan int, 1)
		go func() {
			code <- cli.Main(t.Context(), []string{"login", p.url, "--device", "--store", "file"}, &kit.Streams{
				In: strings.NewReader(""), Out: out, Err: said, Interrupts: interrupts,
			})
		}()
		return said, out, code
	}
	interrupts := make(chan os.Signal, 1)
	first, _, interrupted := begin(interrupts)
	address := first.wait(codeAddress, t.Context().Done())
	first.wait("Press Ctrl-C to cancel", t.Context().Done())
	interrupts <- os.Interrupt
	if code := <-interrupted; code != 130 {
		t.Errorf("Ctrl-C: exit code %d\n%s", code, first)
	}
	if !strings.Contains(first.String(), strings.TrimSuffix(p.issuer, "/")+"/device\n") ||
		!strings.Contains(first.String(), "\n  "+address[strings.LastIndex(address, "=")+1:]+"\n") {
		t.Errorf("the address or the code is not shown by itself:\n%s", first)
	}

	said, out, ended := begin(nil)
	if err := fillIn(said.wait(codeAddress, t.Context().Done()), "answer=approve"); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 0 || !strings.Contains(out.String(), "signed in to "+p.url) {
		t.Errorf("exit code %d and %s\n%s", code, out, said)
	}
	if code, out, said := run(t, "", "call", "add", "a=2", "b=3", "--server", p.url); code != 0 || out != "5\n" {
		t.Errorf("a call with the tokens: exit code %d and %q\n%s", code, out, said)
	}
	if code, _, said := run(t, "", "login", p.url, "--device", "--no-browser"); code != 1 || !strings.Contains(said, "--no-browser") {
		t.Errorf("--device --no-browser: exit code %d\n%s", code, said)
	}
}

// A server without the device flow is said to be one.
func TestLoginDeviceNotOffered(t *testing.T) {
	p := newPlace(t)
	if code, _, said := run(t, "", "login", p.url, "--device", "--store", "file"); code != 3 || !strings.Contains(said, "offers no sign-in on another device") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// Flags of the authorization server that could not work are refused.
func TestGrantFlags(t *testing.T) {
	newEmptyPlace(t)
	for _, test := range []struct{ flag, want string }{
		{"--refresh-grace=-1s", "0s to 10m"},
		{"--refresh-grace=11m", "0s to 10m"},
		{"--refresh-grace=1500ms", "whole seconds"},
		{"--refresh-lifetime=0", "--refresh-lifetime 0s"},
		{"--refresh-idle=1ms", "--refresh-idle 1ms"},
		{"--access-lifetime=1ms", "--access-lifetime 1ms"},
		{"--client=tv=", "ID=REDIRECT_URI"},
	} {
		if code, _, said := run(t, "", "auth", "serve", "--http", "127.0.0.1:0", test.flag); code != 1 || !strings.Contains(said, test.want) {
			t.Errorf("%s: exit code %d\n%s", test.flag, code, said)
		}
	}
}
