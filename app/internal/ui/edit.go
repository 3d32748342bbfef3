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
	"github.com/parley-mcp/parley/strictjson"
)

// shownValue is what a question shows and an edit changes, as JSON.
func (a *asking) shownValue() (mcp.RawValue, error) {
	if a.edited != nil {
		return a.edited, nil
	}
	return Editable(a.question)
}

// Editable is what a question shows and host.Answer.Edited replaces, as JSON: the arguments of
// a call, the params of a sampling, or its result.
func Editable(q *host.Question) (mcp.RawValue, error) {
	switch {
	case q.Sample != nil:
		return encode(q.Sample)
	case q.Sampled != nil:
		return encode(q.Sampled)
	case q.Arguments == nil:
		return mcp.RawValue("{}"), nil
	}
	return q.Arguments, nil
}

// edit changes what was shown; an empty text asks for how.
func (a *asking) edit(ctx context.Context, text string) {
	l := a.line
	if strings.TrimSpace(text) != "" {
		a.editWith(ctx, text)
		return
	}
	if a.question.Kind != host.QuestionCall {
		if raw, err := a.shownValue(); err == nil {
			l.print([]Entry{{Kind: EntryBlock, Label: "as JSON", Text: host.Indent(raw)}}, usualLimits)
		}
	}
	how := "Type NAME=VALUE to change one part, /A/B=VALUE for a part of a part, or a whole JSON value on one line."
	if l.opts.Edit != nil {
		how += " An empty line opens your editor."
	} else {
		how += " An empty line goes back."
	}
	l.say("%s", how)
	a.step = &step{prompt: "Your change:", take: a.editWith}
}

// editWith takes a change.
func (a *asking) editWith(ctx context.Context, text string) {
	old, err := a.shownValue()
	if err != nil {
		a.line.say("It cannot be edited: %s.", host.EscapeLine(err.Error()))
		a.choose()
		return
	}
	if strings.TrimSpace(text) == "" {
		if a.line.opts.Edit == nil {
			a.choose()
			return
		}
		text, err = a.line.opts.Edit(ctx, indentPlain(old))
		if err != nil {
			a.line.say("The editor did not work: %s.", claim(err.Error()))
			a.choose()
			return
		}
		a.replace(old, mcp.RawValue(strings.TrimSpace(text)), strictjson.Valid([]byte(text)))
		return
	}
	edited, err := Edit(old, text)
	a.replace(old, edited, err)
}

// indentPlain is JSON over lines, for an editor: nothing is shortened or escaped but
// what is an escape in JSON too.
func indentPlain(raw mcp.RawValue) string { return host.Indent(raw) + "\n" }

// replace takes an edited value, shows it and what differs.
func (a *asking) replace(old, edited mcp.RawValue, err error) {
	l := a.line
	if err != nil {
		l.say("Nothing was changed: %s.", host.EscapeLine(err.Error()))
		return
	}
	differences := differenceEntries(Differences(old, edited))
	if len(differences) == 0 {
		l.say("That changes nothing.")
		a.choose()
		return
	}
	a.edited = slices.Clone(edited)
	l.print(differences, usualLimits)
	// Whole, however long: it is what would be sent.
	l.print([]Entry{{Kind: EntryBlock, Label: "as you edited it", Text: host.Indent(a.edited)}}, limits{})
	for _, s := range host.ArgumentSecrets(a.edited) {
		l.print([]Entry{{Kind: EntryWarning, Text: fmt.Sprintf("%s may hold a secret: %s", claim(s.Pointer), host.EscapeLine(s.Why))}}, limits{})
	}
	a.choose()
}

// A Difference is how one part of a JSON value differs from what it was.
type Difference struct {
	// Pointer is the JSON pointer of the part, not escaped; empty is the whole value.
	Pointer string
	// Old and New are the part as it was and as it is; nil where there is none.
	Old, New mcp.RawValue
}

// Differences lists how two JSON values differ, by the members of objects. Equal values have
// none.
func Differences(old, edited mcp.RawValue) []Difference { return differ("", old, edited, nil) }

// differ adds the differences of a part.
func differ(pointer string, old, edited mcp.RawValue, list []Difference) []Difference {
	if old != nil && edited != nil && strictjson.Equal(old, edited) {
		return list
	}
	before, errBefore := strictjson.ParseObject(old)
	after, errAfter := strictjson.ParseObject(edited)
	if errBefore != nil || errAfter != nil || old == nil || edited == nil {
		return append(list, Difference{pointer, old, edited})
	}
	for key, value := range before.All() {
		now, _ := after.Member(key)
		list = differ(pointer+"/"+segmentEscaper.Replace(key), value, now, list)
	}
	for key, value := range after.All() {
		if _, there := before.Member(key); !there {
			list = differ(pointer+"/"+segmentEscaper.Replace(key), nil, value, list)
		}
	}
	return list
}

// differenceEntries words differences.
func differenceEntries(list []Difference) []Entry {
	var entries []Entry
	for _, d := range list {
		place := host.EscapeLine(d.Pointer)
		if place == "" {
			place = "the value"
		}
		switch {
		case d.Old == nil:
			entries = append(entries, Entry{Kind: EntryBlock, Label: place + " is new", Text: host.Indent(d.New)})
		case d.New == nil:
			entries = append(entries, Entry{Kind: EntryBlock, Label: place + " is gone; it was", Text: host.Indent(d.Old)})
		default:
			entries = append(entries,
				Entry{Kind: EntryBlock, Label: place + " was", Text: host.Indent(d.Old)},
				Entry{Kind: EntryBlock, Label: place + " is now", Text: host.Indent(d.New)})
		}
	}
	return entries
}

var (
	segmentEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	segmentUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// errEdit says how to edit.
var errEdit = errors.New(`write a JSON value, or NAME=VALUE, or /A/B=VALUE`)

// Edit applies what a person typed to a JSON value: a whole JSON object takes its place;
// "name=value" sets a member; with a JSON pointer in the place of the name (/a/b, /list/0,
// /list/- to append), that part. The value is a text as it is written where a text was
// before; elsewhere JSON, or a text if it is none. What is not changed stays byte for byte.
func Edit(raw mcp.RawValue, text string) (mcp.RawValue, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		if err := strictjson.Valid([]byte(text)); err != nil {
			return nil, fmt.Errorf("reading the value: %w; %w", err, errEdit)
		}
		return mcp.RawValue(text), nil
	}
	place, value, ok := strings.Cut(text, "=")
	place = strings.TrimSpace(place)
	if !ok || place == "" {
		return nil, errEdit
	}
	if !strings.HasPrefix(place, "/") {
		return set(raw, []string{place}, strings.TrimSpace(value))
	}
	return EditAt(raw, place, value)
}

// EditAt is [Edit] of the part at a JSON pointer that is not empty.
func EditAt(raw mcp.RawValue, pointer, value string) (mcp.RawValue, error) {
	path := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range path {
		path[i] = segmentUnescaper.Replace(path[i])
	}
	if len(path) > maxPath {
		return nil, fmt.Errorf("%s is deeper than %d levels; write the whole value", name(pointer), maxPath)
	}
	return set(raw, path, strings.TrimSpace(value))
}

// maxPath bounds the path of an edit.
const maxPath = 32

// set sets the part of a value at a path.
func set(raw mcp.RawValue, path []string, text string) (mcp.RawValue, error) {
	if len(path) == 0 {
		return typedValue(raw, text)
	}
	if len(raw) > 0 && raw[0] == '[' {
		return setItem(raw, path, text)
	}
	if raw == nil {
		raw = mcp.RawValue("{}")
	}
	object, err := strictjson.ParseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("%s is part of no object; %w", name(path[0]), errEdit)
	}
	old, there := object.Member(path[0])
	value, err := set(old, path[1:], text)
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	add := func(key string, v mcp.RawValue) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		encoded, err := encode(key)
		out = append(append(append(out, encoded...), ':'), v...)
		return err
	}
	for key, v := range object.All() {
		if key == path[0] {
			v = value
		}
		err = errors.Join(err, add(key, v))
	}
	if !there {
		err = errors.Join(err, add(path[0], value))
	}
	return append(out, '}'), err
}

// setItem sets an item of an array, or appends one.
func setItem(raw mcp.RawValue, path []string, text string) (mcp.RawValue, error) {
	var items []mcp.RawValue
	if err := strictjson.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("reading the list: %w", err)
	}
	i, err := strconv.Atoi(path[0])
	if path[0] == "-" {
		i, err = len(items), nil
		items = append(items, nil)
	}
	if err != nil || i < 0 || i >= len(items) {
		return nil, fmt.Errorf("the list has no item %s; they have the numbers 0 to %d, and - appends one", name(path[0]), len(items)-1)
	}
	if items[i], err = set(items[i], path[1:], text); err != nil {
		return nil, err
	}
	return encode(items)
}

// typedValue makes JSON of what a person typed in the place of a value.
func typedValue(old mcp.RawValue, text string) (mcp.RawValue, error) {
	quoted := strings.HasPrefix(text, `"`)
	wasText := len(old) > 0 && old[0] == '"'
	if (!wasText || quoted) && strictjson.Valid([]byte(text)) == nil {
		return mcp.RawValue(text), nil
	}
	return encode(text)
}
