package tasks_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	store "github.com/parley-mcp/parley/app/internal/store/tasks"
	"github.com/parley-mcp/parley/ext/tasks"
)

// A task is there after the program has started anew.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "tasks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ctx := context.Background()
	for start := range 2 {
		db, err := store.Open(ctx, filepath.Join(folder, "tasks.db"), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		if start == 0 {
			_, _, err = db.Create(ctx, &tasks.NewTask{ID: "786512e2", Owner: "ada", Tool: "slow", TTL: time.Hour}, time.Minute)
			fmt.Println(err)
		}
		task, err := db.Get(ctx, "786512e2", "ada")
		fmt.Println(task.Status, err, db.Close())
	}
	// Output:
	// <nil>
	// working <nil> <nil>
	// working <nil> <nil>
}
