package use

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
	taskstore "github.com/parley-mcp/parley/app/internal/store/tasks"
	"github.com/parley-mcp/parley/ext/tasks"
)

// listPage is how many tasks are read at once.
const listPage = 500

func (g *group) tasksListCommand() *cobra.Command {
	var dsn string
	var most int
	cmd := &cobra.Command{
		Use:   "list --tasks DATABASE",
		Short: "List the tasks in a server's database, for its operator",
		Long: `List the tasks of all callers in a server's database, newest first. The database
is the one that 'parley serve --tasks' names. Clients of a server cannot list
tasks. The list includes ended tasks that are still stored.`,
		Example: `  parley tasks list --tasks tasks.db
  parley tasks list --tasks postgres://parley@db.example/parley --most 20 --json`,
		Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case dsn == "":
				return kit.Usagef("missing --tasks; use --tasks FILE or --tasks postgres://USER@HOST/NAME")
			case most < 1:
				return kit.Usagef("--most %d: must be at least 1", most)
			}
			return g.listTasks(cmd.Context(), dsn, most)
		},
	}
	cmd.Flags().StringVar(&dsn, "tasks", "", "task `DATABASE`: an SQLite file, or postgres://USER@HOST/NAME")
	cmd.Flags().IntVar(&most, "most", 1000, "list at most this `NUMBER` of tasks")
	return cmd
}

// listTasks prints the tasks of a database.
func (g *group) listTasks(ctx context.Context, dsn string, most int) (err error) {
	if path := strings.TrimPrefix(dsn, "sqlite:"); !kit.IsURL(dsn) { // opening it would make one
		if _, err := os.Stat(path); err != nil {
			return kit.Usagef("--tasks: %w", err)
		}
	}
	store, err := taskstore.Open(ctx, dsn, nil)
	if err != nil {
		return kit.OpeningError(ctx, "--tasks", "the tasks", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var list []*tasks.Task
	for q := (tasks.Query{All: true}); len(list) < most; q.After = list[len(list)-1].ID {
		q.Most = min(listPage, most-len(list))
		page, err := store.List(ctx, q)
		if err != nil {
			return fmt.Errorf("listing tasks: %w", err)
		}
		list = append(list, page...)
		if len(page) < q.Most {
			break
		}
	}
	return g.printTasks(list)
}

// A listedTask is a task in the JSON of the command "tasks list".
type listedTask struct {
	Tool string `json:"tool"`
	taskState
}

func (g *group) printTasks(list []*tasks.Task) error {
	if g.JSON {
		shown := make([]listedTask, 0, len(list))
		for _, t := range list {
			shown = append(shown, listedTask{t.Tool, *shownTask(t)})
		}
		return g.PrintJSON(struct {
			Tasks []listedTask `json:"tasks"`
		}{shown})
	}
	var lines kit.Table
	for _, t := range list {
		about := string(t.Status) + "  " + t.Created.Format(time.RFC3339) + "  " + t.Tool
		if t.Message != "" {
			about += "  " + kit.Shorten(t.Message, kit.MaxMessage)
		}
		lines.Add(t.ID, about)
	}
	return g.Print(lines.String())
}
