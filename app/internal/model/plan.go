package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Weights of what speaks for a tool, and the least that must.
const (
	wholeName   = 100
	namePart    = 12
	keyFits     = 8
	keyUnknown  = -8
	described   = 2
	mostWords   = 4
	numbersFit  = 3
	numbersIdle = -3
	enough      = 6
)

// plan picks the tool for one step and fills its arguments. Without a tool the
// text says why.
func plan(step []token, tools []host.ToolSpec) (tool string, args mcp.RawValue, why string) {
	tools = ofServer(step, tools)
	if len(tools) == 0 {
		return "", nil, fmt.Sprintf("The offline model knows no tool %s. Its server may still be starting.", step[0].text)
	}
	best, bestScore := -1, enough-1
	for i := range tools {
		if score := score(step, &tools[i]); score > bestScore {
			best, bestScore = i, score
		}
	}
	if best < 0 {
		return "", nil, "The offline model finds no tool for that. It matches words with the names of tools: " + names(tools) + "."
	}
	args, missing := fill(step, &tools[best])
	if len(missing) > 0 {
		return "", nil, fmt.Sprintf("The offline model would call %s, but finds no value for %s. Write %s=... into the request.",
			tools[best].Name, strings.Join(missing, ", "), missing[0])
	}
	return tools[best].Name, args, ""
}

// ofServer are the tools that a step may mean: those of the server if it begins with
// SERVER/TOOL, else all. It begins so if any server has a tool of that name. Without a
// tool of the name at that server there are none.
func ofServer(step []token, tools []host.ToolSpec) []host.ToolSpec {
	server, own, ok := strings.Cut(step[0].text, "/")
	if !ok || step[0].kind != word {
		return tools
	}
	var list []host.ToolSpec
	named := false
	for i := range tools {
		prefix, name, found := strings.Cut(tools[i].Name, "__")
		if !found || !slices.Equal(parts(name), parts(own)) {
			continue
		}
		named = true
		if slices.Equal(parts(prefix), parts(server)) {
			list = append(list, tools[i])
		}
	}
	if !named {
		return tools
	}
	return list
}

// names lists tools for a person.
func names(tools []host.ToolSpec) string {
	const most = 40
	var list []string
	for i := range tools {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(tools)-most))
			break
		}
		list = append(list, ownName(tools[i].Name))
	}
	return strings.Join(list, ", ")
}

// ownName is the part of a model name after the server's.
func ownName(name string) string {
	if _, own, found := strings.Cut(name, "__"); found {
		return own
	}
	return name
}

// score says how well a tool fits a step.
func score(step []token, tool *host.ToolSpec) int {
	own := ownName(tool.Name)
	inName := parts(own)
	inText := parts(tool.Description)
	fields := fieldsOf(tool.InputSchema)
	total, words, numbers := 0, 0, 0
	seen := make(map[string]bool)
	for _, t := range step {
		switch t.kind {
		case quoted: // an argument, whatever it says
		case number:
			numbers++
		case pair:
			if find(fields, t.key) != nil {
				total += keyFits
			} else {
				total += keyUnknown
			}
		case word:
			switch {
			case strings.EqualFold(strings.Replace(t.text, "/", "__", 1), tool.Name): // with its server
				total += 2 * wholeName
			case strings.EqualFold(t.text, own):
				total += wholeName
			}
			for _, p := range parts(t.text) {
				switch {
				case idle[p] || seen[p]:
				case slices.Contains(inName, p):
					total += namePart + namePart/len(inName)
				case slices.Contains(inText, p) && words < mostWords:
					words++
					total += described
				}
				seen[p] = true
			}
		}
	}
	if total <= 0 || numbers == 0 {
		return total
	}
	wanted := 0
	for i := range fields {
		if fields[i].numeric() {
			wanted++
		}
	}
	switch wanted {
	case 0:
		total += numbersIdle
	case numbers:
		total += numbersFit
	}
	return total
}
