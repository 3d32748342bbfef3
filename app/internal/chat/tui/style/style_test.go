package style

import (
	"image/color"
	"math"
	"reflect"
	"testing"

	"charm.land/lipgloss/v2"
)

// luminance is the relative luminance of a colour.
//
// https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	linear := func(v uint32) float64 {
		s := float64(v) / 0xffff
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// contrast is the contrast ratio of two colours.
//
// https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrastFormula(t *testing.T) {
	t.Parallel()
	if got := contrast(color.White, color.Black); math.Abs(got-21) > 1e-9 {
		t.Errorf("white on black has a contrast of %v, want 21", got)
	}
	// The grey that is known as the lightest that is legible on white.
	if got := contrast(lipgloss.Color("#767676"), color.White); got < 4.5 || got > 4.6 {
		t.Errorf("#767676 on white has a contrast of %v, want 4.54", got)
	}
}

// styles are the styles of a theme by the names of their fields.
func styles(theme *Theme) map[string]lipgloss.Style {
	all := make(map[string]lipgloss.Style)
	v := reflect.ValueOf(*theme)
	for i := range v.NumField() {
		if s, ok := v.Field(i).Interface().(lipgloss.Style); ok {
			all[v.Type().Field(i).Name] = s
		}
	}
	return all
}

// given reports whether a colour is set.
func given(c color.Color) bool {
	_, none := c.(lipgloss.NoColor)
	return c != nil && !none
}

func TestContrast(t *testing.T) {
	t.Parallel()
	tests := []struct {
		theme *Theme
		// backgrounds are those of terminals for which the theme is made.
		backgrounds []string
	}{
		{Dark(), []string{"#000000", "#1e1e1e", "#1e1e2e", "#282a36"}},
		{Light(), []string{"#ffffff", "#fafafa", "#eee8d5"}},
	}
	for _, test := range tests {
		pairs := 0
		for name, s := range styles(test.theme) {
			fg, bg := s.GetForeground(), s.GetBackground()
			if given(bg) {
				pairs++
				if got := contrast(fg, bg); !given(fg) || got < 4.5 {
					t.Errorf("%s: %s has a contrast of %.2f, want at least 4.5", test.theme.Name, name, got)
				}
				continue
			}
			if !given(fg) {
				continue // the terminal's own
			}
			for _, b := range test.backgrounds {
				pairs++
				if got := contrast(fg, lipgloss.Color(b)); got < 4.5 {
					t.Errorf("%s: %s has a contrast of %.2f on %s, want at least 4.5", test.theme.Name, name, got, b)
				}
			}
		}
		if pairs < 50 {
			t.Errorf("%s: only %d pairs were compared", test.theme.Name, pairs)
		}
	}
}

func TestNoColor(t *testing.T) {
	t.Parallel()
	all := styles(NoColor())
	for name, s := range all {
		if given(s.GetForeground()) || given(s.GetBackground()) {
			t.Errorf("%s has a colour", name)
		}
	}
	if len(all) < 25 {
		t.Fatalf("only %d styles", len(all))
	}
	if plain, focused := all["Button"].Render("x"), all["ButtonFocused"].Render("x"); plain == focused {
		t.Error("the button that has the focus looks like the others")
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dark", "light", "none"} {
		if theme, err := Named(name); err != nil || theme.Name != name {
			t.Errorf("Named(%q) = %v, %v", name, theme, err)
		}
	}
	if _, err := Named("blue"); err == nil || err.Error() != `there is no theme "blue"; write dark, light or none` {
		t.Errorf("error %v", err)
	}
}
