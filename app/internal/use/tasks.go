package use

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// A toolTask is the handle of a task that returns a tool result.
type toolTask = tasks.Handle[*mcp.CallToolResult]

func (g *group) tasksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Show, wait for and cancel calls that became tasks",
		Long: `A server can turn a long call into a task: 'parley call --task' then returns
immediately and prints the task's identifier. These commands query the task's
server, named by --server. Instead of the identifier they also accept the handle
that 'parley call --task --json' prints: it also records the tool, and which
input requests were answered. 'parley tasks list' is for operators of a server.`,
		Args: kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "get TASK",
		Short:   "Show the state of a task",
		Example: `  parley tasks get --server https://example.com/mcp 786512e2-9e0d-44bd-8f29-789f320fe840`,
		Args:    kit.UsageArgs(cobra.ExactArgs(1)),
		RunE:    g.ofTask(g.taskGet),
	}, &cobra.Command{
		Use:   "wait TASK",
		Short: "Wait for a task to end, and answer its input requests",
		Long: `Wait for a task to end and print the result of its tool, as 'parley call' does,
with the same exit codes. Parley shows the task's input requests at the terminal.
Ctrl-C stops waiting and does not cancel the task.`,
		Example: `  parley tasks wait --server https://example.com/mcp 786512e2-9e0d-44bd-8f29-789f320fe840`,
		Args:    kit.UsageArgs(cobra.ExactArgs(1)),
		RunE:    g.ofTask(g.taskWait),
	}, &cobra.Command{
		Use:   "cancel TASK",
		Short: "Ask the server to cancel a task",
		Long: `Ask the server to cancel a task. The task can take a while to end, and it can
still complete with a result: run 'parley tasks get' to see its state.`,
		Example: `  parley tasks cancel --server https://example.com/mcp 786512e2-9e0d-44bd-8f29-789f320fe840`,
		Args:    kit.UsageArgs(cobra.ExactArgs(1)),
		RunE:    g.ofTask(g.taskCancel),
	})
	g.SessionFlags(cmd.Commands()...)
	cmd.AddCommand(g.tasksListCommand())
	return cmd
}

// ofTask runs a command about one task of the only server.
func (g *group) ofTask(run func(ctx context.Context, h *toolTask) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return g.WithOne(cmd.Context(), func(c *client.Client) error {
			h, err := openTask(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return run(cmd.Context(), h)
		})
	}
}

// openTask finds the task that the user named, by its identifier or by a handle.
func openTask(ctx context.Context, c *client.Client, name string) (*toolTask, error) {
	if strings.HasPrefix(strings.TrimSpace(name), "{") {
		h, err := tasks.Resume[*mcp.CallToolResult](ctx, c, []byte(name), nil)
		if errors.Is(err, tasks.ErrHandle) {
			err = kit.Usagef("%w", err)
		}
		return h, err
	}
	h, err := tasks.Open[*mcp.CallToolResult](c, name, "", nil)
	if err != nil {
		return nil, kit.Usagef("%w", err)
	}
	return h, nil
}

// startTask calls a tool, and prints the task that the call became, or its result.
func (g *group) startTask(ctx context.Context, c *client.Client, tool *host.Tool, args mcp.RawValue) error {
	progress := g.Progress(tool.Def.Name)
	h, err := tasks.Start[*mcp.CallToolResult](ctx, c, tool.Def.Name, args, &tasks.StartOptions{
		Call: client.CallOptions{OnProgress: progress.Show},
	})
	progress.End()
	if err != nil {
		return connect.AtServer(tool.Server, err)
	}
	if h.ID() == "" {
		g.Note("parley: the server returned the result immediately and created no task")
		result, err := resultOf(h.Wait(ctx))
		if err != nil {
			return connect.AtServer(tool.Server, err)
		}
		return g.printResult(tool.Def.Name, result)
	}
	if !g.JSON {
		g.Note("parley: the call became a task; run 'parley tasks wait' to wait for its result")
		return g.Println(h.ID())
	}
	saved, err := h.MarshalBinary()
	if err != nil {
		return err
	}
	return g.PrintJSON(struct {
		Server string       `json:"server"`
		Tool   string       `json:"tool"`
		TaskID string       `json:"taskId"`
		Handle mcp.RawValue `json:"handle"`
	}{tool.Server, tool.Def.Name, h.ID(), saved})
}

// resultOf returns the result of a tool, also if the tool failed.
func resultOf(result *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if failed, ok := errors.AsType[*client.ToolError](err); ok {
		return failed.Result, nil
	}
	return result, err
}

// taskGet prints the state of a task.
func (g *group) taskGet(ctx context.Context, h *toolTask) error {
	t, err := h.Status(ctx)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(shownTask(t))
	}
	lines := []string{string(t.Status)}
	if t.Message != "" {
		lines[0] += ": " + host.EscapeLine(t.Message)
	}
	for _, q := range t.Questions {
		lines = append(lines, "asks "+host.EscapeLine(q.Method)+" "+kit.OneLine(q.Params))
	}
	if t.Error != nil {
		lines = append(lines, "error "+host.EscapeLine(t.Error.Error()))
	}
	lines = append(lines, "created "+t.Created.Format(time.RFC3339)+", changed "+t.Updated.Format(time.RFC3339)+", kept "+kept(t))
	return g.Println(strings.Join(lines, "\n"))
}

// kept describes for how long a server stores a task.
func kept(t *tasks.Task) string {
	if t.TTL == 0 {
		return "without end"
	}
	return "until " + t.Created.Add(t.TTL).Format(time.RFC3339) + " at least"
}

// A taskState is a task in the JSON of the command "tasks get", as tasks/get returns it.
type taskState struct {
	TaskID         string            `json:"taskId"`
	Status         tasks.Status      `json:"status"`
	StatusMessage  string            `json:"statusMessage,omitzero"`
	CreatedAt      time.Time         `json:"createdAt"`
	LastUpdatedAt  time.Time         `json:"lastUpdatedAt"`
	TTLMs          *int64            `json:"ttlMs"`
	PollIntervalMs int64             `json:"pollIntervalMs,omitzero"`
	InputRequests  mcp.InputRequests `json:"inputRequests,omitzero"`
	Result         mcp.RawValue      `json:"result,omitzero"`
	Error          *jsonrpc.Error    `json:"error,omitzero"`
}

func shownTask(t *tasks.Task) *taskState {
	s := &taskState{
		TaskID: t.ID, Status: t.Status, StatusMessage: t.Message, CreatedAt: t.Created, LastUpdatedAt: t.Updated,
		PollIntervalMs: t.PollInterval.Milliseconds(), Result: t.Result, Error: t.Error,
	}
	if t.TTL > 0 {
		s.TTLMs = new(t.TTL.Milliseconds())
	}
	for _, q := range t.Questions {
		if s.InputRequests == nil {
			s.InputRequests = make(mcp.InputRequests)
		}
		s.InputRequests[q.Key] = &mcp.InputRequest{Method: q.Method, Params: q.Params}
	}
	return s
}

// taskWait waits for the end of a task and prints its result.
func (g *group) taskWait(ctx context.Context, h *toolTask) error {
	name := h.Tool()
	if name == "" {
		name = "the task"
	}
	progress := g.Progress(name)
	last, steps := "", 0.0
	for t, err := range h.Updates(ctx) {
		if err != nil {
			progress.End()
			return g.notOver(ctx, h, err)
		}
		if t.Message != "" && t.Message != last && !t.Status.Ended() {
			steps++
			progress.Show(steps, 0, t.Message)
		}
		last = t.Message
	}
	progress.End()
	result, err := resultOf(h.Wait(ctx))
	if err != nil {
		return err
	}
	return g.printResult(name, result)
}

// notOver notes that a task might keep running although Parley stopped waiting for it.
func (g *group) notOver(ctx context.Context, h *toolTask, err error) error {
	_, nothing := errors.AsType[*client.NoExtensionError](err)
	if errors.Is(err, client.ErrInputRefused) || errors.Is(err, client.ErrNotCapable) && !nothing || ctx.Err() != nil {
		g.Note("parley: the task keeps running; run 'parley tasks wait' to wait for it or 'parley tasks cancel' to cancel it: %s", host.EscapeLine(h.ID()))
	}
	return err
}

// taskCancel asks the server to cancel a task.
func (g *group) taskCancel(ctx context.Context, h *toolTask) error {
	if err := h.Cancel(ctx); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(struct{}{})
	}
	g.Note("parley: the server was asked to cancel the task")
	return nil
}
