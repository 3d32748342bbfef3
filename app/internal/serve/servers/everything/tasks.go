package everything

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/server"
)

// taskRules say how calls of tools become tasks: each way that there is.
func taskRules() *tasks.Options {
	return &tasks.Options{
		Tools: map[string]tasks.Tool{
			"trigger-long-running-operation": {Mode: tasks.May, After: 3 * time.Second, Repeatable: true},
			"simulate-research":              {Mode: tasks.May, Repeatable: true},
			"simulate-backup":                {Mode: tasks.Must},
			"simulate-research-query":        {Mode: tasks.Must, Repeatable: true},
			// These two are an ordinary call for a client that knows no tasks, and wait for its answer as a task.
			"trigger-elicitation-request-async": {Mode: tasks.May, Repeatable: true},
			"trigger-sampling-request-async":    {Mode: tasks.May, Repeatable: true},
			"simulate-order":                    {Mode: tasks.May, Begins: true, Repeatable: true},
		},
		PollInterval: 500 * time.Millisecond,
	}
}

type researchIn struct {
	Topic     string `json:"topic" desc:"What the report is about." minlen:"1" maxlen:"200"`
	Ambiguous bool   `json:"ambiguous,omitzero" desc:"Ask what is meant by the topic."`
}

type meaning struct {
	Meaning string `json:"meaning" title:"What do you mean?" enum:"history,science,gossip"`
}

type backupIn struct {
	Seconds float64 `json:"seconds,omitzero" desc:"How long it takes." min:"0" max:"3600" default:"5"`
}

type orderIn struct {
	Dish string `json:"dish" desc:"What is ordered." minlen:"1" maxlen:"60"`
}

type delivery struct {
	Name string `json:"name" title:"For whom?" minlen:"1" maxlen:"60"`
}

// taskTools are tools that take long. They become tasks for clients that know tasks, as
// taskRules says; only one of them knows of that.
func taskTools() []server.Feature {
	return []server.Feature{
		server.Tool("simulate-research", "Pretends to research a topic, in four steps; may ask what is meant. May be a task.", research).
			With(server.ToolOptions{Title: "Research", Annotations: readOnly}),
		server.Tool("simulate-backup", "Pretends to make a backup. Is always a task.", backup).
			With(server.ToolOptions{Title: "Backup", Annotations: readOnly}),
		server.Tool("simulate-order", "Asks for a name, and then pretends to cook, as a task.", order).
			With(server.ToolOptions{Title: "Order", Annotations: readOnly}),
	}
}

func research(ctx context.Context, in researchIn) (string, error) {
	what := in.Topic
	for i, step := range []string{"looking for sources", "reading", "comparing", "writing"} {
		if err := server.Progress(ctx, float64(i+1), 4, step); err != nil {
			return "", err
		}
		if step == "reading" && in.Ambiguous && server.CanElicit(ctx) {
			answer, err := server.Elicit[meaning](ctx, fmt.Sprintf("There is much about %s. What do you mean?", in.Topic))
			if err != nil {
				return "", err
			}
			if answer.Accepted() {
				what = "the " + answer.Value.Meaning + " of " + in.Topic
			}
		}
		if err := sleep(ctx, time.Second); err != nil {
			return "", err
		}
	}
	return "A report about " + what + " would be here, if this were not a demonstration.", nil
}

func backup(ctx context.Context, in backupIn) (string, error) {
	steps := max(1, min(10, int(in.Seconds)))
	for i := range steps {
		if err := server.Progress(ctx, float64(i+1), float64(steps), "copying nothing"); err != nil {
			return "", err
		}
		if err := sleep(ctx, time.Duration(in.Seconds/float64(steps)*float64(time.Second))); err != nil {
			return "", err
		}
	}
	return "There is a backup of nothing.", nil
}

// order asks in the request, and goes on as a task.
func order(ctx context.Context, in orderIn) (string, error) {
	answer, err := server.Elicit[delivery](ctx, "For whom is the "+in.Dish+"?")
	if err != nil {
		return "", err
	}
	if !answer.Accepted() {
		return "Nothing was ordered.", nil
	}
	if err := tasks.Begin(ctx); err != nil {
		return "", err
	}
	number, err := server.Once(ctx, "number", func() (int64, error) { return time.Now().Unix() % 1000, nil })
	if err != nil {
		return "", err
	}
	if err := server.Progress(ctx, 1, 2, "cooking"); err != nil {
		return "", err
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return "", err
	}
	return fmt.Sprintf("Order %d: %s for %s.", number, in.Dish, strings.TrimSpace(answer.Value.Name)), nil
}
