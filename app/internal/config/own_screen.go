package config

import (
	"slices"

	"github.com/parley-mcp/parley/strictjson"
)

// Screen is how the screen of a conversation looks and which keys it has.
type Screen struct {
	// Theme is "dark", "light" or "none", which is without colours. Empty: by the terminal.
	Theme string `json:"theme,omitzero"`
	// Keys are all keys of an action, by its name.
	Keys map[string][]string `json:"keys,omitzero"`
	// ReducedMotion leaves out what only moves.
	ReducedMotion bool `json:"reducedMotion,omitzero"`
	// Mouse has the wheel of the mouse scroll. The terminal's own selection of text then needs
	// a further key, mostly Shift.
	Mouse bool `json:"mouse,omitzero"`
}

// ownScreen reads how the screen is. Names of actions and keys are the screen's to check.
func (f *file) ownScreen(n *node) {
	if n.kind != kindObject {
		f.problem(n, "screen: expected an object, found %s", n.kind)
		return
	}
	var s Screen
	if err := strictjson.Unmarshal(n.json(), &s, &strictjson.Options{RefuseUnknown: true}); err != nil {
		f.problem(n, "screen: %v", err)
		return
	}
	if s.Theme != "" && !slices.Contains([]string{"dark", "light", "none"}, s.Theme) {
		f.problem(n, "screen: there is no theme %s: write dark, light or none", show(s.Theme))
		return
	}
	f.l.config.Own.Screen = s
}
