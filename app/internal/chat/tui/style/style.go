// Package style has what the parts of the screen share: colours, keys, and text that is
// broken into lines by its width on the screen.
package style

import (
	"fmt"

	"charm.land/lipgloss/v2"
)

// A Theme is how the screen looks: a style for each use of text. Its zero value shows
// plain text. It may be used by many goroutines at once, and must not be changed.
type Theme struct {
	// Name is "dark", "light" or "none".
	Name string

	Text     lipgloss.Style // of the program and the person
	Dim      lipgloss.Style // what is less important
	Title    lipgloss.Style // headings of panels and views
	Heading  lipgloss.Style // headings in markdown
	Strong   lipgloss.Style
	Emphasis lipgloss.Style
	Link     lipgloss.Style
	Domain   lipgloss.Style // the domain of an address, which tells where it leads
	Code     lipgloss.Style
	Quote    lipgloss.Style
	You      lipgloss.Style // the mark at what the person said
	Model    lipgloss.Style // the mark at what the model said

	Warning   lipgloss.Style
	Error     lipgloss.Style
	Success   lipgloss.Style
	Untrusted lipgloss.Style // text of servers
	Label     lipgloss.Style // names of facts and fields

	Button        lipgloss.Style
	ButtonFocused lipgloss.Style
	Key           lipgloss.Style // the key of a button or an action
	Selected      lipgloss.Style // the line of a list that is chosen
	Match         lipgloss.Style // what a search has found

	Added   lipgloss.Style
	Removed lipgloss.Style

	Border  lipgloss.Style
	Banner  lipgloss.Style // a question waits
	Status  lipgloss.Style // the status line
	Spinner lipgloss.Style
}

// A palette is the colours of a theme. Texts are shown on the background of the terminal,
// which the program does not set; those with a background of their own are named on.
type palette struct {
	text, dim, title, link, code, you, model  string
	warning, bad, good, untrusted, border     string
	button, onButton, focused, onFocused      string
	selected, onSelected, match, onMatch      string
	banner, onBanner, status, onStatus, label string
}

// darkColors are for dark backgrounds, up to #282a36; lightColors for light ones, down to #eee8d5.
var (
	darkColors = palette{
		text: "#e4e4e4", dim: "#a8a8a8", title: "#8fd3ff", link: "#8ab8ff", code: "#ffd7af", you: "#8fd3ff", model: "#d7afff",
		warning: "#ffd75f", bad: "#ff9b9b", good: "#87d787", untrusted: "#e8c39e", border: "#9a9a9a",
		button: "#3a3a3a", onButton: "#e4e4e4", focused: "#8fd3ff", onFocused: "#000000",
		selected: "#26445c", onSelected: "#ffffff", match: "#ffd75f", onMatch: "#000000",
		banner: "#ffd75f", onBanner: "#000000", status: "#303030", onStatus: "#d0d0d0", label: "#afd7d7",
	}
	lightColors = palette{
		text: "#1c1c1c", dim: "#585858", title: "#00487a", link: "#0b3fa8", code: "#7a2e00", you: "#00487a", model: "#6a1b9a",
		warning: "#6b4a00", bad: "#a30000", good: "#1b5e20", untrusted: "#6b3a00", border: "#5f5f5f",
		button: "#dcdcdc", onButton: "#1c1c1c", focused: "#00487a", onFocused: "#ffffff",
		selected: "#cfe4f5", onSelected: "#000000", match: "#ffe08a", onMatch: "#000000",
		banner: "#6b4a00", onBanner: "#ffffff", status: "#dcdcdc", onStatus: "#303030", label: "#005050",
	}
)

// Dark is for terminals with a dark background.
func Dark() *Theme { return darkColors.theme("dark") }

// Light is for terminals with a light background.
func Light() *Theme { return lightColors.theme("light") }

// NoColor uses no colour: bold, underlined and reversed text only. What a colour tells is
// told by words in every theme.
func NoColor() *Theme {
	s := lipgloss.NewStyle
	bold, reversed, under := s().Bold(true), s().Reverse(true), s().Underline(true)
	return &Theme{
		Name: "none", Text: s(), Dim: s(), Title: bold, Heading: bold, Strong: bold, Emphasis: s().Italic(true), Link: under,
		Domain: s().Bold(true).Underline(true), Code: s(), Quote: s(), You: bold, Model: bold, Warning: bold, Error: bold,
		Success: s(), Untrusted: s(), Label: s(), Button: s(), ButtonFocused: reversed, Key: bold, Selected: reversed,
		Match: reversed, Added: s(), Removed: s(), Border: s(), Banner: reversed, Status: reversed, Spinner: s(),
	}
}

// Named returns the theme of a name: "dark", "light" or "none".
func Named(name string) (*Theme, error) {
	switch name {
	case "dark":
		return Dark(), nil
	case "light":
		return Light(), nil
	case "none":
		return NoColor(), nil
	}
	return nil, fmt.Errorf("there is no theme %q; write dark, light or none", name)
}

// theme makes a theme of the colours.
func (p *palette) theme(name string) *Theme {
	fg := func(c string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(c)) }
	on := func(c, background string) lipgloss.Style { return fg(c).Background(lipgloss.Color(background)) }
	return &Theme{
		Name: name, Text: lipgloss.NewStyle(), Dim: fg(p.dim), Title: fg(p.title).Bold(true), Heading: fg(p.title).Bold(true),
		Strong: fg(p.text).Bold(true), Emphasis: fg(p.text).Italic(true), Link: fg(p.link).Underline(true),
		Domain: fg(p.link).Bold(true).Underline(true), Code: fg(p.code), Quote: fg(p.dim), You: fg(p.you).Bold(true),
		Model: fg(p.model).Bold(true), Warning: fg(p.warning).Bold(true), Error: fg(p.bad).Bold(true), Success: fg(p.good),
		Untrusted: fg(p.untrusted), Label: fg(p.label), Button: on(p.onButton, p.button),
		ButtonFocused: on(p.onFocused, p.focused).Bold(true), Key: fg(p.title).Bold(true), Selected: on(p.onSelected, p.selected),
		Match: on(p.onMatch, p.match), Added: fg(p.good), Removed: fg(p.bad), Border: fg(p.border),
		Banner: on(p.onBanner, p.banner).Bold(true), Status: on(p.onStatus, p.status), Spinner: fg(p.title),
	}
}
