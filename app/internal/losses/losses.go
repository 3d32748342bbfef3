// Package losses tells what the providers of models do not take of the tools of a server, each loss
// once with the tools and providers that it concerns.
package losses

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema/provider"
)

// A Provider is a provider of models and what it takes of a tool.
type Provider struct {
	// ID is the name in PROVIDER:NAME of models, such as "openai", and Name the one for people.
	ID, Name string
	// Profile is what it takes.
	Profile provider.Profile
}

// Providers are those that are known. The result is the caller's.
func Providers() []Provider {
	return []Provider{
		{"anthropic", "Anthropic", provider.Anthropic},
		{"openai", "OpenAI", provider.OpenAI},
		{"gemini", "Gemini", provider.Gemini},
	}
}

// maxNamed is how many tools are named.
const maxNamed = 20

// A Loss is what providers do not take of some tools. Its texts quote names of the tools, which are to
// be escaped before they are shown.
type Loss struct {
	provider.Loss
	// Providers are those that do not take it, and Tools the names of the tools that lose it, in the
	// order of the list.
	Providers []Provider
	Tools     []string
}

// Of are the losses of tools, in the order in which they are met. The errors say which tools have
// no schema; each names its tool.
func Of(tools []*mcp.Tool) (list []*Loss, errs []error) {
	known := make(map[provider.Loss]*Loss)
	for _, t := range tools {
		var wrong error
		for _, p := range Providers() {
			found, err := provider.Check(t, p.Profile)
			if err != nil && wrong == nil {
				wrong = fmt.Errorf("%s: %w", t.Name, err)
			}
			for _, each := range found {
				l := known[each]
				if l == nil {
					l = &Loss{Loss: each}
					known[each], list = l, append(list, l)
				}
				l.add(p, t.Name)
			}
		}
		if wrong != nil {
			errs = append(errs, wrong)
		}
	}
	return list, errs
}

func (l *Loss) add(p Provider, tool string) {
	if !slices.ContainsFunc(l.Providers, func(o Provider) bool { return o.ID == p.ID }) {
		l.Providers = append(l.Providers, p)
	}
	if n := len(l.Tools); n == 0 || l.Tools[n-1] != tool {
		l.Tools = append(l.Tools, tool)
	}
}

// RefusesName reports whether the loss is the name of a tool.
func (l *Loss) RefusesName() bool { return strings.HasPrefix(l.What, "the name ") }

// ProviderNames are the names of the providers for people.
func (l *Loss) ProviderNames() string {
	names := make([]string, len(l.Providers))
	for i, p := range l.Providers {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// ToolNames are the names of the tools, of which 20 are named.
func (l *Loss) ToolNames() string {
	text := strings.Join(l.Tools[:min(len(l.Tools), maxNamed)], ", ")
	if more := len(l.Tools) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
