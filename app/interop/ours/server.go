// Package ours goes through the script with Parley, as server and as client.
package ours

import (
	"context"
	"crypto/rand"

	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type addIn struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type addOut struct {
	Sum float64 `json:"sum"`
}

type echoIn struct {
	Message string `json:"message"`
}

type failIn struct {
	Reason string `json:"reason"`
}

type stepsIn struct {
	Count int `json:"count" min:"1" max:"100"`
}

type answer struct {
	Answer string `json:"answer"`
}

type item struct {
	ID string `uri:"id"`
}

type reviewArgs struct {
	Language string `json:"language"`
}

// NewServer makes a server that offers what the script says, in the revisions
// that are given; none means all. middleware sees every request.
func NewServer(versions []string, middleware ...server.Middleware) *server.Server {
	s := server.New(script.Server, "1.0.0", &server.Options{
		Versions:  versions,
		Limits:    server.Limits{PageSize: script.PageSize},
		StateKeys: [][]byte{[]byte(rand.Text())},
	})
	s.Use(middleware...)
	stopped := make(chan struct{}, 16)
	s.Add(
		server.Tool(script.Add, "Adds two numbers.", func(_ context.Context, in addIn) (addOut, error) {
			return addOut{in.A + in.B}, nil
		}),
		server.Tool(script.AskModel, "Asks the model of the client.", askModel),
		server.Tool(script.AskPerson, "Asks the person two questions.", askPerson),
		server.Tool(script.Echo, "Gives the message back.", func(_ context.Context, in echoIn) (string, error) {
			return in.Message, nil
		}),
		server.Tool(script.Fail, "Fails.", func(_ context.Context, in failIn) (string, error) {
			return "", mcp.Errorf("cannot: %s", in.Reason)
		}),
		server.Tool(script.Grow, "Adds a tool.", func(context.Context, mcp.None) (string, error) {
			s.Add(server.Tool(script.Grown, "Was not there before.", nothing))
			return "grown", nil
		}),
		server.Tool(script.Hang, "Waits until it is cancelled.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := server.Progress(ctx, 1, 0, "waiting"); err != nil {
				return "", err
			}
			<-ctx.Done()
			stopped <- struct{}{}
			return "", context.Cause(ctx)
		}),
		server.Tool(script.Steps, "Reports progress.", steps),
		server.Tool(script.Stopped, "Waits until a call was cancelled.", func(ctx context.Context, _ mcp.None) (string, error) {
			select {
			case <-stopped:
				return script.StoppedText, nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}),
		server.Tool(script.Touch, "Changes the counter.", func(context.Context, mcp.None) (string, error) {
			s.ResourceUpdated(script.Counter)
			return "touched", nil
		}),
		server.Text(script.Greeting, "greeting", script.GreetingText),
		server.Text(script.Counter, "counter", script.CounterText),
		server.Template(script.Items, "item", func(_ context.Context, v item) (string, error) {
			return script.ItemText + v.ID, nil
		}),
		server.Prompt(script.Review, "Asks for a review.", func(_ context.Context, a reviewArgs) (string, error) {
			return script.ReviewText(a.Language), nil
		}).With(server.PromptOptions{
			Complete: map[string]server.Completer{script.Language: server.Choices(script.Languages...)},
		}),
	)
	for _, name := range script.Fillers {
		s.Add(server.Tool(name, "Does nothing.", nothing))
	}
	return s
}

func nothing(context.Context, mcp.None) (string, error) { return "nothing", nil }

func steps(ctx context.Context, in stepsIn) (string, error) {
	for i := range in.Count {
		if err := server.Progress(ctx, float64(i+1), float64(in.Count), ""); err != nil {
			return "", err
		}
	}
	return "done", nil
}

// askPerson asks twice, one after the other: two rounds where each is a request
// of its own.
func askPerson(ctx context.Context, _ mcp.None) (string, error) {
	who, err := server.Elicit[answer](ctx, script.WhoQuestion)
	if err != nil {
		return "", err
	}
	team, err := server.Elicit[answer](ctx, script.TeamQuestion)
	if err != nil {
		return "", err
	}
	if !who.Accepted() || !team.Accepted() {
		return "nobody", nil
	}
	return script.Hello(who.Value.Answer, team.Value.Answer), nil
}

func askModel(ctx context.Context, _ mcp.None) (string, error) {
	said, err := server.Sample(ctx, &mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text(script.Prompt)}}},
		MaxTokens: 50,
	})
	if err != nil {
		return "", err
	}
	return said.Model + ": " + text(said.Content), nil
}

// text is the text of the first content, or nothing.
func text(c mcp.Contents) string {
	if len(c) > 0 {
		if t, ok := c[0].(*mcp.TextContent); ok {
			return t.Text
		}
	}
	return ""
}
