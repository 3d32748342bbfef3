package chat

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

func (g *group) chatCommand() *cobra.Command {
	var flags conversationFlags
	var plain, motion bool
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE]",
		Short: "Chat with a model that can call tools on your MCP servers",
		Long: `Start a conversation with a model that can use your servers: the servers in your
parley.jsonc and in the files of the other MCP clients on this machine, or those
given with --server. If there are none, Parley uses its built-in demo server. Set
the model in parley.jsonc or with --model; the default is the offline model, a small
planner that needs no key and no network. Unless a rule or a remembered approval
allows a call, Parley asks you first: allow it once or for longer, change the
arguments, or deny it with a reason for the model.

Type /help for the commands in the conversation. A message can begin with
/SERVER:PROMPT and contain @SERVER:URI. Ctrl-C cancels the request in progress;
a second Ctrl-C quits. Parley keeps the session; --resume last resumes it.

On a terminal the conversation uses the whole screen; F1 lists the keys. With
--plain, in a pipe, or if TERM is "dumb", it uses plain lines without colour or
movement, which suits screen readers. Parley respects NO_COLOR.`,
		Example: `  parley chat
  parley chat --resume last
  parley chat --server 'files=npx -y @modelcontextprotocol/server-filesystem .'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withConversation(cmd.Context(), &flags, true, func(c *conversation) error {
				if g.Streams.Screen && !plain {
					return g.chatScreen(cmd.Context(), c, strings.Join(args, " "), !motion)
				}
				return g.chat(cmd.Context(), c, strings.Join(args, " "))
			})
		},
	}
	g.conversationFlags(cmd, &flags)
	cmd.Flags().BoolVar(&plain, "plain", false, "print plain lines, without colour or movement")
	cmd.Flags().BoolVar(&motion, "motion", true, "show an animation on the screen while the model works")
	return cmd
}

// A conversationFace is what a face needs to show a conversation.
type conversationFace struct {
	host    ui.Host
	session ui.Session
	// kept are the sessions to which the person can go.
	kept *keptSessions
	// interrupts tell that the person wants to interrupt.
	interrupts chan os.Signal
	// since is the last record that is not shown: a long session would scroll away what
	// happened last.
	since int64
}

// withFace sends the first message if there is one, starts the servers, and has a face show
// the session until the person leaves.
func (g *group) withFace(ctx context.Context, c *conversation, first string, show func(f *conversationFace) error) error {
	kept := &keptSessions{p: g, host: c.host, store: c.store, model: c.model, open: c.session}
	f := &conversationFace{
		host: shownHost{ui.OfHost(c.host), g.Console, g.SignIns.Open()}, session: kept.show(), kept: kept,
		interrupts: make(chan os.Signal, 1), since: ui.LastExchanges(c.session.Snapshot().Records, ui.ShownExchanges),
	}
	defer g.Streams.DivertInterrupts(&f.interrupts)()
	if first != "" {
		if err := c.session.Send(ctx, host.Input{Text: first}); err != nil {
			return err
		}
	}
	if err := c.host.Start(); err != nil { // they are ready when they are needed
		return err
	}
	err := show(f)
	if err == nil && g.Streams.InTerminal && !g.unkept {
		g.Note("Saved the session; run 'parley chat --resume last' to resume it.")
	}
	return err
}

// chat shows the session in lines until the person leaves.
func (g *group) chat(ctx context.Context, c *conversation, first string) error {
	return g.withFace(ctx, c, first, func(f *conversationFace) error {
		line := ui.NewLine(g.Streams.Keyboard(), g.Streams.Out, &ui.LineOptions{
			Width: g.Streams.Width, Echo: !g.Streams.InTerminal, Interrupts: f.interrupts,
			Model: c.models, SetTitle: c.store.SetTitle, Discard: g.Streams.Discard(), Since: f.since,
			Sessions: f.kept, Logs: g.Output.Of, Image: clipboardImage, Now: g.Streams.Now,
		})
		g.Note("Session %s with the %s. /help lists the commands, /quit quits.", c.session.ID(), modelTitle(c.session.Model()))
		return line.Run(ctx, f.host, f.session)
	})
}
