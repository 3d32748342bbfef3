package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// exchange is a run with what the person said.
func exchange(text string) []host.Body {
	return []host.Body{&host.UserRecord{Content: mcp.Contents{mcp.Text(text)}}, &host.RunEndRecord{Outcome: host.OutcomeDone}}
}

// A session that is gone on with shows its last exchanges, also when the last one has no end
// yet, and says how many records are left out.
func TestLastExchanges(t *testing.T) {
	t.Parallel()
	open := exchange("open")[:1]
	for name, test := range map[string]struct {
		runs int
		more []host.Body
		want int64
	}{
		"nothing":          {0, nil, 0},
		"fewer":            {1, nil, 0},
		"as many":          {2, nil, 0},
		"more":             {3, nil, 2},
		"many":             {9, nil, 14},
		"one is open":      {3, open, 4},
		"only an open one": {0, open, 0},
	} {
		var records []host.Record
		add := func(bodies ...host.Body) {
			for _, b := range bodies {
				records = append(records, host.Record{N: int64(len(records)) + 1, Time: time.Unix(0, 0), Body: b})
			}
		}
		for range test.runs {
			add(exchange("again")...)
		}
		add(test.more...)
		if got := ui.LastExchanges(records, 2); got != test.want {
			t.Errorf("%s: after record %d, want %d", name, got, test.want)
		}
	}
}

// What is left out of a session that is gone on with is told.
func TestResumeTellsWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	s := newSession(nil)
	for _, text := range []string{"the first", "the second"} {
		s.write(exchange(text)...)
	}
	shown := talk(t, servers(), s, &ui.LineOptions{Since: 2})
	if !strings.Contains(shown, "2 earlier records are not shown here; /history shows all.") || strings.Contains(shown, "the first") ||
		!strings.Contains(shown, "the second") {
		t.Errorf("shown is\n%s", shown)
	}
}
