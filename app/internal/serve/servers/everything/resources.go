package everything

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// URIs of the resources.
const (
	textURI  = "demo://text"
	imageURI = "demo://image"
	ticksURI = "demo://ticks"
	citiesAt = "demo://cities/{country}/{city}"
)

const staticText = "This text does not change.\n"

type city struct{ name, country, known string }

// cities are what the template can be read for.
var cities = []city{
	{"Lyon", "France", "silk"},
	{"Marseille", "France", "the harbour"},
	{"Paris", "France", "its tower"},
	{"Kyoto", "Japan", "temples"},
	{"Matsuyama", "Japan", "hot springs"},
	{"Tokyo", "Japan", "its size"},
	{"Lima", "Peru", "fog"},
}

// unchanging is for what does not change.
var unchanging = &server.Cache{TTL: time.Hour, Public: true}

type cityIn struct {
	Country string `uri:"country"`
	City    string `uri:"city"`
}

// resources are things to read: texts, bytes, something that changes, and a
// family with variables.
func resources(tick time.Duration) []server.Feature {
	start := time.Now()
	return []server.Feature{
		server.Text(textURI, "text", staticText).With(server.ResourceOptions{
			Title: "Text", Description: "A text that does not change.", MIMEType: "text/plain", Cache: unchanging,
		}),
		server.Resource(imageURI, "image", func(context.Context) ([]byte, error) {
			return picture(), nil
		}).With(server.ResourceOptions{
			Title: "Image", Description: "A very small picture.", MIMEType: "image/png", Cache: unchanging,
		}),
		server.Resource(ticksURI, "ticks", func(context.Context) (string, error) {
			return fmt.Sprintf("tick %d\n", time.Since(start)/tick), nil
		}).With(server.ResourceOptions{
			Title: "Ticks", Description: "A text that changes all the time, for subscriptions.", MIMEType: "text/plain",
			Watch: func(ctx context.Context, changed func()) {
				t := time.NewTicker(tick)
				defer t.Stop()
				for {
					select {
					case <-ctx.Done():
						return
					case <-t.C:
						changed()
					}
				}
			},
		}),
		server.Template(citiesAt, "city", func(_ context.Context, in cityIn) (string, error) {
			for _, c := range cities {
				if c.name == in.City && c.country == in.Country {
					return fmt.Sprintf("%s in %s is known for %s.\n", c.name, c.country, c.known), nil
				}
			}
			return "", server.ErrNotFound
		}).With(server.TemplateOptions{
			Title: "City", Description: "What a city is known for.", MIMEType: "text/plain", Cache: unchanging,
			Complete: map[string]server.Completer{"country": countries, "city": citiesOf},
		}),
	}
}

// countries completes the name of a country.
func countries(_ context.Context, value string, _ map[string]string) ([]string, error) {
	var list []string
	for i, c := range cities { // they are in order of country
		if (i == 0 || cities[i-1].country != c.country) && begins(c.country, value) {
			list = append(list, c.country)
		}
	}
	return list, nil
}

// citiesOf completes the name of a city, of the country that is filled in.
func citiesOf(_ context.Context, value string, sofar map[string]string) ([]string, error) {
	var list []string
	for _, c := range cities {
		if country := sofar["country"]; (country == "" || country == c.country) && begins(c.name, value) {
			list = append(list, c.name)
		}
	}
	return list, nil
}

// begins compares without case.
func begins(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

type greetingArgs struct {
	Name  string `json:"name" desc:"Who is greeted." minlen:"1" maxlen:"100"`
	Style string `json:"style" desc:"How." enum:"friendly,formal" default:"friendly"`
}

type briefingArgs struct {
	Country string `json:"country" desc:"The country of the city." maxlen:"100"`
	City    string `json:"city" desc:"The city to be briefed about." maxlen:"100"`
}

// prompts are messages to begin a conversation with.
func prompts() []server.Feature {
	return []server.Feature{
		server.Prompt("simple", "A prompt without arguments.", func(context.Context, mcp.None) (string, error) {
			return "Please tell me what you can do with the tools you have.", nil
		}).With(server.PromptOptions{Title: "Simple"}),

		server.Prompt("greeting", "Greets somebody.", func(_ context.Context, a greetingArgs) ([]mcp.PromptMessage, error) {
			ask := "Please greet " + a.Name + "."
			if a.Style == "formal" {
				ask = "Please greet " + a.Name + " formally."
			}
			return []mcp.PromptMessage{
				{Role: mcp.RoleUser, Content: mcp.Text(ask)},
				{Role: mcp.RoleAssistant, Content: mcp.Text("Good day, ")},
			}, nil
		}).With(server.PromptOptions{
			Title:    "Greeting",
			Complete: map[string]server.Completer{"style": server.Choices("friendly", "formal")},
		}),

		server.Prompt("briefing", "Asks about a city, with what is known of it.", briefing).With(server.PromptOptions{
			Title:    "Briefing",
			Complete: map[string]server.Completer{"country": countries, "city": citiesOf},
		}),
	}
}

// briefing brings a resource along.
func briefing(_ context.Context, a briefingArgs) ([]mcp.PromptMessage, error) {
	for _, c := range cities {
		if c.name != a.City || c.country != a.Country {
			continue
		}
		return []mcp.PromptMessage{
			{Role: mcp.RoleUser, Content: mcp.Embed(mcp.ResourceContents{
				URI: "demo://cities/" + c.country + "/" + c.name, MIMEType: "text/plain",
				Text: fmt.Sprintf("%s in %s is known for %s.\n", c.name, c.country, c.known),
			})},
			{Role: mcp.RoleUser, Content: mcp.Text("Please write a briefing about " + c.name + ".")},
		}, nil
	}
	return nil, mcp.NewError(mcp.CodeInvalidParams, "nothing is known of %q in %q; complete the arguments to see what there is", a.City, a.Country)
}
