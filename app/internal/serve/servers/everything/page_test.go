package everything_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/mcptest"
)

// SEP-1865: a host fetches the page of show-palette and shows it without any network;
// others get a text.
func TestPage(t *testing.T) {
	o := &client.Options{Extensions: []client.Extension{apps.Extension()}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		const text = "3 colours around #3a6ea5: #3a6ea5, #a53a6e, #6ea53a"
		if got := call(t, c, "show-palette", `{"count":3}`); got != text {
			t.Errorf("show-palette: %q", got)
		}
		res, err := client.Call[struct {
			Base    string   `json:"base"`
			Colours []string `json:"colours"`
		}](t.Context(), c, "show-palette", map[string]any{"base": "#808080", "count": 2})
		if era.Version >= "2025-06-18" && (err != nil || !cmp.Equal(res.Colours, []string{"#808080", "#808080"})) {
			t.Errorf("grey: %+v, %v", res, err)
		}
		if era.Version < "2025-06-18" { // tools have no pages there
			return
		}
		tool, err := c.Tool(t.Context(), "show-palette")
		if err != nil {
			t.Fatal(err)
		}
		ui, err := apps.Of(tool)
		if err != nil || ui == nil {
			t.Fatalf("%+v, %v", ui, err)
		}
		page, err := apps.Fetch(t.Context(), c, ui.URI, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.CSP, "connect-src 'none'") || page.Meta.PrefersBorder == nil {
			t.Errorf("%+v", page)
		}
		if foreign := regexp.MustCompile(`(src|href)=|url\(|https?:|@import|fetch\(`).FindString(page.HTML); foreign != "" {
			t.Errorf("the page asks for something outside of it: %q", foreign)
		}
	})
}
