package memory

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// An Entity is a node of the graph, as tools take and give it.
type Entity struct {
	Name         string   `json:"name" desc:"The name of the entity. Names are unique."`
	EntityType   string   `json:"entityType" desc:"What kind of thing it is, such as person or project."`
	Observations []string `json:"observations" desc:"What is known about it, one fact each."`
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
	Contents   []string `json:"contents" desc:"The facts to add, one in each text."`
}

// Added are the observations of one entity that were new.
type Added struct {
	EntityName        string   `json:"entityName"`
	AddedObservations []string `json:"addedObservations"`
}

// Deletion are observations to delete from one entity.
type Deletion struct {
	EntityName   string   `json:"entityName" desc:"The name of the entity."`
	Observations []string `json:"observations" desc:"The observations to delete, word for word."`
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
	// foreign are lines of other types, which are kept.
	foreign [][]byte

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
func (g *graph) createEntities(entities []Entity) []Entity {
	added := []Entity{}
	for _, e := range entities {
		if _, there := g.byName[e.Name]; there {
			continue
		}
		n := &node{Entity: e}
		n.Observations = slices.Clone(e.Observations)
		g.addNode(n)
		added = append(added, e)
	}
	return added
}

// createRelations adds the relations that are new, and returns them.
func (g *graph) createRelations(relations []Relation) []Relation {
	added := []Relation{}
	for _, r := range relations {
		if _, there := g.known[r]; !there {
			g.addEdge(edge{Relation: r})
			added = append(added, r)
		}
	}
	return added
}

// addObservations adds what is new to entities that must all be there; nothing is added otherwise.
func (g *graph) addObservations(list []Observations) ([]Added, error) {
	for _, o := range list {
		if g.byName[o.EntityName] == nil {
			return nil, mcp.Errorf("Entity with name %s not found. Nothing was added; create it with create_entities, or look for its exact name with search_nodes", o.EntityName)
		}
	}
	// Each entity is gone through once, however often it is named.
	there, fresh := make(map[string]map[string]struct{}), make(map[string][]string)
	results := make([]Added, 0, len(list))
	for _, o := range list {
		if there[o.EntityName] == nil {
			there[o.EntityName] = set(g.byName[o.EntityName].Observations)
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
		if n := g.byName[name]; len(added) > 0 {
			n.Observations, n.line = slices.Concat(n.Observations, added), rewrite(n.line)
		}
	}
	return results, nil
}

// deleteEntities deletes entities and the relations that begin or end at them. It reports whether
// there were any.
func (g *graph) deleteEntities(names []string) bool {
	gone := set(names)
	entities, relations := len(g.nodes), len(g.edges)
	g.nodes = slices.DeleteFunc(g.nodes, func(n *node) bool { return has(gone, n.Name) })
	g.edges = slices.DeleteFunc(g.edges, func(e edge) bool { return has(gone, e.From) || has(gone, e.To) })
	if len(g.nodes) == entities && len(g.edges) == relations {
		return false
	}
	for _, name := range names {
		delete(g.byName, name)
	}
	g.rememberEdges()
	return true
}

// deleteObservations reports whether there were any.
func (g *graph) deleteObservations(list []Deletion) (changed bool) {
	all := make(map[string]map[string]struct{}) // by the name of the entity, which is gone through once
	for _, d := range list {
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
		left := slices.DeleteFunc(slices.Clone(n.Observations), func(text string) bool { return has(gone, text) })
		if len(left) < len(n.Observations) {
			n.Observations, n.line, changed = left, rewrite(n.line), true
		}
	}
	return changed
}

// deleteRelations reports whether there were any.
func (g *graph) deleteRelations(list []Relation) bool {
	gone := make(map[Relation]struct{}, len(list))
	for _, r := range list {
		gone[r] = struct{}{}
	}
	before := len(g.edges)
	g.edges = slices.DeleteFunc(g.edges, func(e edge) bool { return has(gone, e.Relation) })
	g.rememberEdges()
	return len(g.edges) < before
}

func (g *graph) rememberEdges() {
	clear(g.known)
	for _, e := range g.edges {
		g.known[e.Relation] = struct{}{}
	}
}

// entitiesOf are those of the names that deleteEntities would find.
func (g *graph) entitiesOf(names []string) []string {
	ends := make(map[string]struct{}, 2*len(g.edges))
	for i := range g.edges {
		ends[g.edges[i].From], ends[g.edges[i].To] = struct{}{}, struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return g.byName[name] == nil && !has(ends, name) })
}

// observationsOf are those that deleteObservations would find.
func (g *graph) observationsOf(list []Deletion) (found []string) {
	there := make(map[string]map[string]struct{}) // by the name of the entity, which is gone through once
	for _, d := range list {
		n := g.byName[d.EntityName]
		if n == nil {
			continue
		}
		if there[d.EntityName] == nil {
			there[d.EntityName] = set(n.Observations)
		}
		for _, text := range d.Observations {
			if has(there[d.EntityName], text) {
				found = append(found, d.EntityName+": "+text)
			}
		}
	}
	return found
}

// relationsOf are those that deleteRelations would find.
func (g *graph) relationsOf(list []Relation) (found []string) {
	for _, r := range list {
		if has(g.known, r) {
			found = append(found, r.From+" "+r.RelationType+" "+r.To)
		}
	}
	return found
}

// search finds the entities that have the text in their name, type or observations, in any case.
func (g *graph) search(query string) (found []*node) {
	query = strings.ToLower(query)
	within := func(text string) bool { return strings.Contains(strings.ToLower(text), query) }
	for _, n := range g.nodes {
		if within(n.Name) || within(n.EntityType) || slices.ContainsFunc(n.Observations, within) {
			found = append(found, n)
		}
	}
	return found
}

// open finds the entities that have one of the names.
func (g *graph) open(names []string) (found []*node) {
	wanted := set(names)
	for _, n := range g.nodes {
		if has(wanted, n.Name) {
			found = append(found, n)
		}
	}
	return found
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
