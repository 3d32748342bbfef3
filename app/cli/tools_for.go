package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/schema/provider"
)

// profileOf is what a provider takes, by its name.
func profileOf(name string) (provider.Profile, error) {
	profiles := map[string]provider.Profile{"anthropic": provider.Anthropic, "openai": provider.OpenAI, "gemini": provider.Gemini}
	if p, ok := profiles[name]; ok {
		return p, nil
	}
	return provider.Profile{}, usagef("--for %q: write anthropic, openai or gemini", shorten(host.EscapeLine(name), maxModelName))
}

// A reducedTool is a tool in the JSON of 'tools --for'.
type reducedTool struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	// Name is what the model calls it.
	Name string `json:"name"`
	// Lost is what is left out of its schema.
	Lost []string `json:"lost,omitzero"`
	// Error says that the schema is none.
	Error string `json:"error,omitzero"`
}

// printToolsFor says how the models of a provider are told of the tools.
func (p *program) printToolsFor(c *host.Catalog, name string) error {
	profile, err := profileOf(name)
	if err != nil {
		return err
	}
	list := make([]reducedTool, 0, len(c.Tools))
	for _, t := range c.Tools {
		r := reducedTool{Server: t.Server, Tool: t.Def.Name, Name: t.ModelName}
		_, notes, err := provider.Reduce(t.Def.InputSchema, profile)
		if err != nil {
			r.Error = err.Error()
		}
		r.Lost = notes
		list = append(list, r)
	}
	if p.json {
		return p.printJSON(struct {
			Tools []reducedTool `json:"tools"`
		}{list})
	}
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%s  is called %s\n", host.EscapeLine(r.Server+"/"+r.Tool), r.Name)
		for _, note := range slices.Concat(r.Lost, errorList(r.Error)) {
			b.WriteString("    " + host.EscapeLine(note) + "\n")
		}
	}
	if err := p.print(b.String()); err != nil {
		return err
	}
	changed := len(slices.DeleteFunc(list, func(r reducedTool) bool { return len(r.Lost) == 0 }))
	switch {
	case len(c.Tools) == 0:
	case changed == 0:
		p.note("Nothing is left out for %s.", name)
	default:
		p.note("%d of %d tools lose something for %s: the model reads it in their descriptions, and the servers still check the arguments.", changed, len(c.Tools), name)
	}
	return nil
}

// errorList is an error as a list.
func errorList(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
