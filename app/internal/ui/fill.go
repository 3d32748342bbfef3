package ui

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Words that can be typed at any field of a form. With one more slash in front they are
// values.
const (
	wordDecline = "/decline"
	wordCancel  = "/cancel"
	wordBack    = "/back"
	wordQuit    = "/quit"
)

// maxOptions is how many options of a field are listed.
const maxOptions = 100

// A formFilling is a form that is being filled in.
type formFilling struct {
	asking *asking
	form   *Form
	values map[string]mcp.RawValue
	at     int
	// review says that all fields have been asked for.
	review bool
}

// fill begins to fill in the form of the question.
func (a *asking) fill() {
	a.form = &formFilling{asking: a, form: a.words.Form, values: make(map[string]mcp.RawValue)}
	a.line.say("Type %s to say no, %s to close the question, %s to go back, at any field.", wordDecline, wordCancel, wordBack)
	a.form.next()
}

// next asks for the field that is next, or for a review.
func (f *formFilling) next() {
	if f.review || f.at >= len(f.form.Fields) {
		f.review = true
		f.show()
		return
	}
	field := &f.form.Fields[f.at]
	l := f.asking.line
	lines := []Entry{{Kind: EntryClaim, Label: fmt.Sprintf("field %d of %d", f.at+1, len(f.form.Fields)), Text: field.Label}}
	if field.Help != "" {
		lines = append(lines, Entry{Kind: EntryClaim, Label: "what to fill in", Text: field.Help})
	}
	for i, o := range field.Options[:min(len(field.Options), maxOptions)] {
		lines = append(lines, Entry{Kind: EntryFact, Label: strconv.Itoa(i + 1), Text: o.Title})
	}
	if more := len(field.Options) - maxOptions; more > 0 {
		lines = append(lines, said("%d more options are not listed; they have numbers, too.", more))
	}
	if field.Secret {
		lines = append(lines, Entry{Kind: EntryWarning, Text: "this looks like a secret; no server should ask for one here"})
	}
	l.print(lines, usualLimits)
	hint := field.Hint()
	if hint != "" {
		hint = " [" + hint + "]"
	}
	f.asking.step = &step{prompt: "Your value for " + name(field.Name) + hint + ":", take: f.take}
}

// left reports whether the form was left with a word.
func (f *formFilling) left(ctx context.Context, word string) bool {
	switch word {
	case wordDecline:
		f.asking.answer(ctx, host.Answer{Action: host.Refuse})
	case wordCancel:
		f.asking.answer(ctx, host.Answer{Action: host.Dismiss})
	default:
		return false
	}
	return true
}

// take takes the value of a field.
func (f *formFilling) take(ctx context.Context, text string) {
	word := strings.TrimSpace(text)
	switch word {
	case wordDecline, wordCancel:
		f.left(ctx, word)
		return
	case wordBack:
		if f.at == 0 {
			f.asking.choose()
			return
		}
		f.at--
		f.next()
		return
	case "/" + wordDecline, "/" + wordCancel, "/" + wordBack, "/" + wordQuit:
		text = word[1:]
	}
	field := &f.form.Fields[f.at]
	value, err := field.Parse(text)
	if err != nil {
		f.asking.line.say("%s.", capital(err.Error()))
		return
	}
	delete(f.values, field.Name)
	if value != nil {
		f.values[field.Name] = value
	}
	f.at++
	f.next()
}

// capital begins a sentence.
func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// show shows the answers once more before they are sent.
//
// spec 2026-07-28, client/elicitation: clients SHOULD "allow users to review and modify
// their responses before sending".
func (f *formFilling) show() {
	var b strings.Builder
	for i := range f.form.Fields {
		field := &f.form.Fields[i]
		value, given := f.values[field.Name]
		shown := "left out"
		if given {
			shown = host.Indent(value)
		}
		fmt.Fprintf(&b, "%d. %s: %s\n", i+1, lineOf(field.Name), shown)
	}
	l := f.asking.line
	l.print([]Entry{{Kind: EntryBlock, Label: "this would be sent to the server", Text: strings.TrimSuffix(b.String(), "\n")}}, limits{})
	f.asking.step = &step{prompt: "Send it? (y, n to decline, c to cancel, or the number of a field to change it):", take: f.reviewed}
}

// reviewed takes what the person says to the review.
func (f *formFilling) reviewed(ctx context.Context, text string) {
	a := f.asking
	word := strings.ToLower(strings.TrimSpace(text))
	switch word {
	case "y", "yes":
		if err := f.form.Check(f.values); err != nil {
			a.line.say("%s.", host.EscapeLine(err.Error()))
			return
		}
		a.answer(ctx, host.Answer{Action: host.Approve, Values: f.values})
		return
	case "n", "no":
		word = wordDecline
	case "c", "cancel":
		word = wordCancel
	case wordBack:
		word = strconv.Itoa(len(f.form.Fields))
	}
	if f.left(ctx, word) {
		return
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > len(f.form.Fields) {
		a.line.say("Please answer y, n, c or the number of a field.")
		return
	}
	f.at, f.review = n-1, false
	f.next()
	again := a.step.take
	a.step.take = func(ctx context.Context, text string) { // only this field
		f.review = true
		again(ctx, text)
	}
}
