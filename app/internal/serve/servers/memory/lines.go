package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
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

// parse reads a file. The graph holds on to parts of data.
func parse(steps *servers.Steps, data []byte) (*graph, error) {
	g := newGraph()
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) { // a byte order mark
		if err := steps.Add(len(line)); err != nil {
			return nil, err
		}
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		err := g.read(line)
		if err == nil {
			continue
		}
		for _, part := range split(line) {
			if len(part) < len(line) {
				err = g.read(part)
			}
			if err != nil {
				g.bad = append(g.bad, badLine{number, part, err})
			}
		}
	}
	return g, nil
}

// split returns the records on a line that is not one: a program that appends to a file without a
// newline at its end writes on the last line. The last one is the rest that is not JSON, if there is
// any. A line without an entity or relation is one part.
func split(line []byte) [][]byte {
	parts := values(line)
	g := newGraph()
	for _, part := range parts {
		if err := g.read(part); err == nil && len(g.nodes)+len(g.edges) > 0 {
			return parts
		}
	}
	return [][]byte{line}
}

// values returns the JSON values on a line, and the rest that is not JSON.
func values(line []byte) (records [][]byte) {
	dec := json.NewDecoder(bytes.NewReader(line))
	for {
		begin := dec.InputOffset()
		var record json.RawMessage
		if err := dec.Decode(&record); err != nil {
			if rest := bytes.TrimSpace(line[begin:]); len(rest) > 0 {
				records = append(records, rest)
			}
			return records
		}
		records = append(records, bytes.TrimSpace(line[begin:dec.InputOffset()]))
	}
}

// read adds the record on a line. The names of members are taken in their exact spelling: "Name" is another
// program's.
func (g *graph) read(line []byte) error {
	var m map[string]any // a struct would ignore the case of names
	if err := json.Unmarshal(line, &m); m == nil || err != nil && !isNumberError(err) {
		return errors.New("it is not a JSON object, or was cut off")
	}
	switch m["type"] {
	case typeEntity:
		return g.readEntity(line, m)
	case typeRelation:
		return g.readRelation(line, m)
	}
	g.foreign = append(g.foreign, line)
	return nil
}

// isNumberError reports whether JSON has no other fault than a number that Go cannot hold. The rest was
// decoded, and no member of ours is a number.
func isNumberError(err error) bool {
	_, is := errors.AsType[*json.UnmarshalTypeError](err)
	return is
}

func (g *graph) readEntity(line []byte, m map[string]any) error {
	name, named := m["name"].(string)
	entityType, typed := m["entityType"].(string)
	list, listed := m["observations"].([]any)
	good := named && typed && (listed || m["observations"] == nil)
	n := &node{Entity: Entity{Name: name, EntityType: entityType}, line: line}
	for _, o := range list {
		text, is := o.(string)
		good = good && is
		n.Observations = append(n.Observations, text)
	}
	if !good {
		return errors.New("an entity has the texts name and entityType, and texts as observations")
	}
	g.addNode(n)
	return nil
}

func (g *graph) readRelation(line []byte, m map[string]any) error {
	from, begins := m["from"].(string)
	to, ends := m["to"].(string)
	relationType, typed := m["relationType"].(string)
	if !begins || !ends || !typed {
		return errors.New("a relation has the texts from, to and relationType")
	}
	g.addEdge(edge{Relation{from, to, relationType}, line})
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

// encode writes the lines of a graph: entities, relations, then the lines of others and those that cannot
// be read. Every line is made that was not there. size is about how many bytes they have without those.
func (g *graph) encode(steps *servers.Steps, size int) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(size + size/8) // growing later copies all of it
	number := 0
	write := func(line []byte) error {
		number++
		out.Write(line)
		out.WriteByte('\n')
		return steps.Add(len(line))
	}
	for _, n := range g.nodes {
		if len(n.line) == 0 || n.line[0] == changedMark {
			line, err := n.encode()
			if err != nil {
				return nil, err
			}
			n.line = line
		}
		if err := write(n.line); err != nil {
			return nil, err
		}
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
		if err := write(e.line); err != nil {
			return nil, err
		}
	}
	for _, line := range g.foreign {
		if err := write(line); err != nil {
			return nil, err
		}
	}
	for i := range g.bad {
		if err := write(g.bad[i].text); err != nil {
			return nil, err
		}
		g.bad[i].number = number
	}
	return out.Bytes(), nil
}

// encode makes the line of an entity, with the members that others had added to it.
func (n *node) encode() ([]byte, error) {
	line, err := encodeJSON(entityLine{typeEntity, n.Name, n.EntityType, n.Observations})
	if err != nil || len(n.line) == 0 {
		return line, err
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(n.line[1:], &m); err != nil {
		return nil, err
	}
	for _, own := range []string{"type", "name", "entityType", "observations"} {
		delete(m, own)
	}
	line = line[:len(line)-1]
	for _, name := range slices.Sorted(maps.Keys(m)) {
		key, err := encodeJSON(name)
		if err != nil {
			return nil, err
		}
		line = append(append(append(append(line, ','), key...), ':'), m[name]...)
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
