package ui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// An asking is a question that the next lines answer.
type asking struct {
	line     *Line
	question *host.Question
	words    *Wording
	step     *step
	edited   mcp.RawValue // what the person wrote in the place of what was shown
	model    string       // chosen for a sampling
	all      bool         // everything was shown
	form     *formFilling
}

// ask shows a question. The next line that is begun after that answers it.
func (l *Line) ask(q *host.Question) {
	a := &asking{line: l, question: q, words: NewWording(q)}
	l.asking = a
	l.raw("\n" + layout([]Entry{said("%s", a.words.Title)}, l.width(), limits{}))
	l.print(a.words.Lines, usualLimits)
	a.choose()
	l.input.shown()
}

// long reports whether not all of the question is shown.
func (a *asking) long() bool {
	return !a.all && slices.ContainsFunc(a.words.Lines, func(e Entry) bool {
		return e.Kind == EntryBlock && len(e.Text) > maxShown || e.Kind == EntryClaim && len(e.Text) > maxClaim
	})
}

// Keys of choices that are the terminal's own.
const (
	keyAll  = "s" // show all of a long question
	keyUndo = "u" // forget what was edited
)

// choices are what can be answered now.
func (a *asking) choices() []Choice {
	list := slices.Clone(a.words.Choices)
	if a.edited != nil {
		list = slices.DeleteFunc(list, func(c Choice) bool { return c.Answer.Offer > 0 })
		i := slices.IndexFunc(list, func(c Choice) bool { return c.Needs == NeedEdit })
		list[i].Label = "edit on"
		list = slices.Insert(list, i+1, Choice{Key: keyUndo, Label: "undo: back to what was asked"})
		list[0].Label = "yes, as you edited it"
	}
	if a.long() && a.edited == nil {
		// Nobody agrees to what was not shown.
		list = slices.DeleteFunc(list, func(c Choice) bool { return c.Answer.Action == host.Approve && c.Needs != NeedEdit })
		list = append(list, Choice{Key: keyAll, Label: "show all of it, to be able to agree"})
	}
	return list
}

// choose shows the choices, and takes one.
func (a *asking) choose() {
	var b strings.Builder
	var keys []string
	width := columnsOf(a.line.width())
	timed := ""
	for _, c := range a.choices() {
		keys = append(keys, c.Key)
		b.WriteString(wrapLine("  "+c.Key+": "+c.Label, width))
		if c.Timed && timed == "" {
			timed = c.Key
		}
	}
	if timed != "" {
		b.WriteString(wrapLine(fmt.Sprintf("  With h after it, as in %sh, what you agree to ends after an hour.", timed), width))
	}
	a.line.raw(b.String())
	a.again(keys)
}

// again asks for one of the choices.
func (a *asking) again(keys []string) {
	a.step = &step{prompt: "Your answer (" + strings.Join(keys, ", ") + "):", take: a.chosen, commands: true, byHand: true}
}

// longKeys are words for keys.
var longKeys = map[string]string{
	"yes": "y", "no": "n", "edit": "e", "open": "o", "one": "o", "cancel": "c", "close": "c", "decline": "n", "model": "m",
	"pick": "p", "always": "a", "undo": keyUndo, "show": keyAll,
}

// find finds a choice by what was typed, and says whether it is for an hour, and what
// was typed after it.
func (a *asking) find(text string) (c Choice, hour bool, rest string, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	key := strings.ToLower(strings.TrimRight(first, ",.:;"))
	if long := longKeys[key]; long != "" {
		key = long
	}
	list := a.choices()
	by := func(key string) int { return slices.IndexFunc(list, func(c Choice) bool { return c.Key == key }) }
	i := by(key)
	if i < 0 && strings.HasSuffix(key, "h") {
		i, hour = by(strings.TrimSuffix(key, "h")), true
	}
	if i < 0 {
		return Choice{}, false, "", false
	}
	c = list[i]
	if word, after, _ := strings.Cut(rest, " "); c.Timed && !hour && strings.EqualFold(word, "h") {
		hour, rest = true, strings.TrimSpace(after)
	}
	return c, hour, rest, !hour || c.Timed
}

// minutesOfHour is how long an agreement for an hour holds.
const minutesOfHour = 60

// chosen takes a choice.
func (a *asking) chosen(ctx context.Context, text string) {
	c, hour, rest, ok := a.find(text)
	if !ok && a.question.Kind == host.QuestionRoots {
		a.roots(ctx, host.Answer{Action: host.Approve}, text)
		return
	}
	if !ok || rest != "" && !takesRest(c.Needs) {
		a.line.say("That is none of the choices. Please begin with one of their letters or numbers.")
		return
	}
	answer := c.Answer
	if hour {
		answer.Minutes = minutesOfHour
	}
	switch c.Key {
	case keyAll:
		a.all = true
		a.line.print(a.words.Lines, limits{})
		a.choose()
		return
	case keyUndo:
		a.edited = nil
		a.line.say("What was asked counts again.")
		a.choose()
		return
	}
	switch c.Needs {
	case NeedNothing:
		a.answer(ctx, answer)
	case NeedReason:
		answer.Reason = rest
		a.answer(ctx, answer)
	case NeedEdit:
		a.edit(ctx, rest)
	case NeedModel:
		a.chooseModel(rest)
	case NeedValues:
		a.fill()
	case NeedRoots:
		a.roots(ctx, answer, rest)
	case NeedVisit:
		a.visit(ctx, answer)
	}
}

// takesRest reports whether a choice is followed by more on its line.
func takesRest(n Need) bool {
	switch n {
	case NeedReason, NeedEdit, NeedModel, NeedRoots:
		return true
	case NeedNothing, NeedValues, NeedVisit:
	}
	return false
}

// answer answers the question, and reports whether that counts. An answer that does not
// fit is told, and the question stays.
func (a *asking) answer(ctx context.Context, answer host.Answer) bool {
	answer.Face = a.line.opts.Face
	if answer.Action == host.Approve {
		answer.Edited, answer.Model = a.edited, a.model
	}
	err := a.line.session.Answer(ctx, a.question.ID, answer)
	switch {
	case err == nil:
		a.line.asking = nil
		a.line.catchUp()
		return true
	case errors.Is(err, host.ErrSettled), errors.Is(err, host.ErrNoQuestion):
		a.line.asking = nil // its record says by what
	default:
		a.line.say("That answer does not count: %s.", host.EscapeLine(err.Error()))
	}
	return false
}

// chooseModel takes the model for a sampling.
func (a *asking) chooseModel(text string) {
	models := a.question.Models
	if text == "" {
		lines := make([]Entry, len(models))
		for i, m := range models {
			lines[i] = Entry{Kind: EntryFact, Label: "model " + strconv.Itoa(i+1), Text: host.EscapeLine(m)}
		}
		a.line.print(lines, limits{})
		a.step = &step{prompt: "Which model (its number or name)?", take: func(_ context.Context, text string) { a.chooseModel(strings.TrimSpace(text)) }}
		return
	}
	i := slices.Index(models, text)
	if n, err := strconv.Atoi(text); i < 0 && err == nil {
		i = n - 1
	}
	if i < 0 || i >= len(models) {
		a.line.say("There is no such model. They have the numbers 1 to %d.", len(models))
		a.chooseModel("")
		return
	}
	a.model = models[i]
	a.line.say("The model is %s now.", host.EscapeLine(a.model))
	a.choose()
}

// roots takes the directories that a server is told of.
func (a *asking) roots(ctx context.Context, answer host.Answer, text string) {
	if strings.TrimSpace(text) == "" {
		a.step = &step{
			prompt: "Which directories (numbers with blanks between, or all)?",
			take: func(ctx context.Context, text string) {
				if strings.TrimSpace(text) == "" {
					a.choose()
					return
				}
				a.roots(ctx, answer, text)
			},
		}
		return
	}
	answer.Roots = nil
	for word := range strings.FieldsSeq(strings.ReplaceAll(text, ",", " ")) {
		if strings.EqualFold(word, "all") {
			for _, r := range a.question.Roots {
				answer.Roots = append(answer.Roots, r.URI)
			}
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(a.question.Roots) {
			a.line.say("There is no directory %s. They have the numbers 1 to %d.", name(word), len(a.question.Roots))
			a.choose()
			return
		}
		answer.Roots = append(answer.Roots, a.question.Roots[n-1].URI)
	}
	slices.Sort(answer.Roots)
	answer.Roots = slices.Compact(answer.Roots)
	a.answer(ctx, answer)
}

// visit agrees to a page and leads the person there.
//
// spec 2026-07-28, client/elicitation: clients "MUST NOT automatically pre-fetch the URL",
// "MUST NOT open the URL without explicit consent".
func (a *asking) visit(ctx context.Context, answer host.Answer) {
	page := a.question.Page
	if !a.answer(ctx, answer) || page == nil {
		return
	}
	l := a.line
	l.print([]Entry{{Kind: EntryBlock, Label: "Visit this page", Text: host.EscapeLine(page.URL)}}, limits{})
	if l.opts.Open == nil {
		return
	}
	if err := l.opts.Open(ctx, page.URL); err != nil {
		l.say("No browser was opened: %s. Copy the address into yours.", claim(err.Error()))
	}
}
