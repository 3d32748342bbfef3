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

// Bounds of one line: how many items it names of each kind, and bytes of a name.
const (
	maxNamed     = 5
	maxNameShown = 64
)

// nouns are what lists hold, in the singular.
var nouns = map[string]string{
	mcp.MethodToolsList:          "tool",
	mcp.MethodPromptsList:        "prompt",
	mcp.MethodResourcesList:      "resource",
	mcp.MethodResourcesTemplates: "resource template",
}

// Wrong describes Problems in one line, which quotes the server; it is empty if there are none. What
// the person does not get comes first, by name.
func (s *ServerStatus) Wrong() string { return s.wrong(s.Problems) }

// wrong describes some of Problems.
func (s *ServerStatus) wrong(problems []client.Problem) string {
	var said []string
	for _, sentence := range []struct {
		effect      client.Effect
		of, outcome string
	}{
		{client.Omitted, "", "left out"},
		{client.ArgumentsUnchecked, "the arguments of ", "not checked"},
		{client.ResultsUnchecked, "the results of ", "not checked"},
	} {
		for _, items := range byMethod(problems, sentence.effect) {
			be := "are"
			if len(items) == 1 && sentence.effect == client.Omitted {
				be = "is"
			}
			said = append(said, fmt.Sprintf("%s%s %s %s (%s)", sentence.of, s.share(items), be, sentence.outcome, named(items)))
		}
	}
	for _, items := range byMethod(problems, client.Incomplete) {
		first := items[0]
		if listed := nouns[first.Method]; listed != "" {
			said = append(said, fmt.Sprintf("its list of %ss may be incomplete (%s)", listed, first.Why))
			continue
		}
		first.Effect = client.Changed // which is not in the text
		said = append(said, first.String())
	}
	switch changed := slices.Concat(byMethod(problems, client.Changed)...); len(changed) {
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
// status does not have, or "at least 2 tools" if not all problems are known.
func (s *ServerStatus) share(items []client.Problem) string {
	method := items[0].Method
	share, all := strconv.Itoa(len(items)), len(items)
	switch {
	case slices.ContainsFunc(s.Problems, func(p client.Problem) bool { return p.Method == method && p.Effect == client.Incomplete }):
		share = "at least " + share
	case method == mcp.MethodToolsList && s.Tools > 0:
		all = s.Tools + s.omitted(method)
		share += " of " + strconv.Itoa(all)
	}
	if all != 1 {
		return share + " " + noun(&items[0]) + "s"
	}
	return share + " " + noun(&items[0])
}

// omitted counts the items that are not in a list.
func (s *ServerStatus) omitted(method string) (n int) {
	for i := range s.Problems {
		if p := &s.Problems[i]; p.Method == method && p.Effect == client.Omitted {
			n++
		}
	}
	return n
}

// named are the names of items, or the places of those that have none, and why there is a problem
// if there is only one.
func named(items []client.Problem) string {
	var names []string
	for i := range items[:min(len(items), maxNamed)] {
		names = append(names, label(&items[i], i))
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

// label is what one item is called. A long name is not cut: its beginning could be a part of a secret
// that the server repeats, which nobody could mask then.
func label(p *client.Problem, i int) string {
	if name := strconv.Quote(p.Subject); p.Subject != "" && len(name) <= maxNameShown {
		return name
	}
	if p.Place != "" && len(p.Place) <= maxNameShown {
		return p.Place
	}
	return fmt.Sprintf("number %d of them", i+1)
}
