package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
	"github.com/parley-mcp/parley/uritemplate"
)

// Raw features are made of a definition of package mcp instead of Go types: for
// gateways, and for what is known only at run time.

// errNoFunction says that a feature would panic when it is used.
var errNoFunction = errors.New("its function is nil")

// RawTool makes a tool of a definition with any JSON Schema of the dialects
// 2020-12, 2019-09 and draft-07, which is compiled here, and a function that
// gets its checked arguments as JSON. A given output schema is enforced too.
// It panics if the definition cannot be served; [NewRawTool] returns an error.
func RawTool(def mcp.Tool, fn func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error)) *ToolFeature {
	return must(NewRawTool(def, fn))
}

// NewRawTool is [RawTool] with an error in the place of a panic.
func NewRawTool(def mcp.Tool, fn func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error)) (*ToolFeature, error) {
	return newRawTool(def, fn, false)
}

// UncheckedTool is [RawTool] for functions that check for themselves: the schemas
// of the definition are advertised as they are, in any dialect, and neither
// arguments nor results are checked against them. fn must expect any JSON object.
// It panics if the definition cannot be served; [NewUncheckedTool] returns an
// error. [ForeignTool] takes names and `_meta` of another server's tool too.
func UncheckedTool(def mcp.Tool, fn func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error)) *ToolFeature {
	return must(NewUncheckedTool(def, fn))
}

// NewUncheckedTool is [UncheckedTool] with an error in the place of a panic.
func NewUncheckedTool(def mcp.Tool, fn func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error)) (*ToolFeature, error) {
	return newRawTool(def, fn, true)
}

func newRawTool(def mcp.Tool, fn func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error), unchecked bool) (*ToolFeature, error) {
	if err := checkToolName(def.Name); err != nil {
		return nil, err
	}
	f, err := toolOf(def, fn, unchecked)
	if err != nil {
		return nil, err
	}
	if err := checkRaw("tool "+def.Name, def.Meta, fn == nil); err != nil {
		return nil, err
	}
	return f, nil
}

// toolOf makes a tool of a definition, whose name is not looked at.
func toolOf(def mcp.Tool, fn func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error), unchecked bool) (*ToolFeature, error) {
	if len(def.InputSchema) == 0 {
		return nil, fmt.Errorf("tool %q: the definition has no InputSchema; {\"type\":\"object\"} takes any arguments", def.Name)
	}
	in, err := schema.Compile(def.InputSchema, &schema.Limits{Unchecked: unchecked})
	if err != nil {
		return nil, fmt.Errorf("tool %q: inputSchema: %w", def.Name, err)
	}
	if in.Type() != "object" { // spec 2026-07-28, schema: Tool.inputSchema
		return nil, fmt.Errorf("tool %q: inputSchema: its type must be \"object\"", def.Name)
	}
	t := &tool{def: &def, in: in}
	if def.OutputSchema != nil {
		out, err := schema.Compile(def.OutputSchema, &schema.Limits{IgnoreHeaders: true, Unchecked: unchecked})
		if err != nil {
			return nil, fmt.Errorf("tool %q: outputSchema: %w", def.Name, err)
		}
		if !unchecked {
			t.out = out
		}
	}
	t.call = func(c *Call, in *schema.Compiled, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		if err := in.Check(arguments); err != nil {
			return nil, &argumentError{err}
		}
		res, err := fn(c, arguments)
		if err != nil {
			return nil, err
		}
		return plain(res)
	}
	return &ToolFeature{t: t}, nil
}

// checkRaw checks the members of a raw feature other than schemas and names.
func checkRaw(what string, m mcp.Meta, noFunction bool) error {
	err := checkMeta(what, m)
	if err == nil && noFunction {
		err = fmt.Errorf("%s: %w", what, errNoFunction)
	}
	return err
}

// RawPrompt makes a prompt of a definition and a function that gets the
// arguments as the client sent them. Only arguments that the definition names
// are taken, and those that it requires are there; their values are bounded by
// Limits.MaxArgument. It panics if the definition cannot be served;
// [NewRawPrompt] returns an error.
func RawPrompt(def mcp.Prompt, fn func(ctx context.Context, arguments map[string]string) (*mcp.GetPromptResult, error)) *PromptFeature {
	return must(NewRawPrompt(def, fn))
}

// NewRawPrompt is [RawPrompt] with an error in the place of a panic.
func NewRawPrompt(def mcp.Prompt, fn func(ctx context.Context, arguments map[string]string) (*mcp.GetPromptResult, error)) (*PromptFeature, error) {
	if def.Name == "" {
		return nil, errors.New("prompt: the name is empty")
	}
	p := &prompt{def: &def, kinds: make(map[string]string)}
	for _, a := range def.Arguments {
		if _, twice := p.kinds[a.Name]; twice || a.Name == "" {
			return nil, fmt.Errorf("prompt %q: the argument %q is there twice, or has no name", def.Name, a.Name)
		}
		p.kinds[a.Name] = "string"
	}
	p.raw = func(c *Call, arguments map[string]string) (*mcp.GetPromptResult, error) {
		for _, a := range def.Arguments {
			if _, ok := arguments[a.Name]; a.Required && !ok {
				return nil, mcp.NewError(mcp.CodeInvalidParams, "invalid arguments of prompt %s: %q is missing", def.Name, a.Name)
			}
		}
		res, err := fn(c, arguments)
		if err != nil {
			return nil, err
		}
		return ownPrompt(res)
	}
	if err := checkRaw("prompt "+def.Name, def.Meta, fn == nil); err != nil {
		return nil, err
	}
	return &PromptFeature{p: p}, nil
}

// RawResource makes a resource of a definition and a function that reads it.
// It panics if the definition cannot be served; [NewRawResource] returns an
// error.
func RawResource(def mcp.Resource, fn func(ctx context.Context, uri string) (*mcp.ReadResourceResult, error)) *ResourceFeature {
	return must(NewRawResource(def, fn))
}

// NewRawResource is [RawResource] with an error in the place of a panic.
func NewRawResource(def mcp.Resource, fn func(ctx context.Context, uri string) (*mcp.ReadResourceResult, error)) (*ResourceFeature, error) {
	if err := checkURI(def.URI); err != nil {
		return nil, fmt.Errorf("resource %q: %w", clip(def.URI), err)
	}
	r := &resource{def: &def}
	r.read = func(c *Call) (*mcp.ReadResourceResult, error) {
		res, err := fn(c, def.URI)
		if err != nil {
			return nil, err
		}
		return ownContents(res)
	}
	if err := checkRaw("resource "+def.URI, def.Meta, fn == nil); err != nil {
		return nil, err
	}
	return &ResourceFeature{r: r}, nil
}

// RawTemplate makes a family of resources of a definition and a function that
// gets the URI that is read and the variables in it. It panics if the definition
// cannot be served; [NewRawTemplate] returns an error.
func RawTemplate(def mcp.ResourceTemplate, fn func(ctx context.Context, uri string, variables uritemplate.Values) (*mcp.ReadResourceResult, error)) *TemplateFeature {
	return must(NewRawTemplate(def, fn))
}

// NewRawTemplate is [RawTemplate] with an error in the place of a panic.
func NewRawTemplate(def mcp.ResourceTemplate, fn func(ctx context.Context, uri string, variables uritemplate.Values) (*mcp.ReadResourceResult, error)) (*TemplateFeature, error) {
	compiled, err := uritemplate.Parse(def.URITemplate)
	if err != nil {
		return nil, fmt.Errorf("resource %w", err)
	}
	t := &template{def: &def, compiled: compiled}
	t.read = func(c *Call, uri string, variables uritemplate.Values) (*mcp.ReadResourceResult, error) {
		res, err := fn(c, uri, variables)
		if err != nil {
			return nil, err
		}
		return ownContents(res)
	}
	if err := checkRaw("template "+def.URITemplate, def.Meta, fn == nil); err != nil {
		return nil, err
	}
	return &TemplateFeature{t: t}, nil
}

// LegalName makes a name that a tool may have of any text. A text that is such a
// name stays as it is, unless it has neither letters nor digits. In others letters,
// digits, "-" and "." stay, runs of other characters become "_" between them, and
// what is longer than 128 characters is cut and ends in a digest, as does a text
// that has nothing to keep. Different texts may give the same name: add the tools
// in one call of [Server.TryAdd], which refuses two of a name; in two calls the
// second takes the place of the first.
func LegalName(text string) string {
	if isToolName(text) && strings.Trim(text, "_-.") != "" {
		return text
	}
	parts := strings.FieldsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.", r)
	})
	name := strings.Join(parts, "_")
	switch {
	case strings.Trim(name, "_-.") == "":
		return "tool_" + nameDigest(text)
	case len(name) > maxToolName:
		return cutName(name, text)
	}
	return name
}

// maxToolName is the longest name of a tool.
const maxToolName = 128

// cutName cuts a name that is too long. It ends in a digest of text, so that others
// with the same beginning stay different.
func cutName(name, text string) string {
	digest := nameDigest(text)
	cut := maxToolName - len(digest) - 1
	for cut > 0 && !utf8.RuneStart(name[cut]) { // of a foreign name
		cut--
	}
	return name[:cut] + "_" + digest
}

func nameDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// must is for constructors whose errors are mistakes in the program.
func must[F any](f F, err error) F {
	if err != nil {
		panic("server: " + err.Error())
	}
	return f
}

// firstSlice returns the first slice that is not nil.
func firstSlice[E any](a, b []E) []E {
	if a != nil {
		return a
	}
	return b
}

// firstMeta returns the first of the two that is not nil.
func firstMeta(a, b mcp.Meta) mcp.Meta {
	if a != nil {
		return a
	}
	return b
}
