package host

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// maxNamed is how many items one line names of each kind.
const maxNamed = 5

// nouns are what lists hold, in the singular.
var nouns = map[string]string{
	mcp.MethodToolsList:          "tool",
	mcp.MethodPromptsList:        "prompt",
	mcp.MethodResourcesList:      "resource",
	mcp.MethodResourcesTemplates: "resource template",
}

// Wrong describes Problems in one line, which quotes the server; it is empty if there are none. What
// the person does not get comes first, by name.
func (s *ServerStatus) Wrong() string {
	var said []string
	for _, sentence := range []struct {
		effect      client.Effect
		of, outcome string
	}{
		{client.Omitted, "", "left out"},
		{client.ArgumentsUnchecked, "the arguments of ", "not checked"},
		{client.ResultsUnchecked, "the results of ", "not checked"},
	} {
		for _, items := range byMethod(s.Problems, sentence.effect) {
			be := "are"
			if len(items) == 1 && sentence.effect == client.Omitted {
				be = "is"
			}
			said = append(said, fmt.Sprintf("%s%s %s %s (%s)", sentence.of, s.share(items), be, sentence.outcome, named(items)))
		}
	}
	for _, items := range byMethod(s.Problems, client.Incomplete) {
		said = append(said, fmt.Sprintf("its list of %ss may be incomplete (%s)", noun(&items[0]), items[0].Why))
	}
	switch changed := slices.Concat(byMethod(s.Problems, client.Changed)...); len(changed) {
	case 0:
	case 1:
		said = append(said, fmt.Sprintf("a part of its answers is wrong and was left out or replaced: %s", &changed[0]))
	default:
		said = append(said, fmt.Sprintf("%d parts of its answers are wrong and were left out or replaced, the first: %s", len(changed), &changed[0]))
	}
	return strings.Join(said, "; ")
}

// byMethod returns the problems with an effect in groups of one method each.
func byMethod(all []client.Problem, effect client.Effect) (groups [][]client.Problem) {
	index := make(map[string]int)
	for _, p := range all {
		if p.Effect != effect {
			continue
		}
		i, ok := index[p.Method]
		if !ok {
			i = len(groups)
			index[p.Method] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

func noun(p *client.Problem) string { return cmp.Or(nouns[p.Method], "item") }

// share is how many items of a list have problems: "2 of 11 tools", or "2 prompts", whose number a
// status does not have.
func (s *ServerStatus) share(items []client.Problem) string {
	share, all := strconv.Itoa(len(items)), len(items)
	if items[0].Method == mcp.MethodToolsList && s.Tools > 0 {
		all = s.Tools
		for _, p := range s.Problems {
			if p.Method == mcp.MethodToolsList && p.Effect == client.Omitted {
				all++
			}
		}
		share += " of " + strconv.Itoa(all)
	}
	if all != 1 {
		return share + " " + noun(&items[0]) + "s"
	}
	return share + " " + noun(&items[0])
}

// named are the names of items, or the places of those that have none, and why there is a problem
// if there is only one.
func named(items []client.Problem) string {
	var names []string
	for i, p := range items[:min(len(items), maxNamed)] {
		names = append(names, cmp.Or(p.Place, fmt.Sprintf("number %d of them", i+1)))
		if p.Subject != "" {
			names[i] = strconv.Quote(p.Subject)
		}
	}
	text := strings.Join(names, ", ")
	switch more := len(items) - len(names); {
	case len(items) == 1:
		return text + ": " + items[0].Why
	case more > 0:
		return fmt.Sprintf("%s and %d more", text, more)
	}
	return text
}
