package style

import (
	"slices"
	"strings"
	"testing"
)

func TestDefaultKeys(t *testing.T) {
	t.Parallel()
	k := DefaultKeys()
	for _, a := range k.actions {
		for _, key := range a.Keys {
			if normal, err := keyName(key); err != nil || normal != key {
				t.Errorf("key %q of %s: %q, %v", key, a.Name, normal, err)
			}
		}
		if a.Help == "" || k.Action(a.Name).Help != a.Help {
			t.Errorf("action %s has no help, or its name twice", a.Name)
		}
	}
	for key, action := range map[string]string{
		"enter": Send, "alt+enter": NewLine, "ctrl+k": Palette, "ctrl+o": Fold, "ctrl+c": Quit, "f1": Help, "tab": Question,
		"y": Approve, "r": Remember, "e": EditAnswer, "d": Difference, "f": Full, "n": Refuse, "esc": Aside,
	} {
		if !k.Is(key, action) {
			t.Errorf("%s is not the key of %s", key, action)
		}
	}
	if got := len(k.Group(GroupPanel)) + len(k.Group(GroupChat)) + len(k.Group(GroupAlways)) + len(k.Group(GroupView)); got != len(defaults) {
		t.Errorf("the groups have %d actions of %d", got, len(defaults))
	}
}

func TestNewKeys(t *testing.T) {
	t.Parallel()
	k, err := NewKeys(map[string][]string{Approve: {"Shift+Ctrl+Y", "j"}, Fold: {}})
	if err != nil {
		t.Fatal(err)
	}
	if got := k.Action(Approve).Keys; !slices.Equal(got, []string{"ctrl+shift+y", "j"}) {
		t.Errorf("keys %q", got)
	}
	if k.Is("y", Approve) || k.Is("ctrl+o", Fold) || k.Key(Fold) != "" {
		t.Error("the keys before are still there")
	}
	if DefaultKeys().Key(Approve) != "y" {
		t.Error("the defaults were changed")
	}
}

func TestNewKeysErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change map[string][]string
		want   string
	}{
		"unknown action":   {map[string][]string{"aprove": {"y"}}, `there is no action "aprove"`},
		"no key":           {map[string][]string{Approve: {"ctrl+banana"}}, `"ctrl+banana" is no key`},
		"unknown modifier": {map[string][]string{Approve: {"command+y"}}, `"command" is none of`},
		"empty":            {map[string][]string{Approve: {""}}, "is no key"},
		"clash":            {map[string][]string{Approve: {"n"}}, "n is the key of two actions, approve and refuse"},
		"clash with a key that counts everywhere": {map[string][]string{Send: {"ctrl+c"}}, "quit and send"},
		"no way out": {map[string][]string{Quit: nil}, "needs a key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := NewKeys(test.change); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"ctrl+k": "Ctrl-K", "alt+enter": "Alt-Enter", "y": "y", "f1": "F1", "esc": "Esc", "ctrl++": "Ctrl-+", "+": "+", "f": "f", "pgup": "Pgup"} {
		if got := Show(key); got != want {
			t.Errorf("Show(%q) = %q, want %q", key, got, want)
		}
	}
}
