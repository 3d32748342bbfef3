package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
	"github.com/parley-mcp/parley/schema/provider"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/uritemplate"
)

// Pauses between readings of lists.
const (
	// retryLists is the pause after a list could not be read.
	retryLists = 5 * time.Second
	// listPause is the least pause before lists are read again that changed
	// once more. It is listShare times as long as the reading took if that is more,
	// so that a server which always tells of changes is not read all the time.
	listPause = 200 * time.Millisecond
	listShare = 4
)

// maxRefused is how many definitions that cannot be offered one reading of a list logs.
const maxRefused = 100

// A list is one of the four lists of the upstream server.
type list uint8

const (
	toolList list = iota
	promptList
	resourceList
	templateList
	listCount
)

func (l list) String() string {
	return [...]string{"tools", "prompts", "resources", "resource templates"}[l]
}

// lists is what is known of the upstream server's lists.
type lists struct {
	wake chan struct{} // has an element while a list is stale

	mu    sync.Mutex
	stale [listCount]bool

	// offered are digests of the definitions that are offered, by name or URI, and
	// refused of those that cannot be.
	// They belong to the goroutine that reads the lists.
	offered, refused [listCount]map[string]digest
}

type digest = [sha256.Size]byte

func (l *lists) init() { l.wake = make(chan struct{}, 1) }

// changed notes that lists are to be read again.
func (l *lists) changed(which ...list) {
	l.mu.Lock()
	for _, w := range which {
		l.stale[w] = true
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the lists that are to be read again.
func (l *lists) take() []list {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []list
	for which, stale := range l.stale {
		if stale {
			out = append(out, list(which))
		}
	}
	l.stale = [listCount]bool{}
	return out
}

// readLists reads all lists.
func (p *Proxy) readLists(ctx context.Context) error {
	for which := range listCount {
		if err := p.readList(ctx, which); err != nil {
			return err
		}
	}
	return nil
}

// keepLists reads lists again when they change, until the proxy is closed.
func (p *Proxy) keepLists() {
	var tick <-chan time.Time
	if p.opts.Refresh > 0 {
		t := time.NewTicker(p.opts.Refresh)
		defer t.Stop()
		tick = t.C
	}
	var again <-chan time.Time
	var failed []list
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.lists.wake:
		case <-tick:
			p.lists.changed(p.untold()...)
		case <-again:
			p.lists.changed(failed...)
			failed = nil
		}
		began := time.Now()
		for _, which := range p.lists.take() {
			if err := p.readList(p.ctx, which); err != nil && p.ctx.Err() == nil {
				p.log.Warn("a list of the upstream server could not be read; what was known of it is still offered",
					"server", p.name(), "list", which.String(), "err", err)
				failed = append(failed, which)
				again = time.After(retryLists)
			}
		}
		p.sleep(max(listPause, listShare*time.Since(began)))
	}
}

// untold are the lists that the upstream server has and does not tell the
// changes of.
func (p *Proxy) untold() []list {
	caps := p.client.Capabilities()
	var out []list
	if caps.Tools != nil && !caps.Tools.ListChanged {
		out = append(out, toolList)
	}
	if caps.Prompts != nil && !caps.Prompts.ListChanged {
		out = append(out, promptList)
	}
	if caps.Resources != nil && !caps.Resources.ListChanged {
		out = append(out, resourceList, templateList)
	}
	return out
}

// readList reads a list and offers what is on it.
func (p *Proxy) readList(ctx context.Context, which list) error {
	caps := p.client.Capabilities()
	switch which {
	case toolList:
		items := offeredBy(caps.Tools != nil || caps.None(), p.client.Tools(ctx))
		return offer(p, which, items, func(t *mcp.Tool) string { return t.Name }, p.tool)
	case promptList:
		items := offeredBy(caps.Prompts != nil || caps.None(), p.client.Prompts(ctx))
		return offer(p, which, items, func(d *mcp.Prompt) string { return d.Name }, p.prompt)
	case resourceList:
		items := offeredBy(caps.Resources != nil || caps.None(), p.client.Resources(ctx))
		return offer(p, which, items, func(r *mcp.Resource) string { return r.URI }, p.resource)
	default:
		items := offeredBy(caps.Resources != nil || caps.None(), p.client.ResourceTemplates(ctx))
		return offer(p, which, items, func(t *mcp.ResourceTemplate) string { return t.URITemplate }, p.template)
	}
}

// offeredBy is a list, or nothing if the upstream server does not have it: its
// capabilities say so, or it does not know the method.
func offeredBy[T any](has bool, items iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if !has {
			return
		}
		for item, err := range items {
			if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == mcp.CodeMethodNotFound || errors.Is(err, client.ErrNotCapable) {
				return
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

// offer makes the proxy's server offer what is on a list: what is new or
// different is added, and what is gone removed. What cannot be offered is left
// out with a line in the log, once.
func offer[T any](p *Proxy, which list, items iter.Seq2[*T, error], name func(*T) string, feature func(*T) (server.Feature, error)) error {
	now, old := make(map[string]digest), p.lists.offered[which]
	refused, more := make(map[string]digest), 0
	var added []server.Feature
	for item, err := range items {
		if err != nil {
			return fmt.Errorf("reading the list of %s: %w", which, err)
		}
		key := name(item)
		raw, err := wire.Marshal(item)
		if err != nil {
			return fmt.Errorf("reading the list of %s: %w", which, err)
		}
		sum := sha256.Sum256(raw)
		if was, ok := old[key]; !ok || was != sum {
			f, err := feature(item)
			if err != nil {
				refused[key] = sum
				switch before, known := p.lists.refused[which][key]; {
				case known && before == sum:
				case len(refused) > maxRefused:
					more++
				default:
					p.log.Warn("what the upstream server has cannot be offered", "server", p.name(), "list", which.String(), "err", err)
				}
				continue
			}
			added = append(added, f)
		}
		now[key] = sum
	}
	if more > 0 {
		p.log.Warn("more of what the upstream server has cannot be offered", "server", p.name(), "list", which.String(), "more", more)
	}
	p.lists.offered[which], p.lists.refused[which] = now, refused
	gone := slices.DeleteFunc(slices.Sorted(maps.Keys(old)), func(key string) bool {
		_, still := now[key]
		return still
	})
	p.remove(which, gone)
	return p.srv.TryAdd(added...)
}

func (p *Proxy) remove(which list, keys []string) {
	if len(keys) == 0 {
		return
	}
	switch which {
	case toolList:
		p.srv.RemoveTools(keys...)
	case promptList:
		p.srv.RemovePrompts(keys...)
	default:
		p.srv.RemoveResources(keys...)
		other := resourceList + templateList - which
		for _, key := range keys { // which stands for both
			if _, ok := p.lists.offered[other][key]; ok {
				delete(p.lists.offered[other], key)
				p.lists.changed(other)
			}
		}
	}
}

func (p *Proxy) tool(t *mcp.Tool) (server.Feature, error) {
	call := func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		return p.callTool(ctx, &mcp.CallToolParams{Name: t.Name, Arguments: arguments})
	}
	if p.opts.Schemas == nil {
		return server.ForeignTool(*t, call)
	}
	reduced, lost, err := provider.Reduce(t.InputSchema, *p.opts.Schemas)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", t.Name, err)
	}
	if wire.Equal(reduced, t.InputSchema) {
		return server.ForeignTool(*t, call)
	}
	whole, err := schema.Compile(t.InputSchema, &schema.Limits{IgnoreHeaders: true, Lenient: true})
	if err != nil {
		return nil, fmt.Errorf("tool %q: inputSchema: %w", t.Name, err)
	}
	p.log.Debug("a tool is offered with less of its input schema", "server", p.name(), "tool", t.Name, "lost", lost)
	shown := *t
	shown.InputSchema = reduced
	return server.ForeignTool(shown, func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		if err := whole.Check(arguments); err != nil {
			return nil, mcp.Errorf("invalid arguments: %v", err)
		}
		return call(ctx, arguments)
	})
}

func (p *Proxy) prompt(d *mcp.Prompt) (server.Feature, error) {
	f, err := server.ForeignPrompt(*d, func(ctx context.Context, arguments map[string]string) (*mcp.GetPromptResult, error) {
		return p.getPrompt(ctx, &mcp.GetPromptParams{Name: d.Name, Arguments: arguments})
	})
	if err != nil {
		return nil, err
	}
	return f.With(server.PromptOptions{CompleteRaw: p.completer()}), nil
}

func (p *Proxy) resource(r *mcp.Resource) (server.Feature, error) {
	f, err := server.ForeignResource(*r, p.read)
	if err != nil {
		return nil, err
	}
	return f.With(server.ResourceOptions{Watch: func(ctx context.Context, changed func()) { p.watchResource(ctx, r.URI, changed) }}), nil
}

func (p *Proxy) template(t *mcp.ResourceTemplate) (server.Feature, error) {
	f, err := server.ForeignTemplate(*t, func(ctx context.Context, uri string, _ uritemplate.Values) (*mcp.ReadResourceResult, error) {
		return p.read(ctx, uri)
	})
	if err != nil {
		return nil, err
	}
	return f.With(server.TemplateOptions{CompleteRaw: p.completer(), Watch: p.watchResource}), nil
}

// name is what the upstream server is called in logs.
func (p *Proxy) name() string {
	if p.connected.Load() {
		if said := p.client.Server(); said != nil {
			return said.Name
		}
	}
	return "unnamed"
}
