package tui

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// A slowWriter takes what is written when it is told to.
type slowWriter struct {
	mu   sync.Mutex
	b    bytes.Buffer
	take chan error
}

func (w *slowWriter) Write(p []byte) (int, error) {
	if err := <-w.take; err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *slowWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// writing calls f with a writer to a slow terminal.
func writing(t *testing.T, f func(w *slowWriter, out *terminalWriter, lost chan error)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w, lost := &slowWriter{take: make(chan error)}, make(chan error, 1)
		out := newTerminalWriter(w, func(err error) { lost <- err })
		go out.run()
		f(w, out, lost)
		out.close()
		close(w.take)
		synctest.Wait()
	})
}

// A terminal that takes nothing keeps no writer, and says when it has taken everything.
func TestTerminalWriter(t *testing.T) {
	t.Parallel()
	writing(t, func(w *slowWriter, out *terminalWriter, _ chan error) {
		want := ""
		for range 3 {
			text := string(bytes.Repeat([]byte("x"), chunk))
			want += text
			if n, err := out.Write([]byte(text)); n != len(text) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		synctest.Wait()
		if !out.Busy() || w.String() != "" {
			t.Fatal("it was written already")
		}
		for range 3 {
			select {
			case <-out.free:
				t.Fatal("it is free too soon")
			default:
			}
			w.take <- nil
			synctest.Wait()
		}
		<-out.free
		if out.Busy() || w.String() != want {
			t.Errorf("%d bytes were written, want %d", len(w.String()), len(want))
		}
	})
}

// The end waits for as long as the terminal takes something, and no longer.
func TestTerminalWriterDrain(t *testing.T) {
	t.Parallel()
	writing(t, func(w *slowWriter, out *terminalWriter, _ chan error) {
		_, _ = out.Write(make([]byte, 10*chunk))
		go func() {
			for range 10 {
				time.Sleep(stalled - time.Millisecond)
				w.take <- nil
			}
		}()
		if err := out.drain(stalled); err != nil || len(w.String()) != 10*chunk {
			t.Errorf("%d bytes were written: %v", len(w.String()), err)
		}
		_, _ = out.Write([]byte("more"))
		if err := out.drain(stalled); !errors.Is(err, ErrTerminal) {
			t.Errorf("error %v, want %v", err, ErrTerminal)
		}
	})
}

// What could not be written is told once, and ends all waiting.
func TestTerminalWriterFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	writing(t, func(w *slowWriter, out *terminalWriter, lost chan error) {
		_, _ = out.Write(make([]byte, 10*chunk))
		if !out.Busy() {
			t.Error("it is not busy")
		}
		w.take <- broken
		if err := <-lost; !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		<-out.free
		if _, err := out.Write([]byte("x")); !errors.Is(err, broken) || out.Busy() {
			t.Errorf("error %v, busy %v", err, out.Busy())
		}
		if err := out.drain(stalled); err != nil {
			t.Errorf("error %v", err)
		}
	})
}

// While the terminal has not taken a frame there is no other one, whatever happens and whatever
// its size becomes; then there is one with all of it.
func TestFramesLeftOut(t *testing.T) {
	t.Parallel()
	drive(t, 60, 12, nil, newFakeSession(talk()...), func(k *kit) {
		k.want("Done: 2 turns")
		before := k.m.View().Content
		k.m.lineBusy = func() bool { return true }
		k.typed("a message")
		k.write(user("Another thing"))
		if msg := k.m.filter(k.m, tea.WindowSizeMsg{Width: 40, Height: 10}); msg != nil {
			t.Errorf("the screen is told %v", msg)
		}
		if k.m.View().Content != before {
			t.Error("another frame was drawn")
		}
		k.m.lineBusy = func() bool { return false }
		_, cmd := k.m.Update(freeMsg{})
		k.update(cmd())
		k.want("a message", "Another thing")
		if k.m.width != 40 || k.m.height != 10 {
			t.Errorf("the size is %d x %d", k.m.width, k.m.height)
		}
	})
}
