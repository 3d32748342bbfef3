package cassette

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A message is what is read of a message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// isRequest, isNotification and isAnswer tell kinds of messages apart.
func (m *message) isRequest() bool      { return m.Method != "" && len(m.ID) > 0 }
func (m *message) isNotification() bool { return m.Method != "" && len(m.ID) == 0 }
func (m *message) isAnswer() bool       { return m.Method == "" && (len(m.Result) > 0 || len(m.Error) > 0) }

// readMessage reads a message of a frame, or of a batch in it.
func readMessage(raw []byte) (*message, error) {
	m := new(message)
	if err := strictjson.Unmarshal(raw, m, &strictjson.Options{MaxDepth: maxDepth}); err != nil {
		return nil, err
	}
	if !m.isRequest() && !m.isNotification() && !m.isAnswer() {
		return nil, errors.New("it is neither a request, a notification nor a response")
	}
	return m, nil
}

// readMessages reads the messages of a frame. What is none is left out.
func readMessages(raw json.RawMessage) []*message {
	list := []json.RawMessage{raw}
	if text := bytes.TrimSpace(raw); len(text) > 0 && text[0] == '[' {
		if err := strictjson.Unmarshal(raw, &list, &strictjson.Options{MaxDepth: maxDepth}); err != nil {
			return nil
		}
	}
	var found []*message
	for _, item := range list {
		if m, err := readMessage(item); err == nil {
			found = append(found, m)
		}
	}
	return found
}

// A ref says where a message is: in which line, and as which of a batch.
type ref struct {
	at   int64
	line int32
	item int32
}

// A step is what the server sent beside an answer.
type step struct {
	ref ref
	// asks says that it is a request, for which the client's answer comes next.
	asks bool
}

// An exchange is a request of the client with what the server sent because of it, or a
// notification of the client with what followed it.
type exchange struct {
	request  ref
	answer   ref // line 0 where there is none
	before   []step
	after    []step
	link     uint64
	key      [16]byte // of method and params
	masked   bool     // params hold marks
	used     bool
	notice   bool // a notification
	long     bool // stays open for as long as both like
	answered bool
}

// An index knows where the exchanges of a cassette are. The frames stay in the file.
type index struct {
	header   Header
	file     io.ReaderAt
	methods  map[string][]*exchange // requests and notifications, by methods
	order    []string               // methods as they came
	all      []*exchange            // as they came
	replies  map[string][]ref       // answers of the client, by methods of the server's requests
	version  string                 // the revision that the first request names
	complete bool
	frames   int
	skipped  int // frames that are no messages
}

// An indexer is an index that is being made.
type indexer struct {
	*index
	open     map[string]*exchange // by links and ids
	tokens   map[string]*exchange // by links and progress tokens
	asked    map[string]string    // methods of the server's requests, by links and ids
	sequence []*exchange          // that are open, as they came
	last     *exchange
}

// newIndex reads a cassette once.
func newIndex(file io.ReaderAt) (*index, error) {
	r, err := NewReader(io.NewSectionReader(file, 0, 1<<62))
	if err != nil {
		return nil, err
	}
	x := &indexer{
		index: &index{header: r.Header, file: file, methods: make(map[string][]*exchange), replies: make(map[string][]ref)},
		asked: make(map[string]string), open: make(map[string]*exchange), tokens: make(map[string]*exchange),
	}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		x.frames++
		messages := readMessages(f.Message)
		if len(messages) == 0 {
			x.skipped++
		}
		for i, m := range messages {
			x.add(f, m, ref{r.began, int32(r.line), int32(i)}) // there are at most MaxFrames lines
		}
	}
	x.complete = r.Complete()
	return x.index, nil
}

// maxOpen is how many requests are looked through for the one that a message belongs to.
const maxOpen = 1000

// textOf is a JSON string, or empty.
func textOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || strictjson.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// place is the key of an id or token on a link.
func place(link uint64, raw json.RawMessage) string { return fmt.Sprint(link, " ", string(raw)) }

func (x *indexer) add(f *Frame, m *message, at ref) {
	switch {
	case f.From == Client && m.isAnswer():
		key := place(f.Link, m.ID)
		if method, ok := x.asked[key]; ok {
			x.replies[method] = append(x.replies[method], at)
			delete(x.asked, key)
		}
	case f.From == Client:
		x.request(f, m, at)
	case m.isAnswer():
		x.answer(f, m, at)
	default:
		x.beside(f, m, at)
	}
}

// request adds a request or notification of the client.
func (x *indexer) request(f *Frame, m *message, at ref) {
	e := &exchange{request: at, link: f.Link, notice: m.isNotification()}
	if x.version == "" {
		x.version = textOf(memberOf(m.Params, "_meta", mcp.MetaProtocolVersion)) + textOf(memberOf(m.Params, "protocolVersion"))
	}
	e.key, e.masked = keyOf(m)
	if row, ok := mcp.Lookup(m.Method); ok {
		e.long = row.Long
	}
	if len(x.methods[m.Method]) == 0 {
		x.order = append(x.order, m.Method)
	}
	x.methods[m.Method] = append(x.methods[m.Method], e)
	x.all = append(x.all, e)
	x.last = e
	if m.isNotification() {
		return
	}
	x.open[place(f.Link, m.ID)] = e
	if x.sequence = append(x.sequence, e); len(x.sequence) > maxOpen {
		x.sequence = x.sequence[1:]
	}
	if token := memberOf(m.Params, "_meta", "progressToken"); token != nil {
		x.tokens[place(f.Link, token)] = e
	}
}

// answer adds a response of the server.
func (x *indexer) answer(f *Frame, m *message, at ref) {
	key := place(f.Link, m.ID)
	e := x.open[key]
	if e == nil {
		return
	}
	delete(x.open, key)
	e.answer, e.answered = at, true
	for i, other := range x.sequence {
		if other == e {
			x.sequence = append(x.sequence[:i], x.sequence[i+1:]...)
			break
		}
	}
	x.last = e
}

// beside adds a request or notification of the server to the exchange that it belongs to: by its
// progress token or subscription, else the last request that has no answer yet, else the last
// message of the client.
func (x *indexer) beside(f *Frame, m *message, at ref) {
	s := step{at, m.isRequest()}
	if s.asks {
		x.asked[place(f.Link, m.ID)] = m.Method
	}
	var e *exchange
	if token := memberOf(m.Params, "progressToken"); token != nil {
		e = x.tokens[place(f.Link, token)]
	} else if id := memberOf(m.Params, "_meta", subscriptionID); id != nil {
		e = x.open[place(f.Link, id)]
	}
	for i := len(x.sequence) - 1; i >= 0 && e == nil; i-- {
		if !x.sequence[i].long {
			e = x.sequence[i]
		}
	}
	switch {
	case e != nil && !e.answered:
		e.before = append(e.before, s)
	case e != nil:
		e.after = append(e.after, s)
	case x.last != nil:
		x.last.after = append(x.last.after, s)
	}
}

// subscriptionID is the member of _meta that names a subscription by the id of its request.
const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// memberOf is a member of an object in an object, or nil.
func memberOf(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		o, err := strictjson.ParseObject(raw, &strictjson.Options{MaxDepth: maxDepth})
		if err != nil {
			return nil
		}
		value, ok := o.Member(name)
		if !ok {
			return nil
		}
		raw = json.RawMessage(value)
	}
	return raw
}

// load reads a message of the cassette again.
func (x *index) load(at ref) (*message, error) {
	r := &Reader{r: bufio.NewReader(io.NewSectionReader(x.file, at.at, MaxLine)), line: int(at.line) - 1}
	f, err := r.Next()
	if err != nil {
		return nil, fmt.Errorf("reading the cassette again: %w", err)
	}
	list := readMessages(f.Message)
	if int(at.item) >= len(list) {
		return nil, fmt.Errorf("reading the cassette again: line %d has changed", at.line)
	}
	return list[at.item], nil
}

// keyOf is a digest of a message without what differs from session to session: its id and
// _meta. It also reports whether there are marks in it.
func keyOf(m *message) (key [16]byte, masked bool) {
	h := sha256.New()
	_, _ = io.WriteString(h, m.Method+"\n") // a hash takes everything
	params := plainParams(m.Params)
	_, _ = h.Write(params)
	copy(key[:], h.Sum(nil))
	return key, mask.Marked(string(params))
}

// plainParams are params in canonical form without _meta; absent ones are {}.
func plainParams(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("{}")
	}
	if canonical, err := strictjson.Canonical(strictjson.RawValue(withoutMember(raw, "_meta"))); err == nil {
		return canonical
	}
	return raw
}

// withoutMember is an object without one member.
func withoutMember(raw json.RawMessage, name string) json.RawMessage {
	return editMembers(raw, func(n string, v json.RawMessage) json.RawMessage {
		if n == name {
			return nil
		}
		return v
	})
}

// editMembers makes an object with other values; nil leaves a member out. What is no object stays
// as it is.
func editMembers(raw json.RawMessage, edit func(name string, value json.RawMessage) json.RawMessage) json.RawMessage {
	o, err := strictjson.ParseObject(raw, &strictjson.Options{MaxDepth: maxDepth})
	if err != nil {
		return raw
	}
	out := []byte{'{'}
	for name, value := range o.All() {
		v := edit(name, json.RawMessage(value))
		if v == nil {
			continue
		}
		quoted, err := strictjson.Marshal(name)
		if err != nil {
			return raw
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), v...)
	}
	return append(out, '}')
}
