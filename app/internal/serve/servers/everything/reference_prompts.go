package everything

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// dynamicURI is where a resource is made of its number.
func dynamicURI(kind string, id int) string {
	return fmt.Sprintf("demo://resource/dynamic/%s/%d", strings.ToLower(kind), id)
}

// dynamic makes the resource of a number: kind is "Text" or "Blob".
func dynamic(kind string, id int) mcp.ResourceContents {
	at := time.Now().Format("3:04:05 PM")
	c := mcp.ResourceContents{URI: dynamicURI(kind, id), MIMEType: "text/plain"}
	if kind == "Blob" {
		c.Blob = fmt.Appendf(nil, "Resource %d: This is a base64 blob created at %s", id, at)
	} else {
		c.Text = fmt.Sprintf("Resource %d: This is a plaintext resource created at %s", id, at)
	}
	return c
}

// number reads the number of a resource, from 1.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0
}

// numbers completes the number of a resource with itself.
func numbers(_ context.Context, typed string, _ map[string]string) ([]string, error) {
	if _, ok := number(typed); ok {
		return []string{typed}, nil
	}
	return nil, nil
}

// resources are those of the reference server. tick is a fifth of the time between two updates.
func (r *reference) resources(tick time.Duration) []server.Feature {
	watch := func(ctx context.Context, _ string, changed func()) {
		t := time.NewTicker(5 * tick)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if r.updates.Load() {
					changed()
				}
			}
		}
	}
	template := func(kind, mimeType string) server.Feature {
		return server.Template("demo://resource/dynamic/"+strings.ToLower(kind)+"/{resourceId}", "Dynamic "+kind+" Resource",
			func(_ context.Context, in struct {
				ID string `uri:"resourceId"`
			},
			) (mcp.ResourceContents, error) {
				n, ok := number(in.ID)
				if !ok {
					return mcp.ResourceContents{}, server.ErrNotFound
				}
				return dynamic(kind, n), nil
			}).With(server.TemplateOptions{
			Title: kind + " by number", Description: "A resource that is made of its number, from 1.", MIMEType: mimeType,
			Complete: map[string]server.Completer{"resourceId": numbers}, Watch: watch,
		})
	}
	return []server.Feature{
		template("Text", "text/plain"), template("Blob", "application/octet-stream"),
		server.Template("demo://resource/session/{id}/{name}", "Compressed file", func(_ context.Context, in struct {
			ID   string `uri:"id"`
			Name string `uri:"name"`
		},
		) ([]byte, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, f := range r.files {
				if f.id == in.ID && f.name == in.Name {
					return f.data, nil
				}
			}
			return nil, server.ErrNotFound
		}).With(server.TemplateOptions{
			Title: "Compressed file", Description: "What gzip-file-as-resource made.", MIMEType: "application/gzip",
		}),
	}
}

type argsPrompt struct {
	City  string `json:"city" desc:"The name of the city." maxlen:"1000"`
	State string `json:"state,omitzero" desc:"The name of the state." maxlen:"1000"`
}

type teamPrompt struct {
	Department string `json:"department" desc:"The department." maxlen:"1000"`
	Name       string `json:"name" desc:"Who is to lead it." maxlen:"1000"`
}

type resourcePrompt struct {
	Type string `json:"resourceType" desc:"What kind of resource." enum:"Text,Blob"`
	ID   string `json:"resourceId" desc:"Its number, from 1." maxlen:"20"`
}

// teams are who can lead each department.
var teams = map[string][]string{
	"Engineering": {"Alice", "Bob", "Charlie"}, "Sales": {"David", "Eve", "Frank"},
	"Marketing": {"Grace", "Henry", "Iris"}, "Support": {"John", "Kim", "Lee"},
}

// prompts are those of the reference server.
func (*reference) prompts() []server.Feature {
	return []server.Feature{
		server.Prompt("simple-prompt", "A prompt without arguments.", func(context.Context, mcp.None) (string, error) {
			return "This is a simple prompt without arguments.", nil
		}).With(server.PromptOptions{Title: "Simple Prompt"}),

		server.Prompt("args-prompt", "A prompt with an argument that is needed, and one that is not.", func(_ context.Context, a argsPrompt) (string, error) {
			if a.State != "" {
				a.City += ", " + a.State
			}
			return "What's weather in " + a.City + "?", nil
		}).With(server.PromptOptions{Title: "Arguments Prompt"}),

		server.Prompt("completable-prompt", "A prompt whose second argument is completed by the first.", func(_ context.Context, a teamPrompt) (string, error) {
			return fmt.Sprintf("Please promote %s to the head of the %s team.", a.Name, a.Department), nil
		}).With(server.PromptOptions{
			Title: "Team Management",
			Complete: map[string]server.Completer{
				"department": server.Choices("Engineering", "Sales", "Marketing", "Support"),
				"name": func(ctx context.Context, typed string, sofar map[string]string) ([]string, error) {
					return server.Choices(teams[sofar["department"]]...)(ctx, typed, sofar)
				},
			},
		}),

		server.Prompt("resource-prompt", "A prompt that brings a resource along.", func(_ context.Context, a resourcePrompt) ([]mcp.PromptMessage, error) {
			n, ok := number(a.ID)
			if !ok {
				return nil, mcp.NewError(mcp.CodeInvalidParams, "resourceId must be a whole number from 1, and is %.40q", a.ID)
			}
			return []mcp.PromptMessage{
				{Role: mcp.RoleUser, Content: mcp.Text(fmt.Sprintf("This prompt includes the %s resource with id: %d. Please analyze the following resource:", a.Type, n))},
				{Role: mcp.RoleUser, Content: mcp.Embed(dynamic(a.Type, n))},
			}, nil
		}).With(server.PromptOptions{
			Title:    "Resource Prompt",
			Complete: map[string]server.Completer{"resourceType": server.Choices("Text", "Blob"), "resourceId": numbers},
		}),
	}
}
