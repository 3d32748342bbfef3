package tasks_test

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
)

// What a server does with a store. A worker whose lease ran out may go on, until another
// takes the task.
func ExampleMemory() {
	ctx, store := context.Background(), tasks.Memory()
	task, lease, err := store.Create(ctx, &tasks.NewTask{ID: "786512e2", Owner: "ada", Tool: "slow", TTL: time.Hour}, time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Status)
	question := &tasks.Question{Key: "size", Method: "elicitation/create"}
	task, err = store.Change(ctx, lease, tasks.Change{Ask: question})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Status, task.Questions[0].Key)
	task, err = store.Cancel(ctx, task.ID, "ada", "no longer needed")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Status)
	_, err = store.Change(ctx, lease, tasks.Change{End: &tasks.End{Status: tasks.Completed}})
	fmt.Println(err)
	// Output:
	// working
	// input_required size
	// cancelled
	// the lease of the task is lost
}
