package server

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// encodings caches the JSON of a definition for each revision that asked.
type encodings struct {
	mu   sync.Mutex
	text map[*revision.Facts]mcp.RawValue
}

// get returns the JSON of a definition in the revision of c. one is a list
// result that holds the definition alone, as the shape knows lists.
func (e *encodings) get(c *Call, method, member string, one Result) (mcp.RawValue, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if raw, ok := e.text[c.facts]; ok {
		return raw, nil
	}
	down, err := c.shape.DownResult(method, one)
	if err != nil {
		return nil, err
	}
	raw, err := wire.Marshal(down)
	if err != nil {
		return nil, err
	}
	o, err := wire.ParseObject(raw, wire.Limits{Depth: maxDefinitionDepth})
	if err != nil {
		return nil, err
	}
	list, _ := o.Member(member)
	if len(list) < 2 {
		return nil, fmt.Errorf("%s has no member %q", method, member)
	}
	raw = list[1 : len(list)-1] // the one element, without the brackets
	if e.text == nil {
		e.text = make(map[*revision.Facts]mcp.RawValue)
	}
	e.text[c.facts] = raw
	return raw, nil
}

// maxDefinitionDepth bounds our own definitions: a schema of the deepest kind
// and what is around it.
const maxDefinitionDepth = 256

// listing says how a list of features is made into pages.
type listing[T any] struct {
	method, member string
	item           func(T) Item
	at             func(T) []place
	text           func(T, *Call) (mcp.RawValue, error)
}

// page serves one page of a list.
//
// spec 2026-07-28, server/utilities/pagination: cursors are opaque; an invalid
// one "SHOULD" give -32602. Ruling 21: "" is a cursor.
func page[T any](c *Call, l listing[T], snap *snapshot[T], cursor *string) (Result, error) {
	visible, digest := visibleKeys(c, l, snap)
	bound := c.cursorBound(l.method, snap.generation, digest)
	from := 0
	if cursor != nil {
		last, err := c.srv.seal.open(*cursor, bound)
		if err != nil {
			return nil, mcp.NewError(mcp.CodeInvalidParams, "invalid cursor for %s: it is unknown or the list has changed; start again without a cursor", l.method)
		}
		from = (&snapshot[T]{keys: visible}).after(string(last))
	}
	to := len(visible)
	if over(to-from, c.srv.limits.PageSize) {
		to = from + c.srv.limits.PageSize
	}
	body := &listBody{member: l.member, items: make([]mcp.RawValue, 0, to-from)}
	for _, k := range visible[from:to] {
		raw, err := l.text(snap.byKey[k], c)
		if err != nil {
			return nil, fmt.Errorf("encoding %q for %s: %w", k, l.method, err)
		}
		body.items = append(body.items, raw)
	}
	if to < len(visible) {
		next := c.srv.seal.seal([]byte(visible[to-1]), bound)
		body.NextCursor = &next
	}
	if c.facts.Cacheable {
		c.srv.opts.Cache.fill(&body.Cacheable, c.srv.visible != nil)
	}
	return body, nil
}

// visibleKeys returns what the caller may see of a snapshot, and a digest of
// it if that depends on the caller.
func visibleKeys[T any](c *Call, l listing[T], snap *snapshot[T]) ([]string, string) {
	if !c.srv.filters() {
		return snap.keys, ""
	}
	var keys []string
	sum := sha256.New()
	for _, k := range snap.keys {
		t := snap.byKey[k]
		if c.seesAt(l.item(t), l.at(t)) {
			keys = append(keys, k)
			sum.Write(binding(k))
		}
	}
	return keys, base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// cursorBound is what a cursor is good for: this server, this state of the
// list, and this caller if lists depend on callers.
func (c *Call) cursorBound(method string, generation uint64, digest string) []byte {
	caller := ""
	if digest != "" {
		caller = who(c.principal)
	}
	return binding("cursor", c.srv.info.Name, method, strconv.FormatUint(generation, 10), digest, caller)
}

// listBody is the result of a list request: a page of encoded definitions.
type listBody struct {
	mcp.ResultBase
	mcp.Cacheable
	mcp.Page
	member string
	items  []mcp.RawValue
}

// listHead is what a listBody says beside its items.
type listHead struct {
	mcp.ResultBase
	mcp.Cacheable
	mcp.Page
}

// AppendJSON encodes the page around its items, which are encoded already.
func (b *listBody) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, '{', '"')
	dst = append(dst, b.member...)
	dst = append(dst, `":[`...)
	for i, raw := range b.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, raw...)
	}
	dst = append(dst, ']')
	start := len(dst)
	dst, err := wire.Append(dst, &listHead{b.ResultBase, b.Cacheable, b.Page})
	if err != nil {
		return nil, err
	}
	if string(dst[start:]) == "{}" {
		return append(dst[:start], '}'), nil
	}
	dst[start] = ',' // in place of the head's brace
	return dst, nil
}

// fill writes a hint into a result. perCaller says that what a caller sees
// depends on who it is, which rules out sharing (ruling 22).
func (h Cache) fill(to *mcp.Cacheable, perCaller bool) {
	if to.TTLMs == nil {
		to.TTLMs = new(max(0, h.TTL.Milliseconds()))
	}
	if to.CacheScope == "" {
		to.CacheScope = mcp.CachePrivate
		if h.Public {
			to.CacheScope = mcp.CachePublic
		}
	}
	if perCaller {
		to.CacheScope = mcp.CachePrivate
	}
}

var toolListing = listing[*tool]{
	method: mcp.MethodToolsList, member: "tools",
	item: func(t *tool) Item { return Item{Kind: KindTool, Name: t.name, Labels: t.labels} },
	at:   func(t *tool) []place { return t.at },
	text: func(t *tool, c *Call) (mcp.RawValue, error) {
		return t.texts.get(c, mcp.MethodToolsList, "tools", &mcp.ListToolsResult{Tools: []mcp.Tool{*t.def}})
	},
}

var promptListing = listing[*prompt]{
	method: mcp.MethodPromptsList, member: "prompts",
	item: func(p *prompt) Item { return Item{Kind: KindPrompt, Name: p.name, Labels: p.labels} },
	at:   func(p *prompt) []place { return p.at },
	text: func(p *prompt, c *Call) (mcp.RawValue, error) {
		return p.texts.get(c, mcp.MethodPromptsList, "prompts", &mcp.ListPromptsResult{Prompts: []mcp.Prompt{*p.def}})
	},
}

var resourceListing = listing[*resource]{
	method: mcp.MethodResourcesList, member: "resources",
	item: func(r *resource) Item { return Item{Kind: KindResource, Name: r.uri, Labels: r.labels} },
	at:   func(r *resource) []place { return r.at },
	text: func(r *resource, c *Call) (mcp.RawValue, error) {
		return r.texts.get(c, mcp.MethodResourcesList, "resources", &mcp.ListResourcesResult{Resources: []mcp.Resource{*r.def}})
	},
}

var templateListing = listing[*template]{
	method: mcp.MethodResourcesTemplates, member: "resourceTemplates",
	item: func(t *template) Item { return Item{Kind: KindTemplate, Name: t.uri, Labels: t.labels} },
	at:   func(t *template) []place { return t.at },
	text: func(t *template, c *Call) (mcp.RawValue, error) {
		return t.texts.get(c, mcp.MethodResourcesTemplates, "resourceTemplates",
			&mcp.ListResourceTemplatesResult{ResourceTemplates: []mcp.ResourceTemplate{*t.def}})
	},
}

func (c *Call) listTools(p *mcp.ListParams) (Result, error) {
	return page(c, toolListing, c.srv.allTools(), p.Cursor)
}

func (c *Call) listPrompts(p *mcp.ListParams) (Result, error) {
	return page(c, promptListing, c.srv.allPrompts(), p.Cursor)
}

func (c *Call) listResources(p *mcp.ListParams) (Result, error) {
	return page(c, resourceListing, c.srv.allResources(), p.Cursor)
}

func (c *Call) listTemplates(p *mcp.ListParams) (Result, error) {
	return page(c, templateListing, c.srv.allTemplates(), p.Cursor)
}
