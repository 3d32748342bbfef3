package odd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/mcp"
)

// A Peer is the server of a case. Its methods are safe for concurrent use.
type Peer struct {
	c         *Case
	stateless bool

	mu    sync.Mutex
	asked map[string]int // by method, and by method and condition
}

// NewPeer returns the server of a case, in the stateless era or with a handshake.
func NewPeer(c *Case, stateless bool) *Peer {
	return &Peer{c: c, stateless: stateless, asked: make(map[string]int)}
}

// Asked returns how often a method was requested.
func (p *Peer) Asked(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[method]
}

// A request is what a client sent.
type request struct {
	id, method string
	named      bool   // the case has answers to the method
	usual      string // "result":… or "error":…
	message    string // the message of the answer, "" for none
	a          *Answer
}

// read reads a message of a session. It returns nil if the message gets no answer: a notification that the
// case does not name, or a response.
func (p *Peer) read(raw []byte, session string) *request {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Cursor json.RawMessage `json:"cursor"`
		} `json:"params"`
	}
	if json.Unmarshal(raw, &m) != nil || m.Method == "" {
		return nil
	}
	r := &request{id: string(m.ID), method: m.Method}
	list := p.c.Answers[m.Method]
	if m.ID == nil && len(list) == 0 {
		return nil
	}
	if len(list) == 0 {
		list = p.c.Answers["*"]
	}
	r.a = p.choose(m.Method, list, cmp.Or(string(m.Params.Cursor), "null"), session)
	if r.named = r.a != nil; !r.named {
		r.a = &Answer{}
	}
	if m.ID == nil {
		r.message = r.text(r.a.Raw)
		return r
	}
	r.usual = p.usual(m.Method)
	switch a := r.a; {
	case a.None:
	case a.Raw != "":
		r.message = r.text(a.Raw)
	case a.Error != nil:
		r.message = r.envelope(`"error":` + compact(a.Error))
	case a.Result != nil:
		r.message = r.envelope(`"result":` + large.Replace(p.completed(a.Result)))
	default:
		r.message = r.envelope(r.usual)
	}
	return r
}

// choose returns the answer to a request, nil if none is for it, and counts the request.
func (p *Peer) choose(method string, list []Answer, cursor, session string) *Answer {
	quoted := "null"
	if session != "" {
		quoted = fmt.Sprintf("%q", session)
	}
	same := func(want json.RawMessage, got string) bool { return want == nil || string(want) == got }
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[method]++
	for _, conditional := range []bool{true, false} {
		var fit []*Answer
		condition := ""
		for i := range list {
			a := &list[i]
			if (a.WhenCursor != nil || a.WhenSession != nil) != conditional || !same(a.WhenCursor, cursor) || !same(a.WhenSession, quoted) {
				continue
			}
			if own := fmt.Sprintf("%s %s %s", method, a.WhenCursor, a.WhenSession); condition == "" || condition == own {
				condition = own
				fit = append(fit, a)
			}
		}
		if len(fit) > 0 {
			n := p.asked[condition]
			p.asked[condition]++
			return fit[min(n, len(fit)-1)]
		}
	}
	return nil
}

func (r *request) envelope(outcome string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, r.id, outcome)
}

// text replaces the placeholders in a text of a case.
func (r *request) text(text string) string {
	return strings.NewReplacer(
		"$ID", r.id, "$QID", fmt.Sprintf("%q", r.id), "$FID", r.id+".0", "$OUTCOME", r.usual, "$MESSAGE", r.message,
	).Replace(text)
}

// large are values that a case has by name.
var large = strings.NewReplacer(
	`"$ENUM20000"`, "["+strings.Repeat(`"v",`, 19_999)+`"w"]`,
	`"$DEEP100"`, strings.Repeat(`{"not":`, 100)+"{}"+strings.Repeat("}", 100),
)

// compact is JSON on one line.
func compact(raw json.RawMessage) string {
	var one bytes.Buffer
	if json.Compact(&one, raw) != nil {
		return string(raw)
	}
	return one.String()
}

// completed is a result of a case for both eras, with the members that a stateless one must have.
func (p *Peer) completed(result json.RawMessage) string {
	text := compact(result)
	if !p.stateless || p.c.Era != "both" || !strings.HasPrefix(text, "{") || strings.Contains(text, `"resultType"`) {
		return text
	}
	if text == "{}" {
		return "{" + complete + "}"
	}
	return "{" + complete + "," + text[1:]
}

const complete = `"resultType":"complete","ttlMs":0,"cacheScope":"private"`

// usual returns the answer of an ordinary server, as members of the message.
func (p *Peer) usual(method string) string {
	switch method {
	case mcp.MethodInitialize, mcp.MethodDiscover:
		if p.stateless == (method == mcp.MethodDiscover) {
			return `"result":` + p.opening()
		}
	case mcp.MethodPing:
		if !p.stateless {
			return `"result":{}`
		}
	}
	result, known := map[string]string{
		mcp.MethodToolsList:          `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
		mcp.MethodToolsCall:          `{"content":[{"type":"text","text":"ok"}]}`,
		mcp.MethodPromptsList:        `{"prompts":[{"name":"p"}]}`,
		mcp.MethodPromptsGet:         `{"messages":[{"role":"user","content":{"type":"text","text":"ok"}}]}`,
		mcp.MethodResourcesList:      `{"resources":[{"uri":"file:///a","name":"a"}]}`,
		mcp.MethodResourcesRead:      `{"contents":[{"uri":"file:///a","text":"ok"}]}`,
		mcp.MethodResourcesTemplates: `{"resourceTemplates":[]}`,
	}[method]
	switch {
	case !known:
		return fmt.Sprintf(`"error":{"code":%d,"message":"Method not found"}`, mcp.CodeMethodNotFound)
	case p.stateless:
		result = "{" + complete + "," + result[1:]
	}
	return `"result":` + result
}

// opening is the result of initialize or server/discover.
func (p *Peer) opening() string {
	members := map[string]json.RawMessage{"capabilities": json.RawMessage(`{"tools":{},"prompts":{},"resources":{}}`)}
	if p.stateless {
		members["supportedVersions"] = json.RawMessage(`["` + p.c.revisions.Stateless + `"]`)
	} else {
		members["protocolVersion"] = json.RawMessage(`"` + p.c.revisions.Newest + `"`)
		members["serverInfo"] = json.RawMessage(`{"name":"odd","version":"1.0.0"}`)
	}
	for name, value := range p.c.Initialize {
		if members[name] = value; string(value) == "null" {
			delete(members, name)
		}
	}
	var text []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		text = append(text, fmt.Sprintf("%q:%s", name, compact(members[name])))
	}
	if p.stateless {
		text = append(text, complete)
	}
	return "{" + strings.Join(text, ",") + "}"
}
