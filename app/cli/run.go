package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/model"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

func (p *program) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run REQUEST",
		Short: "Let the model do something with the tools of the servers",
		Long: `Give the model a request and the tools of the servers. Each call that it makes
is shown to you first, unless a rule decides: --deny wins over --ask, --ask over
--allow, and what no rule matches is asked. Rules are written SERVER/TOOL with *
for any characters; '*' alone is everything.

The model is the offline model: a small planner that needs no key and no
network. It matches words with tools, and fills arguments from key=value,
numbers and quoted texts.`,
		Example: `  parley run "add 2 and 3"
  parley run --allow 'everything/*' "echo message=hello; then add 2 and 3"`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(h *host.Host) error {
				return p.run(cmd, h, strings.Join(args, " "))
			})
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&p.allow, "allow", nil, "call these tools without a question: `SERVER/TOOL`")
	f.StringArrayVar(&p.ask, "ask", nil, "ask about these tools in any case: `SERVER/TOOL`")
	f.StringArrayVar(&p.deny, "deny", nil, "never call these tools, nor show them to the model: `SERVER/TOOL`")
	f.IntVar(&p.maxSteps, "max-steps", 0, "most turns of the model (default 16)")
	return cmd
}

// run runs one request and writes the answer.
func (p *program) run(cmd *cobra.Command, h *host.Host, request string) error {
	v := &view{p: p, progress: make(map[string]*progress)}
	answer, err := h.Conversation(model.Offline{}).Ask(cmd.Context(), request, v.event)
	if err != nil {
		return err
	}
	if p.json {
		err = p.printJSON(v.report(answer))
	} else if !v.ended {
		err = p.print("\n")
	}
	switch {
	case v.err != nil:
		return v.err
	case err != nil:
		return err
	case answer.Refused > 0 && answer.Calls == 0:
		return &silentError{exitConsent}
	case answer.Failed > 0 && answer.Failed == answer.Calls:
		return &silentError{exitTool}
	}
	return nil
}

// A view shows a run: the model's text as the result, the rest beside it.
type view struct {
	p        *program
	turn     *host.TurnEvent
	labelled int  // the last turn whose text was labelled
	ended    bool // the text ends its line
	err      error
	progress map[string]*progress
	calls    []*reportedCall
}

func (v *view) event(e host.Event) {
	switch e := e.(type) {
	case *host.TurnEvent:
		v.turn = e
	case *host.TextEvent:
		v.text(e.Text)
	case *host.CallEvent:
		v.p.note("-> %s/%s %s (%s)", host.EscapeLine(e.Tool.Server), host.EscapeLine(e.Tool.Def.Name), oneLine(e.Arguments), host.EscapeLine(e.Why))
		v.progress[e.ID] = v.p.progress(e.Tool.Def.Name)
		v.calls = append(v.calls, &reportedCall{ID: e.ID, Server: e.Tool.Server, Tool: e.Tool.Def.Name, Arguments: e.Arguments})
	case *host.ProgressEvent:
		v.progress[e.ID].show(e.Progress, e.Total, e.Message)
	case *host.ResultEvent:
		v.result(e)
	case *host.DownEvent:
		v.p.note("parley: %s", explain(v.p.addresses.name(e.Err)))
	}
}

// text writes a part of the answer, and says once for each turn when it does
// not come from a language model.
func (v *view) text(text string) {
	if v.turn.Offline && v.labelled != v.turn.Step {
		v.labelled = v.turn.Step
		v.p.note("[%s]", host.EscapeLine(v.turn.Model))
	}
	if v.p.json {
		return
	}
	v.ended = strings.HasSuffix(text, "\n")
	v.err = errors.Join(v.err, v.p.print(text))
}

func (v *view) result(e *host.ResultEvent) {
	if g := v.progress[e.ID]; g != nil {
		g.end()
	}
	name := "the call"
	if e.Tool != nil {
		name = host.EscapeLine(e.Tool.Server + "/" + e.Tool.Def.Name)
	}
	var refused *host.ConsentError
	switch {
	case errors.As(e.Err, &refused):
		v.p.note("<- %s was refused: %s", name, host.EscapeLine(refused.Why))
	case e.Err != nil:
		v.p.note("<- %s failed: %s", name, explain(v.p.withLog(v.p.addresses.name(e.Err))))
	case e.Result.IsError:
		v.p.note("<- %s: the tool failed%s", name, v.p.logged(contents(e.Result.Content)))
	default:
		v.p.note("<- %s: done", name)
	}
	for _, c := range v.calls {
		if c.ID == e.ID {
			c.Result = e.Result
			if e.Err != nil {
				c.Error = e.Err.Error()
			}
		}
	}
}

// A report is a run as JSON.
type report struct {
	Model   string          `json:"model"`
	Offline bool            `json:"offline"`
	Answer  string          `json:"answer"`
	Steps   int             `json:"steps"`
	Refused int             `json:"refused"`
	Calls   []*reportedCall `json:"calls"`
}

type reportedCall struct {
	ID        string              `json:"id"`
	Server    string              `json:"server"`
	Tool      string              `json:"tool"`
	Arguments mcp.RawValue        `json:"arguments"`
	Result    *mcp.CallToolResult `json:"result,omitzero"`
	Error     string              `json:"error,omitzero"`
}

func (v *view) report(a *host.Answer) *report {
	return &report{
		Model: v.turn.Model, Offline: v.turn.Offline,
		Answer: a.Text, Steps: a.Steps, Refused: a.Refused, Calls: v.calls,
	}
}
