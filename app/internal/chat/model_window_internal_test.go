package chat

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
)

// A silentModel says nothing.
type silentModel struct{}

func (silentModel) Info() host.ModelInfo { return host.ModelInfo{Name: "m", Provider: "p"} }

func (silentModel) Generate(context.Context, *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) { yield(host.Piece{Stop: host.StopEnd}, nil) }
}

// talkingTo opens a model whose provider tells a window.
func talkingTo(t *testing.T, w *modelWindows, configured int, window func(context.Context) (int, error)) host.Model {
	t.Helper()
	p := &models{connect.New(&kit.Console{Streams: &kit.Streams{}})}
	c := &chosenModel{
		name: "m", baseURL: "http://127.0.0.1:1", entry: config.ModelEntry{NoKey: true, Window: configured},
		provider: &modelProvider{
			name:   "p",
			open:   func(*modelOptions) (host.Model, error) { return silentModel{}, nil },
			window: func(ctx context.Context, _ *modelOptions) (int, error) { return window(ctx) },
		},
	}
	m, err := p.talkTo(t.Context(), c, w)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// say lets a model take a turn.
func say(t *testing.T, m host.Model) {
	t.Helper()
	for _, err := range m.Generate(t.Context(), &host.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A provider tells a window at once, or after the first answer, and is asked no more than that.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newModelWindows(t.Context())
		defer w.close()
		asked := 0
		at := 1 // the question that is answered
		window := func(context.Context) (int, error) {
			if asked++; asked < at {
				return 0, errors.New("not yet")
			}
			return 8192, nil
		}
		for _, test := range []struct{ at, turns, asked, want int }{
			{1, 0, 1, 8192}, {1, 3, 1, 8192}, {2, 0, 1, 0}, {2, 1, 2, 8192}, {3, 5, 2, 0},
		} {
			asked, at = 0, test.at
			m := talkingTo(t, w, 0, window)
			synctest.Wait()
			for range test.turns {
				say(t, m)
				synctest.Wait()
			}
			if info := m.Info(); info.Window != test.want || asked != test.asked || info.Name != "m" {
				t.Errorf("%+v: window %d, asked %d times", test, info.Window, asked)
			}
		}
	})
}

// A provider that does not answer delays nothing, and is asked no longer than the conversation
// lasts or windowWait.
func TestSlowWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newModelWindows(t.Context())
		var ended atomic.Int32
		m := talkingTo(t, w, 0, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			ended.Add(1)
			return 0, ctx.Err()
		})
		say(t, m) // asks again
		synctest.Wait()
		if ended.Load() != 0 || m.Info().Window != 0 {
			t.Errorf("%d ended, window %d", ended.Load(), m.Info().Window)
		}
		w.close()
		if ended.Load() != 2 {
			t.Errorf("%d of two questions have ended with the conversation", ended.Load())
		}
		say(t, m)
		if ended.Load() != 2 {
			t.Error("it was asked after the conversation")
		}
	})
}

// What the person configured is not asked for.
func TestConfiguredWindow(t *testing.T) {
	w := newModelWindows(t.Context())
	m := talkingTo(t, w, 4096, func(context.Context) (int, error) {
		t.Error("the provider was asked")
		return 0, nil
	})
	say(t, m)
	w.close()
}
