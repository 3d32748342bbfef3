// Command floor is the least that a server in Go can do for the same traffic: no
// protocol, only net/http, or lines. What it costs, every server pays.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/parley-mcp/parley/bench/fixture"
)

func main() { fixture.Main(run) }

func run(c fixture.Config) error {
	if c.Stdio {
		return fixture.ServeStdio(func(context.Context) error { return echoLines(os.Stdin, os.Stdout) })
	}
	if c.Mem {
		return errors.New("no floor for what goes through nothing")
	}
	f, err := newFloor(c)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", f.post)
	mux.HandleFunc("GET /", f.listen)
	return fixture.ServeHTTP(mux)
}

// echoLines gives back every line, and writes when nothing more is there to
// read, as a server does that gathers its answers.
func echoLines(r io.Reader, w io.Writer) error {
	in, out := bufio.NewReaderSize(r, 64<<10), bufio.NewWriterSize(w, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return eof(err)
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// floor knows the traffic from a word in the body, and has its answers ready.
type floor struct {
	reply, list []byte
	blob        []byte
	sessions    sync.Map
}

func newFloor(c fixture.Config) (*floor, error) {
	f := &floor{
		reply: []byte(head + `{"content":[{"type":"text","text":"` + fixture.Text + `"}]}}`),
		blob:  fixture.Blob(c.Blob),
	}
	var err error
	f.list, err = list(c.Tools)
	return f, err
}

const head = `{"jsonrpc":"2.0","id":1,"result":`

func (f *floor) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch _, rest, _ := bytes.Cut(body, []byte(`"method":"`)); {
	case bytes.HasPrefix(rest, []byte("tools/call")):
		f.call(w, rest)
	case bytes.HasPrefix(rest, []byte("tools/list")):
		answer(w, f.list)
	case bytes.HasPrefix(rest, []byte("resources/read")):
		f.read(w)
	case bytes.HasPrefix(rest, []byte("initialize")):
		id := rand.Text()
		f.sessions.Store(id, struct{}{})
		w.Header().Set("Mcp-Session-Id", id)
		answer(w, f.reply)
	case bytes.HasPrefix(rest, []byte("notifications/")):
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

// call answers a call of a tool: with the fixed reply, with what it was sent if
// that is large, or with a stream.
func (f *floor) call(w http.ResponseWriter, rest []byte) {
	const large = 512
	if _, after, ok := bytes.Cut(rest, []byte(`"count":`)); ok {
		digits := after[:bytes.IndexByte(after, '}')]
		n, err := strconv.Atoi(string(digits))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		stream(w, n)
		return
	}
	if len(rest) < large {
		answer(w, f.reply)
		return
	}
	// As long as an answer would be, and the text in it.
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(rest)+1))
	_, _ = io.WriteString(w, head)
	_, _ = w.Write(rest)
	_, _ = io.WriteString(w, "}")
}

// stream sends n progress notifications, each at once, and the result.
func stream(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	var event []byte
	for i := range n {
		event = append(event[:0], "data: "+`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":`...)
		event = strconv.AppendInt(event, int64(i+1), 10)
		event = append(event, `,"total":`...)
		event = strconv.AppendInt(event, int64(n), 10)
		event = append(event, "}}\n\n"...)
		_, _ = w.Write(event)
		if flush.Flush() != nil {
			return // the client is gone
		}
	}
	_, _ = io.WriteString(w, "data: "+head+`{"content":[{"type":"text","text":"`+fixture.Done+`"}]}}`+"\n\n")
}

// read encodes the blob into the connection.
func (f *floor) read(w http.ResponseWriter) {
	const before, after = head + `{"contents":[{"uri":"` + fixture.BlobURI + `","blob":"`, `"}]}}`
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(before)+base64.StdEncoding.EncodedLen(len(f.blob))+len(after)))
	_, _ = io.WriteString(w, before)
	const piece = 36 << 10 // a multiple of three, so that no piece but the last is padded
	buf := make([]byte, base64.StdEncoding.EncodedLen(piece))
	for rest := f.blob; len(rest) > 0; {
		n := min(len(rest), piece)
		base64.StdEncoding.Encode(buf, rest[:n])
		_, _ = w.Write(buf[:base64.StdEncoding.EncodedLen(n)])
		rest = rest[n:]
	}
	_, _ = io.WriteString(w, after)
}

// listen is the stream of an idle session.
func (f *floor) listen(w http.ResponseWriter, r *http.Request) {
	if _, ok := f.sessions.Load(r.Header.Get("Mcp-Session-Id")); !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if http.NewResponseController(w).Flush() == nil {
		<-r.Context().Done()
	}
}

// list is the answer to tools/list, as long as that of the others.
func list(tools int) ([]byte, error) {
	type object map[string]any
	text := func(kind, about string) object { return object{"type": kind, "description": about} }
	var all []object
	for i := range tools {
		all = append(all, object{
			"name": fixture.Filler(i), "description": fixture.FillerAbout,
			"inputSchema": object{
				"type": "object", "required": []string{"path"}, "additionalProperties": false,
				"properties": object{
					"path":      text("string", "Where to begin."),
					"recursive": text("boolean", "Whether to go into folders."),
					"limit":     text("integer", "The most results to give."),
					"kinds":     object{"type": "array", "items": object{"type": "string"}, "description": "What to look for."},
				},
			},
		})
	}
	data, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "result": object{"tools": all}})
	return data, err
}
