package cassette

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// find finds what was recorded for a request: with the same params, else with params that differ in
// nothing that counts; one that was not used yet, else the last. It returns nil for a ping
// that was not recorded.
func (p *player) find(m *message) (*exchange, *jsonrpc.Error) {
	list := p.x.methods[m.Method]
	if len(list) == 0 {
		if m.Method == mcp.MethodPing {
			return nil, nil
		}
		return nil, jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "the cassette has no %s; it has %s%s", named(m.Method), p.methods(), p.recorded())
	}
	key, _ := keyOf(m)
	e := p.use(list, func(e *exchange) bool { return e.key == key })
	if e == nil && (m.Method == mcp.MethodInitialize || m.Method == mcp.MethodDiscover) {
		e = p.use(list, func(*exchange) bool { return true })
	}
	if e == nil {
		params := plainParams(m.Params)
		compared := 0
		e = p.use(list, func(e *exchange) bool {
			if compared++; compared > maxCompared {
				return false
			}
			was, err := p.x.load(e.request)
			return err == nil && len(compare(plainParams(was.Params), params, "", nil)) == 0
		})
	}
	if e == nil {
		return nil, jsonrpc.NewError(jsonrpc.CodeInvalidParams, "the cassette has no %s with these params; it has it with %s", named(m.Method), p.params(list))
	}
	return e, nil
}

// use takes the first exchange that fits and was not used, else the last that fits.
func (p *player) use(list []*exchange, fits func(e *exchange) bool) *exchange {
	var last *exchange
	for _, e := range list {
		if e.notice || !fits(e) {
			continue
		}
		last = e
		p.mu.Lock()
		fresh := !e.used
		e.used = true
		p.mu.Unlock()
		if fresh {
			break
		}
	}
	return last
}

// named is a method in an error.
func named(method string) string {
	return strings.ToValidUTF8(method[:min(len(method), maxNamedBytes)], "")
}

// methods names the methods of the requests that the cassette has.
func (p *player) methods() string {
	var list []string
	for _, method := range p.x.order {
		n := 0
		for _, e := range p.x.methods[method] {
			if !e.notice {
				n++
			}
		}
		switch {
		case n == 1:
			list = append(list, named(method))
		case n > 1:
			list = append(list, fmt.Sprintf("%s (%d)", named(method), n))
		}
	}
	if len(list) == 0 {
		return "no request"
	}
	return strings.Join(list, ", ")
}

// recorded says of which revision the recording is.
func (p *player) recorded() string {
	if p.x.version == "" {
		return ""
	}
	return "; it is of revision " + named(p.x.version)
}

// params names what the requests of a method were about.
func (p *player) params(list []*exchange) string {
	var texts []string
	for _, e := range list[:min(len(list), maxNamed)] {
		was, err := p.x.load(e.request)
		if err != nil {
			continue
		}
		text := string(plainParams(was.Params))
		if len(text) > maxNamedBytes {
			text = strings.ToValidUTF8(text[:maxNamedBytes], "") + "…"
		}
		texts = append(texts, text)
	}
	if more := len(list) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
