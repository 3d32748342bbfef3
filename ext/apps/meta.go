package apps

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

const (
	// ID identifies the extension.
	ID = "io.modelcontextprotocol/ui"
	// MIMEType is the type of pages, to the letter.
	MIMEType = "text/html;profile=mcp-app"
	// MaxPage is the most bytes that a page may have, unless FetchOptions.MaxSize says
	// otherwise.
	MaxPage = 4 << 20
)

// The keys of `_meta`.
const (
	metaUI  = "ui"
	metaOld = "ui/resourceUri" // deprecated, read by older hosts
)

const (
	scheme = "ui://"
	maxURI = 2048
)

// A Caller is one of the two that may use a tool.
type Caller string

// The callers.
const (
	// Model is the model: the tool is in the list that it is given.
	Model Caller = "model"
	// App is a page of the same server.
	App Caller = "app"
)

// toolMeta is `_meta.ui` of a tool.
type toolMeta struct {
	ResourceURI string   `json:"resourceUri,omitzero"`
	Visibility  []Caller `json:"visibility,omitzero"`
}

// PageMeta is what a server says about a page: `_meta.ui` of the resource.
//
// SEP-1865, UI Resource Format.
type PageMeta struct {
	// CSP are the origins outside of the page that it needs; nil is none. See [CSP].
	CSP *Domains `json:"csp,omitzero"`
	// Permissions are what it asks of the browser. A page must do without them.
	Permissions Permissions `json:"permissions,omitzero"`
	// Domain is the origin that it wants to be shown at, in a form that each host
	// defines for itself; empty is any.
	Domain string `json:"domain,omitzero"`
	// PrefersBorder says whether the host should draw a border and a background; nil
	// leaves it to the host.
	PrefersBorder *bool `json:"prefersBorder,omitzero"`
}

// check checks what a page says of itself.
func (m *PageMeta) check() error {
	if _, err := CSP(m.CSP); err != nil {
		return err
	}
	if len(m.Domain) > maxHost || strings.ContainsFunc(m.Domain, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
		return fmt.Errorf("the domain %q is longer than %d bytes, or holds a space or a character that is not shown", clip(m.Domain), maxHost)
	}
	return nil
}

// Permissions are features of the browser.
type Permissions struct {
	// Camera, Microphone and Geolocation are what their names say.
	Camera, Microphone, Geolocation bool
	// ClipboardWrite is to put something on the clipboard.
	ClipboardWrite bool
}

// permissions is Permissions in JSON: what is wanted is an empty object.
type permissions struct {
	Camera         *mcp.None `json:"camera,omitzero"`
	Microphone     *mcp.None `json:"microphone,omitzero"`
	Geolocation    *mcp.None `json:"geolocation,omitzero"`
	ClipboardWrite *mcp.None `json:"clipboardWrite,omitzero"`
}

// MarshalJSON encodes what is wanted as members with empty objects.
func (p Permissions) MarshalJSON() ([]byte, error) {
	member := func(wanted bool) *mcp.None {
		if wanted {
			return &mcp.None{}
		}
		return nil
	}
	return strictjson.Marshal(permissions{member(p.Camera), member(p.Microphone), member(p.Geolocation), member(p.ClipboardWrite)})
}

// UnmarshalJSON decodes an object of objects; other members are ignored.
func (p *Permissions) UnmarshalJSON(data []byte) error {
	var wire permissions
	if err := strictjson.Unmarshal(data, &wire); err != nil {
		return err
	}
	*p = Permissions{wire.Camera != nil, wire.Microphone != nil, wire.Geolocation != nil, wire.ClipboardWrite != nil}
	return nil
}

// Allow is the value of the attribute "allow" of the frame, for a host that grants all
// of them: "camera; clipboard-write". It is empty for none.
//
// SEP-1865, Content Security Policy Enforcement.
func (p Permissions) Allow() string {
	var list []string
	for _, f := range []struct {
		wanted bool
		name   string
	}{{p.Camera, "camera"}, {p.Microphone, "microphone"}, {p.Geolocation, "geolocation"}, {p.ClipboardWrite, "clipboard-write"}} {
		if f.wanted {
			list = append(list, f.name)
		}
	}
	return strings.Join(list, "; ")
}

// checkURI refuses what is no URI of a page.
//
// SEP-1865, Content Requirements: "URI MUST start with ui:// scheme".
func checkURI(uri string) error {
	rest, ok := strings.CutPrefix(uri, scheme)
	switch {
	case !ok || rest == "":
		return fmt.Errorf("the URI %q does not begin with %s and a name, such as ui://weather/view.html", clip(uri), scheme)
	case len(uri) > maxURI:
		return fmt.Errorf("the URI %q is longer than %d bytes", clip(uri), maxURI)
	case !utf8.ValidString(uri) || strings.ContainsFunc(uri, isOdd):
		return fmt.Errorf("the URI %q holds a space, a backslash or a character that is not shown", clip(uri))
	}
	return nil
}

func isOdd(r rune) bool {
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == '\\'
}

// clip shortens what a stranger wrote, for an error.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// checkPage refuses what is no page.
func checkPage(html string, most int) error {
	switch {
	case strings.TrimSpace(html) == "":
		return errors.New("the page is empty")
	case len(html) > most:
		return fmt.Errorf("the page has %d bytes; at most %d are allowed", len(html), most)
	case !utf8.ValidString(html):
		return errors.New("the page is not valid UTF-8")
	}
	return nil
}
