package everything

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// readOnly are hints for tools that change nothing.
var readOnly = &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)}

type echoIn struct {
	Message string `json:"message" desc:"The text to send back." maxlen:"10000"`
}

type addIn struct {
	A float64 `json:"a" desc:"The first number."`
	B float64 `json:"b" desc:"The second number."`
}

type addOut struct {
	Sum float64 `json:"sum" desc:"a plus b."`
}

type weatherIn struct {
	City string `json:"city" desc:"The city to invent the weather of." minlen:"1" maxlen:"100"`
}

type weatherOut struct {
	City        string  `json:"city"`
	Temperature float64 `json:"temperature" desc:"In degrees Celsius."`
	Conditions  string  `json:"conditions" enum:"sunny,cloudy,rainy,snowy"`
	Humidity    int     `json:"humidity" desc:"In percent." min:"0" max:"100"`
}

type longIn struct {
	Duration float64 `json:"duration" desc:"How long it takes, in seconds." min:"0" max:"300" default:"5"`
	Steps    int     `json:"steps" desc:"How many steps it has." min:"1" max:"100" default:"5"`
}

type failIn struct {
	Reason string `json:"reason" desc:"What the failure says." maxlen:"10000" default:"asked to"`
}

type logIn struct {
	Message string `json:"message" desc:"What each message says." maxlen:"10000" default:"a message"`
}

// plainTools are tools that need nothing but their arguments.
func plainTools() []server.Feature {
	return []server.Feature{
		server.Tool("echo", "Sends the message back.", func(_ context.Context, in echoIn) (string, error) {
			return in.Message, nil
		}).With(server.ToolOptions{Title: "Echo", Annotations: readOnly}),

		server.Tool("add", "Adds two numbers.", func(_ context.Context, in addIn) (mcp.With[addOut], error) {
			sum := in.A + in.B
			return mcp.With[addOut]{
				Value:   addOut{sum},
				Content: []mcp.Content{mcp.Text(strconv.FormatFloat(sum, 'g', -1, 64))},
			}, nil
		}).With(server.ToolOptions{Title: "Add", Annotations: readOnly}),

		server.Tool("weather", "Invents the weather of a city, as structured data.", weather).
			With(server.ToolOptions{Title: "Weather", Annotations: readOnly}),

		server.Tool("trigger-long-running-operation", "Takes its time, and reports progress step by step.", long).
			With(server.ToolOptions{Title: "Long-running operation", Annotations: readOnly}),

		server.Tool("fail", "Always fails, as a tool that cannot do what it was asked.", func(_ context.Context, in failIn) (string, error) {
			return "", mcp.Errorf("this tool failed: %s", in.Reason)
		}).With(server.ToolOptions{Title: "Fail", Annotations: readOnly}),

		server.Tool("log-messages", "Logs one message at each level, from debug to emergency.", logAll).
			With(server.ToolOptions{Title: "Log at all levels", Annotations: readOnly}),

		server.RawTool(mcp.Tool{
			Name: "measure-shape", Title: "Measure a shape", Annotations: readOnly,
			Description:  "Describes a circle or a rectangle; its schema is written by hand.",
			InputSchema:  mcp.RawValue(shapeSchema),
			OutputSchema: mcp.RawValue(`{"type":"object","properties":{"arguments":{"type":"integer","minimum":1}},"required":["arguments"]}`),
		}, measure),
	}
}

// shapeSchema uses words of JSON Schema that no Go type has.
const shapeSchema = `{
	"type": "object",
	"properties": {
		"radius": {"type": "number", "exclusiveMinimum": 0, "description": "The radius of a circle."},
		"width": {"type": "number", "exclusiveMinimum": 0, "description": "The width of a rectangle."},
		"height": {"type": "number", "exclusiveMinimum": 0, "description": "The height of a rectangle."}
	},
	"oneOf": [
		{"required": ["radius"]},
		{"required": ["width", "height"]}
	],
	"additionalProperties": false
}`

func measure(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
	n := strings.Count(string(arguments), ":") // numbers only: every colon ends a name
	return &mcp.CallToolResult{
		Content:           mcp.Contents{mcp.Text("a shape of " + string(arguments))},
		StructuredContent: mcp.RawValue(fmt.Sprintf(`{"arguments":%d}`, n)),
	}, nil
}

// weather is the same for the same city each time.
func weather(_ context.Context, in weatherIn) (weatherOut, error) {
	n := 0
	for _, r := range strings.ToLower(in.City) {
		n = (n*31 + int(r)) % 9973
	}
	conditions := []string{"sunny", "cloudy", "rainy", "snowy"}[n%4]
	temperature := float64(n%30) + 5
	if conditions == "snowy" {
		temperature = -float64(n % 10)
	}
	return weatherOut{City: in.City, Temperature: temperature, Conditions: conditions, Humidity: 20 + n%80}, nil
}

// long waits in steps. It ends when the call is cancelled.
func long(ctx context.Context, in longIn) (string, error) {
	step := time.Duration(in.Duration / float64(in.Steps) * float64(time.Second))
	for i := range in.Steps {
		if err := sleep(ctx, step); err != nil {
			return "", err
		}
		if err := server.Progress(ctx, float64(i+1), float64(in.Steps), fmt.Sprintf("step %d of %d", i+1, in.Steps)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("done: %v seconds in %d steps", in.Duration, in.Steps), nil
}

// sleep waits, or ends with ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// logAll logs from the least to the most severe level.
func logAll(ctx context.Context, in logIn) (string, error) {
	levels := mcp.LogLevels()
	for i := range levels {
		level := levels[len(levels)-1-i]
		data := map[string]string{"message": in.Message, "level": string(level)}
		if err := server.Log(ctx, level, "demo", data); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("logged %d messages; the client gets those of the level it asked for", len(levels)), nil
}

// toggle makes a tool that adds and removes another one, so that the list of
// tools changes while clients are connected. Callers need the scopes.
func toggle(s *server.Server, scopes []string) server.Feature {
	var mu sync.Mutex
	there := false
	return server.Tool("toggle-extra-tool", "Adds the tool extra, or removes it again.", func(context.Context, mcp.None) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if there = !there; !there {
			s.RemoveTools("extra")
			return "the tool extra is gone", nil
		}
		s.Add(server.Tool("extra", "Was not there before.", func(context.Context, mcp.None) (string, error) {
			return "here I am", nil
		}).With(server.ToolOptions{Annotations: readOnly}))
		return "the tool extra is there", nil
	}).With(server.ToolOptions{Title: "Change the list of tools", Scopes: scopes})
}
