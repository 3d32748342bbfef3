package use

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

func (g *group) toolsCommand() *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the servers' tools",
		Long: `List the servers' tools. With --for it shows how a provider's models
receive them: their names, and the schema keywords removed because the provider
does not support them.`,
		Example: `  parley tools
  parley tools --for gemini
  parley tools --json --server 'npx -y @modelcontextprotocol/server-everything stdio'`,
		Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if provider != "" { // before servers are started
				if _, err := profileOf(provider); err != nil {
					return err
				}
			}
			return g.withCatalog(cmd.Context(), func(_ *host.Host, catalog *host.Catalog) error {
				if provider != "" {
					return g.printToolsFor(catalog, provider)
				}
				return g.printTools(catalog)
			})
		},
	}
	cmd.Flags().StringVar(&provider, "for", "", "show the schema keywords removed for models of this `PROVIDER`: anthropic, openai or gemini")
	return cmd
}

// reportDown reports the servers that cannot be used. It returns an error if none can.
func (g *group) reportDown(h *host.Host, c *host.Catalog) error {
	if len(c.Down) > 0 && len(c.Down) == len(h.Servers()) {
		return c.Down[0]
	}
	for _, e := range c.Down {
		g.Note("parley: %s", connect.Explain(g.SignIns.Named(e)))
	}
	return nil
}

// settleTime is how long the servers have to start and to list their tools. Their own
// limits are shorter.
const settleTime = 5 * time.Minute

// withCatalog opens the host and lists the tools of its servers, for commands
// that are about tools. Servers that are down are reported.
func (g *group) withCatalog(ctx context.Context, fn func(h *host.Host, catalog *host.Catalog) error) error {
	return g.With(ctx, func(h *host.Host) error {
		catalog := h.Settle(ctx, settleTime)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := g.reportDown(h, catalog); err != nil {
			return err
		}
		return fn(h, catalog)
	})
}

// A listedTool is a tool in the JSON of the command "tools".
type listedTool struct {
	Server string    `json:"server"`
	Tool   *mcp.Tool `json:"tool"`
}

// A listedProblem is an invalid part of a server's answers in the JSON of the command "tools".
type listedProblem struct {
	Server string `json:"server"`
	client.Problem
}

func (g *group) printTools(c *host.Catalog) error {
	if g.JSON {
		var problems []listedProblem
		for i := range c.Servers {
			for _, problem := range c.Servers[i].Problems {
				problems = append(problems, listedProblem{c.Servers[i].Name, problem})
			}
		}
		list := make([]listedTool, 0, len(c.Tools))
		for _, t := range c.Tools {
			list = append(list, listedTool{t.Server, t.Def})
		}
		return g.PrintMaskedJSON(struct {
			Tools    []listedTool    `json:"tools"`
			Problems []listedProblem `json:"problems,omitempty"`
		}{list, problems})
	}
	var t kit.Table
	for _, tool := range c.Tools {
		about := tool.Def.Description
		if about == "" {
			about = tool.Def.Title
		}
		t.Add(tool.Server+"/"+tool.Def.Name+"("+strings.Join(model.Signature(tool.Def.InputSchema), ", ")+")", about)
	}
	return g.Print(g.Masked(t.String()))
}

func (g *group) callCommand() *cobra.Command {
	var args string
	var task bool
	cmd := &cobra.Command{
		Use:   "call TOOL [KEY=VALUE...]",
		Short: "Call a tool",
		Long: `Call a tool with arguments written as KEY=VALUE or, with --args, as one JSON
object. Parley converts values according to the tool's schema; write an array as
a,b or as several KEY=VALUE. If several servers have a tool of that name, write
SERVER/TOOL.

A server can turn a long call into a task. Parley waits for the task to end as for
any call, and Ctrl-C cancels it. With --task, Parley prints the task's identifier
instead of waiting; 'parley tasks' does the rest. A server that was started for
the command ends with it; the task is then lost unless the server stores it.`,

		Example: `  parley call add a=2 b=3
  parley call note tags=red tags='dark blue'
  parley call everything/echo --args '{"message":"hello"}'
  parley call --task index repo=a/b --server https://example.com/mcp`,
		Args: kit.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			given, err := connect.KeyValues(words[1:])
			if err != nil {
				return err
			}
			if args != "" && len(given) > 0 {
				return kit.Usagef("arguments cannot be given both as KEY=VALUE and with --args")
			}
			return g.withCatalog(cmd.Context(), func(h *host.Host, catalog *host.Catalog) error {
				tool, err := findTool(catalog, words[0])
				if err != nil {
					return err
				}
				raw := mcp.RawValue(args)
				if args == "" {
					raw, err = model.Arguments(tool.Def.InputSchema, given)
				} else if wrong := model.CheckObject(raw); wrong != nil {
					err = fmt.Errorf(`--args: must be a JSON object: %w; for example --args '{"message":"hello"}'`, wrong)
				}
				if err != nil {
					return kit.Usagef("%w", err)
				}
				return g.call(cmd, h, tool, raw, task)
			})
		},
	}
	cmd.Flags().StringVar(&args, "args", "", "arguments as one `JSON` object")
	cmd.Flags().BoolVar(&task, "task", false, "if the call becomes a task, print its identifier instead of waiting;\nwith --json also its handle, for 'parley tasks'")
	return cmd
}

// findTool finds the tool that the user named.
func findTool(c *host.Catalog, name string) (*host.Tool, error) {
	var found []*host.Tool
	for _, t := range c.Tools {
		if t.Server+"/"+t.Def.Name == name || t.Def.Name == name {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, kit.Usagef("unknown tool %q%s; run 'parley tools' to list tools", name, similar(c, name))
	}
	var names []string
	for _, t := range found {
		names = append(names, host.EscapeLine(t.Server+"/"+t.Def.Name))
	}
	return nil, kit.Usagef("several servers have a tool %q; use one of %s", name, strings.Join(names, ", "))
}

// similar suggests tools whose names contain the given name, or are contained in it.
func similar(c *host.Catalog, name string) string {
	name = strings.ToLower(name)
	var names []string
	for _, t := range c.Tools {
		own := strings.ToLower(t.Def.Name)
		if strings.Contains(own, name) || strings.Contains(name, own) {
			names = append(names, host.EscapeLine(t.Def.Name))
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names[:min(len(names), 5)], " or ") + "?"
}

// call calls a tool for the user. Their command counts as consent, unless the administrator's rules
// deny the call.
func (g *group) call(cmd *cobra.Command, h *host.Host, tool *host.Tool, args mcp.RawValue, task bool) error {
	if err := g.ManagedDenial(&policy.Query{Kind: policy.KindTool, Server: tool.Server, Name: tool.Def.Name, Arguments: args}); err != nil {
		return err
	}
	c, err := h.Client(cmd.Context(), tool.Server)
	if err != nil {
		return err
	}
	if task {
		return g.startTask(cmd.Context(), c, tool, args)
	}
	progress := g.Progress(tool.Def.Name)
	result, err := c.CallTool(cmd.Context(), tool.Def.Name, args, &client.CallOptions{OnProgress: progress.Show})
	progress.End()
	if err != nil {
		return connect.AtServer(tool.Server, err)
	}
	return g.printResult(tool.Def.Name, result)
}

// printResult writes a tool's result. A failed result goes to standard error, unless the output is JSON.
func (g *group) printResult(tool string, result *mcp.CallToolResult) error {
	text := kit.Contents(result.Content)
	if untold := result.Untold(); untold != nil {
		text = strings.TrimPrefix(text+"\n"+string(untold), "\n")
	}
	switch {
	case g.JSON:
		if err := g.PrintJSON(result); err != nil {
			return err
		}
		if !result.IsError {
			break
		}
		if said := g.Output.Logged(text); said != "" {
			g.Note("parley: the tool %s failed%s", host.EscapeLine(tool), said)
		}
	case result.IsError:
		g.Note("parley: the tool %s failed: %s%s", host.EscapeLine(tool), host.Escape(text), g.Output.Logged(text))
	default:
		return g.Println(text)
	}
	if result.IsError {
		return &kit.SilentError{Code: kit.ExitTool}
	}
	return nil
}
