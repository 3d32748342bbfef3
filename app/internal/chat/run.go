package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

func (g *group) runCommand() *cobra.Command {
	var flags conversationFlags
	cmd := &cobra.Command{
		Use:   "run REQUEST",
		Short: "Run one request without asking; only rules can allow calls",
		Long: `Give the model a request and the servers' tools. Parley makes a call if a rule or a
remembered approval allows it. It never asks, so scripts can use run: a call that
needs approval ends the run with exit code 3. Use 'parley chat' to be asked.

Write rules as SERVER/TOOL, with * for any characters; '*' matches everything.
--deny takes precedence over --ask, and --ask over --allow. The rules of your
configuration apply, too. The read-only tools of the built-in server are allowed.

Set the model in your parley.jsonc or with --model; 'parley model' shows it. The
default is the offline model: a small planner that needs no key and no network. It
matches words with tools, and fills arguments from key=value, numbers and quoted
strings.`,
		Example: `  parley run "add 2 and 3"
  parley run --allow 'everything/*' "echo message=hello; then add 2 and 3"
  parley run --resume last --json "add 4 and 5"`,
		Args: kit.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withConversation(cmd.Context(), &flags, false, func(c *conversation) error {
				return g.run(cmd.Context(), c, strings.Join(args, " "))
			})
		},
	}
	g.conversationFlags(cmd, &flags)
	g.JSONFlag(cmd)
	return cmd
}

// run runs one request and writes the answer.
func (g *group) run(ctx context.Context, c *conversation, request string) error {
	v := &view{p: g, calls: make(map[string]*host.CallRecord), progress: make(map[string]*kit.Progress)}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for r, err := range c.session.Watch(context.WithoutCancel(ctx), c.since) {
			if err != nil {
				return // Ask tells it
			}
			v.show(&r)
		}
	}()
	_, end, err := c.session.Ask(ctx, request)
	if closeErr := c.session.Close(); err == nil {
		err = closeErr
	}
	<-watched
	switch {
	case err != nil:
		return err
	case v.err != nil:
		return v.err
	case !g.JSON && !v.ended:
		if err := g.Print("\n"); err != nil {
			return err
		}
	}
	switch {
	case end.Refused > 0 && end.Calls == 0:
		return &kit.SilentError{Code: kit.ExitConsent}
	case end.Failed > 0 && end.Failed >= end.Calls:
		return &kit.SilentError{Code: kit.ExitTool}
	}
	return nil
}

// A view shows a run: the model's text as the result, the rest beside it; or for
// machines each record in a line.
type view struct {
	p        *group
	turn     *host.TurnRecord
	labelled bool // the text of the turn is
	ended    bool // the text ends its line
	err      error
	calls    map[string]*host.CallRecord
	progress map[string]*kit.Progress
}

// A jsonRecord is a record in a line of JSON.
type jsonRecord struct {
	N    int64        `json:"n"`
	Time time.Time    `json:"time"`
	Kind string       `json:"kind"`
	Body mcp.RawValue `json:"body"`
}

func (v *view) show(r *host.Record) {
	if v.p.JSON && r.N > 0 {
		v.json(r)
	}
	switch b := r.Body.(type) {
	case *host.TurnRecord:
		v.turn, v.labelled = b, false
	case *host.TextRecord:
		v.text(b.Text)
	case *host.CallRecord:
		v.calls[b.ID] = b
	case *host.StartRecord:
		call := v.calls[b.Call]
		v.p.Note("-> %s %s (%s)", callName(call), kit.OneLine(b.Arguments), host.EscapeLine(b.Why))
		v.progress[b.Call] = v.p.Progress(call.Tool)
	case *host.SkillRecord:
		v.skill(b)
	case *host.ProgressRecord:
		if g := v.progress[b.Call]; g != nil {
			g.Show(b.Progress, b.Total, b.Message)
		}
	case *host.ResultRecord:
		v.result(b)
	case *host.NoticeRecord:
		v.p.Note("parley: %s", kit.ErrorText(errors.New(b.Text)))
	}
}

func (v *view) json(r *host.Record) {
	body, err := host.EncodeBody(v.p.MaskedRecord(*r).Body)
	if err == nil {
		var raw []byte
		raw, err = jsonrpc.JSON(jsonRecord{r.N, r.Time, r.Body.Kind(), body}).AppendJSON(nil)
		if err == nil {
			err = v.p.PrintJSONLines(string(raw))
		}
	}
	v.err = errors.Join(v.err, err)
}

// text writes a part of the answer, and says once for each turn when it does
// not come from a language model.
func (v *view) text(text string) {
	if v.turn != nil && v.turn.Offline && !v.labelled {
		v.labelled = true
		v.p.Note("[%s]", host.EscapeLine(v.turn.Model))
	}
	if v.p.JSON {
		return
	}
	v.ended = strings.HasSuffix(text, "\n")
	v.err = errors.Join(v.err, v.p.Print(text))
}

// callName names a call: by its server and tool, or as the model names a tool of the host.
func callName(call *host.CallRecord) string {
	switch {
	case call == nil:
		return "the call"
	case call.Tool != "":
		return host.EscapeLine(call.Server + "/" + call.Tool)
	case strings.HasSuffix(call.ModelName, "_skill") || strings.HasSuffix(call.ModelName, "_skill_file"):
		return host.EscapeLine(call.ModelName)
	}
	return "the call"
}

// skill says that the model acts on a skill, or that it has changed.
func (v *view) skill(r *host.SkillRecord) {
	text := "parley: the model acts on the skill %s of server %s"
	if r.Changed {
		text = "parley: the skill %s of server %s has changed"
	}
	v.p.Note(text, host.EscapeLine(r.URI), host.EscapeLine(r.Server))
}

func (v *view) result(r *host.ResultRecord) {
	if g := v.progress[r.Call]; g != nil {
		g.End()
	}
	name := callName(v.calls[r.Call])
	switch {
	case r.Outcome == host.OutcomeRefused:
		v.p.Note("<- %s was denied: %s", name, host.EscapeLine(r.Why))
	case r.Outcome != host.OutcomeDone:
		v.p.Note("<- %s failed: %s%s", name, kit.ErrorText(errors.New(r.Why)), v.p.Output.Logged(r.Why))
	case r.Failed:
		v.p.Note("<- %s: the tool failed%s", name, v.p.Output.Logged(kit.Contents(r.Content)))
	default:
		v.p.Note("<- %s: done", name)
	}
}
