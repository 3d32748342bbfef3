package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// maxTools bounds how many definitions of tools are kept.
const maxTools = 10_000

// A toolCache holds what was learnt from lists of tools: schemas, compiled once
// per definition, and hints.
type toolCache struct {
	mu      sync.RWMutex
	entries map[string]*toolEntry
	bytes   int // of schemas
}

// A toolEntry is one definition. It is never written to.
type toolEntry struct {
	input, output wire.RawValue // as text
	routed        bool          // header annotations were read
	headers       []schema.HeaderBinding
	out           *schema.Compiled // nil if results are not checked
	hints         *mcp.ToolAnnotations

	err                 error         // why the tool was left out
	inputErr, outputErr error         // why its schemas are not used
	shown               wire.RawValue // replaces an input schema that does not describe an object; else nil
}

// lookup returns what is known of a tool, or nil.
func (b *toolCache) lookup(name string) *toolEntry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.entries[name]
}

// learn reads the definition of a tool from a list. A schema that cannot be used (of an unknown
// dialect, not a schema, beyond a bound) is not checked, as are patterns that cannot be judged here
// (ruling 38). Only wrong header annotations make the tool unusable, over transports with headers
// (spec 2026-07-28, basic/transports/streamable-http: clients MUST reject such tools).
func (b *toolCache) learn(t *mcp.Tool, headers bool, maxBytes int) *toolEntry {
	if old := b.lookup(t.Name); old != nil && old.routed == headers && bytes.Equal(old.input, t.InputSchema) && bytes.Equal(old.output, t.OutputSchema) {
		if !sameHints(old.hints, t.Annotations) {
			e := *old
			e.hints = t.Annotations
			b.put(t.Name, &e, maxBytes)
		}
		return old
	}
	e := &toolEntry{input: t.InputSchema, output: t.OutputSchema, hints: t.Annotations, routed: headers}
	e.readInput(headers)
	if len(e.output) > 0 {
		e.out, e.outputErr = compileObject(e.output, &schema.Limits{IgnoreHeaders: true, Lenient: true})
	}
	b.put(t.Name, e, maxBytes)
	return e
}

// readInput reads the input schema, whose values the server checks.
func (e *toolEntry) readInput(headers bool) {
	in, err := compileObject(e.input, &schema.Limits{IgnoreHeaders: !headers, Lenient: true})
	if err != nil && !errors.Is(err, schema.ErrHeader) {
		e.inputErr = err
		in, err = schema.Compile(e.input, &schema.Limits{IgnoreHeaders: !headers, Unchecked: true})
	}
	if errors.Is(err, schema.ErrHeader) {
		e.err = fmt.Errorf("inputSchema: %w", err)
		return
	}
	if err != nil || in.Type() != "object" { // spec 2026-07-28, schema: Tool.inputSchema
		e.inputErr = cmp.Or(e.inputErr, errors.New("its type must be \"object\""))
		e.shown = ofObject(e.input)
	}
	if err == nil {
		e.headers = in.Headers()
	}
}

// ofObject returns a schema of an object: raw with the type "object" if it has none, or several, else the
// schema of all objects.
func ofObject(raw wire.RawValue) wire.RawValue {
	out := wire.RawValue(`{"type":"object"`)
	o, err := wire.ParseObject(raw, wire.Limits{})
	if typ, ok := o.Member("type"); err == nil && (!ok || typ[0] != '"') {
		for name, value := range o.All() {
			if name != "type" {
				out = wire.AppendEntry(out, name, value)
			}
		}
	}
	return append(out, '}')
}

// compileObject compiles a schema that has to be an object.
func compileObject(raw wire.RawValue, lim *schema.Limits) (*schema.Compiled, error) {
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return nil, errors.New("it is missing")
	case raw[0] != '{':
		return nil, fmt.Errorf("expected an object, got %s", wire.Kind(raw[0]))
	}
	return schema.Compile(raw, lim)
}

// usableTool reports whether the i-th tool of a page can be used. It reports what is wrong with the
// schemas, removes an output schema that cannot be used, and replaces an input schema that
// does not describe an object.
func (c *Client) usableTool(ctx context.Context, i int, t *mcp.Tool) bool {
	if string(t.OutputSchema) == "null" {
		t.OutputSchema = nil
	}
	e := c.tools.learn(t, c.routes(), c.opts.MaxListBytes)
	for _, wrong := range []struct {
		member string
		effect Effect
		err    error
	}{
		{"", Omitted, e.err},
		{"/inputSchema", ArgumentsUnchecked, e.inputErr},
		{"/outputSchema", ResultsUnchecked, e.outputErr},
	} {
		if wrong.err == nil {
			continue
		}
		p := &Problem{Method: mcp.MethodToolsList, Subject: t.Name, Effect: wrong.effect, Why: wrong.err.Error()}
		if at := place("tools", i); at != "" {
			p.Place = at + wrong.member
		}
		c.Report(ctx, p)
	}
	if e.shown != nil {
		t.InputSchema = e.shown
	}
	if e.outputErr != nil {
		t.OutputSchema = nil
	}
	return e.err == nil
}

// put keeps a definition. A book that is full begins anew: it can be learnt
// again.
func (b *toolCache) put(name string, e *toolEntry, maxBytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.entries[name]; old != nil {
		b.bytes -= old.size(name)
	}
	b.bytes += e.size(name)
	if b.entries == nil || len(b.entries) >= maxTools || b.bytes > maxBytes {
		b.entries = make(map[string]*toolEntry)
		b.bytes = e.size(name)
	}
	b.entries[name] = e
}

func (e *toolEntry) size(name string) int {
	return len(name) + len(e.input) + len(e.output)
}

func sameHints(a, b *mcp.ToolAnnotations) bool {
	return a.ReadOnly() == b.ReadOnly() && a.Idempotent() == b.Idempotent()
}

// fields are the arguments that a transport repeats in its headers, if the
// tool's definition is known (spec 2026-07-28, basic/transports/
// streamable-http: clients MUST mirror the designated parameters).
func (b *toolCache) fields(name string, arguments wire.RawValue, log *slog.Logger) map[string][]string {
	e := b.lookup(name)
	if e == nil || len(e.headers) == 0 || len(arguments) == 0 {
		return nil
	}
	fields := make(map[string][]string, len(e.headers))
	for i := range e.headers {
		h := &e.headers[i]
		value, present, err := h.Value(arguments)
		switch {
		case err != nil:
			log.Warn("an argument cannot go into its header", "tool", name, "header", h.Name, "err", err)
		case present:
			fields[h.Name] = []string{value}
		}
	}
	return fields
}
