// Package modeltest is what the tests of clients of model providers share.
package modeltest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
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

// Splits are the readers of a text: in one piece, byte by byte, and in two pieces at each
// place.
func Splits(text []byte) []io.Reader {
	list := []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text))}
	for i := range text {
		list = append(list, io.MultiReader(bytes.NewReader(text[:i]), bytes.NewReader(text[i:])))
	}
	return list
}
