package style

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Group is where keys have their meaning. The keys of a group differ from each other
// and from those of [GroupAlways].
type Group string

// The groups.
const (
	// GroupAlways are keys that have their meaning everywhere.
	GroupAlways Group = "always"
	// GroupChat are keys while a message is written.
	GroupChat Group = "chat"
	// GroupPanel are keys in the panel of a question.
	GroupPanel Group = "panel"
	// GroupView are keys in lists and views.
	GroupView Group = "view"
)

// An Action is something that keys do.
type Action struct {
	// Name is what the configuration calls it.
	Name  string
	Group Group
	// Keys are names of keys: "enter", "alt+enter", "ctrl+k", "y". They may be none.
	Keys []string
	// Help says in a few words what it does.
	Help string
}

// Names of actions.
const (
	Quit      = "quit"
	Help      = "help"
	Palette   = "palette"
	Redraw    = "redraw"
	Suspend   = "suspend"
	Question  = "question"
	Send      = "send"
	NewLine   = "new-line"
	Fold      = "fold"
	Previous  = "previous-call"
	Next      = "next-call"
	EditorKey = "editor"
	Search    = "search"
	Servers   = "servers"
	Complete  = "complete"
	Older     = "older"
	Newer     = "newer"
	PageUp    = "page-up"
	PageDown  = "page-down"
	Top       = "top"
	Bottom    = "bottom"
	Sessions  = "sessions"
	Budget    = "budget"
	Grants    = "grants"
	Image     = "paste-image"

	Approve    = "approve"
	Remember   = "remember"
	EditAnswer = "edit"
	Difference = "difference"
	Full       = "full"
	Raw        = "raw"
	Refuse     = "refuse"
	NextField  = "next-field"
	PrevField  = "previous-field"
	Press      = "press"
	Aside      = "aside"

	Each        = "each"
	ChooseModel = "choose-model"
	All         = "all"
	Dismiss     = "dismiss"
	Longer      = "longer"
	Insert      = "insert"
	Whole       = "whole"
	Undo        = "undo"
	Back        = "back"
	End         = "end"

	Up     = "up"
	Down   = "down"
	Choose = "choose"
	Close  = "close"
	Retry  = "retry"
	SignIn = "sign-in"
	Remove = "remove"
	ForkIt = "fork"
	Begin  = "new"
	Raise  = "raise"
)

// defaults are all actions, in the order of the help.
var defaults = []Action{
	{Quit, GroupAlways, []string{"ctrl+c"}, "cancel what is under way; again: quit"},
	{Help, GroupAlways, []string{"f1"}, "list all keys"},
	{Palette, GroupAlways, []string{"ctrl+k"}, "everything by name"},
	{Redraw, GroupAlways, []string{"ctrl+l"}, "draw the screen anew"},
	{Suspend, GroupAlways, []string{"ctrl+z"}, "go back to the shell for a while"},
	{Search, GroupAlways, []string{"ctrl+f"}, "search in the conversation"},
	{Servers, GroupAlways, []string{"ctrl+s", "f2"}, "how the servers are, and their logs"},
	{Sessions, GroupAlways, []string{"f3"}, "other sessions: open, fork or delete one, begin one"},
	{Budget, GroupAlways, []string{"f4"}, "what is used and left of the budget"},
	{Grants, GroupAlways, []string{"f5"}, "what you agreed to for longer, and taking it back"},

	{Send, GroupChat, []string{"enter"}, "send the message"},
	{NewLine, GroupChat, []string{"alt+enter", "shift+enter", "ctrl+j"}, "a new line in the message"},
	{Question, GroupChat, []string{"tab"}, "go to the question that waits"},
	{Complete, GroupChat, []string{"tab"}, "take the completion that is offered"},
	{Fold, GroupChat, []string{"ctrl+o"}, "open or fold the call that is marked, or the last one"},
	{Previous, GroupChat, []string{"alt+up"}, "mark the call before"},
	{Next, GroupChat, []string{"alt+down"}, "mark the call after"},
	{Image, GroupChat, []string{"ctrl+v"}, "attach the image of the clipboard"},
	{EditorKey, GroupChat, []string{"ctrl+e"}, "write the message in $EDITOR"},
	{Older, GroupChat, []string{"up"}, "the message before (on the first line)"},
	{Newer, GroupChat, []string{"down"}, "the message after (on the last line)"},
	{PageUp, GroupChat, []string{"pgup"}, "scroll up"},
	{PageDown, GroupChat, []string{"pgdown"}, "scroll down"},
	{Top, GroupChat, []string{"ctrl+home"}, "go to the beginning"},
	{Bottom, GroupChat, []string{"ctrl+end"}, "go to the end, and follow it"},

	{Approve, GroupPanel, []string{"y"}, "yes, once"},
	{Remember, GroupPanel, []string{"r"}, "remember: agree for longer"},
	{EditAnswer, GroupPanel, []string{"e"}, "edit before agreeing"},
	{Difference, GroupPanel, []string{"d"}, "the difference to the last call that was approved"},
	{Full, GroupPanel, []string{"f"}, "show everything"},
	{Raw, GroupPanel, []string{"t"}, "arguments as form, or as they are sent"},
	{Refuse, GroupPanel, []string{"n"}, "refuse, with a reason"},
	{NextField, GroupPanel, []string{"tab"}, "the next field or button"},
	{PrevField, GroupPanel, []string{"shift+tab"}, "the field or button before"},
	{Press, GroupPanel, []string{"enter"}, "press the button that is marked"},
	{Aside, GroupPanel, []string{"esc"}, "put the question aside; it stays open"},

	{Each, GroupPanel, []string{"o"}, "ask about several calls one by one"},
	{ChooseModel, GroupPanel, []string{"m"}, "choose another model"},
	{All, GroupPanel, []string{"a"}, "pick all directories, or none"},
	{Dismiss, GroupPanel, []string{"c"}, "close a server's question without an answer"},
	{Longer, GroupPanel, []string{"h"}, "for how long to agree"},
	{Insert, GroupPanel, []string{"i"}, "insert a value into what is edited"},
	{Whole, GroupPanel, []string{"w"}, "edit the whole in $EDITOR"},
	{Undo, GroupPanel, []string{"u"}, "forget what was edited"},
	{End, GroupPanel, []string{"end"}, "show all of it, up to the end"},
	{Back, GroupPanel, []string{"b", "alt+left"}, "back, without deciding anything"},

	{Up, GroupView, []string{"up"}, "up"},
	{Down, GroupView, []string{"down"}, "down"},
	{Choose, GroupView, []string{"enter"}, "choose"},
	{Retry, GroupView, []string{"ctrl+r"}, "start the server again"},
	{SignIn, GroupView, []string{"s"}, "sign in to the server"},
	{ForkIt, GroupView, []string{"f"}, "fork the session at its end"},
	{Begin, GroupView, []string{"n"}, "begin a new session"},
	{Remove, GroupView, []string{"x"}, "delete the session, or take the grant back"},
	{Raise, GroupView, []string{"+"}, "double the limit"},
	{Close, GroupView, []string{"esc"}, "close"},
}

// mayShare are actions that may have a key together: the one that is possible counts.
var mayShare = []string{Question, Complete}

// Keys say which keys do what. It may be used by many goroutines at once.
type Keys struct{ actions []Action }

// DefaultKeys are the keys where nothing is configured.
func DefaultKeys() *Keys {
	k, err := NewKeys(nil)
	if err != nil {
		panic(err) // a test makes them
	}
	return k
}

// NewKeys changes keys of the defaults: by the name of an action, all of its keys. An
// error names what is unknown, what is no key, and which actions would have the same one.
func NewKeys(change map[string][]string) (*Keys, error) {
	k := &Keys{actions: make([]Action, len(defaults))}
	for i, a := range defaults {
		a.Keys = slices.Clone(a.Keys)
		k.actions[i] = a
	}
	for _, name := range slices.Sorted(maps.Keys(change)) {
		i := slices.IndexFunc(k.actions, func(a Action) bool { return a.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("keys: there is no action %q; the actions are %s", name, strings.Join(names(), ", "))
		}
		list := make([]string, 0, len(change[name]))
		for _, key := range change[name] {
			normal, err := keyName(key)
			if err != nil {
				return nil, fmt.Errorf("keys: action %s: %w", name, err)
			}
			list = append(list, normal)
		}
		k.actions[i].Keys = list
	}
	if len(k.actions[0].Keys) == 0 {
		return nil, fmt.Errorf("keys: action %s needs a key: there would be no way out", Quit)
	}
	return k, k.clash()
}

// names are the names of all actions.
func names() []string {
	list := make([]string, len(defaults))
	for i, a := range defaults {
		list[i] = a.Name
	}
	return list
}

// clash says which actions have the same key where that is ambiguous.
func (k *Keys) clash() error {
	for i, a := range k.actions {
		for _, b := range k.actions[i+1:] {
			if a.Group != b.Group && a.Group != GroupAlways && b.Group != GroupAlways ||
				slices.Contains(mayShare, a.Name) && slices.Contains(mayShare, b.Name) {
				continue
			}
			for _, key := range a.Keys {
				if slices.Contains(b.Keys, key) {
					return fmt.Errorf("keys: %s is the key of two actions, %s and %s; give one of them another", key, a.Name, b.Name)
				}
			}
		}
	}
	return nil
}

// Is reports whether a key, as its message's String says it, is one of an action.
func (k *Keys) Is(key, action string) bool {
	for i := range k.actions {
		if k.actions[i].Name == action {
			return slices.Contains(k.actions[i].Keys, key)
		}
	}
	return false
}

// Action returns an action of a name that this package declares, and panics for others.
func (k *Keys) Action(name string) Action {
	for _, a := range k.actions {
		if a.Name == name {
			return a
		}
	}
	panic("style: no action " + name)
}

// Key is the first key of an action as it is shown ("Ctrl-K"), or empty if it has none.
func (k *Keys) Key(action string) string {
	if keys := k.Action(action).Keys; len(keys) > 0 {
		return Show(keys[0])
	}
	return ""
}

// Group lists the actions of a group, in the order to show them.
func (k *Keys) Group(g Group) []Action {
	var list []Action
	for _, a := range k.actions {
		if a.Group == g {
			list = append(list, a)
		}
	}
	return list
}

// Show writes the name of a key as people do: "Ctrl-K", "Alt-Enter", "y".
func Show(key string) string {
	parts := splitKey(key)
	last := len(parts) - 1
	for i, p := range parts {
		switch {
		case i == last && last == 0 && utf8.RuneCountInString(p) == 1: // a letter is typed as it is
		case i == last && utf8.RuneCountInString(p) == 1, p[0] == 'f' && len(p) <= 3:
			parts[i] = strings.ToUpper(p)
		default:
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "-")
}

// splitKey splits a key into its modifiers and the key itself, which may be a plus.
func splitKey(key string) []string {
	if rest, ok := strings.CutSuffix(key, "+"); ok {
		return append(strings.FieldsFunc(rest, func(r rune) bool { return r == '+' }), "+")
	}
	return strings.Split(key, "+")
}

// modifiers, in the order in which the name of a key has them.
var modifiers = []string{"ctrl", "alt", "shift", "meta", "hyper", "super"}

// namedKeys are the keys that are no characters.
var namedKeys = []string{
	"enter", "tab", "backspace", "esc", "space", "up", "down", "left", "right", "insert", "delete", "pgup", "pgdown",
	"home", "end", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
}

// keyName checks the name of a key, and puts its modifiers into their order.
func keyName(key string) (string, error) {
	parts := splitKey(strings.ToLower(strings.TrimSpace(key)))
	last := parts[len(parts)-1]
	if utf8.RuneCountInString(last) != 1 && !slices.Contains(namedKeys, last) {
		return "", fmt.Errorf("%q is no key; write for example ctrl+k, alt+enter, f2, pgup or y", key)
	}
	var b strings.Builder
	given := parts[:len(parts)-1]
	for _, m := range modifiers {
		if slices.Contains(given, m) {
			b.WriteString(m + "+")
		}
	}
	for _, m := range given {
		if !slices.Contains(modifiers, m) {
			return "", fmt.Errorf("%q is no key: %q is none of %s", key, m, strings.Join(modifiers, ", "))
		}
	}
	if len(parts) == 1 && utf8.RuneCountInString(strings.TrimSpace(key)) == 1 {
		last = strings.TrimSpace(key) // a letter counts as it is typed
	}
	return b.String() + last, nil
}
