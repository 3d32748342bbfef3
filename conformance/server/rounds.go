package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type named struct {
	Name string `json:"name"`
}

type coloured struct {
	Color string `json:"color"`
}

type confirmed struct {
	OK bool `json:"ok"`
}

// roundTools are tools that the suite drives through their rounds (SEP-2322).
// Each is a straight line: the library answers "input required" where the
// client has not said yet what is asked. The suite looks for the keys.
func roundTools() []server.Feature {
	return []server.Feature{
		server.Tool("test_input_required_result_elicitation", "Asks for a name.", func(ctx context.Context, _ mcp.None) (string, error) {
			return greet(ctx)
		}),
		server.Tool("test_input_required_result_sampling", "Asks the client's model.", func(ctx context.Context, _ mcp.None) (string, error) {
			return sample(ctx, "What is the capital of France?", "capital_question")
		}),
		server.Tool("test_input_required_result_list_roots", "Asks for the roots.", func(ctx context.Context, _ mcp.None) (string, error) {
			return roots(ctx)
		}),
		server.Tool("test_input_required_result_request_state", "Needs its state back.", func(ctx context.Context, _ mcp.None) (string, error) {
			return confirm(ctx)
		}),
		server.Tool("test_input_required_result_tampered_state", "Refuses a state that was changed.", func(ctx context.Context, _ mcp.None) (string, error) {
			return confirm(ctx)
		}),
		server.Tool("test_input_required_result_multiple_inputs", "Asks three things at once.", askThree),
		server.Tool("test_input_required_result_multi_round", "Asks one thing after the other.", askTwice),
		server.Tool("test_input_required_result_capabilities", "Asks only what the client can answer.", askWhatCan),
	}
}

func greet(ctx context.Context) (string, error) {
	answer, err := server.Elicit[named](ctx, "What is your name?", &server.AskOptions{Key: "user_name"})
	if err != nil {
		return "", err
	}
	if !answer.Accepted() {
		return "Hello, whoever you are!", nil
	}
	return "Hello, " + answer.Value.Name + "!", nil
}

func confirm(ctx context.Context) (string, error) {
	answer, err := server.Elicit[confirmed](ctx, "Please confirm.", &server.AskOptions{Key: "confirm"})
	if err != nil {
		return "", err
	}
	// The client has sent back a state that verifies.
	return fmt.Sprintf("state-ok, confirmed: %t", answer.Accepted() && answer.Value.OK), nil
}

func roots(ctx context.Context) (string, error) {
	list, err := server.Roots(ctx, &server.AskOptions{Key: "client_roots"})
	if err != nil {
		return "", err
	}
	uris := make([]string, len(list))
	for i, r := range list {
		uris[i] = r.URI
	}
	return fmt.Sprintf("%d roots: %s", len(list), strings.Join(uris, ", ")), nil
}

// askThree asks everything before it checks an error, so that one round
// brings all the questions.
func askThree(ctx context.Context, _ mcp.None) (string, error) {
	hello, nameErr := greet(ctx)
	greeting, sampleErr := sample(ctx, "Generate a greeting.", "greeting")
	where, rootsErr := roots(ctx)
	if err := errors.Join(nameErr, sampleErr, rootsErr); err != nil {
		return "", err
	}
	return strings.Join([]string{hello, greeting, where}, "\n"), nil
}

func askTwice(ctx context.Context, _ mcp.None) (string, error) {
	who, err := server.Elicit[named](ctx, "Step 1: What is your name?", &server.AskOptions{Key: "step1"})
	if err != nil {
		return "", err
	}
	what, err := server.Elicit[coloured](ctx, "Step 2: What is your favorite color?", &server.AskOptions{Key: "step2"})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s likes %s.", who.Value.Name, what.Value.Color), nil
}

func askWhatCan(ctx context.Context, _ mcp.None) (string, error) {
	var texts []string
	var errs []error
	ask := func(can bool, question func() (string, error)) {
		if !can {
			return
		}
		text, err := question()
		texts, errs = append(texts, text), append(errs, err)
	}
	ask(server.CanElicit(ctx), func() (string, error) { return greet(ctx) })
	ask(server.CanSample(ctx), func() (string, error) { return sample(ctx, "Generate a greeting.", "greeting") })
	ask(server.CanRoots(ctx), func() (string, error) { return roots(ctx) })
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	if len(texts) == 0 {
		return "The client can be asked nothing.", nil
	}
	return strings.Join(texts, "\n"), nil
}
