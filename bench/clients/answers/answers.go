// Package answers knows what the server of the clients' measurements says: to
// each method the same bytes, but for the id. It decodes nothing.
package answers

import (
	"bytes"

	"github.com/parley-mcp/parley/bench/fixture"
)

const (
	info  = `{"name":"target","version":"1"}`
	tool  = `{"name":"echo","description":"Gives the text back.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`
	said  = `"content":[{"type":"text","text":"` + fixture.Text + `"}]`
	whole = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":` + info + `}`
	cache = `"ttlMs":3600000,"cacheScope":"private",`
)

// The results of each method in the two revisions that are measured.
var (
	modernResults = map[string]string{
		"server/discover": `{` + cache + `"supportedVersions":["` + fixture.Modern + `"],"capabilities":{"tools":{}},"serverInfo":` + info + `,` + whole + `}`,
		"tools/list":      `{` + cache + `"tools":[` + tool + `],` + whole + `}`,
		"tools/call":      `{` + said + `,` + whole + `}`,
	}
	legacyResults = map[string]string{
		"initialize": `{"protocolVersion":"` + fixture.Legacy + `","capabilities":{"tools":{}},"serverInfo":` + info + `}`,
		"ping":       `{}`,
		"tools/list": `{"tools":[` + tool + `]}`,
		"tools/call": `{` + said + `}`,
	}
)

// Append appends the answer to a message, and tells whether there is one: none
// to a notification.
func Append(to, message []byte) ([]byte, bool) {
	id := value(message, `"id":`)
	if id == nil {
		return to, false
	}
	results := legacyResults
	if bytes.Contains(message, []byte(`"io.modelcontextprotocol/protocolVersion"`)) {
		results = modernResults
	}
	result, ok := results[string(bytes.Trim(value(message, `"method":`), `"`))]
	to = append(append(to, `{"jsonrpc":"2.0","id":`...), id...)
	if !ok {
		return append(to, `,"error":{"code":-32601,"message":"method not found"}}`...), true
	}
	to = append(append(to, `,"result":`...), result...)
	return append(to, '}'), true
}

// value is what follows the first of a key, if that is a number or a string.
// The clients' messages are compact and name the envelope's keys nowhere else.
func value(message []byte, key string) []byte {
	at := bytes.Index(message, []byte(key))
	if at < 0 {
		return nil
	}
	rest := message[at+len(key):]
	if len(rest) > 0 && rest[0] == '"' {
		if end := bytes.IndexByte(rest[1:], '"'); end >= 0 {
			return rest[:end+2]
		}
		return nil
	}
	if end := bytes.IndexAny(rest, ",}"); end > 0 {
		return rest[:end]
	}
	return nil
}
