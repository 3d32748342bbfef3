package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/app/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type createEntitiesIn struct {
	Entities []Entity `json:"entities" desc:"The entities to create."`
}

type createEntitiesOut struct {
	Entities []Entity `json:"entities" desc:"Those that are new."`
}

type relationsIn struct {
	Relations []Relation `json:"relations" desc:"The relations."`
}

type createRelationsOut struct {
	Relations []Relation `json:"relations" desc:"Those that are new."`
}

type addObservationsIn struct {
	Observations []Observations `json:"observations" desc:"What to add, for each entity."`
}

type addObservationsOut struct {
	Results []Added `json:"results" desc:"What was new, for each entity."`
}

// addingTools add to the graph.
func addingTools(s *store, scopes []string) []server.Feature {
	return []server.Feature{
		server.Tool("create_entities", "Remembers new entities with what is known about them. Entities whose names are there already are left as they are: use add_observations for them.",
			creating(s, func(g *graph, in createEntitiesIn) []Entity { return g.createEntities(in.Entities) },
				func(added []Entity) createEntitiesOut { return createEntitiesOut{added} }),
		).With(server.ToolOptions{Title: "Create Entities", Annotations: servers.Hints(false, false, false), Scopes: scopes}),

		server.Tool("create_relations", "Remembers relations between entities, in active voice. Those that are there already are left out.",
			creating(s, func(g *graph, in relationsIn) []Relation { return g.createRelations(in.Relations) },
				func(added []Relation) createRelationsOut { return createRelationsOut{added} }),
		).With(server.ToolOptions{Title: "Create Relations", Annotations: servers.Hints(false, false, false), Scopes: scopes}),

		server.Tool("add_observations", "Adds facts to entities that are there. Fails, and adds nothing, if one of the entities is not.",
			func(ctx context.Context, in addObservationsIn) (mcp.With[addObservationsOut], error) {
				var results []Added
				err := s.change(ctx, func(g *graph) (changed bool, err error) {
					results, err = g.addObservations(in.Observations)
					for _, r := range results {
						changed = changed || len(r.AddedObservations) > 0
					}
					return changed, err
				})
				if err != nil {
					return mcp.With[addObservationsOut]{}, err
				}
				return give(addObservationsOut{results}, results)
			}).With(server.ToolOptions{Title: "Add Observations", Annotations: servers.Hints(false, false, false), Scopes: scopes}),
	}
}

// creating makes a tool of a function that returns what it added, and one that makes the result of that.
func creating[In, Item, Out any](s *store, do func(g *graph, in In) []Item, result func(added []Item) Out) func(context.Context, In) (mcp.With[Out], error) {
	return func(ctx context.Context, in In) (mcp.With[Out], error) {
		var added []Item
		err := s.change(ctx, func(g *graph) (bool, error) {
			added = do(g, in)
			return len(added) > 0, nil
		})
		if err != nil {
			return mcp.With[Out]{}, err
		}
		return give(result(added), added)
	}
}

type deleteEntitiesIn struct {
	EntityNames []string `json:"entityNames" desc:"The names of the entities."`
}

type deleteObservationsIn struct {
	Deletions []Deletion `json:"deletions" desc:"What to delete, for each entity."`
}

// Deleted says that what was to be deleted is not there any more.
type Deleted struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// deletingTools take something out of the graph. What is not there is no failure.
func deletingTools(s *store, scopes []string) []server.Feature {
	return []server.Feature{
		server.Tool("delete_entities", "Forgets entities, with all relations that begin or end at them.",
			deleting(s, "Entities", func(g *graph, in deleteEntitiesIn) bool { return g.deleteEntities(in.EntityNames) },
				func(g *graph, in deleteEntitiesIn) []string { return g.entitiesOf(in.EntityNames) }),
		).With(server.ToolOptions{Title: "Delete Entities", Annotations: servers.Hints(false, true, true), Scopes: scopes}),

		server.Tool("delete_observations", "Forgets observations of entities.",
			deleting(s, "Observations", func(g *graph, in deleteObservationsIn) bool { return g.deleteObservations(in.Deletions) },
				func(g *graph, in deleteObservationsIn) []string { return g.observationsOf(in.Deletions) }),
		).With(server.ToolOptions{Title: "Delete Observations", Annotations: servers.Hints(false, true, true), Scopes: scopes}),

		server.Tool("delete_relations", "Forgets relations.",
			deleting(s, "Relations", func(g *graph, in relationsIn) bool { return g.deleteRelations(in.Relations) },
				func(g *graph, in relationsIn) []string { return g.relationsOf(in.Relations) }),
		).With(server.ToolOptions{Title: "Delete Relations", Annotations: servers.Hints(false, true, true), Scopes: scopes}),
	}
}

// deleting makes a tool of a function that reports whether it deleted anything, and one that names what
// it would delete.
func deleting[In any](s *store, what string, do func(g *graph, in In) bool, names func(g *graph, in In) []string) func(context.Context, In) (mcp.With[Deleted], error) {
	return func(ctx context.Context, in In) (mcp.With[Deleted], error) {
		if s.o.Confirm && server.CanElicit(ctx) {
			var there []string
			err := s.view(ctx, func(g *graph) error {
				there = names(g, in)
				return nil
			})
			if err == nil && len(there) > 0 {
				err = servers.Confirm(ctx, fmt.Sprintf("Forget these %s: %s?", strings.ToLower(what), some(there)))
			}
			if err != nil {
				return mcp.With[Deleted]{}, err
			}
		}
		if err := s.change(ctx, func(g *graph) (bool, error) { return do(g, in), nil }); err != nil {
			return mcp.With[Deleted]{}, err
		}
		said := what + " deleted successfully"
		return mcp.With[Deleted]{Value: Deleted{true, said}, Content: []mcp.Content{mcp.Text(said)}}, nil
	}
}

// some are texts as a person is shown them: the first of them, shortened.
func some(list []string) string {
	const most, length = 10, 80
	var shown []string
	for _, text := range list[:min(len(list), most)] {
		shown = append(shown, fmt.Sprintf("%.*q", length, text))
	}
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
	}
	return strings.Join(shown, ", ")
}

type pageIn struct {
	Offset int `json:"offset" desc:"Where to begin: the nextOffset of the page before." min:"0" default:"0"`
	Limit  int `json:"limit,omitzero" desc:"How many entities and relations at most. Default: as many as fit." min:"1"`
}

type searchIn struct {
	Query string `json:"query" desc:"A text to find in names, types and observations; upper and lower case are the same."`
	pageIn
}

type openIn struct {
	Names []string `json:"names" desc:"The names of the entities, in the spelling that they have."`
	pageIn
}

// readingTools change nothing.
func readingTools(s *store) []server.Feature {
	options := func(title string) server.ToolOptions {
		return server.ToolOptions{Title: title, Annotations: servers.Hints(true, false, true)}
	}
	return []server.Feature{
		server.Tool("read_graph", "Gives everything that is remembered. Prefer search_nodes or open_nodes if you know what you look for.",
			func(ctx context.Context, in pageIn) (mcp.With[Graph], error) {
				return s.read(ctx, in, true, func(g *graph) []*node { return g.nodes })
			}).With(options("Read Graph")),

		server.Tool("search_nodes", "Finds entities by a text in their name, type or observations, with their relations to any entity.",
			func(ctx context.Context, in searchIn) (mcp.With[Graph], error) {
				return s.read(ctx, in.pageIn, false, func(g *graph) []*node { return g.search(in.Query) })
			}).With(options("Search Nodes")),

		server.Tool("open_nodes", "Gives entities by their names, with their relations to any entity. Names that are not there are left out.",
			func(ctx context.Context, in openIn) (mcp.With[Graph], error) {
				return s.read(ctx, in.pageIn, false, func(g *graph) []*node { return g.open(in.Names) })
			}).With(options("Open Nodes")),
	}
}

// read gives a page of the entities that find finds, and of their relations.
func (s *store) read(ctx context.Context, in pageIn, all bool, find func(g *graph) []*node) (mcp.With[Graph], error) {
	var part Graph
	var total int
	err := s.view(ctx, func(g *graph) error {
		part, total = g.part(find(g), all, page{in.Offset, in.Limit, s.o.MaxResult})
		return nil
	})
	if err != nil {
		return mcp.With[Graph]{}, err
	}
	if part.NextOffset == 0 {
		return give(part, part)
	}
	return give(part, part, fmt.Sprintf("This is a part: %d entities and %d relations of %d in all. Call it again with offset %d for more.",
		len(part.Entities), len(part.Relations), total, part.NextOffset))
}
