package memory

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
)

// An Entity is a node of the graph, as tools take and give it.
type Entity struct {
	Name         string   `json:"name" desc:"The name of the entity. Names are unique."`
	EntityType   string   `json:"entityType" desc:"What kind of thing it is, such as person or project."`
	Observations []string `json:"observations" desc:"What is known about it, one fact each."`
}

// A newEntity is an Entity in the arguments of a call, which are bounded.
type newEntity struct {
	Name         string   `json:"name" desc:"The name of the entity. Names are unique."`
	EntityType   string   `json:"entityType" desc:"What kind of thing it is, such as person or project."`
	Observations []string `json:"observations" desc:"What is known about it, one fact each." maxlen:"10000"`
}

// A Relation is an edge of the graph, as tools take and give it.
type Relation struct {
	From         string `json:"from" desc:"The name of the entity where the relation starts."`
	To           string `json:"to" desc:"The name of the entity where the relation ends."`
	RelationType string `json:"relationType" desc:"The relation, in active voice, such as works_at."`
}

// Observations are facts about one entity.
type Observations struct {
	EntityName string   `json:"entityName" desc:"The name of the entity."`
	Contents   []string `json:"contents" desc:"The facts to add, one in each text." maxlen:"10000"`
}

// Added are the observations of one entity that were new.
type Added struct {
	EntityName        string   `json:"entityName"`
	AddedObservations []string `json:"addedObservations"`
}

// Deletion are observations to delete from one entity.
type Deletion struct {
	EntityName   string   `json:"entityName" desc:"The name of the entity."`
	Observations []string `json:"observations" desc:"The observations to delete, word for word." maxlen:"10000"`
}

// A node is an entity of the graph with its line in the file. A line that was read stays as it is until
// the entity changes, with members that others have added; it is nil when it must be written anew.
type node struct {
	Entity

	line []byte
}

// An edge is a relation of the graph with its line in the file.
type edge struct {
	Relation

	line []byte
}

// A graph is what is in the file. It is not safe for concurrent use.
type graph struct {
	nodes []*node
	edges []edge
	// foreign are lines of other types, and bad are lines that cannot be read. Both are kept.
	foreign [][]byte
	bad     []badLine

	byName map[string]*node // the first of each name
	known  map[Relation]struct{}
}

func newGraph() *graph {
	return &graph{byName: make(map[string]*node), known: make(map[Relation]struct{})}
}

func (g *graph) addNode(n *node) {
	if n.Observations == nil {
		n.Observations = []string{}
	}
	g.nodes = append(g.nodes, n)
	if _, there := g.byName[n.Name]; !there {
		g.byName[n.Name] = n
	}
}

func (g *graph) addEdge(e edge) {
	g.edges = append(g.edges, e)
	g.known[e.Relation] = struct{}{}
}

// createEntities adds the entities whose names are new, and returns them.
func (g *graph) createEntities(steps *servers.Steps, entities []newEntity) ([]Entity, error) {
	added := []Entity{}
	for _, e := range entities {
		if err := steps.Add(16 * len(e.Observations)); err != nil {
			return nil, err
		}
		if _, there := g.byName[e.Name]; there {
			continue
		}
		n := &node{Entity: Entity(e)}
		n.Observations = slices.Clone(e.Observations)
		g.addNode(n)
		added = append(added, Entity(e))
	}
	return added, nil
}

// createRelations adds the relations that are new, and returns them. If an end of one is not an entity,
// nothing is added.
func (g *graph) createRelations(steps *servers.Steps, relations []Relation) ([]Relation, error) {
	var ends []string
	for _, r := range relations {
		ends = append(ends, r.From, r.To)
	}
	if err := g.require(steps, ends); err != nil {
		return nil, err
	}
	added := []Relation{}
	for _, r := range relations {
		if err := steps.Add(0); err != nil {
			return nil, err
		}
		if _, there := g.known[r]; !there {
			g.addEdge(edge{Relation: r})
			added = append(added, r)
		}
	}
	return added, nil
}

// require returns an error that names the names that no entity has.
func (g *graph) require(steps *servers.Steps, names []string) error {
	var missing []string
	seen := make(map[string]struct{})
	for _, name := range names {
		if err := steps.Add(0); err != nil {
			return err
		}
		if g.byName[name] == nil && !has(seen, name) {
			seen[name] = struct{}{}
			missing = append(missing, name)
		}
	}
	const advice = "Nothing was added; create missing entities with create_entities, or look for exact names with search_nodes"
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return mcp.Errorf("Entity with name %s not found. %s", missing[0], advice)
	}
	return mcp.Errorf("Entities not found: %s. %s", some(missing, len(missing)), advice)
}

// addObservations adds new observations to entities. If one of the entities does not exist, nothing is
// added.
func (g *graph) addObservations(steps *servers.Steps, list []Observations) ([]Added, error) {
	var names []string
	for _, o := range list {
		names = append(names, o.EntityName)
	}
	if err := g.require(steps, names); err != nil {
		return nil, err
	}
	// Each entity is gone through once, however often it is named.
	there, fresh := make(map[string]map[string]struct{}), make(map[string][]string)
	results := make([]Added, 0, len(list))
	for _, o := range list {
		if there[o.EntityName] == nil {
			n := g.byName[o.EntityName]
			if err := steps.Add(64 * len(n.Observations)); err != nil {
				return nil, err
			}
			there[o.EntityName] = set(n.Observations)
		}
		if err := steps.Add(64 * len(o.Contents)); err != nil {
			return nil, err
		}
		known := there[o.EntityName]
		added := []string{}
		for _, text := range o.Contents {
			if !has(known, text) {
				known[text] = struct{}{}
				added = append(added, text)
			}
		}
		fresh[o.EntityName] = append(fresh[o.EntityName], added...)
		results = append(results, Added{o.EntityName, added})
	}
	for name, added := range fresh {
		n := g.byName[name]
		if err := steps.Add(16*len(n.Observations) + len(n.line)); err != nil {
			return nil, err
		}
		if len(added) > 0 {
			n.Observations, n.line = slices.Concat(n.Observations, added), rewrite(n.line)
		}
	}
	return results, nil
}

// deleteEntities deletes entities and the relations that begin or end at them.
func (g *graph) deleteEntities(steps *servers.Steps, names []string) (err error) {
	gone := set(names)
	if g.nodes, err = without(steps, g.nodes, func(n *node) bool { return has(gone, n.Name) }); err != nil {
		return err
	}
	for _, name := range names {
		delete(g.byName, name)
	}
	return g.deleteEdges(steps, func(r Relation) bool { return has(gone, r.From) || has(gone, r.To) })
}

// deleteObservations deletes observations of entities that exist.
func (g *graph) deleteObservations(steps *servers.Steps, list []Deletion) error {
	all := make(map[string]map[string]struct{}) // by the name of the entity, which is gone through once
	for _, d := range list {
		if err := steps.Add(64 * len(d.Observations)); err != nil {
			return err
		}
		if all[d.EntityName] == nil {
			all[d.EntityName] = make(map[string]struct{}, len(d.Observations))
		}
		for _, text := range d.Observations {
			all[d.EntityName][text] = struct{}{}
		}
	}
	for name, gone := range all {
		n := g.byName[name]
		if n == nil {
			continue
		}
		left, err := without(steps, slices.Clone(n.Observations), func(text string) bool { return has(gone, text) })
		if err != nil {
			return err
		}
		if len(left) < len(n.Observations) {
			n.Observations, n.line = left, rewrite(n.line)
		}
	}
	return nil
}

// deleteRelations deletes relations.
func (g *graph) deleteRelations(steps *servers.Steps, list []Relation) error {
	gone := make(map[Relation]struct{}, len(list))
	for _, r := range list {
		gone[r] = struct{}{}
	}
	return g.deleteEdges(steps, func(r Relation) bool { return has(gone, r) })
}

func (g *graph) deleteEdges(steps *servers.Steps, gone func(Relation) bool) (err error) {
	if g.edges, err = without(steps, g.edges, func(e edge) bool { return gone(e.Relation) }); err != nil {
		return err
	}
	clear(g.known)
	for _, e := range g.edges {
		if err := steps.Add(0); err != nil {
			return err
		}
		g.known[e.Relation] = struct{}{}
	}
	return nil
}

// without deletes the items for which gone reports true from a list.
func without[T any](steps *servers.Steps, list []T, gone func(T) bool) ([]T, error) {
	left := list[:0]
	for _, item := range list {
		if err := steps.Add(0); err != nil {
			return nil, err
		}
		if !gone(item) {
			left = append(left, item)
		}
	}
	clear(list[len(left):])
	return left, nil
}

// A match is the result of looking for the items of a deletion, in words for a user: how many there
// are, and the first of them.
type match struct {
	found, missing itemList
}

// An itemList has items of a deletion, of which shown are the first, and others as far as maxShown
// bytes hold them.
type itemList struct {
	count int
	bytes int
	shown []string
}

// maxShown is the most bytes of names of items in a result, for each of its lists.
const maxShown = 16 << 10

func (m *match) add(found bool, parts ...string) {
	to := &m.missing
	if found {
		to = &m.found
	}
	to.count++
	for _, part := range parts {
		to.bytes += len(part)
	}
	if to.bytes <= maxShown || to.count == 1 {
		to.shown = append(to.shown, strings.Join(parts, ""))
	}
}

// matchEntities looks for the entities that deleteEntities would delete.
func (g *graph) matchEntities(steps *servers.Steps, names []string) (m match, err error) {
	wanted, ends := set(names), make(map[string]struct{}) // the wanted names at which relations begin or end
	for i := range g.edges {
		if err := steps.Add(0); err != nil {
			return m, err
		}
		for _, name := range []string{g.edges[i].From, g.edges[i].To} {
			if has(wanted, name) {
				ends[name] = struct{}{}
			}
		}
	}
	for _, name := range names {
		m.add(g.byName[name] != nil || has(ends, name), name)
	}
	return m, nil
}

// matchObservations looks for the observations that deleteObservations would delete.
func (g *graph) matchObservations(steps *servers.Steps, list []Deletion) (m match, err error) {
	there := make(map[string]map[string]struct{}) // by the name of the entity, which is gone through once
	for _, d := range list {
		n := g.byName[d.EntityName]
		if n != nil && there[d.EntityName] == nil {
			if err := steps.Add(64 * len(n.Observations)); err != nil {
				return m, err
			}
			there[d.EntityName] = set(n.Observations)
		}
		for _, text := range d.Observations {
			if err := steps.Add(len(text)); err != nil {
				return m, err
			}
			m.add(has(there[d.EntityName], text), d.EntityName, ": ", text)
		}
	}
	return m, nil
}

// matchRelations looks for the relations that deleteRelations would delete.
func (g *graph) matchRelations(steps *servers.Steps, list []Relation) (m match, err error) {
	for _, r := range list {
		if err := steps.Add(0); err != nil {
			return m, err
		}
		m.add(has(g.known, r), r.From, " ", r.RelationType, " ", r.To)
	}
	return m, nil
}

// search finds the entities that have every word of a query in their name, type or observations, in
// upper or lower case. A query without a word finds all entities.
func (g *graph) search(steps *servers.Steps, query string) (found []*node, err error) {
	words := strings.Fields(strings.ToLower(query))
	for _, n := range g.nodes {
		if err := steps.Add(n.size()); err != nil {
			return nil, err
		}
		// A word has no white space, so it cannot match across a newline.
		text := strings.ToLower(n.Name + "\n" + n.EntityType + "\n" + strings.Join(n.Observations, "\n"))
		all := true
		for i := 0; i < len(words) && all; i++ {
			if err := steps.Add(len(text)); err != nil {
				return nil, err
			}
			all = strings.Contains(text, words[i])
		}
		if all {
			found = append(found, n)
		}
	}
	return found, nil
}

// open finds the entities that have one of the names.
func (g *graph) open(steps *servers.Steps, names []string) (found []*node, err error) {
	wanted := set(names)
	for _, n := range g.nodes {
		if err := steps.Add(0); err != nil {
			return nil, err
		}
		if has(wanted, n.Name) {
			found = append(found, n)
		}
	}
	return found, nil
}

func set(list []string) map[string]struct{} {
	m := make(map[string]struct{}, len(list))
	for _, s := range list {
		m[s] = struct{}{}
	}
	return m
}

func has[K comparable](m map[K]struct{}, k K) bool {
	_, ok := m[k]
	return ok
}
