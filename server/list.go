package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
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

// get returns the JSON of a feature's definition in the revision of c.
func (e *encodings) get(c *Call, l listing, f listed) (mcp.RawValue, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if raw, ok := e.text[c.facts]; ok {
		return raw, nil
	}
	raw, err := l.encode(c, f.single())
	if err != nil {
		return nil, err
	}
	raw = c.withMembers(f, raw)
	if e.text == nil {
		e.text = make(map[*revision.Facts]mcp.RawValue)
	}
	e.text[c.facts] = raw
	return raw, nil
}

// encode gives the JSON of the one definition of a list in the revision of c.
func (l listing) encode(c *Call, single Result) (mcp.RawValue, error) {
	down, err := c.shape().DownResult(l.method, single)
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
	list, _ := o.Member(l.member)
	if len(list) < 2 {
		return nil, fmt.Errorf("%s has no member %q", l.method, l.member)
	}
	return list[1 : len(list)-1], nil // the one element, without the brackets
}

// maxDefinitionDepth bounds our own definitions: a schema of the deepest kind
// and what is around it.
const maxDefinitionDepth = 256

// offered is what all features that are listed have in common.
type offered struct {
	item  Item         // as its own server knows it
	at    []mountPoint // where it is offered
	texts *encodings
}

func (o *offered) common() *offered { return o }

func (o *offered) forCaller(*Call) (Result, error) { return nil, nil }

func (o *offered) reportFault(*Call, error) {}

// listed is a feature of a list.
type listed interface {
	common() *offered
	// alone is the result of a list that holds the feature alone, as the
	// shape of a revision knows lists.
	single() Result
	// forCaller is single where the definition depends on the caller, else nil.
	forCaller(c *Call) (Result, error)
	// reportFault logs that the definition for a caller is invalid, so that the
	// feature is left out of the caller's list.
	reportFault(c *Call, err error)
}

// listing names a list.
type listing struct{ method, member string }

// page serves one page of a list.
//
// spec 2026-07-28, server/utilities/pagination: cursors are opaque; an invalid
// one "SHOULD" give -32602. Ruling 21: "" is a cursor.
func page[T listed](c *Call, l listing, snap *snapshot[T], cursor *string) (Result, error) {
	visible, digest := visibleKeys(c, snap)
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
	items, err := items(c, l, snap, visible, from, to)
	if err != nil {
		return nil, err
	}
	body := &listBody{member: l.member, items: items}
	if to < len(visible) {
		next := c.seal([]byte(visible[to-1]), bound)
		body.NextCursor = &next
	}
	if c.facts.Cacheable {
		c.srv.opts.Cache.fill(&body.Cacheable, c.srv.filters())
	}
	return body, nil
}

// pages caches the pages of a list that is the same for all callers. Their
// bounds are ours, since cursors are sealed, so that there are few.
type pages struct {
	mu   sync.Mutex
	text map[pageKey][]byte
}

type pageKey struct {
	facts    *revision.Facts
	from, to int
}

// items returns the JSON of a part of the visible keys, with commas between.
func items[T listed](c *Call, l listing, s *snapshot[T], visible []string, from, to int) ([]byte, error) {
	if c.srv.filters() {
		return joined(c, l, s, visible[from:to])
	}
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	k := pageKey{c.facts, from, to}
	if text, ok := s.pages.text[k]; ok {
		return text, nil
	}
	text, err := joined(c, l, s, visible[from:to])
	if err != nil {
		return nil, err
	}
	if s.pages.text == nil {
		s.pages.text = make(map[pageKey][]byte)
	}
	s.pages.text[k] = text
	return text, nil
}

// joined makes the JSON of the features called keys.
func joined[T listed](c *Call, l listing, snap *snapshot[T], keys []string) ([]byte, error) {
	parts := make([][]byte, 0, len(keys))
	for _, k := range keys {
		f := snap.byKey[k]
		raw, err := definition(c, l, f)
		if variant, ok := errors.AsType[*variantError](err); ok {
			f.reportFault(c, variant.err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("encoding %q for %s: %w", k, l.method, err)
		}
		parts = append(parts, raw)
	}
	return bytes.Join(parts, []byte{','}), nil
}

// definition is the JSON of a feature's definition as the caller sees it.
func definition(c *Call, l listing, f listed) (mcp.RawValue, error) {
	own, err := f.forCaller(c)
	if err != nil {
		return nil, &variantError{err}
	}
	if own == nil {
		return f.common().texts.get(c, l, f)
	}
	raw, err := l.encode(c, own)
	if err != nil {
		return nil, &variantError{err}
	}
	return c.withMembers(f, raw), nil
}

// A variantError says why a definition for one caller cannot be shown.
type variantError struct{ err error }

func (e *variantError) Error() string { return e.err.Error() }
func (e *variantError) Unwrap() error { return e.err }

// visibleKeys returns what the caller may see of a snapshot, and a digest of
// it if that depends on the caller.
func visibleKeys[T listed](c *Call, snap *snapshot[T]) ([]string, string) {
	if !c.srv.filters() {
		return snap.keys, ""
	}
	var keys []string
	sum := sha256.New()
	for _, k := range snap.keys {
		if c.seesOffered(snap.byKey[k]) {
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
		caller = c.Principal().Identity()
	}
	return binding("cursor", c.srv.info.Name, method, strconv.FormatUint(generation, 10), digest, caller)
}

// listBody is the result of a list request: a page of encoded definitions.
type listBody struct {
	mcp.ResultBase
	mcp.Cacheable
	mcp.Page
	member string
	items  []byte // with commas between; not to be changed
}

// listHead is the members of a listBody other than its items.
type listHead struct {
	mcp.ResultBase
	mcp.Cacheable
	mcp.Page
}

// AppendJSON encodes the page around its items, which are encoded already.
func (b *listBody) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(slices.Grow(dst, len(b.items)+1<<10), '{', '"')
	dst = append(dst, b.member...)
	dst = append(dst, `":[`...)
	dst = append(dst, b.items...)
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

var toolsListing = listing{mcp.MethodToolsList, "tools"}

func (c *Call) listTools(p *mcp.ListParams) (Result, error) {
	return page(c, toolsListing, c.srv.allTools(), p.Cursor)
}

func (c *Call) listPrompts(p *mcp.ListParams) (Result, error) {
	return page(c, listing{mcp.MethodPromptsList, "prompts"}, c.srv.allPrompts(), p.Cursor)
}

func (c *Call) listResources(p *mcp.ListParams) (Result, error) {
	all, err := c.withListed(c.srv.allResources())
	if err != nil {
		return nil, err
	}
	return page(c, listing{mcp.MethodResourcesList, "resources"}, all, p.Cursor)
}

func (c *Call) listTemplates(p *mcp.ListParams) (Result, error) {
	return page(c, listing{mcp.MethodResourcesTemplates, "resourceTemplates"}, c.srv.allTemplates(), p.Cursor)
}
