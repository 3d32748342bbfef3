package config_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/config"
)

func (d *desk) read(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// Edits keep comments, order and layout.
func TestEdits(t *testing.T) {
	t.Parallel()
	entry := config.Entry{Command: "x", Args: []string{"a", "b"}, Env: map[string]string{"K": "v"}}
	add := func(path string) error { return config.Add(path, "new", entry) }
	remove := func(name string) func(string) error {
		return func(path string) error { return config.Remove(path, name) }
	}
	disable := func(off bool) func(string) error {
		return func(path string) error { return config.SetDisabled(path, "a", off) }
	}
	const added = `    "new": {
      "command": "x",
      "args": ["a", "b"],
      "env": {
        "K": "v"
      }
    }`
	tests := map[string]struct {
		edit         func(path string) error
		before, want string
	}{
		"to no file":      {add, "", "{\n  \"servers\": {\n" + added + "\n  }\n}\n"},
		"to an object":    {add, "{}", "{\n  \"servers\": {\n" + added + "\n  }\n}"},
		"to no servers":   {add, "{\n  // my model\n  \"model\": \"m\" // end\n}\n", "{\n  // my model\n  \"model\": \"m\", // end\n  \"servers\": {\n" + added + "\n  }\n}\n"},
		"to empty":        {add, "{\n  \"servers\": {}\n}\n", "{\n  \"servers\": {\n" + added + "\n  }\n}\n"},
		"to one":          {add, "{\n  \"servers\": {\n    \"a\": {\"command\": \"a\"} // kept\n  }\n}\n", "{\n  \"servers\": {\n    \"a\": {\"command\": \"a\"}, // kept\n" + added + "\n  }\n}\n"},
		"after a comma":   {add, "{\n  \"servers\": {\n    \"a\": {\"command\": \"a\"}, // kept\n  },\n}\n", "{\n  \"servers\": {\n    \"a\": {\"command\": \"a\"}, // kept\n" + added + ",\n  },\n}\n"},
		"to one line":     {add, `{"servers":{"a":{"command":"a"}}}`, "{\"servers\":{\"a\":{\"command\":\"a\"},\n" + added + "\n  }}"},
		"remove one":      {remove("a"), "{\n  \"servers\": {\n    // of a\n    \"a\": {\"command\": \"a\"},\n    // of b\n    \"b\": {\"command\": \"b\"}\n  }\n}\n", "{\n  \"servers\": {\n    // of b\n    \"b\": {\"command\": \"b\"}\n  }\n}\n"},
		"remove the last": {remove("b"), "{\n  \"servers\": {\n    \"a\": {\"command\": \"a\"},\n    \"b\": {\"command\": \"b\"}\n  }\n}\n", "{\n  \"servers\": {\n    \"a\": {\"command\": \"a\"}\n  }\n}\n"},
		"remove all":      {remove("a"), "{\"servers\": {\"a\": {\"command\": \"a\"}}}", "{\"servers\": {}}"},
		"disable":         {disable(true), "{\"servers\": {\n  \"a\": {\n    \"command\": \"a\" // why\n  }\n}}", "{\"servers\": {\n  \"a\": {\n    \"command\": \"a\", // why\n    \"disabled\": true\n  }\n}}"},
		"disable again":   {disable(true), "{\"servers\": {\"a\": {\"disabled\": /* was on */ false, \"command\": \"a\"}}}", "{\"servers\": {\"a\": {\"disabled\": /* was on */ true, \"command\": \"a\"}}}"},
		"enable":          {disable(false), "{\"servers\": {\"a\": {\"disabled\": true, \"command\": \"a\"}}}", "{\"servers\": {\"a\": {\"disabled\": false, \"command\": \"a\"}}}"},
		"enable again":    {disable(false), "{\"servers\": {\"a\": {\"command\": \"a\"}}}", "{\"servers\": {\"a\": {\"command\": \"a\"}}}"},
		"byte order mark": {disable(false), "\ufeff{\"servers\": {\"a\": {\"command\": \"a\"}}}", "{\"servers\": {\"a\": {\"command\": \"a\"}}}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			if test.before != "" {
				d.write("own/parley.jsonc", test.before)
			}
			if err := test.edit(d.path("own/parley.jsonc")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.read("own/parley.jsonc")); diff != "" {
				t.Error(diff)
			}
			if _, err := config.LoadFile(d.path("own/parley.jsonc"), d.options); err != nil {
				t.Error(err)
			}
		})
	}
}

// What cannot be done changes nothing and leaves nothing behind.
func TestEditErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	path := d.path("own/parley.jsonc")
	const text = `{"servers": {"a": {"command": "a"}, "b": 5}}`
	d.write("own/parley.jsonc", text)
	for name, test := range map[string]struct {
		err  error
		want error
		text string
	}{
		"exists":        {config.Add(path, "a", config.Entry{Command: "x"}), config.ErrExists, ""},
		"no name":       {config.Add(path, "", config.Entry{Command: "x"}), nil, "give it one"},
		"no command":    {config.Add(path, "c", config.Entry{}), nil, "neither command nor url"},
		"no host":       {config.Add(path, "c", config.Entry{URL: "tickets"}), nil, "no URL with a host"},
		"a bad name":    {config.Add(path, "c", config.Entry{Command: "x", Env: map[string]string{"A=B": "c"}}), nil, "no variable"},
		"both":          {config.Add(path, "c", config.Entry{Command: "x", URL: "https://a.example/"}), nil, "remove one"},
		"not there":     {config.Remove(path, "c"), config.ErrNoEntry, ""},
		"not there yet": {config.SetDisabled(path, "c", true), config.ErrNoEntry, ""},
		"no file":       {config.Remove(d.path("none/parley.jsonc"), "a"), config.ErrNoEntry, ""},
		"another's":     {config.Add(d.path("own/.mcp.json"), "c", config.Entry{Command: "x"}), config.ErrNotOwn, ""},
		"no object":     {config.SetDisabled(path, "b", true), nil, "no object"},
	} {
		if test.err == nil || test.want != nil && !errors.Is(test.err, test.want) || !strings.Contains(test.err.Error(), test.text) {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	for _, broken := range []string{"{", "[]", `{"servers": []}`, `{"a":1,"a":2}`, `{"servers":{"a":{},"a":{}}}`} {
		d.write("broken/parley.jsonc", broken)
		if err := config.Add(d.path("broken/parley.jsonc"), "n", config.Entry{Command: "x"}); err == nil || d.read("broken/parley.jsonc") != broken {
			t.Errorf("%s: %v", broken, err)
		}
	}
	if d.read("own/parley.jsonc") != text {
		t.Error("the file has changed")
	}
	if _, err := os.Stat(d.path("none")); err == nil {
		t.Error("a folder was made for nothing")
	}
	left, err := os.ReadDir(d.path("own"))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// New files are the person's alone, and others keep their mode. A link stays one.
func TestEditModes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	mode := func(name string) os.FileMode {
		info, err := os.Lstat(d.path(name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	entry := config.Entry{URL: "https://a.example/mcp"}
	if err := config.Add(d.path("new/.parley.jsonc"), "a", entry); err != nil || mode("new/.parley.jsonc").Perm()&0o077 != 0 {
		t.Errorf("%v %v", err, mode("new/.parley.jsonc"))
	}
	d.write("dotfiles/real.jsonc", "{}")
	if err := os.Chmod(d.path("dotfiles/real.jsonc"), 0o640); err != nil {
		t.Fatal(err)
	}
	before := mode("dotfiles/real.jsonc")
	d.link("../dotfiles/real.jsonc", "own/parley.jsonc")
	if err := config.Add(d.path("own/parley.jsonc"), "a", entry); err != nil {
		t.Fatal(err)
	}
	if mode("own/parley.jsonc").Type() != os.ModeSymlink || mode("dotfiles/real.jsonc") != before || !strings.Contains(d.read("dotfiles/real.jsonc"), "a.example") {
		t.Errorf("%v %v", mode("own/parley.jsonc"), mode("dotfiles/real.jsonc"))
	}
}

// Edits at the same time are all there, or have an error.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	path := d.path("own/parley.jsonc")
	d.write("own/parley.jsonc", "{}")
	done := make([]bool, 50)
	var wg sync.WaitGroup
	for i := range done {
		wg.Go(func() {
			err := config.Add(path, fmt.Sprintf("s%d", i), config.Entry{Command: "x"})
			done[i] = err == nil
			if err != nil && !errors.Is(err, config.ErrBusy) && !errors.Is(err, config.ErrChanged) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c, err := config.LoadFile(path, d.options)
	if err != nil {
		t.Fatal(err)
	}
	for i, ok := range done {
		if (c.Server(fmt.Sprintf("s%d", i)) != nil) != ok {
			t.Errorf("s%d: told done %v", i, ok)
		}
	}
}
