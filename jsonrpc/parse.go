package jsonrpc

import (
	"errors"

	"github.com/parley-mcp/parley/internal/wire"
)

// Parse reads one message. It takes data over, which must not change
// afterwards. The error is a *[ParseError].
//
// What is not strict JSON (see package comment of the codec: duplicate names,
// invalid Unicode, too deep, too large) is -32700; what is JSON but no message
// is -32600. Members of the envelope whose name differs from a known one in
// letter case only are refused; other unknown members are ignored. A byte order
// mark at the beginning is ignored (RFC 8259, section 8.1).
//
// With Limits.Lenient, Parse mends common mistakes of servers and names them in
// Incoming.Flaws: characters that are not Unicode in strings, malformed error
// objects, null beside a result or an error, and ids of responses in another form.
func Parse(data []byte, lim Limits) (*Incoming, error) {
	data = withoutMark(data)
	in, err := parse(data, lim)
	if err != nil && lim.Lenient {
		return parseLeniently(data, lim, err)
	}
	return in, err
}

// parse reads a message without a byte order mark.
func parse(data []byte, lim Limits) (*Incoming, error) {
	in := new(Incoming)
	reader := wire.NewParser()
	defer reader.Free()
	envelope, err := reader.Parse(data, lim, &in.index, "params", "result")
	if err != nil {
		return nil, &ParseError{Err: parseFailure(err, "send one JSON-RPC message")}
	}
	in.Size = len(data)
	p := parser{reader: reader, envelope: envelope, in: in, lenient: lim.Lenient}
	if failure := p.parse(); failure != nil {
		return nil, &ParseError{
			Err:          failure,
			ID:           in.ID,
			Notification: p.method != nil && p.id == nil && !errors.Is(p.twin, wire.ErrTwin),
			Response:     p.method == nil && (p.result != nil || p.failure != nil || lim.Lenient && p.id != nil && isVersion(p.version)),
		}
	}
	return in, nil
}

// parseFailure words the answer to a text that the codec refused.
func parseFailure(err error, advice string) *Error {
	if errors.Is(err, wire.ErrNotObject) || errors.Is(err, wire.ErrNotArray) || errors.Is(err, wire.ErrCount) {
		return NewError(CodeInvalidRequest, "invalid request: %v; %s", err, advice)
	}
	return NewError(CodeParseError, "parse error: %v", err)
}

// parser reads the members of one envelope.
type parser struct {
	reader                              *wire.Parser
	envelope                            wire.Object
	in                                  *Incoming
	version, id, method, params, result RawValue
	failure                             RawValue
	twin                                error
	lenient                             bool
}

func (p *parser) parse() *Error {
	p.members()
	if p.lenient {
		p.dropNulls()
	}
	idError := p.readID()
	switch {
	case p.twin != nil:
		return NewError(CodeInvalidRequest, "invalid request: %v", p.twin)
	case !isVersion(p.version):
		return NewError(CodeInvalidRequest, `invalid request: member "jsonrpc" must be exactly "2.0"`)
	case idError != nil:
		return NewError(CodeInvalidRequest, `invalid request: member "id": %v`, idError)
	case p.method != nil && (p.result != nil || p.failure != nil):
		return NewError(CodeInvalidRequest, `invalid request: a message has either "method" or one of "result" and "error"`)
	case p.method != nil:
		return p.call()
	case p.result != nil || p.failure != nil:
		return p.response()
	}
	return NewError(CodeInvalidRequest, `invalid request: none of "method", "result" and "error" is there`)
}

// members finds the members of the envelope, and the first name that only looks
// like one of them.
func (p *parser) members() {
	for i := range p.envelope.Len() {
		name, value := p.envelope.At(i)
		switch string(name) {
		case "jsonrpc":
			p.version = value
		case "id":
			p.id = value
		case "method":
			p.method = value
		case "params":
			p.params = value
		case "result":
			p.result = value
		case "error":
			p.failure = value
		default:
			if p.twin == nil {
				p.twin = wire.CheckName(name, "jsonrpc", "id", "method", "params", "result", "error")
			}
		}
	}
}

// readID reads the id. A null is for error responses only.
func (p *parser) readID() error {
	if p.id == nil || string(p.id) == "null" && p.method == nil && p.failure != nil {
		return nil
	}
	id, err := wire.ReadID(p.id)
	if err != nil {
		return err
	}
	p.in.ID = id
	if p.lenient && p.method == nil {
		p.in.ID = plainID(p.id, id)
	}
	return nil
}

// call reads a request or notification.
func (p *parser) call() *Error {
	if p.method[0] != '"' {
		return NewError(CodeInvalidRequest, `invalid request: member "method" must be a string`)
	}
	p.in.Method = p.reader.Word(p.method)
	p.in.Kind = Request
	if p.id == nil {
		p.in.Kind = Notification
	}
	switch {
	case p.params == nil, string(p.params) == "null": // null is as good as absent (ruling 33)
	case p.params[0] == '{':
		p.in.Params, _ = p.envelope.Object("params")
	case p.params[0] == '[':
		p.in.ParamsArray = true
	default:
		return NewError(CodeInvalidRequest, `invalid request: member "params" must be an object; leave it out if there are none`)
	}
	return nil
}

func (p *parser) response() *Error {
	p.in.Kind = Response
	switch {
	case p.result != nil && p.failure != nil:
		return NewError(CodeInvalidRequest, `invalid response: it has both "result" and "error"`)
	case p.failure != nil:
		return p.readError()
	case p.id == nil:
		return NewError(CodeInvalidRequest, `invalid response: a result needs the "id" of its request`)
	case p.result[0] != '{':
		return NewError(CodeInvalidRequest, `invalid response: member "result" must be an object`)
	}
	p.in.Result, _ = p.envelope.Object("result")
	return nil
}

func (p *parser) readError() *Error {
	o, ok := p.envelope.Object("error")
	if p.lenient {
		return p.readErrorLeniently(o, ok)
	}
	if !ok {
		return NewError(CodeInvalidRequest, `invalid response: member "error" must be an object`)
	}
	if err := o.CheckNames("code", "message", "data"); err != nil {
		return NewError(CodeInvalidRequest, "invalid response: in the error: %v", err)
	}
	e := new(Error)
	code, _ := o.Member("code")
	if code == nil || wire.Decode(code, &e.Code) != nil || string(code) == "null" {
		return NewError(CodeInvalidRequest, `invalid response: member "code" of the error must be an integer`)
	}
	message, _ := o.Member("message")
	if message == nil || message[0] != '"' {
		return NewError(CodeInvalidRequest, `invalid response: member "message" of the error must be a string`)
	}
	e.Message = text(message)
	e.Data, _ = o.Member("data")
	p.in.Error = e
	return nil
}

// isVersion compares without allocating in the usual case.
func isVersion(raw RawValue) bool {
	return string(raw) == `"`+Version+`"` || text(raw) == Version
}

// text returns what a valid string literal means, or "" for other values.
func text(raw RawValue) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return wire.Text(raw)
}
