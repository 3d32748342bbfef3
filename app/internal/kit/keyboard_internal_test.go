package kit

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

// What one part gave up to wait for goes to the next one; nothing is lost, and
// nothing is read that nobody asked for.
func TestTypist(t *testing.T) {
	t.Parallel()
	in, person := io.Pipe()
	k := NewKeyboard(in)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Line(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("waiting ended with %v", err)
	}
	go func() {
		_, _ = io.WriteString(person, "one\r\ntwo\nthree\n")
		_, _ = io.WriteString(person, "four")
		person.Close()
	}()
	first, err := k.Line(t.Context())
	if err != nil || first != "one" {
		t.Errorf("%q, %v, want the line that was given up", first, err)
	}
	small := make([]byte, 3)
	n, err := k.Read(small)
	if err != nil || string(small[:n]) != "two" {
		t.Errorf("%q, %v, want the beginning of a line", small[:n], err)
	}
	rest, err := io.ReadAll(k)
	if err != nil || string(rest) != "\nthree\nfour" {
		t.Errorf("%q, %v, want the rest", rest, err)
	}
	if _, err := k.Line(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want the end", err)
	}
}

// What a person types while a sign-in waits for an address is a message of the
// conversation, in order, and is thrown away with what was typed ahead.
func TestMessageWhileSigningIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		k := NewKeyboard(in)
		k.Leave("one")
		k.Leave("two")
		read := func() string {
			buf := make([]byte, 64)
			n, err := k.Read(buf)
			if err != nil {
				t.Error(err)
			}
			return string(buf[:n])
		}
		if first, second := read(), read(); first != "one\n" || second != "two\n" {
			t.Errorf("%q and %q", first, second)
		}
		got := make(chan string)
		go func() { got <- read() }()
		synctest.Wait()
		k.Leave("three")
		if text := <-got; text != "three\n" {
			t.Errorf("%q", text)
		}
		k.Leave("four")
		k.Discard()
		go func() { got <- read() }()
		go func() { _, _ = io.WriteString(out, "five\n") }()
		if text := <-got; text != "five\n" {
			t.Errorf("%q", text)
		}
		_ = out.Close()
	})
}
