// Command prompts offers prompts, with completion of their arguments. See
// docs/guide/prompts.md.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type reviewArgs struct {
	Language string `json:"language" desc:"programming language" enum:"go,python,rust"`
	Focus    string `json:"focus,omitempty" desc:"what to look at most"`
}

// review gives one message of the user.
func review(_ context.Context, args reviewArgs) (string, error) {
	text := "Review the " + args.Language + " code that follows."
	if args.Focus != "" {
		text += " Look at " + args.Focus + " most."
	}
	return text, nil
}

type issueArgs struct {
	Project string `json:"project" desc:"project that has the issue"`
	Number  int    `json:"number" desc:"number of the issue" min:"1"`
}

// explain gives several messages, one of them with a resource.
func explain(_ context.Context, args issueArgs) ([]mcp.PromptMessage, error) {
	uri := fmt.Sprintf("issue:///%s/%d", args.Project, args.Number)
	return []mcp.PromptMessage{
		{Role: mcp.RoleUser, Content: mcp.Text("Explain this issue to somebody who is new to " + args.Project + ".")},
		{Role: mcp.RoleUser, Content: mcp.Embed(mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "It crashes."})},
		{Role: mcp.RoleAssistant, Content: mcp.Text("In short:")},
	}, nil
}

// numbers knows the issues of each project: what it suggests depends on the
// argument that was filled in before.
func numbers(_ context.Context, value string, sofar map[string]string) ([]string, error) {
	issues := map[string][]string{"parley": {"1", "12", "20"}, "other": {"7"}}
	return slices.DeleteFunc(issues[sofar["project"]], func(n string) bool { return !strings.HasPrefix(n, value) }), nil
}

func newServer() *server.Server {
	s := server.New("prompts", "1.0.0", nil)
	s.Add(
		server.Prompt("review", "Reviews code.", review).With(server.PromptOptions{
			Title: "Review code",
			Complete: map[string]server.Completer{
				"focus": server.Choices("errors", "names", "speed", "tests"),
			},
		}),
		server.Prompt("explain", "Explains an issue.", explain).With(server.PromptOptions{
			Complete: map[string]server.Completer{
				"project": server.Choices("parley", "other"),
				"number":  numbers,
			},
		}),
	)
	return s
}

func main() {
	if err := stdio.Serve(context.Background(), newServer()); err != nil {
		log.Fatal(err)
	}
}
