package memory

import (
	"context"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// maxCompletions is how many names are suggested.
const maxCompletions = 100

type entityIn struct {
	Name string `uri:"name"`
}

// resources are the graph, which tells its subscribers of changes, and each entity.
func resources(s *store) []server.Feature {
	const mimeType = "application/json"
	return []server.Feature{
		server.Resource(GraphURI, "knowledge-graph", func(ctx context.Context) (string, error) {
			var part Graph
			err := s.view(ctx, func(steps *servers.Steps, g *graph) (err error) {
				part, _, err = g.part(steps, g.nodes, true, page{most: s.o.MaxResource})
				return err
			})
			if err == nil && part.NextOffset > 0 {
				err = mcp.Errorf("the graph is too large to be read at once (%d bytes of JSON at most); use the tool read_graph, which gives pages, or search_nodes", s.o.MaxResource)
			}
			if err != nil {
				return "", err
			}
			return indent(part)
		}).With(server.ResourceOptions{
			Title: "Knowledge Graph", Description: "Everything that is remembered: all entities and relations.", MIMEType: mimeType,
			Watch: s.watch,
		}),
		server.Template("memory://entity/{name}", "entity", func(ctx context.Context, in entityIn) (string, error) {
			var part Graph
			err := s.view(ctx, func(steps *servers.Steps, g *graph) error {
				nodes, err := g.open(steps, []string{in.Name})
				if err != nil {
					return err
				}
				if len(nodes) == 0 {
					return server.ErrNotFound
				}
				part, _, err = g.part(steps, nodes, false, page{most: s.o.MaxResource})
				return err
			})
			if err != nil {
				return "", err
			}
			return indent(part)
		}).With(server.TemplateOptions{
			Title: "Entity", Description: "One entity with its relations.", MIMEType: mimeType,
			Complete: map[string]server.Completer{"name": s.names},
		}),
	}
}

// names completes the name of an entity.
func (s *store) names(ctx context.Context, typed string, _ map[string]string) (names []string, err error) {
	typed = strings.ToLower(typed)
	err = s.view(ctx, func(steps *servers.Steps, g *graph) error {
		for _, n := range g.nodes {
			if err := steps.Add(len(n.Name)); err != nil {
				return err
			}
			if strings.HasPrefix(strings.ToLower(n.Name), typed) {
				if names = append(names, n.Name); len(names) == maxCompletions {
					break
				}
			}
		}
		return nil
	})
	return names, err
}
