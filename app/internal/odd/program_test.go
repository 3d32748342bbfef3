package odd_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/bridge"
	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/odd"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// TestMain gives the program folders of its own.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "odd")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // it is temporary
		for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
			if err := os.Setenv(name, filepath.Join(dir, name)); err != nil {
				panic(err)
			}
		}
		return m.Run()
	}())
}

// A bridge serves what the library can use.
func TestBridge(t *testing.T) {
	each(t, transports, func(t *testing.T, c *odd.Case, _ *odd.Peer, dialer transport.Dialer) {
		if c.Expect.Proxy != "" {
			t.Skip(c.Expect.Proxy)
		}
		b := bridge.New(dialer, &bridge.Options{Logger: quiet, Proxy: proxy.Options{Logger: quiet, Client: client.Options{Logger: quiet}, Refresh: -1}})
		if err := b.Start(t.Context()); err != nil {
			expectFailure(t, c, err, false)
			return
		}
		defer func() {
			if err := b.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		cl, err := client.Connect(t.Context(), mem.New(b, nil), &client.Options{Logger: quiet})
		if err != nil {
			expectFailure(t, c, err, false)
			return
		}
		defer cl.Close()
		seen, err := c.Expect.Use(t.Context(), cl)
		expectSeen(t, c, seen, true)
		expectFailure(t, c, err, seen.IsError)
	})
}

// A command is a run of the program.
type command struct {
	exit      int
	out, said string
}

func parley(t *testing.T, args ...string) *command {
	t.Helper()
	var out, said bytes.Buffer
	exit := cli.Main(t.Context(), args, &kit.Streams{In: strings.NewReader(""), Out: &out, Err: &said})
	return &command{exit, out.String(), said.String()}
}

// The program lists, calls and shows what the library can use. If a part was left out, replaced or
// not checked, it says so, and else it says nothing.
// Proves: ruling 37
func TestProgram(t *testing.T) {
	each(t, []string{"http"}, func(t *testing.T, c *odd.Case, p *odd.Peer, _ transport.Dialer) {
		s := httptest.NewServer(p)
		defer s.Close()
		var all []*command
		ask := func(args ...string) *command {
			r := parley(t, append(args, "--server", s.URL+"/mcp")...)
			all = append(all, r)
			return r
		}
		if want := c.Expect.Tools; want != nil {
			r := ask("tools", "--json")
			var listed struct {
				Tools    []struct{ Tool struct{ Name string } }
				Problems []client.Problem
			}
			if err := json.Unmarshal([]byte(r.out), &listed); err != nil && c.Expect.Error == "" {
				t.Fatalf("exit code %d, %v\n%s%s", r.exit, err, r.out, r.said)
			}
			var got []string
			for _, tool := range listed.Tools {
				got = append(got, tool.Tool.Name)
			}
			for _, lost := range listed.Problems {
				if named := cmp.Or(lost.Subject, lost.Place); lost.Effect != client.Changed && lost.Effect != client.Incomplete && !strings.Contains(r.said, named) {
					t.Errorf("%s %q is %s, which the line does not say: %s", lost.Method, named, lost.Effect, r.said)
				}
			}
			slices.Sort(got)
			if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) && c.Expect.Error == "" {
				t.Errorf("tools %q, want %q\n%s", got, want, r.said)
			}
		}
		expect := func(what string, u *odd.Use, args ...string) {
			r := ask(args...)
			switch failed := c.Expect.Error != "" || u.IsError; {
			case failed != (r.exit != 0):
				t.Errorf("%s: exit code %d\n%s%s", what, r.exit, r.out, r.said)
			case !failed && !strings.Contains(r.out, shown(u.Text)):
				t.Errorf("%s wrote %q, want %q\n%s", what, r.out, u.Text, r.said)
			}
		}
		if c.Expect.Prompts != nil {
			ask("prompt")
		}
		if c.Expect.Resources != nil || c.Expect.Templates != nil {
			ask("read")
		}
		if u := c.Expect.Call; u != nil {
			expect("call", u, "call", u.Tool)
		}
		if u := c.Expect.Read; u != nil {
			expect("read", u, "read", u.URI)
		}
		if u := c.Expect.Prompt; u != nil {
			expect("prompt", u, "prompt", u.Name)
		}
		told := slices.ContainsFunc(all, func(r *command) bool {
			return strings.Contains(r.said, "run 'parley doctor' to check the server") || strings.Contains(r.out, `"problems"`)
		})
		if c.Expect.Error == "" && told != (len(c.Expect.Told) > 0) && len(all) > 0 {
			t.Errorf("told is %t, want %q", told, c.Expect.Told)
			for _, r := range all {
				t.Logf("%d\n%s%s", r.exit, r.out, r.said)
			}
		}
	})
}

// shown is a text as the program writes it.
func shown(text string) string { return strings.Trim(text, "\n") }
