package use

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

func (g *group) readCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "read [URI]",
		Aliases: []string{"resources"},
		Short:   "Read a resource, or list the resources",
		Long: `Read a resource and write its contents. Without a URI, list the server's
resources and templates.`,
		Example: `  parley read
  parley read demo://text > text.txt`,
		Args: kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.WithOne(cmd.Context(), func(c *client.Client) error {
				if len(args) == 0 {
					return g.listResources(cmd, c)
				}
				result, err := c.ReadResource(cmd.Context(), args[0], nil)
				if err != nil {
					return err
				}
				if g.JSON {
					return g.PrintJSON(result)
				}
				return g.printContents(result.Contents)
			})
		},
	}
}

// printContents writes the contents of a resource: text with its line ended on
// a terminal, bytes as they are, but never to a terminal.
func (g *group) printContents(list []mcp.ResourceContents) error {
	for i := range list {
		c := &list[i]
		var err error
		switch {
		case c.Blob == nil && g.Streams.OutTerminal:
			err = g.Println(c.Text)
		case c.Blob == nil:
			err = g.Print(c.Text)
		case g.Streams.OutTerminal:
			err = g.Println(host.ResourceText(c) + "\nThe content is binary; redirect it to a file with > FILE")
		default:
			if _, err = g.Streams.Out.Write(c.Blob); err != nil {
				err = fmt.Errorf("writing the resource: %w", err)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *group) listResources(cmd *cobra.Command, c *client.Client) error {
	resources := []*mcp.Resource{}
	for r, err := range c.Resources(cmd.Context()) {
		if errors.Is(err, client.ErrNotCapable) {
			break
		}
		if err != nil {
			return err
		}
		resources = append(resources, r)
	}
	templates := []*mcp.ResourceTemplate{}
	for t, err := range c.ResourceTemplates(cmd.Context()) {
		if errors.Is(err, client.ErrNotCapable) {
			break
		}
		if err != nil {
			return err
		}
		templates = append(templates, t)
	}
	if g.JSON {
		return g.PrintMaskedJSON(struct {
			Resources []*mcp.Resource         `json:"resources"`
			Templates []*mcp.ResourceTemplate `json:"resourceTemplates"`
		}{resources, templates})
	}
	var t kit.Table
	for _, r := range resources {
		t.Add(r.URI, cmp.Or(r.Description, r.Title, r.Name))
	}
	for _, r := range templates {
		t.Add(r.URITemplate, cmp.Or(r.Description, r.Title, r.Name))
	}
	return g.Print(g.Masked(t.String()))
}
