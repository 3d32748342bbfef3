// Package contract keeps what a server offers, and tells what has changed in it: its
// instructions and capabilities, tools with their schemas and annotations, prompts with their
// arguments, resources and templates. [Read] asks a server for all of it, Encode and Decode
// store it, and [Compare] sorts differences by what they do to clients: breaking, risky, safe.
// Schemas are compared by what they mean.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/lists"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A Contract is what a server offers in one revision of the protocol. It is without what varies
// with the data: the sizes of resources and the times at which they were changed.
type Contract struct {
	// Revision is the revision of the protocol in which the server was asked.
	Revision string `json:"revision"`
	// Server is what the server says about itself.
	Server map[string]any `json:"server,omitempty"`
	// Instructions are those of the server.
	Instructions string `json:"instructions,omitempty"`
	// Capabilities are what it declares.
	Capabilities map[string]any `json:"capabilities"`
	// Tools, Prompts, Resources and Templates are its lists, by name or URI.
	Tools     Items `json:"tools"`
	Prompts   Items `json:"prompts"`
	Resources Items `json:"resources"`
	Templates Items `json:"resourceTemplates"`
}

// Items are the items of a list by what identifies them. Numbers are json.Number.
type Items map[string]map[string]any

// items returns the list of a kind.
func (c *Contract) items(kind lists.Kind) *Items {
	switch kind {
	case lists.Tools:
		return &c.Tools
	case lists.Prompts:
		return &c.Prompts
	case lists.Resources:
		return &c.Resources
	}
	return &c.Templates
}

// Declare makes a client declare every capability, so that the server offers all that it
// has, and refuse whatever is asked of it.
func Declare(o *client.Options) *client.Options {
	declared := *o
	declared.OnElicit = func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Decline() }
	declared.OnElicitURL = declared.OnElicit
	declared.OnSample = func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return nil, client.ErrRefused
	}
	declared.OnRoots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
	declared.SampleTools, declared.SampleContext = true, true
	return &declared
}

// Read asks a server for all that it offers.
func Read(ctx context.Context, c *client.Client) (*Contract, error) {
	made := &Contract{Revision: c.Version(), Instructions: c.Instructions()}
	var err error
	if c.Server() != nil {
		if made.Server, err = tree(c.Server()); err != nil {
			return nil, fmt.Errorf("serverInfo: %w", err)
		}
	}
	if made.Capabilities, err = tree(c.Capabilities()); err != nil {
		return nil, fmt.Errorf("capabilities: %w", err)
	}
	for _, kind := range lists.All() {
		into := made.items(kind)
		*into = Items{}
		if !c.Capabilities().Has(kind.Capability) {
			continue
		}
		list, err := lists.Read(ctx, lists.Of(c), kind, nil)
		if unknown, ok := errors.AsType[*jsonrpc.Error](err); ok && unknown.Code == mcp.CodeMethodNotFound {
			continue // a list that is declared and not served has nothing in it
		}
		if err != nil && !errors.As(err, new(*lists.LoopError)) { // a list that leads back into itself ends there
			return nil, err
		}
		if err := into.fill(kind, list.Items); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// ErrTwice says that two items of a list have the same name.
var ErrTwice = errors.New("two items have the same name")

// fill puts a list under the names of its items.
func (m *Items) fill(kind lists.Kind, list []mcp.RawValue) error {
	for _, raw := range list {
		item, err := decodeTree(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.Method, err)
		}
		key, _ := item[kind.Key].(string)
		if kind == lists.Resources {
			delete(item, "size")
		}
		if annotations, ok := item["annotations"].(map[string]any); ok && kind.Capability == mcp.CapResources {
			delete(annotations, "lastModified")
		}
		if before, ok := (*m)[key]; ok && plain(before) != plain(item) {
			return fmt.Errorf("%s: %w: %.80q; what is meant by it nobody can tell", kind.Method, ErrTwice, key)
		}
		(*m)[key] = item
	}
	return nil
}

// tree is a value as JSON makes it.
func tree(v any) (map[string]any, error) {
	raw, err := strictjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decodeTree(raw)
}

func decodeTree(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m map[string]any
	err := d.Decode(&m)
	return m, err
}

// plain is a value as JSON in one line.
func plain(v any) string {
	raw, err := encode(v, "")
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(bytes.TrimSuffix(raw, []byte("\n")))
}

// encode writes JSON with sorted members.
func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}
