package panel

import (
	"cmp"
	"math"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Grace is how long after New and Focus, and after a key that was dropped, keys are dropped: who
// types on meant them for what was on the screen before.
const Grace = 400 * time.Millisecond

// Options are what a Panel needs from its screen.
type Options struct {
	// Theme is how it looks; default style.NoColor.
	Theme *style.Theme
	// Keys are what keys do; default style.DefaultKeys.
	Keys *style.Keys
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Last are the arguments of the last approved call of the same tool of the same
	// server in this session, or nil.
	Last mcp.RawValue
	// Edit opens a text in the person's editor and returns an EditedMsg; nil where there is
	// none.
	Edit func(text string) tea.Cmd
	// Face is the host.Answer.Face of the answers.
	Face string
}

// An EditedMsg is a text that comes back from the person's editor.
type EditedMsg struct {
	Text string
	// Err says why there is no text.
	Err error
}

// An Outcome says what a message has led to. The zero Outcome: the panel goes on.
type Outcome struct {
	// Answer is what the person decided. The screen gives it to the session, and tells the
	// panel with Reject if it does not count. For an approved question about a page, the
	// screen then leads the person to Question.Page.
	Answer *host.Answer
	// Aside says that the person wants to do something else first. Nothing is decided.
	Aside bool
}

// A mode is what the middle of the panel shows and keys are for.
type mode uint8

// From modeChoose the person goes to the others and comes back.
const (
	modeChoose mode = iota
	modeOffers      // r: for how long, and for what
	modeReason      // n: a line for the model
	modeModels      // m
	modeParts       // e: the values that can be edited
	modeValue       // one of them
	modeForm        // y of a form
	modeReview      // what would be sent
)

// A stage is what an approval is about: each must have been shown to its end.
type stage uint8

const (
	stageAsked  stage = iota // what was asked
	stageEdited              // what the person made of it
	stageReview              // what was filled into a form
	stages
)

// A Panel shows one question and turns keys into its answer. Its methods are for one
// goroutine.
type Panel struct {
	question *host.Question
	opts     Options
	words    *ui.Wording
	forms    []*form // of the values in the lines of words; nil for other lines
	// ready is when keys are taken again.
	ready time.Time

	mode mode
	// focus is the button with the focus, or -1: at first no button is.
	focus int
	// cursor is the entry of the list of the mode, or -1.
	cursor int
	top    int // the first row of the middle that is shown
	follow bool
	page   int // how many rows of the middle were shown last
	length int // of the middle
	// message tells what a key has led to, escaped.
	message string

	// cut says that the question is not shown whole at first.
	cut       bool
	seen      [stages]bool // the end of what is agreed to was shown
	full      bool         // everything is shown
	small     bool         // there is no room to show anything
	flipped   bool         // values are shown as a form in full, else as JSON
	different bool         // the differences are shown

	edited  mcp.RawValue // what takes the place of what was shown, or nil
	editing bool         // the editor is open
	form    form         // of edited, or of what can be edited
	part    int          // the part of it that is edited, or -1
	model   string       // chosen for a sampling
	lasts   int          // the index in durations
	picked  []bool       // directories
	input   input
	fields  []fieldState
	values  map[string]mcp.RawValue // that would be sent

	cache   *body
	cacheOf cacheKey
	version int // of what the body shows
}

// A cacheKey says for what a body was built.
type cacheKey struct {
	mode             mode
	columns, version int
	headless         bool
}

// New makes a panel for a question. Keys are dropped until there was none for Grace.
func New(q *host.Question, o *Options) *Panel {
	p := &Panel{question: q, opts: *o, words: ui.NewWording(q), focus: -1, cursor: -1}
	if p.opts.Now == nil {
		p.opts.Now = time.Now
	}
	if p.opts.Theme == nil {
		p.opts.Theme = style.NoColor()
	}
	if p.opts.Keys == nil {
		p.opts.Keys = style.DefaultKeys()
	}
	p.forms = make([]*form, len(p.words.Lines))
	for i := range p.words.Lines {
		e := &p.words.Lines[i]
		if e.Value == nil {
			p.cut = p.cut || isCut(e, shortLimits)
			continue
		}
		f := newForm(e.Value)
		p.forms[i], p.cut = &f, p.cut || f.isCut(shortLimits)
	}
	p.picked = make([]bool, len(q.Roots))
	if p.words.Form != nil {
		for i := range p.words.Form.Fields {
			p.fields = append(p.fields, newField(&p.words.Form.Fields[i]))
		}
	}
	p.Focus()
	return p
}

// Question is the question that the panel shows.
func (p *Panel) Question() *host.Question { return p.question }

// Focus tells that the panel gets keys from now on: they are dropped until there was none for
// Grace.
func (p *Panel) Focus() { p.ready = p.opts.Now().Add(Grace) }

// Reject tells that the session did not take the last answer, and why. The question stays.
func (p *Panel) Reject(err error) {
	p.Focus()
	p.tell("That answer does not count: %s.", host.EscapeLine(err.Error()))
}

// Update takes a key, a paste, the mouse wheel or an EditedMsg. At most one of the fields
// of the Outcome is set.
func (p *Panel) Update(msg tea.Msg) (Outcome, tea.Cmd) {
	if msg, ok := msg.(EditedMsg); ok {
		p.takeEdited(msg)
		return Outcome{}, nil
	}
	if p.opts.Now().Before(p.ready) {
		if _, ok := msg.(tea.KeyPressMsg); ok {
			p.Focus()
		}
		return Outcome{}, nil
	}
	if p.small {
		k, ok := msg.(tea.KeyPressMsg)
		return Outcome{Aside: ok && p.opts.Keys.Is(keyName(k), style.Aside)}, nil
	}
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return p.key(msg)
	case tea.PasteMsg:
		p.paste(msg.Content)
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			p.scroll(-wheelRows)
		case tea.MouseWheelDown:
			p.scroll(wheelRows)
		default:
		}
	}
	return Outcome{}, nil
}

// wheelRows is how far one step of a mouse wheel scrolls.
const wheelRows = 3

// enter goes to a mode, at its beginning, with the focus on nothing.
func (p *Panel) enter(m mode) {
	p.mode, p.focus, p.cursor, p.top, p.message = m, -1, -1, 0, ""
	p.changed()
}

// changed tells that the body shows something else now.
func (p *Panel) changed() { p.version++ }

// decide makes the answer. What was edited and the model that was chosen go with an
// approval.
func (p *Panel) decide(a host.Answer) Outcome {
	a.Face = p.opts.Face
	if a.Action == host.Approve {
		a.Edited, a.Model = p.edited, p.model
	}
	return Outcome{Answer: &a}
}

// scroll moves the middle; drawing keeps it within its bounds.
func (p *Panel) scroll(rows int) {
	p.top = max(min(p.top+rows, p.length-p.page), 0)
	p.follow = false
}

// toEnd shows the end of all there is, also of what is cut at first.
func (p *Panel) toEnd() {
	if p.mode == modeChoose && p.stage() == stageAsked && p.cut && !p.full && !p.different {
		p.showFull()
	}
	p.top, p.follow, p.message = math.MaxInt32, false, ""
}

// stage is what an approval would be about now.
func (p *Panel) stage() stage {
	switch {
	case p.mode == modeReview:
		return stageReview
	case p.edited != nil:
		return stageEdited
	}
	return stageAsked
}

// noteSeen notes that the end of what an approval is about is shown.
func (p *Panel) noteSeen(b *body) {
	if p.top+p.page < cmp.Or(b.must, p.length) || p.different || p.mode != modeChoose && p.mode != modeReview {
		return
	}
	if s := p.stage(); s != stageAsked || p.full || !p.cut {
		p.seen[s] = true
	}
}
