package provider

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/oauth"
)

// A Model is one that a provider has.
type Model struct {
	// ID is what a request names it by.
	ID string `json:"id"`
	// Name is for people, or empty.
	Name string `json:"name,omitzero"`
	// Window is how many tokens a request and its answer may have. 0: unknown.
	Window int `json:"window,omitzero"`
}

// Tokens is a number of tokens as providers list it. What is no number, or no possible one,
// is 0: a list is not refused for it.
type Tokens int

// maxTokens bounds what is believed of a window.
const maxTokens = 1 << 40

// UnmarshalJSON reads a number, also in a text.
func (n *Tokens) UnmarshalJSON(data []byte) error {
	*n = 0
	value, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil && value > 0 && value <= maxTokens {
		*n = Tokens(value)
	}
	return nil
}

// What is believed of the window of a model in use. With less, each turn would be summarized.
const (
	leastWindow = 2 << 10
	mostWindow  = 16 << 20
)

// Window is the number as the window of a model in use: 0 if it cannot be.
func (n Tokens) Window() int {
	if n < leastWindow || n > mostWindow {
		return 0
	}
	return int(n)
}

// Origin names whose reasoning a model's is, for host.Reasoning: the provider, and where it
// is unless at its own address. What one server has signed, others refuse.
func (e *Endpoint) Origin() string {
	u, err := url.Parse(e.URL)
	if e.URL == e.Own || err != nil {
		return e.Provider
	}
	return e.Provider + "@" + strings.ToLower(u.Host)
}

// OtherKey says how the person sets another key for the endpoint.
func (e *Endpoint) OtherKey() string { return "'" + e.keyCommand() + "' sets another one" }

// keyCommand is the command that keeps a key for the endpoint.
func (e *Endpoint) keyCommand() string {
	return e.command("parley model key set", Origin(e.URL))
}

// listCommand is the command that lists the models of the endpoint.
func (e *Endpoint) listCommand() string { return e.command("parley model list", e.URL) }

// command is a command about the endpoint, with its address where that is of another origin
// than the provider's own.
func (e *Endpoint) command(words, address string) string {
	words += " " + e.Provider
	if e.Own != "" && Origin(e.URL) != Origin(e.Own) {
		words += " --base-url " + e.plain(address)
	}
	return words
}

// Origin is scheme, host and port of an address, or empty if it is none. Addresses of one
// origin are one provider's, and have one key.
func Origin(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" {
		return ""
	}
	return oauth.Origin(u)
}
