// Package cassette records what goes between a client and a server of the protocol, serves it
// again in the place of the server, and holds another server to it.
//
// A cassette is a file of JSON lines. The first says what it is:
//
//	{"parley":"cassette","version":1,"created":"…","server":"…"}
//
// Each other is one frame, with the milliseconds since the beginning, its sender and, where
// there were several, the number of the connection:
//
//	{"ms":12.5,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
//	{"ms":14.1,"from":"server","text":"a line that is no JSON"}
//
// The last says that the recording was ended in good order:
//
//	{"ms":80,"end":true}
//
// Secrets are masked. Programs of this version read version 1 and refuse higher ones.
package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// Version is the version of the format.
const Version = 1

// Limits of a cassette.
const (
	// MaxFrame is the longest frame that is stored: what a client of this library reads. Of a
	// longer one the beginning is stored, as text.
	MaxFrame = 64 << 20
	// MaxLine is the longest line that is read.
	MaxLine = MaxFrame + 4<<10
	// MaxFrames is how many frames one cassette may have.
	MaxFrames = 1_000_000
	// beginning is how much is stored of a frame that is too long.
	beginning = 4 << 10
	// maxDepth is how deep messages may be nested that are stored as such.
	maxDepth = 250
)

// Sides, as they stand in "from".
const (
	Client = "client"
	Server = "server"
)

// A Header is the first line.
type Header struct {
	Parley  string    `json:"parley"` // "cassette"
	Version int       `json:"version"`
	Created time.Time `json:"created,omitzero"`
	// Program is what wrote it, Server what was recorded.
	Program string `json:"program,omitzero"`
	Server  string `json:"server,omitzero"`
}

// A Frame is one line behind the header: a message, or what was sent in the place of one.
type Frame struct {
	Ms   float64 `json:"ms"`
	From string  `json:"from,omitzero"`
	// Link numbers the connections of a recording from 1; 0 is the first.
	Link uint64 `json:"link,omitzero"`
	// Message is JSON, Text is anything else.
	Message json.RawMessage `json:"message,omitzero"`
	Text    string          `json:"text,omitzero"`
	// Note says what is wrong with the text.
	Note string `json:"note,omitzero"`
	// End says that the recording ended here, in good order.
	End bool `json:"end,omitzero"`
}

// A Recorder writes a cassette. Its methods may be called by many goroutines at once.
type Recorder struct {
	mask  *mask.Masker
	start time.Time

	mu     sync.Mutex
	w      io.Writer
	links  map[uint64]uint64 // numbers of ours by those of the tap
	frames int
	err    error
}

// Record begins a cassette.
func Record(w io.Writer, h Header, m *mask.Masker) (*Recorder, error) {
	r := &Recorder{mask: m, start: time.Now(), w: w, links: make(map[uint64]uint64)}
	h.Parley, h.Version = "cassette", Version
	if h.Created.IsZero() {
		h.Created = r.start.UTC().Truncate(time.Second)
	}
	h.Server = m.Text(h.Server)
	r.line(h)
	return r, r.err
}

// Add records a frame.
func (r *Recorder) Add(from string, at time.Time, link uint64, data []byte) {
	f := Frame{Ms: r.since(at), From: from}
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return
	case len(data) > MaxFrame:
		f.Note = fmt.Sprintf("longer than %d bytes: this is the beginning", MaxFrame)
		f.Text = r.mask.Text(string(data[:beginning]))
	default:
		masked, isJSON := r.mask.Message(data)
		if wrong := strictjson.Valid(masked, &strictjson.Options{MaxDepth: maxDepth}); isJSON && wrong == nil {
			f.Message = oneLine(masked)
		} else {
			f.Text = strings.TrimRight(string(masked), "\r\n")
			if isJSON {
				f.Note = "not strict JSON: " + wrong.Error()
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if link != 0 {
		if r.links[link] == 0 {
			r.links[link] = uint64(len(r.links) + 1)
		}
		if n := r.links[link]; n > 1 {
			f.Link = n
		}
	}
	if r.frames == MaxFrames {
		r.err = errors.Join(r.err, fmt.Errorf("a cassette has at most %d frames: the rest of the session is not in it", MaxFrames))
		r.frames++
	}
	if r.frames < MaxFrames {
		r.frames++
		r.line(f)
	}
}

// oneLine is valid JSON without line breaks, which mean nothing between its tokens.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil { // it is valid
		return raw
	}
	return b.Bytes()
}

func (r *Recorder) since(at time.Time) float64 {
	return float64(at.Sub(r.start).Microseconds()) / 1000
}

// Tap records the messages that a transport.Tap is shown.
func (r *Recorder) Tap(e transport.TapEvent) {
	switch e.Kind {
	case transport.TapSent:
		r.Add(Client, e.Time, e.Link, e.Data)
	case transport.TapReceived:
		r.Add(Server, e.Time, e.Link, e.Data)
	case transport.TapRefused: // all else was shown as received before
		if errors.As(e.Err, new(*frame.TooLongError)) {
			r.Add(Server, e.Time, e.Link, e.Data)
		}
	default:
	}
}

// line writes a line, unless one before it could not be written.
func (r *Recorder) line(v any) {
	if r.err != nil {
		return
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if r.err = e.Encode(v); r.err == nil {
		_, r.err = r.w.Write(b.Bytes())
	}
	if r.err != nil {
		r.err = fmt.Errorf("writing the cassette: %w", r.err)
	}
}

// Close ends the cassette. It returns how many frames it has, and the first error of writing,
// after which nothing was written.
func (r *Recorder) Close() (frames int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(Frame{Ms: r.since(time.Now()), End: true})
	return min(r.frames, MaxFrames), r.err
}

// checked parses one JSON object of a cassette, strictly.
func checked(line []byte, v any) error {
	return strictjson.Unmarshal(line, v, &strictjson.Options{MaxBytes: MaxLine, MaxDepth: maxDepth + 4})
}
