package cassette

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// Bounds of a replay.
const (
	// answerTime is how long a question that was recorded waits for the client's answer before the
	// recording goes on.
	answerTime = 5 * time.Minute
	// maxPlaying is how many requests may wait for answers of the client at once.
	maxPlaying = 100
	// maxCompared is how many requests are compared with one that is not there as it is.
	maxCompared = 1000
	// maxNamed is how many requests, and how much of each, an error names.
	maxNamed, maxNamedBytes = 5, 200
)

// A Cassette is a cassette that has been read. Its frames stay in the file.
type Cassette struct {
	index *index
}

// Open reads a cassette to its end and keeps where its frames are. The file must stay as it is.
func Open(file io.ReaderAt) (*Cassette, error) {
	x, err := newIndex(file)
	if err != nil {
		return nil, err
	}
	return &Cassette{x}, nil
}

// Header is its first line.
func (c *Cassette) Header() Header { return c.index.header }

// Frames is how many frames it has, and how many of them are no messages.
func (c *Cassette) Frames() (frames, others int) { return c.index.frames, c.index.skipped }

// Complete says that the recording was ended in good order.
func (c *Cassette) Complete() bool { return c.index.complete }

// A player serves a cassette to one client.
type player struct {
	x      *index
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex // of what follows, and of exchange.used
	asked   int
	waiting map[string]chan struct{} // answers that are waited for, by the ids of questions
	playing map[string]func()        // requests that wait for the client, by their ids
}

// Serve serves the cassette to the client at the other end of a stream, and closes that. It
// returns when the client has ended its input, or at the end of ctx.
func (c *Cassette) Serve(ctx context.Context, client io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &player{x: c.index, cancel: cancel, out: client, waiting: make(map[string]chan struct{}), playing: make(map[string]func())}
	stop := context.AfterFunc(ctx, func() { _ = client.Close() }) // unblocks the reading
	err := p.read(ctx, client)
	failed := context.Cause(ctx)
	cancel(io.EOF)
	p.work.Wait()
	stop()
	closeErr := client.Close()
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	}
	return closeErr
}

// read takes what the client sends.
func (p *player) read(ctx context.Context, in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := longLine(b)
		if len(line) > MaxFrame {
			p.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than %d bytes", MaxFrame))
			err = copyLine(b, io.Discard)
		} else if text := bytes.TrimSpace(line); len(text) > 0 {
			p.take(ctx, text)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
			return nil
		case err != nil:
			return err
		}
	}
}

// take takes a message, or an array of several.
func (p *player) take(ctx context.Context, text []byte) {
	if text[0] == '[' {
		var list []json.RawMessage
		if err := strictjson.Unmarshal(text, &list, &strictjson.Options{MaxDepth: maxDepth}); err == nil && len(list) > 0 {
			p.batch(ctx, list)
			return
		}
	}
	m, err := readMessage(text)
	switch {
	case err != nil && strictjson.Valid(text, &strictjson.Options{MaxDepth: maxDepth}) != nil:
		p.refuse(nil, jsonrpc.CodeParseError, "it is no JSON: "+err.Error())
	case err != nil:
		p.refuse(nil, jsonrpc.CodeInvalidRequest, err.Error())
	case m.isAnswer():
		p.answered(m)
	case m.isNotification():
		p.notified(m)
	default:
		p.requested(ctx, m)
	}
}

// batch answers an array of messages by an array.
func (p *player) batch(ctx context.Context, list []json.RawMessage) {
	var answers [][]byte
	for _, item := range list {
		m, err := readMessage(item)
		switch {
		case err != nil:
			answers = append(answers, failure(nil, jsonrpc.CodeInvalidRequest, err.Error()))
		case m.isAnswer():
			p.answered(m)
		case m.isNotification():
			p.notified(m)
		default:
			e, wrong := p.find(m)
			if wrong == nil {
				var answer []byte
				answer, wrong = p.answerOf(m, e)
				answers = append(answers, answer)
			}
			if wrong != nil {
				answers = append(answers, failure(m.ID, wrong.Code, wrong.Message))
			}
		}
	}
	if len(answers) > 0 {
		p.send([]byte("[" + string(bytes.Join(answers, []byte(","))) + "]"))
	}
}

// answered takes the client's answer to a question.
func (p *player) answered(m *message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done, ok := p.waiting[string(m.ID)]; ok {
		close(done)
		delete(p.waiting, string(m.ID))
	}
}

// notified takes a notification. What followed it in the recording follows again.
func (p *player) notified(m *message) {
	if m.Method == mcp.NotifyCancelled {
		p.mu.Lock()
		if stop := p.playing[string(memberOf(m.Params, "requestId"))]; stop != nil {
			stop()
		}
		p.mu.Unlock()
		return
	}
	p.mu.Lock()
	var e *exchange
	for _, next := range p.x.methods[m.Method] {
		if next.notice && !next.used {
			next.used, e = true, next
			break
		}
	}
	p.mu.Unlock()
	if e != nil {
		p.follow(&played{request: m}, e.after)
	}
}

// requested answers a request as the recording does.
func (p *player) requested(ctx context.Context, m *message) {
	e, wrong := p.find(m)
	if wrong != nil {
		p.refuse(m.ID, wrong.Code, wrong.Message)
		return
	}
	if e == nil { // a ping that nobody recorded
		p.send(success(m.ID, []byte("{}")))
		return
	}
	asks := false
	for _, s := range e.before {
		asks = asks || s.asks
	}
	if !asks {
		p.play(ctx, m, e)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	p.mu.Lock()
	full := len(p.playing) >= maxPlaying
	if !full {
		p.playing[string(m.ID)] = stop
	}
	p.mu.Unlock()
	if full {
		stop()
		p.refuse(m.ID, jsonrpc.CodeInternalError, fmt.Sprintf("%d requests wait for answers of the client already", maxPlaying))
		return
	}
	p.work.Go(func() {
		defer stop()
		p.play(ctx, m, e)
		p.mu.Lock()
		delete(p.playing, string(m.ID))
		p.mu.Unlock()
	})
}

// played is a request of the client that is answered, and what stands for what.
type played struct {
	request *message
	was     *message                   // as it was recorded
	ids     map[string]json.RawMessage // of the server's requests, by those of the recording
}

// play sends what was recorded for a request.
func (p *player) play(ctx context.Context, m *message, e *exchange) {
	was, err := p.x.load(e.request)
	if err != nil {
		p.refuse(m.ID, jsonrpc.CodeInternalError, err.Error())
		return
	}
	run := &played{request: m, was: was, ids: make(map[string]json.RawMessage)}
	for _, s := range e.before {
		if done := p.step(run, s); done != nil && !p.await(ctx, done) {
			return
		}
	}
	if e.long { // it ends with the connection, or when the client cancels it
		return
	}
	answer, wrong := p.answerOf(m, e)
	if wrong != nil {
		p.refuse(m.ID, wrong.Code, wrong.Message)
		return
	}
	p.send(answer)
	p.follow(run, e.after)
}

// await waits for the answer of the client. It reports whether the request goes on.
func (p *player) await(ctx context.Context, done <-chan struct{}) bool {
	late := time.NewTimer(answerTime)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// answerOf is the answer that was recorded, with the id of the request.
func (p *player) answerOf(m *message, e *exchange) ([]byte, *jsonrpc.Error) {
	if e == nil {
		return success(m.ID, []byte("{}")), nil
	}
	if !e.answered {
		return nil, jsonrpc.NewError(jsonrpc.CodeInternalError, "the recording ended before the answer to this %s (line %d)", m.Method, e.request.line)
	}
	was, err := p.x.load(e.answer)
	if err != nil {
		return nil, jsonrpc.NewError(jsonrpc.CodeInternalError, "%v", err)
	}
	if len(was.Error) > 0 {
		return []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + string(was.Error) + `}`), nil
	}
	return success(m.ID, was.Result), nil
}

// follow sends what came after an answer or notification. Answers to questions are not waited for.
func (p *player) follow(run *played, steps []step) {
	for _, s := range steps {
		p.step(run, s)
	}
}

// step sends a message that was recorded. What it returns is closed when a question has been answered;
// it is nil for all else.
func (p *player) step(run *played, s step) <-chan struct{} {
	m, err := p.x.load(s.ref)
	if err != nil {
		return nil
	}
	params, ok := run.params(m)
	if !ok {
		return nil
	}
	if len(params) > 0 {
		params = append(json.RawMessage(`,"params":`), params...)
	}
	method, err := strictjson.Marshal(m.Method)
	if err != nil {
		return nil
	}
	if !s.asks {
		p.send([]byte(`{"jsonrpc":"2.0","method":` + string(method) + string(params) + `}`))
		return nil
	}
	done := make(chan struct{})
	p.mu.Lock()
	p.asked++
	id := json.RawMessage(strconv.Quote("replay-" + strconv.Itoa(p.asked)))
	p.waiting[string(id)] = done
	p.mu.Unlock()
	if run.ids != nil {
		run.ids[string(m.ID)] = id
	}
	p.send([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"method":` + string(method) + string(params) + `}`))
	return done
}

// params are those of a message of the server, with the tokens and ids of this session. It
// reports false for what nobody waits for now.
func (r *played) params(m *message) (json.RawMessage, bool) {
	switch {
	case memberOf(m.Params, "progressToken") != nil:
		token := memberOf(r.request.Params, "_meta", "progressToken")
		if token == nil {
			return nil, false
		}
		return setMember(m.Params, "progressToken", token), true
	case m.Method == mcp.NotifyCancelled:
		was := memberOf(m.Params, "requestId")
		if now, ok := r.ids[string(was)]; ok {
			return setMember(m.Params, "requestId", now), true
		}
		return nil, false
	case memberOf(m.Params, "_meta", subscriptionID) != nil && len(r.request.ID) > 0:
		meta := setMember(memberOf(m.Params, "_meta"), subscriptionID, r.request.ID)
		return setMember(m.Params, "_meta", meta), true
	}
	return m.Params, true
}

// setMember makes an object with another value of a member that it has.
func setMember(raw json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	return editMembers(raw, func(n string, v json.RawMessage) json.RawMessage {
		if n == name {
			return value
		}
		return v
	})
}

// send writes a line. An error of writing ends the session.
func (p *player) send(line []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	if _, err := p.out.Write(append(line, '\n')); err != nil {
		p.cancel(fmt.Errorf("writing to the client: %w", err))
	}
}

func (p *player) refuse(id json.RawMessage, code int64, text string) { p.send(failure(id, code, text)) }

func success(id, result json.RawMessage) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + string(result) + `}`)
}

func failure(id json.RawMessage, code int64, text string) []byte {
	quoted, err := strictjson.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil { // texts always encode
		quoted = []byte(`"error"`)
	}
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return []byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":` + strconv.FormatInt(code, 10) + `,"message":` + string(quoted) + `}}`)
}
