package odd

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/parley-mcp/parley/strictjson"
)

// A Case is one odd server, and how a client must treat it.
type Case struct {
	// Name is the name of the file.
	Name string `json:"-"`
	// About describes the server in one sentence. Note explains Expect.
	About string `json:"about"`
	Note  string `json:"note"`
	// Reports are the addresses of public reports; none for a sibling of another case.
	Reports []string `json:"reports"`
	// Area is the part of the protocol, such as "lists".
	Area string `json:"area"`
	// Over are the transports: "stdio", "http" and "sse". Default all.
	Over []string `json:"over"`
	// Era is "handshake", "stateless" or "both". Default "handshake".
	Era string `json:"era"`

	// Initialize replaces members of the result of initialize or server/discover; null removes one.
	Initialize map[string]json.RawMessage `json:"initialize"`
	// Answers are by method. Those whose condition holds come first; of several with the same
	// condition, each is for one request, and the last one repeats. The method "*" stands for all
	// that are not named.
	Answers map[string][]Answer `json:"answers"`

	// Stdout are lines that are written before a message is read, and Lines is how messages are framed.
	Stdout []string `json:"stdout"`
	Lines  *Lines   `json:"lines"`

	// HTTP are the answers to GET, DELETE and POST. With a body, POST is for all messages; else it
	// changes the answers to requests that Answers does not name.
	HTTP map[string]*HTTP `json:"http"`
	// Redirect sends every request elsewhere.
	Redirect *Redirect `json:"redirect"`
	// Opening is how the stream of HTTP+SSE begins, and Taken what each POST gets there.
	Opening *Opening `json:"opening"`
	Taken   *HTTP    `json:"taken"`

	// Expect is how a client must treat it.
	Expect Expect `json:"expect"`

	revisions Revisions
}

// Lines is how messages are framed over stdio: First is written once, Before and After with each message.
// $LENGTH is the number of its bytes.
type Lines struct {
	First  string  `json:"first"`
	Before string  `json:"before"`
	After  *string `json:"after"` // default a newline
}

// A Redirect sends all requests to another path, where the server is, or to another address.
type Redirect struct {
	Status int    `json:"status"`
	To     string `json:"to"`
}

// An Opening is how the stream of HTTP+SSE begins: by Events, or by Text as it is. $PATH is where
// messages are posted, $BASE the address of the host.
type Opening struct {
	Events []string `json:"events"`
	Text   *string  `json:"text"`
	Stream string   `json:"stream"` // the path of the stream; default /sse
	Path   string   `json:"path"`   // default /messages
	Closed bool     `json:"closed"` // the stream ends after it
}

// An Answer is what one request gets. Without Result, Error, Raw, None, Body, SSE and Stream it is
// the usual one.
//
// In texts $ID is the id of the request, $QID the id as a JSON string, $FID the id with a fraction
// of zero, $OUTCOME the members of the usual answer ("result":…), $MESSAGE the message of this
// answer.
type Answer struct {
	// WhenCursor and WhenSession are conditions: a string, or null for none.
	WhenCursor  json.RawMessage `json:"whenCursor"`
	WhenSession json.RawMessage `json:"whenSession"`

	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Raw    string          `json:"raw"` // the whole message
	None   bool            `json:"none"`
	// Before and After are messages, or other texts, around the answer.
	Before []string `json:"before"`
	After  []string `json:"after"`
	// Exit ends the server afterwards (stdio only).
	Exit *int `json:"exit"`

	HTTP

	// SSE are the events of a stream, and Stream is its whole text.
	SSE    []string `json:"sse"`
	Stream *string  `json:"stream"`
}

// HTTP is an answer over HTTP.
type HTTP struct {
	Status  int               `json:"status"`
	Type    *string           `json:"type"` // "" is none
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"` // instead of the message
	Base64  []byte            `json:"bodyBase64"`
	Encode  string            `json:"encode"` // "gzip" or "deflate"
	Open    bool              `json:"open"`   // the body has no end
}

// Expect is how a client must treat a server. Absent fields are not checked, except Told.
type Expect struct {
	Tools     []string `json:"tools"`
	Prompts   []string `json:"prompts"`
	Resources []string `json:"resources"`
	Templates []string `json:"templates"`

	Call   *Use `json:"call"`
	Read   *Use `json:"read"`
	Prompt *Use `json:"prompt"`

	// Told are parts of the problems that the client must report. If it is empty, the client must not
	// report any.
	Told []string `json:"told"`
	// Error is a part of the error that the client must return. Protects explains why it must.
	Error    string `json:"error"`
	Protects string `json:"protects"`
	// Proxy explains why a proxy's callers get something else. Such a case is not run through one.
	Proxy string `json:"proxy"`
	// Sent and AtMost are how many requests of methods there are.
	Sent   map[string]int `json:"sent"`
	AtMost map[string]int `json:"atMost"`
}

// A Use is a call of a tool, the reading of a resource or the getting of a prompt.
type Use struct {
	Tool string `json:"tool"`
	URI  string `json:"uri"`
	Name string `json:"name"`
	// Text is a part of the result.
	Text string `json:"text"`
	// IsError is whether the tool failed.
	IsError bool `json:"isError"`
}

//go:embed cases
var files embed.FS

// Revisions are the revisions that cases are about. Files call them $OLDEST, $NEWEST and $STATELESS.
type Revisions struct {
	// Oldest and Newest have a handshake, Stateless has none.
	Oldest, Newest, Stateless string
}

// Cases returns all cases in the order of their names.
func Cases(r Revisions) ([]*Case, error) {
	names, err := fs.Glob(files, "cases/*.json")
	if err != nil {
		return nil, err
	}
	dates := strings.NewReplacer("$OLDEST", r.Oldest, "$NEWEST", r.Newest, "$STATELESS", r.Stateless)
	var list []*Case
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c := &Case{
			Name: strings.TrimSuffix(path.Base(name), ".json"), Over: []string{"stdio", "http", "sse"}, Era: "handshake", revisions: r,
		}
		if err := strictjson.Unmarshal([]byte(dates.Replace(string(raw))), c); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, c)
	}
	return list, nil
}
