package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// withoutMark returns data without a byte order mark at its beginning.
func withoutMark(data []byte) []byte {
	if len(data) > 0 && data[0] == 0xEF {
		return bytes.TrimPrefix(data, []byte("\uFEFF"))
	}
	return data
}

// parseLeniently mends the text of a message that was refused with err, and reads it again.
func parseLeniently(data []byte, lim Limits, err error) (*Incoming, error) {
	refused, ok := errors.AsType[*ParseError](err)
	if !ok || refused.Err.Code != CodeParseError {
		return nil, err
	}
	mended, ok := wire.MendText(data)
	if !ok {
		return nil, err
	}
	in, again := parse(mended, lim)
	if again != nil {
		return nil, again
	}
	in.AddFlaw(flawUnicode)
	return in, nil
}

const flawUnicode = "characters that are not Unicode were replaced by U+FFFD"

// dropNulls treats null next to a result or an error as absence, and so it treats an empty method.
func (p *parser) dropNulls() {
	switch {
	case p.result == nil && p.failure == nil:
		return
	case string(p.method) == "null" || string(p.method) == `""`:
		p.method = nil
		p.in.AddFlaw(`a response must not have a "method"`)
	}
	switch {
	case p.result == nil || p.failure == nil:
	case string(p.failure) == "null":
		p.failure = nil
	case string(p.result) == "null":
		p.result = nil
	}
}

// plainID returns the id of a response, which is an integer if it is a string of digits: ids of
// this side are integers.
func plainID(raw RawValue, id ID) ID {
	if raw[0] == '"' {
		if n, err := strconv.ParseInt(text(raw), 10, 64); err == nil && strconv.FormatInt(n, 10) == text(raw) {
			return IntID(n)
		}
	}
	return id
}

// maxErrorText bounds how much of a malformed error object becomes its message.
const maxErrorText = 1000

// readErrorLeniently reads an error object, or another value in place of one: the request has
// failed, and what the server said about it must not be lost.
func (p *parser) readErrorLeniently(o Object, isObject bool) *Error {
	e := new(Error)
	p.in.Error = e
	if !isObject {
		e.Code = CodeInternalError
		e.Message = shown(p.failure)
		p.in.AddFlaw(`member "error" must be an object`)
		return nil
	}
	if err := o.CheckNames("code", "message", "data"); err != nil {
		return NewError(CodeInvalidRequest, "invalid response: in the error: %v", err)
	}
	e.Data, _ = o.Member("data")
	if message, _ := o.Member("message"); message != nil && message[0] == '"' {
		e.Message = text(message)
	} else {
		p.in.AddFlaw(`member "message" of the error must be a string`)
		e.Message = shown(p.failure)
		if message != nil && string(message) != "null" {
			e.Message = shown(message)
		}
	}
	p.readCode(o, e)
	return nil
}

// readCode reads the code of an error: an integer in any spelling, also in a string. Another one is
// added to the message.
func (p *parser) readCode(o Object, e *Error) {
	raw, _ := o.Member("code")
	id, err := wire.ParseID(bytes.Trim(raw, `"`))
	if err == nil {
		e.Code, err = strconv.ParseInt(id.String(), 10, 64)
	}
	if err == nil && raw[0] != '"' {
		return
	}
	p.in.AddFlaw(`member "code" of the error must be an integer`)
	if err == nil {
		return
	}
	e.Code = CodeInternalError
	if raw != nil && string(raw) != "null" {
		e.Message = fmt.Sprintf("%s (%s)", e.Message, shown(raw))
	}
}

// shown returns a string, or the text of another value, in bounds.
func shown(raw RawValue) string {
	s := string(raw)
	if s[0] == '"' {
		s = text(raw)
	}
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "") + "…"
	}
	return s
}
