package memory

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
)

// A Graph is a part of the graph, or all of it, as tools give it.
type Graph struct {
	Entities  []Entity   `json:"entities"`
	Relations []Relation `json:"relations"`
	// NextOffset is where the next page begins; absent on the last.
	NextOffset int `json:"nextOffset,omitzero" desc:"The offset of the next page: present if there is more."`
	// UnreadableLines is the number of lines of the file that cannot be read, and are not part of the graph.
	UnreadableLines int `json:"unreadableLines,omitzero" desc:"How many lines of the file cannot be read and were left out."`
}

// A page says which part of a list of entities, and after them relations, is wanted.
type page struct {
	offset, limit int // limit 0: all that fit
	most          int // bytes of JSON, roughly
}

// part gives a page of some entities and of the relations that begin or end at one of them; with all
// also of relations that lead from nowhere to nowhere. total is the number of all that pages have.
func (g *graph) part(steps *servers.Steps, nodes []*node, all bool, p page) (part Graph, total int, err error) {
	part = Graph{Entities: []Entity{}, Relations: []Relation{}, UnreadableLines: len(g.bad)}
	found := make(map[string]struct{}, len(nodes))
	for _, n := range nodes {
		found[n.Name] = struct{}{}
	}
	size, full := 0, false
	// take reports whether the next item, of some bytes, is on the page.
	take := func(bytes int) bool {
		at := total
		total++
		if at < p.offset || full {
			return false
		}
		size += bytes
		taken := at - p.offset
		if full = taken > 0 && (size > p.most || taken == p.limit); full {
			part.NextOffset = at
		}
		return !full
	}
	for _, n := range nodes {
		if err := steps.Add(16 * len(n.Observations)); err != nil {
			return part, total, err
		}
		if take(n.size()) {
			part.Entities = append(part.Entities, n.Entity)
		}
	}
	for i := range g.edges {
		if err := steps.Add(0); err != nil {
			return part, total, err
		}
		r := g.edges[i].Relation
		if !all && !has(found, r.From) && !has(found, r.To) {
			continue
		}
		if take(len(r.From) + len(r.To) + len(r.RelationType) + relationSize) {
			part.Relations = append(part.Relations, r)
		}
	}
	return part, total, nil
}

// About how many bytes the JSON of an entity, an observation and a relation has besides its texts.
const (
	entitySize      = 80
	observationSize = 6
	relationSize    = 70
)

// size is about how many bytes the entity has as JSON.
func (n *node) size() int {
	size := len(n.Name) + len(n.EntityType) + entitySize
	for _, o := range n.Observations {
		size += len(o) + observationSize
	}
	return size
}

// indent writes JSON as the reference server does: two spaces for each level.
func indent(v any) (string, error) {
	text, err := encodeJSON(v)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return "", err
	}
	return out.String(), nil
}

// give makes the result of a tool: text has the JSON that the reference server gives as text, which is
// not always the structured value.
func give[T any](value T, text any, notes ...string) (mcp.With[T], error) {
	said, err := indent(text)
	if err != nil {
		return mcp.With[T]{}, fmt.Errorf("encoding the result: %w", err)
	}
	result := mcp.With[T]{Value: value, Content: []mcp.Content{mcp.Text(said)}}
	for _, note := range notes {
		result.Content = append(result.Content, mcp.Text(note))
	}
	return result, nil
}
