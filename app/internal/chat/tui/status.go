package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/host"
)

// spinnerFrames are one after another while something is under way.
var spinnerFrames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// status draws the status line: what is under way first, then what there is room for.
func (m *screen) status(width int) string {
	parts := slices.DeleteFunc([]string{
		m.activity(), m.serversState(), m.labelsState(), m.usageState(), m.modelState(), "session " + host.EscapeLine(m.session.ID()),
		m.keys.Key(style.Help) + " keys",
	}, func(s string) bool { return s == "" })
	text := " "
	for i, part := range parts {
		separator := " · "
		if i == 0 {
			separator = ""
		}
		if i > 0 && style.Width(text+separator+part) > width-1 {
			continue
		}
		text += separator + part
	}
	return m.theme.Status.Render(style.Pad(text, width))
}

// activity says what is under way.
func (m *screen) activity() string {
	if !m.busy() {
		if !m.conv.follow {
			return "scrolled up; " + m.keys.Key(style.Bottom) + " goes to the end"
		}
		return "ready"
	}
	mark := ""
	if !m.opts.ReducedMotion {
		mark = spinnerFrames[m.spins%len(spinnerFrames)] + " "
	}
	runs := m.log.runs()
	switch {
	case len(m.questions) > 0: // also if calls are running: one of them may wait for the answer
		return "waits for you"
	case len(runs) == 1:
		return mark + "running " + style.Fit(runs[0].name(), 30)
	case len(runs) > 1:
		return fmt.Sprintf("%s%d calls are running", mark, len(runs))
	case m.task != nil && !m.running:
		return mark + m.task.what
	}
	return mark + "the model works"
}

// serversState counts servers.
func (m *screen) serversState() string {
	if len(m.servers) == 0 {
		return ""
	}
	var ready, starting, failed int
	for i := range m.servers {
		switch m.servers[i].State {
		case host.StateReady:
			ready++
		case host.StateStarting:
			starting++
		case host.StateWaiting, host.StateGivenUp:
			failed++
		default:
		}
	}
	text := fmt.Sprintf("%d of %d servers ready", ready, len(m.servers))
	if starting > 0 {
		text += fmt.Sprintf(", %d starting", starting)
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d failed (%s)", failed, m.keys.Key(style.Servers))
	}
	return text
}

// labelsState says what the conversation has come to hold.
func (m *screen) labelsState() string {
	if len(m.log.labels) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(m.log.labels))
	return "holds " + host.EscapeLine(strings.Join(names, ", "))
}

// usageState says what the conversation has cost.
func (m *screen) usageState() string {
	u := m.log.usage
	if u.Input+u.Output == 0 {
		return ""
	}
	text := short(u.Input) + " in, " + short(u.Output) + " out"
	if u.Cost > 0 {
		text += fmt.Sprintf(", $%.4f", u.Cost)
	}
	return text
}

// short writes a number of tokens with at most four characters or so.
func short(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// modelState names the model.
func (m *screen) modelState() string {
	info := m.session.Model()
	if info.Offline {
		return "built-in planner"
	}
	return style.Fit(host.EscapeLine(info.Name), 30)
}
