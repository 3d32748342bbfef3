package use

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

func (g *group) promptCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "prompt [NAME [KEY=VALUE...]]",
		Aliases: []string{"prompts"},
		Short:   "Get a prompt, or list the prompts",
		Example: `  parley prompt
  parley prompt greeting name=Ada`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var values map[string]string
			if len(args) > 0 {
				var err error
				if values, err = connect.Texts(args[1:]); err != nil {
					return err
				}
			}
			return g.WithOne(cmd.Context(), func(c *client.Client) error {
				if len(args) == 0 {
					return g.listPrompts(cmd, c)
				}
				result, err := c.GetPrompt(cmd.Context(), args[0], values, nil)
				if err != nil {
					return err
				}
				if g.JSON {
					return g.PrintJSON(result)
				}
				var b strings.Builder
				for _, m := range result.Messages {
					fmt.Fprintf(&b, "%s: %s\n", m.Role, host.ContentText(m.Content))
				}
				return g.Print(b.String())
			})
		},
	}
}

func (g *group) listPrompts(cmd *cobra.Command, c *client.Client) error {
	prompts := []*mcp.Prompt{}
	for prompt, err := range c.Prompts(cmd.Context()) {
		if errors.Is(err, client.ErrNotCapable) {
			break
		}
		if err != nil {
			return err
		}
		prompts = append(prompts, prompt)
	}
	if g.JSON {
		return g.PrintMaskedJSON(struct {
			Prompts []*mcp.Prompt `json:"prompts"`
		}{prompts})
	}
	var t kit.Table
	for _, prompt := range prompts {
		var names []string
		for _, a := range prompt.Arguments {
			name := a.Name
			if !a.Required {
				name += "?"
			}
			names = append(names, name)
		}
		t.Add(prompt.Name+"("+strings.Join(names, ", ")+")", cmp.Or(prompt.Description, prompt.Title))
	}
	return g.Print(g.Masked(t.String()))
}

func (g *group) completeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "complete (prompt NAME | resource TEMPLATE) KEY=PREFIX [KEY=VALUE...]",
		Short: "Complete an argument of a prompt or template",
		Long: `Ask the server for values that start with PREFIX, for a prompt argument or a
variable of a resource template. Further KEY=VALUE pairs are arguments that are
already filled in.`,
		Example: `  parley complete prompt briefing city=Par
  parley complete resource 'demo://cities/{country}/{city}' city=M country=France`,
		Args: kit.UsageArgs(cobra.MinimumNArgs(3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := connect.Pairs(args[2:])
			if err != nil {
				return err
			}
			params := &mcp.CompleteParams{Argument: mcp.CompletionArgument{Name: given[0].Key, Value: given[0].Value}}
			switch args[0] {
			case "prompt":
				params.Ref = mcp.PromptRef(args[1])
			case "resource":
				params.Ref = mcp.ResourceRef(args[1])
			default:
				return kit.Usagef("complete %q: write 'complete prompt NAME ...' or 'complete resource TEMPLATE ...'", args[0])
			}
			if len(given) > 1 {
				params.Context = &mcp.CompletionContext{Arguments: make(map[string]string)}
				for _, pair := range given[1:] {
					params.Context.Arguments[pair.Key] = pair.Value
				}
			}
			return g.WithOne(cmd.Context(), func(c *client.Client) error {
				result, err := c.Complete(cmd.Context(), params)
				if err != nil {
					return err
				}
				if g.JSON {
					return g.PrintJSON(result)
				}
				for _, value := range result.Values {
					if err := g.Println(host.EscapeLine(value)); err != nil {
						return err
					}
				}
				if result.HasMore {
					g.Note("parley: the server has more values; give a longer prefix")
				}
				return nil
			})
		},
	}
}
