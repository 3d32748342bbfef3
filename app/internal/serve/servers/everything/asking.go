package everything

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// profile is a form with each kind of field that forms can have.
type profile struct {
	Name      string   `json:"name" title:"Name" desc:"What to call you." minlen:"1" maxlen:"60"`
	Email     string   `json:"email,omitzero" title:"Mail address" format:"email"`
	Homepage  string   `json:"homepage,omitzero" title:"Home page" format:"uri"`
	Birthday  string   `json:"birthday,omitzero" title:"Birthday" format:"date"`
	Age       int      `json:"age,omitzero" title:"Age" desc:"In years." min:"0" max:"150"`
	Height    float64  `json:"height,omitzero" title:"Height" desc:"In metres." min:"0.3" max:"3"`
	Subscribe bool     `json:"subscribe" title:"Newsletter" desc:"There is none; this is a demonstration." default:"false"`
	Colour    string   `json:"colour" title:"Favourite colour" enum:"red,green,blue" default:"green"`
	Pets      []string `json:"pets,omitzero" title:"Pets" enum:"cat,dog,fish,bird" maxlen:"3"`
}

type dropIn struct {
	Table string `json:"table" desc:"The table that is not really dropped." minlen:"1" maxlen:"60"`
}

type sure struct {
	Sure bool `json:"sure" title:"Are you sure?"`
}

type why struct {
	Reason string `json:"reason" title:"Why?" minlen:"3" maxlen:"200"`
}

type sampleIn struct {
	Prompt    string `json:"prompt" desc:"What your model is asked." minlen:"1" maxlen:"4000"`
	MaxTokens int64  `json:"maxTokens" desc:"The most tokens of the answer." min:"1" max:"4096" default:"100"`
}

// askingTools are tools that ask back: the user, the model, the client.
// Those that change something need the scopes write.
func askingTools(write []string) []server.Feature {
	return []server.Feature{
		server.Tool("trigger-elicitation-request", "Asks the person a form with every kind of field.", fillIn).
			With(server.ToolOptions{Title: "Ask a form", Annotations: readOnly}),
		server.Tool("drop-table", "Pretends to drop a table, after two questions to the person.", drop).
			With(server.ToolOptions{
				Title: "Drop a table", Scopes: write,
				Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)},
			}),
		server.Tool("trigger-sampling-request", "Asks the model of the client, with the person's consent.", sample).
			With(server.ToolOptions{Title: "Ask the model", Annotations: readOnly}),
		server.Tool("get-roots-list", "Lists the directories that the client works in.", roots).
			With(server.ToolOptions{Title: "List the roots", Annotations: readOnly}),
	}
}

func fillIn(ctx context.Context, _ mcp.None) (string, error) {
	answer, err := server.Elicit[profile](ctx, "Please introduce yourself. Only the name is needed.")
	if err != nil {
		return "", err
	}
	if !answer.Accepted() {
		return "The person did not answer: " + string(answer.Action), nil
	}
	p := answer.Value
	text := fmt.Sprintf("Name: %s; colour: %s; newsletter: %t", p.Name, p.Colour, p.Subscribe)
	for _, more := range []struct{ label, value string }{
		{"mail", p.Email}, {"home page", p.Homepage}, {"birthday", p.Birthday}, {"pets", strings.Join(p.Pets, " and ")},
	} {
		if more.value != "" {
			text += "; " + more.label + ": " + more.value
		}
	}
	if p.Age != 0 {
		text += fmt.Sprintf("; age: %d", p.Age)
	}
	if p.Height != 0 {
		text += fmt.Sprintf("; height: %g m", p.Height)
	}
	return text, nil
}

// drop asks twice. The ticket is opened once, however often the function runs.
func drop(ctx context.Context, in dropIn) (string, error) {
	ticket, err := server.Once(ctx, "ticket", func() (int, error) { return 1000 + len(in.Table), nil })
	if err != nil {
		return "", err
	}
	first, err := server.Elicit[sure](ctx, fmt.Sprintf("Drop the table %q?", in.Table))
	if err != nil {
		return "", err
	}
	if !first.Accepted() || !first.Value.Sure {
		return fmt.Sprintf("kept %s (ticket %d)", in.Table, ticket), nil
	}
	second, err := server.Elicit[why](ctx, fmt.Sprintf("Why is %q to go?", in.Table))
	if err != nil {
		return "", err
	}
	if !second.Accepted() {
		return fmt.Sprintf("kept %s (ticket %d)", in.Table, ticket), nil
	}
	return fmt.Sprintf("dropped %s, because: %s (ticket %d)", in.Table, second.Value.Reason, ticket), nil
}

func askModel(ctx context.Context, in *sampleIn) (*mcp.CreateMessageResult, error) {
	return server.Sample(ctx, &mcp.CreateMessageParams{
		Messages:     []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text(in.Prompt)}}},
		SystemPrompt: "You answer for a demonstration server.",
		MaxTokens:    in.MaxTokens,
	})
}

func sample(ctx context.Context, in sampleIn) (string, error) {
	answer, err := askModel(ctx, &in)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, c := range answer.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return fmt.Sprintf("The model %s says: %s", answer.Model, strings.Join(texts, "\n")), nil
}

func roots(ctx context.Context, _ mcp.None) (string, error) {
	list, err := server.Roots(ctx)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "The client has no roots.", nil
	}
	lines := make([]string, 0, len(list))
	for _, r := range list {
		lines = append(lines, r.URI+" "+r.Name)
	}
	return strings.Join(lines, "\n"), nil
}
