package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/config"
)

var update = flag.Bool("update", false, "write the golden files")

// A folder with one file of each client: every server is there once, with the file and the
// line that it came from.
func TestList(t *testing.T) {
	t.Parallel()
	d := fullDesk(t)
	c := d.load()
	var b strings.Builder
	b.WriteString("# files\n")
	for _, l := range c.Files {
		fmt.Fprintf(&b, "%s %s %s\n", l.Scope, l.Client, d.short(l.Path))
	}
	b.WriteString("\n# servers\n")
	for _, s := range c.Servers {
		list(&b, d, s)
	}
	b.WriteString("\n# rules\n")
	for i := range c.Rules {
		r := &c.Rules[i]
		fmt.Fprintf(&b, "%s %s %s/%s from %s\n", r.Effect, r.Kind, r.Server, r.Name, d.short(r.Source.String()))
	}
	b.WriteString("\n# pending\n")
	for _, p := range c.Pending {
		for i := range p.Rules {
			r := &p.Rules[i]
			fmt.Fprintf(&b, "%s %s %s/%s from %s\n", r.Effect, r.Kind, r.Server, r.Name, d.short(r.Source.String()))
		}
	}
	b.WriteString("\n# problems\n")
	for _, p := range c.Problems {
		fmt.Fprintln(&b, d.short(p.String()))
	}
	golden := filepath.Join("testdata", "list.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
	names := map[string]bool{}
	for _, s := range c.Servers {
		if names[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		names[s.Name] = true
	}
}

func list(b *strings.Builder, d *desk, s *config.Server) {
	fmt.Fprintf(b, "%s (%s %s, %s) %s: %s\n", s.Name, s.Source.Scope, s.Source.Client, d.short(s.Source.String()), s.Transport, s.Address())
	if s.NeedsConsent {
		b.WriteString("  needs consent\n")
	}
	if s.Disabled {
		b.WriteString("  disabled\n")
	}
	if s.ConnectTimeout+s.CallTimeout > 0 {
		fmt.Fprintf(b, "  timeouts %v %v\n", s.ConnectTimeout, s.CallTimeout)
	}
	if len(s.AllowTools)+len(s.DenyTools) > 0 {
		fmt.Fprintf(b, "  tools %v not %v\n", s.AllowTools, s.DenyTools)
	}
	for _, in := range s.Inputs {
		fmt.Fprintf(b, "  input %+v\n", in)
	}
	for _, other := range s.Shadowed {
		fmt.Fprintf(b, "  hides %s\n", d.short(other.String()))
	}
	for _, note := range s.Notes {
		fmt.Fprintf(b, "  note: %s\n", d.short(note))
	}
	if s.Err != nil {
		fmt.Fprintf(b, "  error: %s\n", d.short(s.Err.Error()))
	}
}
