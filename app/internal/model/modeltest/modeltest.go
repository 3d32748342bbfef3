// Package modeltest is what the tests of clients of model providers share.
package modeltest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Show is a turn as text: a line for each piece, and one for the error.
func Show(m host.Model, r *host.Request) string {
	var b strings.Builder
	for p, err := range m.Generate(context.Background(), r) {
		switch {
		case err != nil:
			fmt.Fprintf(&b, "error %v\n", err)
		case p.Text != "":
			fmt.Fprintf(&b, "text %q\n", p.Text)
		case p.Reasoning != nil:
			fmt.Fprintf(&b, "reasoning of %s %q %s\n", p.Reasoning.Provider, p.Reasoning.Text, p.Reasoning.Data)
		case p.Call != nil:
			fmt.Fprintf(&b, "call %q %q %s\n", p.Call.ID, p.Call.Name, p.Call.Input)
		case p.Usage != nil:
			fmt.Fprintf(&b, "usage %+v\n", *p.Usage)
		case p.Stop != "":
			fmt.Fprintf(&b, "stop %s\n", p.Stop)
		default:
			b.WriteString("an empty piece\n")
		}
	}
	return b.String()
}

// CheckTurn asks a model, and checks what holds whatever its provider sends: the turn ends with
// a reason or with an error of one plain line, and gives no other piece after it; IDs of calls
// are different, and arguments are there.
func CheckTurn(t testing.TB, m host.Model) {
	t.Helper()
	ended := false
	ids := make(map[string]bool)
	for p, err := range m.Generate(context.Background(), Hello()) {
		if ended {
			t.Fatalf("after the end: %+v, %v", p, err)
		}
		ended = err != nil || p.Stop != ""
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("the error has control characters: %q", err)
		}
		if c := p.Call; c != nil {
			if c.ID == "" || ids[c.ID] || len(c.Input) == 0 {
				t.Errorf("call %+v", c)
			}
			ids[c.ID] = true
		}
	}
	if !ended {
		t.Error("no end")
	}
}

// Says is a message of contents.
func Says(role mcp.Role, contents ...mcp.Content) host.Message {
	m := host.Message{Role: role}
	for _, c := range contents {
		m.Blocks = append(m.Blocks, host.Block{Content: c})
	}
	return m
}

// Hello is the simplest request.
func Hello() *host.Request {
	return &host.Request{Messages: []host.Message{Says(mcp.RoleUser, mcp.Text("Hello"))}}
}

// Events makes a stream of events with data.
func Events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// Places are the offsets at which tests cut or split a text of n bytes: every byte, or every 16th
// with -short.
func Places(n int) iter.Seq[int] {
	step := 1
	if testing.Short() {
		step = 16
	}
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i += step {
		}
	}
}

// Splits are the readers of a text: in one piece, byte by byte, and in two pieces at each of
// its Places.
func Splits(text []byte) []io.Reader {
	list := []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text))}
	for i := range Places(len(text)) {
		list = append(list, io.MultiReader(bytes.NewReader(text[:i]), bytes.NewReader(text[i:])))
	}
	return list
}
