package config_test

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/config"
)

// said is everything that a person is shown of a configuration.
func said(c *config.Config) string {
	var b strings.Builder
	for _, p := range c.Problems {
		b.WriteString(p.Text + "\n")
	}
	for _, s := range c.Servers {
		b.WriteString(s.Address() + "\n" + strings.Join(s.Notes, "\n") + "\n")
		if s.Err != nil {
			b.WriteString(s.Err.Error() + "\n")
		}
	}
	return b.String()
}

// Whatever is in the environment, nothing that is told shows it.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cret\x00value" // with NUL, so that many entries are refused
	d := fullDesk(t)
	home := d.env["HOME"]
	d.options.Env = func(name string) (string, bool) {
		if name == "HOME" {
			return home, true
		}
		return secret, !strings.HasPrefix(name, "XDG") && !strings.Contains(name, "CONFIG") && !strings.HasSuffix(name, "PATH")
	}
	d.write("home/perplexity.env", "s3cret line\n")
	d.write("home/.config/opencode/key.txt", "s3cret")
	c := d.load()
	if text := said(c); strings.Contains(text, "s3cret") {
		t.Error(text)
	}
	for _, s := range c.Servers {
		if _, err := s.Expand(map[string]string{"key": "s3cret\n", "perplexity-key": "s3cret\x00"}); err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// Names that a stranger chose are shown without control characters, and not at length.
func TestNoControlCharacters(t *testing.T) {
	t.Parallel()
	const evil = "\\u001b[2J\\u202e\\u0007"
	long := strings.Repeat("x", 300)
	entries := []string{
		`{"type":"` + evil + `","command":"x"}`, `{"command":"x","comm` + evil + `":1}`, `{"command":"x","env":{"` + evil + `=":"a"}}`,
		`{"command":"x","env":{"` + evil + `":null}}`, `{"url":"https://a.example","headers":{"` + evil + `":"a"}}`,
		`{"command":"x","args":["${env:` + evil + `}"]}`, `{"command":"x","args":["${input:` + evil + `}"]}`,
		`{"command":"x","args":["${command:` + evil + `}"]}`, `{"command":"x","envFile":"` + evil + `"}`, `{"command":"x","env":{"` + evil + `":"${env:B}"}}`,
		`{"type":"` + strings.Repeat("y", 1000) + `","command":"x"}`,
	}
	for _, file := range []string{"home/project/.vscode/mcp.json", "home/project/.parley.jsonc", "home/project/opencode.json"} {
		for _, entry := range entries {
			d := newDesk(t)
			key := "servers"
			if strings.HasSuffix(file, "opencode.json") {
				key = "mcp"
				entry = strings.NewReplacer("${env:", "{env:", "${command:", "{file:").Replace(entry)
			}
			d.write(file, `{"`+key+`":{"s":`+entry+`},"`+evil+`":1,"rules":["`+evil+`"],"roots":["`+evil+`"],"permission":{"`+evil+`":"deny","`+long+`":"deny"}}`)
			c := d.load()
			text := strings.ReplaceAll(said(c), c.Servers[0].Address(), "")
			for _, r := range text {
				if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
					t.Errorf("%s %s: %q", file, entry, text)
					break
				}
			}
			for line := range strings.Lines(text) {
				if len(line) > 600 {
					t.Errorf("%s: a line of %d bytes", entry, len(line))
				}
			}
		}
	}
}

// Reading changes no file.
func TestReadsOnly(t *testing.T) {
	t.Parallel()
	d := fullDesk(t)
	state := func() map[string]string {
		found := map[string]string{}
		err := filepath.WalkDir(d.root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			sum := sha256.Sum256(data)
			found[path] = string(sum[:])
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := state()
	for _, s := range d.load().Servers {
		_, _ = s.Expand(nil)
	}
	if _, err := config.Find(d.options); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Error(diff)
	}
}
