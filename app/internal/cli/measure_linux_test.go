package cli_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// measureEnv switches on what measures: go test -v -run TestMeasure ./app/internal/cli.
const measureEnv = "PARLEY_TEST_MEASURE"

// Characters that are on the screen once: the tokens' and the keys'.
const (
	firstToken = '一'
	firstKey   = '가'
	mostMarks  = 1000
)

// marks are when characters were sent, and when they were first shown.
type marks struct {
	mu          sync.Mutex
	sent, shown map[rune]time.Time
}

func (m *marks) note(to map[rune]time.Time, r rune) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := to[r]; !ok {
		to[r] = time.Now()
	}
}

// read takes what is shown on a window.
func (m *marks) read(w *window) {
	in := bufio.NewReader(w.keys)
	for {
		r, _, err := in.ReadRune()
		if err != nil {
			return
		}
		_, _ = w.out.Write([]byte(string(r)))
		if r >= firstToken && r < firstToken+mostMarks || r >= firstKey && r < firstKey+mostMarks {
			m.note(m.shown, r)
		}
	}
}

// delays are how long characters from first on took to be shown. One that is never shown,
// because a frame has later ones in its place, took until the next one that is.
func (m *marks) delays(first rune) (list []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var next time.Time
	for r := first + mostMarks; r >= first; r-- {
		if at, ok := m.shown[r]; ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
		if at, ok := m.sent[r]; ok && !next.IsZero() {
			list = append(list, next.Sub(at))
		}
	}
	slices.Sort(list)
	return list
}

// report writes the median and the worst of delays.
func report(t *testing.T, what string, list []time.Duration) {
	t.Helper()
	if len(list) == 0 {
		t.Errorf("%s: nothing was measured", what)
		return
	}
	t.Logf("%s: %d, median %v, 99 of 100 within %v, worst %v", what, len(list), list[len(list)/2], list[len(list)*99/100], list[len(list)-1])
}

// Measures how long keys and tokens take to be shown while an answer of 10,000 lines comes,
// and while a server sends 200 reports of progress and 200 log messages a second.
func TestMeasureScreen(t *testing.T) {
	if os.Getenv(measureEnv) == "" {
		t.Skip(measureEnv + " is not set")
	}
	m := &marks{sent: make(map[rune]time.Time), shown: make(map[rune]time.Time)}
	url, _ := modelServer(t, func(r *http.Request, send func(string)) {
		pause := time.NewTicker(10 * time.Millisecond)
		defer pause.Stop()
		for n := range 400 { // 2,500 lines a second
			var b strings.Builder
			for line := range 24 {
				fmt.Fprintf(&b, "line %d of the answer\n\n", n*25+line)
			}
			mark := firstToken + rune(n)
			m.note(m.sent, mark)
			send(b.String() + string(mark) + "\n\n")
			<-pause.C
		}
		send("The end.")
	})
	types := func(w *window, from, count int) {
		pause := time.NewTicker(47 * time.Millisecond) // no multiple of a frame
		defer pause.Stop()
		for n := range count {
			<-pause.C
			mark := firstKey + rune(from+n)
			m.note(m.sent, mark)
			w.types(string(mark))
		}
	}
	dir := shortDir(t)
	w := newWindow(t, dir, []string{"OPENAI_API_KEY=" + testKey}, "chat", "--server", "one=actor "+dir, "--model", "openai:much", "--base-url", url)
	w.start()
	go m.read(w)
	w.sees("lists the keys")
	w.types("Tell me much.\r")
	types(w, 0, 80)
	w.sees("The end.")
	report(t, "tokens of an answer of 10,000 lines", m.delays(firstToken))
	report(t, "keys meanwhile", m.delays(firstKey))
	w.types("\x03")
	w.sees("once more")
	w.types("\x03")
	w.gone()

	m.mu.Lock()
	clear(m.sent)
	clear(m.shown)
	m.mu.Unlock()
	dir = shortDir(t)
	w = newWindow(t, dir, nil, "chat", "--logs", "debug", "--allow", "*", "--server", "one=actor "+dir)
	w.start()
	go m.read(w)
	w.sees("lists the keys")
	w.types("one/flood\r")
	w.sees("flooding")
	types(w, 100, 80)
	report(t, "keys while a server floods", m.delays(firstKey))
	w.types("\x03")
	w.sees("Cancelling")
	w.types("\x03")
	w.gone()
}

// Measures how long the first prompt takes with twenty servers, five dead and five hung.
func TestMeasureStart(t *testing.T) {
	if os.Getenv(measureEnv) == "" {
		t.Skip(measureEnv + " is not set")
	}
	rounds := 10
	if n, err := strconv.Atoi(os.Getenv(roundsEnv)); err == nil {
		rounds = n
	}
	var list []time.Duration
	for range rounds {
		dir := shortDir(t)
		w := newWindow(t, dir, nil, "chat", "--config", twentyServers(t, dir))
		began := time.Now()
		w.start()
		go w.read()
		w.sees("Write a message")
		list = append(list, time.Since(began))
		w.types("/quit\r")
		w.gone()
	}
	slices.Sort(list)
	report(t, "first prompt with twenty servers", list)
}
