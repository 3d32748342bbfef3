package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Types of lines in the file.
const (
	typeEntity   = "entity"
	typeRelation = "relation"
)

// entityLine and relationLine are lines of the file, with their members in the order that the reference
// server gives them.
type entityLine struct {
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	EntityType   string   `json:"entityType"`
	Observations []string `json:"observations"`
}

type relationLine struct {
	Type         string `json:"type"`
	From         string `json:"from"`
	To           string `json:"to"`
	RelationType string `json:"relationType"`
}

// A badLine is a line of the file that cannot be read.
type badLine struct {
	number int // from 1
	text   []byte
	err    error
}

func (b *badLine) Error() string { return fmt.Sprintf("line %d: %v", b.number, b.err) }

// parse reads a file. The graph holds on to parts of data. What cannot be read is returned beside it.
func parse(data []byte) (*graph, []badLine) {
	g := newGraph()
	var bad []badLine
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) { // a byte order mark
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if err := g.read(line); err != nil {
			bad = append(bad, badLine{number, line, err})
		}
	}
	return g, bad
}

// read adds what a line has.
func (g *graph) read(line []byte) error {
	var l struct {
		Type         string    `json:"type"`
		Name         *string   `json:"name"`
		EntityType   *string   `json:"entityType"`
		Observations []*string `json:"observations"`
		From         *string   `json:"from"`
		To           *string   `json:"to"`
		RelationType *string   `json:"relationType"`
	}
	err := json.Unmarshal(line, &l)
	if l.Type != typeEntity && l.Type != typeRelation {
		if !json.Valid(line) || line[0] != '{' {
			return fmt.Errorf("it is not a JSON object, or was cut off")
		}
		g.foreign = append(g.foreign, line)
		return nil
	}
	if err != nil {
		return fmt.Errorf("it is not what a line of type %s is: %w", l.Type, err)
	}
	if l.Type == typeEntity {
		if l.Name == nil || l.EntityType == nil || slices.Contains(l.Observations, nil) {
			return fmt.Errorf("an entity has the texts name and entityType, and texts as observations")
		}
		n := &node{Entity: Entity{Name: *l.Name, EntityType: *l.EntityType}, line: line}
		for _, o := range l.Observations {
			n.Observations = append(n.Observations, *o)
		}
		g.addNode(n)
		return nil
	}
	if l.From == nil || l.To == nil || l.RelationType == nil {
		return fmt.Errorf("a relation has the texts from, to and relationType")
	}
	g.addEdge(edge{Relation{*l.From, *l.To, *l.RelationType}, line})
	return nil
}

// changedMark begins a line that must be written anew, with the members of others that it had.
const changedMark = '!'

// rewrite marks a line as changed.
func rewrite(line []byte) []byte {
	if len(line) == 0 || line[0] == changedMark {
		return line
	}
	return append([]byte{changedMark}, line...)
}

// encode writes the lines of a graph, with no end of line after the last, as the reference server does:
// entities, relations, and then the lines of others. Every line is made that was not there.
func (g *graph) encode() ([]byte, error) {
	var out bytes.Buffer
	write := func(line []byte) {
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		out.Write(line)
	}
	for _, n := range g.nodes {
		if len(n.line) == 0 || n.line[0] == changedMark {
			line, err := n.encode()
			if err != nil {
				return nil, err
			}
			n.line = line
		}
		write(n.line)
	}
	for i := range g.edges {
		e := &g.edges[i]
		if len(e.line) == 0 {
			line, err := encodeJSON(relationLine{typeRelation, e.From, e.To, e.RelationType})
			if err != nil {
				return nil, err
			}
			e.line = line
		}
		write(e.line)
	}
	for _, line := range g.foreign {
		write(line)
	}
	return out.Bytes(), nil
}

// encode makes the line of an entity, with the members that others had added to it.
func (n *node) encode() ([]byte, error) {
	line, err := encodeJSON(entityLine{typeEntity, n.Name, n.EntityType, n.Observations})
	if err != nil || len(n.line) == 0 {
		return line, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(n.line[1:], &members); err != nil {
		return nil, err
	}
	for _, own := range []string{"type", "name", "entityType", "observations"} {
		delete(members, own)
	}
	line = line[:len(line)-1]
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key, err := encodeJSON(name)
		if err != nil {
			return nil, err
		}
		line = append(append(append(append(line, ','), key...), ':'), members[name]...)
	}
	return append(line, '}'), nil
}

// encodeJSON encodes v on one line, with <, > and & as they are.
func encodeJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), nil
}
