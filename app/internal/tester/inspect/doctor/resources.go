package doctor

import (
	"context"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/uritemplate"
)

// prompts examines the list of prompts.
func (x *subject) prompts(items []mcp.RawValue) {
	names := make(map[string]bool)
	for _, raw := range items {
		var p mcp.Prompt
		if err := decode(raw, &p); err != nil {
			x.add("MCP-PAGE-005", mcp.MethodPromptsList, "a prompt: "+reasonOf(err))
			continue
		}
		x.offer.prompts = append(x.offer.prompts, &p)
		where := contract.Path("prompts", p.Name)
		switch {
		case p.Name == "":
			x.add("MCP-PROMPT-001", where, "the name is empty")
		case names[p.Name]:
			x.add("MCP-PROMPT-002", where, fmt.Sprintf("the name %q is listed more than once", p.Name))
		}
		names[p.Name] = true
		if strings.TrimSpace(p.Description) == "" {
			x.add("MCP-PROMPT-003", where, "the description is empty")
		}
		texts := []string{p.Description}
		arguments := make(map[string]bool)
		for _, a := range p.Arguments {
			place := contract.Path("prompts", p.Name, "arguments", a.Name)
			switch {
			case a.Name == "":
				x.add("MCP-PROMPT-005", place, "the name is empty")
			case arguments[a.Name]:
				x.add("MCP-PROMPT-004", place, fmt.Sprintf("the name %q is used more than once", a.Name))
			}
			arguments[a.Name] = true
			if strings.TrimSpace(a.Description) == "" {
				x.add("MCP-PROMPT-006", place, "the description is empty")
			}
			texts = append(texts, a.Name, a.Description)
		}
		x.hidden("MCP-PROMPT-007", where, p.Name, p.Title, texts...)
	}
}

// hidden looks for characters that people do not see.
func (x *subject) hidden(id, where, name, title string, texts ...string) {
	x.flags(&host.Definition{Tool: &mcp.Tool{Name: name, Title: title, Description: strings.Join(texts, "\n")}}, flagCodes{hidden: id}, where)
}

// maxReads is how many resources are read.
const maxReads = 3

// resources examines the list of resources, and reads some.
func (x *subject) resources(ctx context.Context, items []mcp.RawValue) {
	known := make(map[string]bool)
	read := 0
	for _, raw := range items {
		var r mcp.Resource
		if err := decode(raw, &r); err != nil {
			x.add("MCP-PAGE-005", mcp.MethodResourcesList, "a resource: "+reasonOf(err))
			continue
		}
		x.offer.types[r.URI] = r.MIMEType
		where := contract.Path("resources", r.URI)
		u, err := url.Parse(r.URI)
		absolute := err == nil && u.Scheme != ""
		if !absolute {
			x.add("MCP-RES-001", where, fmt.Sprintf("the URI is %q", r.URI))
		}
		if known[r.URI] {
			x.add("MCP-RES-002", where, "the URI is listed more than once")
		}
		known[r.URI] = true
		x.named(where, r.Name, r.Title, r.Description, r.MIMEType)
		if absolute && read < maxReads {
			read++
			x.read(ctx, where, &r)
		}
	}
}

// named examines what a resource and a template have both.
func (x *subject) named(where, name, title, description, mimeType string) {
	if name == "" {
		x.add("MCP-RES-004", where, "the name is empty")
	}
	if mimeType != "" {
		if kind, _, err := mime.ParseMediaType(mimeType); err != nil || !strings.Contains(kind, "/") {
			x.add("MCP-RES-003", where, fmt.Sprintf("the type is %q", mimeType))
		}
	}
	x.hidden("MCP-RES-011", where, name, title, description)
}

// read reads a resource.
func (x *subject) read(ctx context.Context, where string, r *mcp.Resource) {
	result, err := x.c.ReadResource(ctx, r.URI, &client.CallOptions{NoCache: true})
	switch {
	case answered(err):
		x.add("MCP-RES-008", where, reasonOf(err))
		return
	case err != nil:
		x.failed(ctx, mcp.MethodResourcesRead+" of "+r.URI, "MCP-RES-008", err)
		return
	case len(result.Contents) == 0:
		x.add("MCP-RES-008", where, "a read returns no contents")
	}
	for _, c := range result.Contents {
		if c.URI == r.URI && c.MIMEType != "" && r.MIMEType != "" && !sameType(c.MIMEType, r.MIMEType) {
			x.add("MCP-RES-009", where, fmt.Sprintf("it is listed as %q, but a read returns %q", r.MIMEType, c.MIMEType))
		}
	}
}

// sameType compares two MIME types without their parameters.
func sameType(a, b string) bool {
	first, _, _ := strings.Cut(a, ";")
	second, _, _ := strings.Cut(b, ";")
	return strings.EqualFold(strings.TrimSpace(first), strings.TrimSpace(second))
}

// templates examines the list of templates.
func (x *subject) templates(items []mcp.RawValue) {
	known := make(map[string]bool)
	for _, raw := range items {
		var t mcp.ResourceTemplate
		if err := decode(raw, &t); err != nil {
			x.add("MCP-PAGE-005", mcp.MethodResourcesTemplates, "a template: "+reasonOf(err))
			continue
		}
		x.offer.types[t.URITemplate] = t.MIMEType
		where := contract.Path("resourceTemplates", t.URITemplate)
		if known[t.URITemplate] {
			x.add("MCP-RES-006", where, "the template is listed more than once")
		}
		known[t.URITemplate] = true
		if _, err := uritemplate.Parse(t.URITemplate); err != nil {
			id := "MCP-RES-005"
			if strings.Contains(err.Error(), "is used twice") || strings.Contains(err.Error(), "nothing separates") {
				id = "MCP-RES-007"
			}
			x.add(id, where, reasonOf(err))
		} else if !strings.Contains(t.URITemplate, ":") && !strings.HasPrefix(t.URITemplate, "{") {
			x.add("MCP-RES-001", where, "the template has no scheme")
		}
		x.named(where, t.Name, t.Title, t.Description, t.MIMEType)
	}
}
