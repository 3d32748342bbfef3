//go:build unix

package stdio_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport/stdio"
)

// The bytes of a process are its holder's. What it wrote before its end is all read, and a process
// that failed by itself says how.
func TestProcess(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, test := range []struct {
		role, send, want string
		end              bool // of its input, by us
		fails            string
	}{
		{"serve", `{"jsonrpc":"2.0","id":1,"method":"no/such"}` + "\n", `"id":1,"error"`, true, ""},
		{"farewell", "", `"method":`, false, ""},
		{"die", "half a line\n", "", false, "exit status 3"},
		{"die", "", "", true, ""},
	} {
		d := command(test.role)
		d.Grace.Close = patience // what it has to say, it says, however long its start takes
		p, err := d.Start()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(p, test.send); err != nil {
			t.Errorf("%s: %v", test.role, err)
		}
		if test.end {
			p.End()
		}
		said, err := io.ReadAll(p)
		var exit *stdio.ExitError
		switch {
		case test.fails == "" && err != nil:
			t.Errorf("%s: %v", test.role, err)
		case test.fails != "" && (!errors.As(err, &exit) || exit.Status != test.fails):
			t.Errorf("%s: %v, want %s", test.role, err, test.fails)
		}
		if !strings.Contains(string(said), test.want) {
			t.Errorf("%s said %q, want %s", test.role, bytes.TrimSpace(said), test.want)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: closing: %v", test.role, err)
		}
	}
}

// Close ends a process that heeds nothing, and a Read that waits for it.
func TestProcessClose(t *testing.T) {
	mcptest.NoLeaks(t)
	d := command("stubborn")
	d.Grace = stdio.Grace{Close: 1, Term: 1}
	p, err := d.Start()
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p)
		read <- err
	}()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-read; err != nil {
		t.Errorf("the reader was told %v, want the end", err)
	}
	if _, err := stdio.Command("no such program").Start(); err == nil {
		t.Error("a program that is not there has started")
	}
}
