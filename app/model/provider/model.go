package provider

import (
	"net/url"
	"strconv"
	"strings"
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

// Origin names whose reasoning a model's is, for host.Reasoning: the provider, and where it
// is unless at its own address. What one server has signed, others refuse.
func (e *Endpoint) Origin(own string) string {
	u, err := url.Parse(e.URL)
	if e.URL == own || err != nil {
		return e.Provider
	}
	return e.Provider + "@" + strings.ToLower(u.Host)
}
