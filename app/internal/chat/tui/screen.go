package tui

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// usualWidth and usualHeight are those of a terminal that has not told yet.
const (
	usualWidth  = 80
	usualHeight = 24
)

// A screen is the state of a Screen: it takes messages one after another and draws what
// is visible.
type screen struct {
	opts  *Options
	theme *style.Theme
	keys  *style.Keys

	host     ui.Host
	session  ui.Session
	commands *ui.Commands
	send     func(tea.Msg)          // to this screen, from another goroutine
	base     func() context.Context // of the run
	start    func(f func())         // runs f in a goroutine that is waited for
	lineBusy func() bool            // the terminal has not taken yet what was drawn; freeMsg follows
	tick     func(after time.Duration, msg tea.Msg) tea.Cmd
	unwatch  func()
	watches  int // sessions that were watched

	width, height int
	size          *tea.WindowSizeMsg // came while the terminal was busy
	shown         tea.View           // the last one
	painter       *painter
	conv          *conversation
	log           *log
	editor        editor
	completion    completion
	overlay       overlay // what covers the conversation, or nil
	search        *search
	pasted        *pastedFile // that is offered as an attachment, or nil
	offerShown    bool        // the last frame had room to say so

	replay    int64           // records up to it are of before
	open      map[string]bool // questions of before that wait
	questions []*host.Question
	panel     *panel.Panel
	inPanel   bool   // keys are for the panel
	answering string // the question whose answer is being given
	held      heldKey
	outside   *outsideMsg // the screen is left for it
	resume    tea.Cmd     // of what happened while it was left
	away      atomic.Bool // another program has the terminal
	returned  time.Time   // when it gave it back last
	title     waitingTitle

	running bool
	task    *task
	servers []host.ServerStatus
	warned  bool // another Ctrl-C quits
	spins   int
	spinner bool // a tick of the spinner is under way
	drafted string
	err     error
	cmds    []tea.Cmd // of the message that is being handled
}

// A task is under way beside the screen: it waits for the host or a server.
type task struct {
	what   string
	cancel context.CancelFunc
}

// Messages of the screen to itself.
type (
	interruptMsg struct{ at time.Time }
	goneMsg      struct{ err error } // the terminal is gone
	freeMsg      struct{}            // the terminal has taken everything
	suspendedMsg struct{ err error } // the program goes on
	taskMsg      struct{ after func() }
	secondMsg    struct{} // each second: the time of calls goes on, and servers change
	spinMsg      struct{}
	draftMsg     struct {
		text string
		err  error
	}
)

func newScreen(opts *Options, h ui.Host) *screen {
	m := &screen{
		opts: opts, theme: opts.Theme, keys: opts.Keys, host: h, width: usualWidth, height: usualHeight,
		unwatch: func() {}, lineBusy: func() bool { return false }, completion: newCompletion(),
	}
	if m.theme == nil {
		m.theme = style.Dark()
		if noColor(opts.Environ) {
			m.theme = style.NoColor()
		}
	}
	m.tick = func(after time.Duration, msg tea.Msg) tea.Cmd {
		return tea.Tick(after, func(time.Time) tea.Msg { return msg })
	}
	m.painter = &painter{m.theme}
	m.editor = newEditor(m.theme, m.keys)
	m.commands = &ui.Commands{
		Host: h, Face: opts.Face, Now: opts.Now, SetTitle: opts.SetTitle, Model: opts.Model,
		Sessions: opts.Sessions, Logs: opts.Logs, Image: opts.Image, Opened: m.opened,
		Print: func(lines []ui.Entry, _, _ int) {
			m.conv.add(&told{lines}, false)
			m.conv.follow = true
			m.tellOverlay(entriesText(lines))
		},
		Start: m.startTask, Running: m.busy, Asking: func() bool { return m.inPanel },
		Cancel: m.cancel, Send: m.sendInput, Quit: m.quit,
		Forked: func(_ context.Context, s ui.Session, at int64) {
			m.attach(s, at)
			m.say("What follows is the fork; what was before is above.")
		},
		Missing: m.missingArgument,
	}
	return m
}

// attach shows a session, from the record after since on.
func (m *screen) attach(s ui.Session, since int64) {
	m.unwatch()
	snap := s.Snapshot()
	m.session, m.commands.Session = s, s
	if m.conv == nil {
		m.conv = newConversation()
	}
	m.log = newLog(m.conv, m.opts.Face, m.opts.Now)
	m.running, m.questions, m.panel, m.answering = snap.Busy, nil, nil, ""
	m.leavePanel()
	m.open = make(map[string]bool)
	for _, q := range snap.Questions {
		m.open[q.ID] = true
	}
	m.replay = since
	for i := range snap.Records {
		r := &snap.Records[i]
		m.replay = max(m.replay, r.N)
		if r.N <= since {
			m.log.past(r)
			if q, ok := r.Body.(*host.QuestionRecord); ok && m.open[q.ID] {
				m.questions = append(m.questions, &q.Question)
			}
		}
	}
	m.editor.remember(m.log.said)
	if m.opts.Greeting != "" && m.watches == 0 {
		m.say(m.opts.Greeting)
	}
	if since > 0 && m.watches == 0 {
		m.say(ui.Grouped(since) + " earlier records are not shown here; /history shows all.")
	}
	m.watches++
	number := m.watches
	ctx, cancel := context.WithCancel(m.base())
	m.unwatch = cancel // what it has sent is known by its number
	m.start(func() { watch(ctx, s, since, number, m.send) })
}

// Init asks for what the terminal can tell. It is called again after another program had the terminal.
func (m *screen) Init() tea.Cmd {
	cmds := []tea.Cmd{m.tick(time.Second, secondMsg{}), m.resume}
	m.resume = nil
	if m.opts.Theme == nil && m.theme.Name == "dark" {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

// Update takes a message.
func (m *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if d, ok := msg.(*delivery); ok {
		close(d.taken)
		msg = d.msg
	}
	m.cmds = nil
	m.take(msg)
	if m.busy() && !m.spinner && !m.opts.ReducedMotion {
		m.spinner = true
		m.do(m.tick(100*time.Millisecond, spinMsg{}))
	}
	switch len(m.cmds) {
	case 0:
		return m, nil
	case 1:
		return m, m.cmds[0]
	}
	return m, tea.Batch(m.cmds...)
}

// do has a command carried out after the message.
func (m *screen) do(cmd tea.Cmd) {
	if cmd != nil {
		m.cmds = append(m.cmds, cmd)
	}
}

// take takes a message.
func (m *screen) take(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		if m.opts.Theme == nil && m.theme.Name == "dark" && !msg.IsDark() {
			m.setTheme(style.Light())
		}
	case tea.KeyPressMsg:
		if m.outside == nil { // else they are the editor's
			m.key(msg)
		}
	case tea.PasteMsg:
		m.paste(msg)
	case recordsMsg:
		m.records(msg)
	case taskMsg:
		m.task = nil
		msg.after()
		m.refresh()
	case listedMsg:
		msg.set()
		m.complete()
	case answeredMsg:
		m.answered(msg)
	case panel.EditedMsg:
		if m.panel != nil {
			m.toPanel(msg)
		}
	case draftMsg:
		m.edited(msg)
	case noteMsg:
		m.note(string(msg))
	case interruptMsg:
		if msg.at.Sub(m.returned) > editorEnd {
			m.interrupt()
		}
	case secondMsg:
		m.log.ticked()
		m.servers = m.host.Status()
		m.do(m.tick(time.Second, secondMsg{}))
	case spinMsg:
		m.spinner = false
		m.spins++
	default:
		m.other(msg)
	}
}

// resize takes the size of the terminal.
func (m *screen) resize(width, height int) {
	m.width, m.height = max(width, 1), max(height, 1)
	m.editor.resize(m.width, m.height)
}

// filter keeps the size of the terminal back while it is busy: each would have a frame drawn.
func (m *screen) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok && m.lineBusy() {
		m.size = &size
		return nil
	}
	return msg
}

// freed goes on after the terminal was busy. What is visible is drawn after each message.
func (m *screen) freed() {
	if size := m.size; size != nil {
		m.size = nil
		m.do(func() tea.Msg { return *size })
	}
}

// other takes a message about the terminal, or for a part of the screen.
func (m *screen) other(msg tea.Msg) {
	switch msg := msg.(type) {
	case goneMsg:
		m.err = msg.err
		m.quit()
	case outsideMsg:
		if m.outside == nil {
			m.outside = &msg
			m.quit()
		}
	case suspendedMsg:
		if msg.err != nil {
			m.complain("The program goes on: " + host.EscapeLine(msg.err.Error()) + ".")
		}
	case freeMsg:
		m.freed()
	case tea.MouseWheelMsg:
		m.wheel(msg)
	case tea.MouseMsg: // a click decides nothing
	case pastedMsg:
		m.pasted = msg.file
	case overlayMsg:
		if m.overlay == msg.of {
			msg.set()
		}
	default:
		m.do(m.editor.update(msg))
	}
}

// wheelLines is how far one step of a mouse wheel scrolls.
const wheelLines = 3

// wheel scrolls what is visible.
func (m *screen) wheel(msg tea.MouseWheelMsg) {
	by := 0
	switch msg.Button {
	case tea.MouseWheelUp:
		by = -wheelLines
	case tea.MouseWheelDown:
		by = wheelLines
	default:
		return
	}
	switch {
	case m.overlay != nil:
		m.overlay.scroll(by)
	case m.inPanel:
		m.toPanel(msg)
	default:
		m.conv.scroll(m.painter, by)
	}
}

// setTheme changes the colours of everything.
func (m *screen) setTheme(theme *style.Theme) {
	m.theme = theme
	m.painter.theme = theme
	m.editor.setTheme(theme)
	m.conv.allChanged()
}

// records shows records.
func (m *screen) records(msg recordsMsg) {
	if msg.watch != m.watches {
		return // of the session before
	}
	said := len(m.log.said)
	for i := range msg.records {
		r := &msg.records[i]
		switch b := r.Body.(type) {
		case *host.UserRecord, *host.TurnRecord:
			m.running = true
		case *host.RunEndRecord:
			m.running = false
		case *host.QuestionRecord:
			if r.N > m.replay || m.open[b.ID] {
				m.questions = append(m.questions, &b.Question)
			}
		case *host.AnswerRecord:
			m.settled(b.Question)
		}
		m.log.add(r)
	}
	if len(m.log.said) != said && m.editor.at == len(m.editor.history) {
		m.editor.remember(m.log.said)
	}
	m.servers = m.host.Status()
	if msg.ended && !m.commands.Forking() {
		m.err = msg.err
		m.quit()
	}
}

// note shows lines of the program.
func (m *screen) note(text string) {
	for line := range strings.SplitSeq(host.Escape(text), "\n") {
		if strings.TrimSpace(line) != "" {
			m.conv.add(&remark{text: line}, false)
		}
	}
}

// say shows a sentence of the program. Names in it are escaped by the caller.
func (m *screen) say(text string) { m.conv.add(&remark{text: text}, false) }

// complain shows that something did not work.
func (m *screen) complain(text string) {
	m.conv.add(&remark{text: text, bad: true}, false)
	m.tellOverlay(text)
}

// busy reports whether something is under way.
func (m *screen) busy() bool { return m.running || m.task != nil }

// cancel cancels what is under way.
func (m *screen) cancel() {
	if m.task != nil {
		m.task.cancel()
	}
	m.session.Cancel()
}

// quit ends the screen.
func (m *screen) quit() { m.do(tea.Quit) }

// interrupt cancels what is under way, or quits.
func (m *screen) interrupt() {
	switch {
	case m.warned:
		m.quit()
	case m.busy():
		m.warned = true
		m.say("Cancelling. " + m.keys.Key(style.Quit) + " once more quits.")
		m.cancel()
	default:
		m.warned = true
		m.say("Nothing is under way. " + m.keys.Key(style.Quit) + " once more quits; the session is kept.")
	}
}

// run runs f beside the screen, which takes what f returns as a message.
func (m *screen) run(f func(ctx context.Context) any) {
	ctx, send := m.base(), m.send
	m.start(func() { send(f(ctx)) })
}

// startTask begins a task: f runs beside the screen, and what it returns in it. Only one is
// under way at a time.
func (m *screen) startTask(ctx context.Context, what string, f func(ctx context.Context) (after func())) {
	if m.task != nil {
		m.complain("This is still under way: " + m.task.what + ". Wait for it, or cancel it with " + m.keys.Key(style.Quit) + ".")
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	m.task = &task{what, cancel}
	ctx = m.session.Context(ctx)
	send := m.send
	m.start(func() {
		defer cancel()
		send(taskMsg{f(ctx)})
	})
}

// sendInput puts something into the conversation.
func (m *screen) sendInput(ctx context.Context, in host.Input) {
	session := m.session
	m.conv.follow = true
	m.startTask(ctx, "sending", func(ctx context.Context) func() {
		err := session.Send(ctx, in)
		return func() {
			if err == nil {
				m.commands.Sent(in)
				return
			}
			m.complain("It was not sent: " + host.EscapeLine(err.Error()) + ".")
			switch { // nothing that was typed is lost
			case m.editor.text() == "":
				m.editor.set(in.Text)
			case in.Text != "":
				m.log.said = append(m.log.said, in.Text)
				m.editor.remember(m.log.said)
				m.say("With " + m.keys.Key(style.Older) + " it comes back.")
			}
		}
	})
}

// missingArgument asks for an argument of a prompt: the person goes on with the command.
func (m *screen) missingArgument(_ context.Context, server string, p *mcp.Prompt, arguments map[string]string) {
	a := ui.MissingArgument(p, arguments)
	m.commands.Print([]ui.Entry{
		{Kind: ui.EntrySaid, Text: "The prompt needs a value for " + host.EscapeLine(a.Name) + "; write it behind the equals sign. What the server suggests is offered while you type."},
		{Kind: ui.EntryClaim, Label: "argument " + host.EscapeLine(a.Name), Text: host.EscapeLine(firstOf(a.Description, a.Title))},
	}, 0, 0)
	if m.editor.text() == "" {
		m.editor.set(strings.TrimRight(m.drafted, " ") + " " + a.Name + "=")
		m.complete()
	}
}
