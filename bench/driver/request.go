package driver

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/bench/fixture"
)

// The id of a request is counted up in place, so that it always has as many
// digits, and none before it is 0.
const (
	firstID  uint64 = 1_000_000_000
	idDigits        = 10
	idMark          = "1000000000"
)

// Number stands in the parameters of a [Call] for a number that is another one in each request: that of
// its id.
const Number = idMark

// A Call is a request as the driver sends it again and again.
type Call struct {
	Method, Name string // Name is what the header says: of the tool, or the URI
	Params       string // JSON without the braces
}

// Echo is a call that gives back a text, which is JSON already.
func Echo(text string) Call {
	return Call{"tools/call", fixture.Echo, `"name":"` + fixture.Echo + `","arguments":{"text":"` + text + `"}`}
}

// Progress is a call that reports so often.
func Progress(n int) Call {
	return Call{"tools/call", fixture.Progress, fmt.Sprintf(`"name":"%s","arguments":{"count":%d}`, fixture.Progress, n)}
}

// List lists the tools.
func List() Call { return Call{Method: "tools/list"} }

// Read reads the resource.
func Read() Call { return Call{"resources/read", fixture.BlobURI, `"uri":"` + fixture.BlobURI + `"`} }

// Task asks for the state of the task.
func Task() Call { return Call{"tasks/get", fixture.TaskID, `"taskId":"` + fixture.TaskID + `"`} }

// meta is what every modern request says, and a token where progress is reported.
func (c Call) meta(modern bool) string {
	var members []string
	if c.Name == fixture.Progress {
		members = append(members, `"progressToken":"p"`)
	}
	caps := "{}"
	if c.Method == "tasks/get" {
		caps = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	}
	if modern {
		members = append(members,
			`"io.modelcontextprotocol/protocolVersion":"`+fixture.Modern+`"`,
			`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}`,
			`"io.modelcontextprotocol/clientCapabilities":`+caps)
	}
	if len(members) == 0 {
		return ""
	}
	return `"_meta":{` + strings.Join(members, ",") + "}"
}

// message is the JSON of a call.
func (c Call) message(modern bool) string {
	params := c.Params
	if meta := c.meta(modern); meta != "" {
		params = strings.TrimPrefix(params+","+meta, ",")
	}
	return `{"jsonrpc":"2.0","id":` + idMark + `,"method":"` + c.Method + `","params":{` + params + `}}`
}

// A request is the bytes of a call, and where its number is in them: the id, and each [Number].
type request struct {
	bytes   []byte
	numbers [][]byte // within bytes
}

func newRequest(data []byte) request {
	r := request{bytes: data}
	for at := 0; ; at += idDigits {
		next := bytes.Index(data[at:], []byte(idMark))
		if next < 0 {
			return r
		}
		at += next
		r.numbers = append(r.numbers, data[at:at+idDigits])
	}
}

// number sets the id.
func (r request) number(id uint64) {
	for i := idDigits - 1; i >= 0; i-- {
		for _, digits := range r.numbers {
			digits[i] = byte('0' + id%10)
		}
		id /= 10
	}
}

// line is a call over stdio.
func line(c Call, era Era) request { return newRequest([]byte(c.message(era == Stateless) + "\n")) }

// modern is a call over HTTP in the stateless era.
func modern(c Call) request {
	fields := []string{"MCP-Protocol-Version: " + fixture.Modern, "Mcp-Method: " + c.Method}
	if c.Name != "" {
		fields = append(fields, "Mcp-Name: "+c.Name)
	}
	return newRequest(post(c.message(true), fields...))
}

// legacy is a call over HTTP in a session, or in none.
func legacy(c Call, session string) request {
	return newRequest(post(c.message(false), inSession(session)...))
}

func inSession(session string) []string {
	fields := []string{"MCP-Protocol-Version: " + fixture.Legacy}
	if session != "" {
		fields = append(fields, "Mcp-Session-Id: "+session)
	}
	return fields
}

// handshake opens a session.
const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + fixture.Legacy +
	`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// post makes the bytes of a POST.
func post(body string, fields ...string) []byte {
	var b bytes.Buffer
	b.WriteString("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n")
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.Bytes()
}

// get opens the stream of a session.
func get(session string) []byte {
	return []byte("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n" + strings.Join(inSession(session), "\r\n") + "\r\n\r\n")
}
