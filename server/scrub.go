package server

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// What looks like a secret in log data: members by name, the same names before
// a value inside of a text, and credentials of HTTP.
const secretWords = `(?:password|passwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|token|authorization|cookie|credential)`

var (
	secretName  = lazy(`(?i)` + secretWords)
	secretPair  = lazy(`(?i)(` + secretWords + `["'\\]*\s*[:=]\s*)(?:(\\*")[^"\\]+|(\\*')[^'\\]+|(?:(?:bearer|basic)\s+)?[^"'\\\s,;&{}\[\]]+)`)
	secretValue = lazy(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
)

// lazy compiles an expression when it is first used: most servers log no data.
//
//go:noinline // it would be three functions for each expression
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

const redacted = "[redacted]"

// scrubSecrets blanks what looks like a secret in JSON (SEC-LOG-1): all of a
// member with such a name, however deep it is, and parts of texts.
func scrubSecrets(raw mcp.RawValue) mcp.RawValue { return appendScrubbed(nil, raw) }

func appendScrubbed(dst []byte, raw mcp.RawValue) []byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 {
		return dst
	}
	switch raw[0] {
	case '{':
		o, err := wire.ParseObject(raw, wire.Limits{Depth: maxDefinitionDepth})
		if err != nil {
			break
		}
		dst = append(dst, '{')
		for name, value := range o.All() {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(wire.AppendString(dst, name), ':')
			if secretName().MatchString(name) {
				dst = wire.AppendString(dst, redacted)
				continue
			}
			dst = appendScrubbed(dst, value)
		}
		return append(dst, '}')
	case '[':
		var items []mcp.RawValue
		if err := wire.Decode(raw, &items); err != nil {
			break
		}
		dst = append(dst, '[')
		for i, item := range items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendScrubbed(dst, item)
		}
		return append(dst, ']')
	case '"':
		// What the literal means, not how it is written: an escape cut in two
		// would be no JSON.
		text := secretPair().ReplaceAllString(wire.Text(raw), "${1}${2}${3}"+redacted)
		return wire.AppendString(dst, secretValue().ReplaceAllString(text, "$1 "+redacted))
	default:
		return append(dst, raw...)
	}
	return wire.AppendString(dst, redacted) // what cannot be looked at is not sent
}
