package host_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

type pathIn struct {
	Path string `json:"path"`
}

// reader is a server that begins relative paths at dir, and keeps which files it read.
func reader(t *testing.T, dir string, read *[]string) *server.Server {
	return serverOf(t, server.Tool("read", "Reads a file.", func(_ context.Context, in pathIn) (string, error) {
		name := in.Path
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		raw, err := os.ReadFile(name)
		*read = append(*read, string(raw))
		return string(raw), err
	}))
}

// Proves: ruling 45. Rules judge a relative path as the server reads it, wherever the program is: what a rule
// calls outside is not reached inside.
func TestRulesJudgePathsFromServersFolder(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, served := filepath.Join(top, "work"), filepath.Join(top, "served")
	for _, dir := range []string{work, served} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "key"), []byte(filepath.Base(dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(work)
	inside := func(effect, dir string) string {
		return `{"effect":"` + effect + `","where":{"/path":{"inside":"` + filepath.ToSlash(dir) + `"}}}`
	}
	const everything = `{"effect":"allow"}`
	for _, test := range []struct {
		name, path string
		known      bool
		rules      []string
		want       []string
	}{
		{"allowed in the program's folder", "key", true, []string{inside("allow", work)}, nil},
		{"allowed in the server's folder", "key", true, []string{inside("allow", served)}, []string{"served"}},
		{"allowed by a way out of the server's folder", "../work/key", true, []string{inside("allow", work)}, []string{"work"}},
		{"denied in the program's folder", "key", true, []string{everything, inside("deny", work)}, []string{"served"}},
		{"denied in the server's folder", "key", true, []string{everything, inside("deny", served)}, nil},
		{"denied by a way out of the server's folder", "../work/key", true, []string{everything, inside("deny", work)}, nil},
		{"asked in the server's folder", "key", true, []string{everything, inside("ask", served)}, nil},
		{"allowed where the server's folder is unknown", "key", false, []string{inside("allow", top)}, nil},
		{"denied where the server's folder is unknown", "key", false, []string{everything, inside("deny", served)}, nil},
		{"asked where the server's folder is unknown", "key", false, []string{everything, inside("ask", served)}, nil},
	} {
		var read []string
		h := newHost(t, &host.Options{Policy: policyFrom(t, test.rules...)}, nil)
		s := host.Server{Name: "files", Dialer: mem.New(reader(t, served, &read), nil)}
		if test.known {
			s.Dir = served
		}
		if err := h.Add(s); err != nil {
			t.Fatal(err)
		}
		// Where a person would have to be asked, the run ends with an error.
		_, _, err := begin(t, h, &scripted{turns: []turn{use("files__read", `{"path":"`+test.path+`"}`)}}).Ask(t.Context(), "go")
		if diff := cmp.Diff(test.want, read); diff != "" {
			t.Errorf("%s: %v: %s", test.name, err, diff)
		}
		if slices.Equal(test.want, read) && len(read) > 0 && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
