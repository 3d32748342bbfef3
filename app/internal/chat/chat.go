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
		Short: "Talk with the model, which works with your servers while you decide",
		Long: `Open a conversation with the model and your servers: those of your own
parley.jsonc and of the other MCP clients on this machine, or those that --server
names, or without any the one that is built in. The model is that of your
parley.jsonc or of --model; without either it is the offline model, a small
planner that needs no key and no network. Every call that no rule or grant
allows is shown to you first: allow it once, for longer, with other arguments,
or refuse it with a reason that the model reads.

Type /help for the commands in the conversation. A message may begin with
/SERVER:PROMPT and may hold @SERVER:URI. Ctrl-C cancels what is under way, and
once more quits. The session is kept: --resume last goes on with it.

On a terminal the conversation has the whole screen: F1 lists the keys. With
--plain, in a pipe, or where TERM is "dumb", it is in whole lines, without colour
or movement, for screen readers too. NO_COLOR is heeded.`,
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
	cmd.Flags().BoolVar(&plain, "plain", false, "whole lines, without colour or movement")
	cmd.Flags().BoolVar(&motion, "motion", true, "on the screen, let something move while the model works")
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
		g.Note("The session is kept: 'parley chat --resume last' goes on with it.")
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
		g.Note("Session %s with the %s. /help lists what you can type, /quit ends.", c.session.ID(), modelTitle(c.session.Model()))
		return line.Run(ctx, f.host, f.session)
	})
}
