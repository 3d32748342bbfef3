package odd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// Seen is what a client saw when it used a server.
type Seen struct {
	// Lists are names of tools and prompts and addresses of resources and templates, by the names of
	// [Expect.Lists].
	Lists map[string][]string `json:"lists"`
	// Texts are what "call", "read" and "prompt" returned.
	Texts map[string]string `json:"texts"`
	// IsError is whether the tool failed.
	IsError bool `json:"isError"`
}

// Lists returns the lists that a client must read: "tools", "prompts", "resources" and "templates".
// A nil list is read and not compared.
func (e *Expect) Lists() map[string][]string {
	all := map[string][]string{"tools": e.Tools, "prompts": e.Prompts, "resources": e.Resources, "templates": e.Templates}
	expected := maps.Clone(all)
	maps.DeleteFunc(expected, func(_ string, list []string) bool { return list == nil })
	if len(expected) == 0 && e.Call == nil && e.Read == nil && e.Prompt == nil {
		return all
	}
	return expected
}

// Use lists, calls, reads and gets what the case expects. With the first error it returns what it saw before.
func (e *Expect) Use(ctx context.Context, cl *client.Client) (*Seen, error) {
	seen := &Seen{Lists: make(map[string][]string), Texts: make(map[string]string)}
	expected := e.Lists()
	for _, list := range []struct {
		name string
		read func() ([]string, error)
	}{
		{"tools", func() ([]string, error) { return names(cl.Tools(ctx), func(x *mcp.Tool) string { return x.Name }) }},
		{"prompts", func() ([]string, error) {
			return names(cl.Prompts(ctx), func(x *mcp.Prompt) string { return x.Name })
		}},
		{"resources", func() ([]string, error) {
			return names(cl.Resources(ctx), func(x *mcp.Resource) string { return x.URI })
		}},
		{"templates", func() ([]string, error) {
			return names(cl.ResourceTemplates(ctx), func(x *mcp.ResourceTemplate) string { return x.URITemplate })
		}},
	} {
		if _, ok := expected[list.name]; !ok {
			continue
		}
		got, err := list.read()
		if err != nil && !errors.Is(err, client.ErrNotCapable) {
			return seen, err
		}
		seen.Lists[list.name] = got
	}
	if e.Call != nil {
		r, err := cl.CallTool(ctx, e.Call.Tool, nil, nil)
		if err != nil {
			return seen, err
		}
		seen.Texts["call"] = fmt.Sprint(texts(r.Content...), string(r.StructuredContent))
		seen.IsError = r.IsError
	}
	if e.Read != nil {
		r, err := cl.ReadResource(ctx, e.Read.URI, nil)
		if err != nil {
			return seen, err
		}
		var got []string
		for _, x := range r.Contents {
			got = append(got, x.Text, string(x.Blob))
		}
		seen.Texts["read"] = strings.Join(got, "\n")
	}
	if e.Prompt != nil {
		r, err := cl.GetPrompt(ctx, e.Prompt.Name, nil, nil)
		if err != nil {
			return seen, err
		}
		var got []string
		for _, m := range r.Messages {
			got = append(got, texts(m.Content))
		}
		seen.Texts["prompt"] = strings.Join(got, "\n")
	}
	return seen, nil
}

func names[T any](list iter.Seq2[*T, error], name func(*T) string) (got []string, err error) {
	for x, err := range list {
		if err != nil {
			return nil, err
		}
		got = append(got, name(x))
	}
	return got, nil
}

// texts is what is in blocks.
func texts(blocks ...mcp.Content) string {
	var list []string
	for _, b := range blocks {
		switch b := b.(type) {
		case *mcp.TextContent:
			list = append(list, b.Text)
		case *mcp.ImageContent:
			list = append(list, b.MIMEType, string(b.Data))
		case *mcp.AudioContent:
			list = append(list, b.MIMEType, string(b.Data))
		case *mcp.ResourceLink:
			list = append(list, b.URI)
		case *mcp.EmbeddedResource:
			list = append(list, b.Resource.URI, b.Resource.Text, string(b.Resource.Blob))
		}
	}
	return strings.Join(list, "\n")
}
