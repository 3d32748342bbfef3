package use

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/losses"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/schema/provider"
)

// profileOf returns the profile of a provider by its name.
func profileOf(name string) (provider.Profile, error) {
	for _, p := range losses.Providers() {
		if p.ID == name {
			return p.Profile, nil
		}
	}
	return provider.Profile{}, kit.Usagef("--for %q: must be anthropic, openai or gemini", kit.Shorten(host.EscapeLine(name), kit.MaxName))
}

// A reducedTool is a tool in the JSON of 'tools --for'.
type reducedTool struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	// Name is what the model calls it.
	Name string `json:"name"`
	// Lost is what the provider does not take of it.
	Lost []lostPart `json:"lost,omitzero"`
	// Error says that the schema is none.
	Error string `json:"error,omitzero"`
}

// A lostPart is a part of a tool that a provider does not support.
type lostPart struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Fix  string `json:"fix"`
}

// toolFor returns a tool as the models of a provider receive it.
func toolFor(t *host.Tool, profile provider.Profile) reducedTool {
	r := reducedTool{Server: t.Server, Tool: t.Def.Name, Name: t.ModelName}
	losses, err := provider.Check(t.Def, profile)
	if err != nil {
		r.Error = err.Error()
	}
	for _, l := range losses {
		r.Lost = append(r.Lost, lostPart{l.What, l.Why, l.Mend})
	}
	return r
}

// printToolsFor prints the tools as the models of a provider receive them.
func (g *group) printToolsFor(c *host.Catalog, name string) error {
	profile, err := profileOf(name)
	if err != nil {
		return err
	}
	list := make([]reducedTool, 0, len(c.Tools))
	for _, t := range c.Tools {
		list = append(list, toolFor(t, profile))
	}
	if g.JSON {
		return g.PrintMaskedJSON(struct {
			Tools []reducedTool `json:"tools"`
		}{list})
	}
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%s  is called %s\n", host.EscapeLine(r.Server+"/"+r.Tool), r.Name)
		for _, l := range r.Lost {
			fmt.Fprintf(&b, "    %s: %s; %s\n", host.EscapeLine(l.What), host.EscapeLine(l.Why), host.EscapeLine(l.Fix))
		}
		if r.Error != "" {
			b.WriteString("    " + host.EscapeLine(r.Error) + "\n")
		}
	}
	if err := g.Print(g.Masked(b.String())); err != nil {
		return err
	}
	changed := len(slices.DeleteFunc(list, func(r reducedTool) bool { return len(r.Lost) == 0 }))
	switch {
	case len(c.Tools) == 0:
	case changed == 0:
		g.Note("Models of %s accept every tool's schema unchanged.", name)
	default:
		g.Note("%d of %d tools change for %s: schema keywords that are removed are explained in the descriptions, and the servers still check the arguments.", changed, len(c.Tools), name)
	}
	return nil
}
