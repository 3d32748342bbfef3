package client

import (
	"bytes"
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
	out           *schema.Compiled // nil if the tool promises nothing
	hints         *mcp.ToolAnnotations
	err           error // why the tool cannot be used
}

// lookup returns what is known of a tool, or nil.
func (b *toolCache) lookup(name string) *toolEntry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.entries[name]
}

// learn takes a tool from a list. The error says why it cannot be used: a schema of an unknown
// dialect, one that is not a schema, one of arguments that are no object, or one that breaks a
// bound. Patterns that cannot be judged here are the server's to judge (ruling 38). Header
// annotations matter to transports with headers alone.
func (b *toolCache) learn(t *mcp.Tool, headers bool, maxBytes int) error {
	if old := b.lookup(t.Name); old != nil && old.routed == headers && bytes.Equal(old.input, t.InputSchema) && bytes.Equal(old.output, t.OutputSchema) {
		if !sameHints(old.hints, t.Annotations) {
			e := *old
			e.hints = t.Annotations
			b.put(t.Name, &e, maxBytes)
		}
		return old.err
	}
	e := &toolEntry{input: t.InputSchema, output: t.OutputSchema, hints: t.Annotations, routed: headers}
	in, err := schema.Compile(t.InputSchema, &schema.Limits{IgnoreHeaders: !headers, Lenient: true})
	switch {
	case err != nil:
		e.err = fmt.Errorf("inputSchema: %w", err)
	case in.Type() != "object": // spec 2026-07-28, schema: Tool.inputSchema
		e.err = errors.New("inputSchema: its type must be \"object\"")
	default:
		e.headers = in.Headers()
	}
	if e.err == nil && len(t.OutputSchema) > 0 {
		if e.out, err = schema.Compile(t.OutputSchema, &schema.Limits{IgnoreHeaders: true, Lenient: true}); err != nil {
			e.err = fmt.Errorf("outputSchema: %w", err)
		}
	}
	b.put(t.Name, e, maxBytes)
	return e.err
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
