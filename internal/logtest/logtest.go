// Package logtest keeps what code under test logs and tells. Many goroutines may write to it.
package logtest

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// A Log is a log as text.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Logger returns a logger that writes every level to the log.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write adds to the text. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A List is what happened, in order.
type List struct {
	mu    sync.Mutex
	items []string
}

// Add adds an item.
func (l *List) Add(item string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
}

// Addf adds an item by the rules of fmt.Sprintf.
func (l *List) Addf(format string, args ...any) { l.Add(fmt.Sprintf(format, args...)) }

// All returns the items.
func (l *List) All() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.items)
}

// Take returns the items and forgets them.
func (l *List) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	items := l.items
	l.items = nil
	return items
}
