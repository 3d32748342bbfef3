package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type createEntitiesIn struct {
	Entities []newEntity `json:"entities" desc:"The entities to create." maxlen:"10000"`
}

type createEntitiesOut struct {
	Entities []Entity `json:"entities" desc:"Those that are new."`
}

type relationsIn struct {
	Relations []Relation `json:"relations" desc:"The relations." maxlen:"10000"`
}

type createRelationsOut struct {
	Relations []Relation `json:"relations" desc:"Those that are new."`
}

type addObservationsIn struct {
	Observations []Observations `json:"observations" desc:"What to add, for each entity." maxlen:"10000"`
}

type addObservationsOut struct {
	Results []Added `json:"results" desc:"What was new, for each entity."`
}

// addingTools add to the graph.
func addingTools(s *store, scopes []string) []server.Feature {
	return []server.Feature{
		server.Tool("create_entities", "Remembers new entities with what is known about them. Entities whose names are there already are left as they are: use add_observations for them.",
			creating(s, func(steps *servers.Steps, g *graph, in createEntitiesIn) ([]Entity, error) {
				return g.createEntities(steps, in.Entities)
			},
				func(added []Entity) createEntitiesOut { return createEntitiesOut{added} }),
		).With(server.ToolOptions{Title: "Create Entities", Annotations: servers.Hints(false, false, false), Scopes: scopes}),

		server.Tool("create_relations", "Remembers relations between entities, in active voice. Those that are there already are left out. Fails, and adds nothing, if an entity at one of the ends does not exist.",
			creating(s, func(steps *servers.Steps, g *graph, in relationsIn) ([]Relation, error) {
				return g.createRelations(steps, in.Relations)
			},
				func(added []Relation) createRelationsOut { return createRelationsOut{added} }),
		).With(server.ToolOptions{Title: "Create Relations", Annotations: servers.Hints(false, false, false), Scopes: scopes}),

		server.Tool("add_observations", "Adds facts to entities that are there. Fails, and adds nothing, if one of the entities is not.",
			func(ctx context.Context, in addObservationsIn) (mcp.With[addObservationsOut], error) {
				var results []Added
				err := s.change(ctx, func(steps *servers.Steps, g *graph) (changed bool, err error) {
					results, err = g.addObservations(steps, in.Observations)
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
func creating[In, Item, Out any](s *store, do func(steps *servers.Steps, g *graph, in In) ([]Item, error), result func(added []Item) Out) func(context.Context, In) (mcp.With[Out], error) {
	return func(ctx context.Context, in In) (mcp.With[Out], error) {
		var added []Item
		err := s.change(ctx, func(steps *servers.Steps, g *graph) (changed bool, err error) {
			added, err = do(steps, g, in)
			return len(added) > 0, err
		})
		if err != nil {
			return mcp.With[Out]{}, err
		}
		return give(result(added), added)
	}
}

type deleteEntitiesIn struct {
	EntityNames []string `json:"entityNames" desc:"The names of the entities." maxlen:"10000"`
}

type deleteObservationsIn struct {
	Deletions []Deletion `json:"deletions" desc:"What to delete, for each entity." maxlen:"10000"`
}

// Deleted is the result of a deletion.
type Deleted struct {
	Success  bool     `json:"success" desc:"False if none of what was to be deleted exists."`
	Message  string   `json:"message"`
	Deleted  []string `json:"deleted" desc:"What was deleted: the first items. The message has their number."`
	NotFound []string `json:"notFound" desc:"What does not exist, so that it was not deleted: the first items."`
}

// deletingTools delete from the graph. Deleting something that does not exist is reported, and not an error.
func deletingTools(s *store, scopes []string) []server.Feature {
	options := func(title string) server.ToolOptions {
		return server.ToolOptions{Title: title, Annotations: servers.Hints(false, true, true), Scopes: scopes}
	}
	return []server.Feature{
		server.Tool("delete_entities", "Forgets entities, with all relations that begin or end at them. Reports names that do not exist.",
			deleting(s, "Entities",
				func(steps *servers.Steps, g *graph, in deleteEntitiesIn) (match, error) {
					return g.matchEntities(steps, in.EntityNames)
				},
				func(steps *servers.Steps, g *graph, in deleteEntitiesIn) error {
					return g.deleteEntities(steps, in.EntityNames)
				}),
		).With(options("Delete Entities")),

		server.Tool("delete_observations", "Forgets observations of entities. Reports observations that do not exist.",
			deleting(s, "Observations",
				func(steps *servers.Steps, g *graph, in deleteObservationsIn) (match, error) {
					return g.matchObservations(steps, in.Deletions)
				},
				func(steps *servers.Steps, g *graph, in deleteObservationsIn) error {
					return g.deleteObservations(steps, in.Deletions)
				}),
		).With(options("Delete Observations")),

		server.Tool("delete_relations", "Forgets relations. Reports relations that do not exist.",
			deleting(s, "Relations",
				func(steps *servers.Steps, g *graph, in relationsIn) (match, error) {
					return g.matchRelations(steps, in.Relations)
				},
				func(steps *servers.Steps, g *graph, in relationsIn) error {
					return g.deleteRelations(steps, in.Relations)
				}),
		).With(options("Delete Relations")),
	}
}

// deleting makes a tool of a function that looks for the items to delete, and one that deletes them.
func deleting[In any](s *store, items string, look func(steps *servers.Steps, g *graph, in In) (match, error), do func(steps *servers.Steps, g *graph, in In) error) func(context.Context, In) (mcp.With[Deleted], error) {
	return func(ctx context.Context, in In) (mcp.With[Deleted], error) {
		var m match
		if s.o.Confirm && server.CanElicit(ctx) {
			err := s.view(ctx, func(steps *servers.Steps, g *graph) (err error) {
				m, err = look(steps, g, in)
				return err
			})
			if err == nil && m.found.count > 0 {
				err = servers.Confirm(ctx, fmt.Sprintf("Forget these %s: %s?", strings.ToLower(items), some(m.found.shown, m.found.count)))
			}
			if err != nil {
				return mcp.With[Deleted]{}, err
			}
		}
		err := s.change(ctx, func(steps *servers.Steps, g *graph) (changed bool, err error) {
			if m, err = look(steps, g, in); err != nil || m.found.count == 0 {
				return false, err
			}
			return true, do(steps, g, in)
		})
		if err != nil {
			return mcp.With[Deleted]{}, err
		}
		out := m.deleted(items)
		return mcp.With[Deleted]{Value: out, Content: []mcp.Content{mcp.Text(out.Message)}}, nil
	}
}

// deleted returns the result of deleting the items that were found.
func (m *match) deleted(items string) Deleted {
	out := Deleted{
		Success: m.found.count > 0 || m.missing.count == 0, Message: items + " deleted successfully",
		Deleted: append([]string{}, m.found.shown...), NotFound: append([]string{}, m.missing.shown...),
	}
	if m.missing.count > 0 {
		out.Message = fmt.Sprintf("Deleted %d of %d %s. Not found: %s", m.found.count, m.found.count+m.missing.count, strings.ToLower(items), some(m.missing.shown, m.missing.count))
	}
	return out
}

// some are texts as a user is shown them: the first of them, shortened, and how many more there are
// of count.
func some(list []string, count int) string {
	const most, length = 10, 80
	var shown []string
	for _, text := range list[:min(len(list), most)] {
		shown = append(shown, fmt.Sprintf("%.*q", length, text))
	}
	if more := count - len(shown); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
	}
	return strings.Join(shown, ", ")
}

type pageIn struct {
	Offset int `json:"offset" desc:"Where to begin: the nextOffset of the page before." min:"0" default:"0"`
	Limit  int `json:"limit,omitzero" desc:"How many entities and relations at most. Default: as many as fit." min:"1"`
}

type searchIn struct {
	Query string `json:"query" desc:"Words to find in names, types and observations. An entity must have all of them, in any place and order; upper and lower case are the same." maxlen:"1000"`
	pageIn
}

type openIn struct {
	Names []string `json:"names" desc:"The names of the entities, in the spelling that they have." maxlen:"10000"`
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
				return s.read(ctx, in, true, func(_ *servers.Steps, g *graph) ([]*node, error) { return g.nodes, nil })
			}).With(options("Read Graph")),

		server.Tool("search_nodes", "Finds entities that have every word of a query in their name, type or observations, with their relations to any entity.",
			func(ctx context.Context, in searchIn) (mcp.With[Graph], error) {
				return s.read(ctx, in.pageIn, false, func(steps *servers.Steps, g *graph) ([]*node, error) { return g.search(steps, in.Query) })
			}).With(options("Search Nodes")),

		server.Tool("open_nodes", "Gives entities by their names, with their relations to any entity. Names that are not there are left out.",
			func(ctx context.Context, in openIn) (mcp.With[Graph], error) {
				return s.read(ctx, in.pageIn, false, func(steps *servers.Steps, g *graph) ([]*node, error) { return g.open(steps, in.Names) })
			}).With(options("Open Nodes")),
	}
}

// read gives a page of the entities that find finds, and of their relations.
func (s *store) read(ctx context.Context, in pageIn, all bool, find func(steps *servers.Steps, g *graph) ([]*node, error)) (mcp.With[Graph], error) {
	var part Graph
	var total int
	var notes []string
	err := s.view(ctx, func(steps *servers.Steps, g *graph) error {
		nodes, err := find(steps, g)
		if err != nil {
			return err
		}
		if len(g.bad) > 0 {
			notes = append(notes, fmt.Sprintf("Lines of the memory's file that cannot be read, and were left out: %d; the first is %v. The file keeps them until a person repairs it.", len(g.bad), &g.bad[0]))
		}
		part, total, err = g.part(steps, nodes, all, page{in.Offset, in.Limit, s.o.MaxResult})
		return err
	})
	if err != nil {
		return mcp.With[Graph]{}, err
	}
	if part.NextOffset > 0 {
		notes = append(notes, fmt.Sprintf("This is a part: %d entities and %d relations of %d in all. Call it again with offset %d for more.",
			len(part.Entities), len(part.Relations), total, part.NextOffset))
	}
	return give(part, part, notes...)
}
