package cassette

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport"
)

// AgainstOptions adjust [Cassette.Against]. The zero value, and nil, give the defaults.
type AgainstOptions struct {
	// Ignore are JSON pointers that are not compared, nor what is beneath them, such as
	// /result/content/*/text, where * is any name.
	Ignore []string
	// Timeout is how long one request may take. Default: 60 s.
	Timeout time.Duration
	// Mask takes the secrets out of what the server answers. Default: one that knows no values.
	Mask *mask.Masker
}

// A Difference is an answer that is not as it was.
type Difference struct {
	// Line is that of the request in the cassette.
	Line int `json:"line"`
	// Method and Target say what was asked, such as tools/call and the name of the tool.
	Method string `json:"method"`
	Target string `json:"target,omitzero"`
	// Changes are the places, at most 100.
	Changes []Change `json:"changes,omitzero"`
	// Error is why there was no answer.
	Error string `json:"error,omitzero"`
}

// A Report is what [Cassette.Against] found.
type Report struct {
	// Compared is how many answers were compared; Skipped how many requests were not, as they
	// were not answered in the recording.
	Compared int `json:"compared"`
	Skipped  int `json:"skipped"`
	// Masked is how many requests were sent with marks in the place of secrets.
	Masked      int          `json:"masked"`
	Differences []Difference `json:"differences"`
}

// A session sends what a client sent before.
type session struct {
	x       *index
	opts    AgainstOptions
	dialer  transport.Dialer
	peers   map[uint64]*peer
	renamed map[string]string // opaque values of this server by those of the recording
	report  *Report
	life    context.Context //nolint:containedctx // of the session, which ends with Against
	work    sync.WaitGroup

	mu      sync.Mutex
	replies map[string][]ref // answers that are left, by methods of questions
}

// Against sends the requests of the recorded client to another server, one after the other, and
// compares its answers with those of the recording. What it leaves out is [Ignored]. Questions of the
// server are answered as they were in the recording. The error says that the server cannot be
// reached, or that ctx has ended.
func (c *Cassette) Against(ctx context.Context, d transport.Dialer, o *AgainstOptions) (*Report, error) {
	life, cancel := context.WithCancel(ctx)
	s := &session{
		x: c.index, dialer: d, peers: make(map[uint64]*peer), renamed: make(map[string]string),
		report: &Report{Differences: []Difference{}}, life: life, replies: make(map[string][]ref),
	}
	if o != nil {
		s.opts = *o
	}
	if s.opts.Timeout == 0 {
		s.opts.Timeout = time.Minute
	}
	if s.opts.Mask == nil {
		s.opts.Mask = mask.New(nil)
	}
	for method, list := range c.index.replies {
		s.replies[method] = list
	}
	err := s.run(ctx)
	cancel()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer stop()
	for _, p := range s.peers {
		if closeErr := p.link.Close(end); err == nil {
			err = closeErr
		}
	}
	s.work.Wait() // the links, which are closed, begin nothing more
	return s.report, err
}

// run sends everything.
func (s *session) run(ctx context.Context) error {
	for _, e := range s.x.all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m, err := s.x.load(e.request)
		if err != nil {
			return err
		}
		p := s.peers[e.link]
		if p == nil {
			if p, err = dialPeer(ctx, s.dialer, s.receive, func(error) {}); err != nil {
				return err
			}
			s.peers[e.link] = p
		}
		m.Params = s.rename(m.Params)
		switch {
		case m.Method == mcp.NotifyCancelled:
		case e.notice:
			if err := p.post(ctx, m.Method, m.Params); err != nil {
				return s.lost(ctx, e, m, err)
			}
		case e.long || !e.answered:
			s.report.Skipped++
			if e.long {
				s.work.Go(func() { _, _ = p.do(s.life, p.nextID(), m.Method, m.Params) }) // ends with life
			}
		default:
			if err := s.request(ctx, p, e, m); err != nil {
				return s.lost(ctx, e, m, err)
			}
		}
	}
	return nil
}

// request sends a request and compares its answer.
func (s *session) request(ctx context.Context, p *peer, e *exchange, m *message) error {
	was, err := s.x.load(e.answer)
	if err != nil {
		return err
	}
	if e.masked {
		s.report.Masked++
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, fmt.Errorf("no answer within %v", s.opts.Timeout))
	defer cancel()
	in, err := p.do(limited, p.nextID(), m.Method, m.Params)
	if err != nil {
		return err
	}
	s.report.Compared++
	var is message
	if in.Error != nil {
		if is.Error, err = strictjson.Marshal(in.Error); err != nil {
			return err
		}
	} else {
		is.Result = json.RawMessage(in.Result.Raw())
	}
	s.note(decode(was.Result), decode(is.Result), "")
	changes := compare(was.Result, s.masked(is.Result), "/result", s.opts.Ignore)
	changes = append(changes, compare(was.Error, s.masked(is.Error), "/error", s.opts.Ignore)...)
	if len(changes) > 0 {
		s.differs(Difference{Line: int(e.request.line), Method: m.Method, Target: target(m), Changes: changes})
	}
	return nil
}

func (s *session) differs(d Difference) { s.report.Differences = append(s.report.Differences, d) }

// lost is what happens when a request gets no answer: that differs from the recording.
// A server that never answered cannot be reached.
func (s *session) lost(ctx context.Context, e *exchange, m *message, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.report.Compared == 0 {
		return err
	}
	s.differs(Difference{Line: int(e.request.line), Method: m.Method, Target: target(m), Error: s.opts.Mask.Text(err.Error())})
	if errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrInterrupted) || errors.Is(err, transport.ErrStalled) {
		return errGone
	}
	return nil
}

// errGone says that the server has gone, which the report tells.
var errGone = errors.New("the server ended the connection")

// Gone reports whether an error of Against says no more than its report.
func Gone(err error) bool { return errors.Is(err, errGone) }

// masked is an answer without its secrets.
func (s *session) masked(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	out, ok := s.opts.Mask.JSON(raw)
	if !ok {
		return raw
	}
	return out
}

// target is what a request is about.
func target(m *message) string {
	row, ok := mcp.Lookup(m.Method)
	if !ok || row.Target == "" {
		return ""
	}
	return textOf(memberOf(m.Params, row.Target))
}

// receive answers questions of the server as the recorded client did.
func (s *session) receive(p *peer, m *jsonrpc.Incoming) {
	if m.Kind != jsonrpc.Request {
		return
	}
	s.work.Go(func() {
		_ = p.link.Post(s.life, s.reply(m), transport.Route{}) // a server that has gone needs none
	})
}

// reply is the next answer that was recorded for a question of that method. The last is used again.
func (s *session) reply(m *jsonrpc.Incoming) *jsonrpc.Outgoing {
	out := &jsonrpc.Outgoing{ID: m.ID}
	if m.Method == mcp.MethodPing {
		out.Result = jsonrpc.Empty()
		return out
	}
	s.mu.Lock()
	list := s.replies[m.Method]
	if len(list) > 1 {
		s.replies[m.Method] = list[1:]
	}
	s.mu.Unlock()
	if len(list) == 0 {
		out.Error = jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "the recorded client was not asked %s", named(m.Method))
		return out
	}
	was, err := s.x.load(list[0])
	switch {
	case err != nil:
		out.Error = jsonrpc.NewError(jsonrpc.CodeInternalError, "%v", err)
	case len(was.Error) > 0:
		out.Error = new(jsonrpc.Error)
		if err := strictjson.Unmarshal(was.Error, out.Error); err != nil {
			out.Error = jsonrpc.NewError(jsonrpc.CodeInternalError, "the recorded answer cannot be read")
		}
	default:
		out.Result = jsonrpc.Raw(jsonrpc.RawValue(was.Result))
	}
	return out
}

// note notes what opaque values of the recording are called by this server.
func (s *session) note(was, is any, name string) {
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			for name, value := range was {
				s.note(value, is[name], name)
			}
		}
	case []any:
		if is, ok := is.([]any); ok {
			for i := range min(len(was), len(is)) {
				s.note(was[i], is[i], "")
			}
		}
	case string:
		if is, ok := is.(string); ok && opaque[name] && was != is && len(s.renamed) < MaxFrames {
			s.renamed[was] = is
		}
	}
}

// rename puts the values of this server into params.
func (s *session) rename(params json.RawMessage) json.RawMessage {
	if len(s.renamed) == 0 || len(params) == 0 {
		return params
	}
	renamed, changed := s.renameValue(decode(params))
	if !changed {
		return params
	}
	return encode(renamed)
}

func (s *session) renameValue(v any) (any, bool) {
	changed := false
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if now, differs := s.renameValue(value); differs {
				v[name], changed = now, true
			}
		}
		return v, changed
	case []any:
		for i, value := range v {
			if now, differs := s.renameValue(value); differs {
				v[i], changed = now, true
			}
		}
		return v, changed
	case string:
		if now, ok := s.renamed[v]; ok {
			return now, true
		}
	}
	return v, false
}
