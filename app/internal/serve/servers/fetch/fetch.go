// Package fetch is a server that fetches web pages: HTML as markdown, other texts unchanged, images as
// images, and only the type and size of other files. It has the tool, the prompt and the texts of the
// official server mcp-server-fetch. By default it connects only to public addresses.
package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/netguard"
	"github.com/parley-mcp/parley/server"
)

// The user agents: what sites are told asks for a page: the tool, which a model calls on its own, or
// the prompt, which a user picks. The name is that of the official server, so that
// rules of sites for it hold here too.
const (
	agentAutonomous = "ModelContextProtocol/1.0 (Autonomous; +https://github.com/parley-mcp/parley)"
	agentManual     = "ModelContextProtocol/1.0 (User-Specified; +https://github.com/parley-mcp/parley)"
)

// metaKey is where a result has its Facts.
const metaKey = "dev.parley/fetch"

// Options are what is not required of the server. A nil *Options, and each zero
// field, means the default that is told.
type Options struct {
	// Server is what the server is made with. Its texts are replaced. Default:
	// the defaults of package server.
	Server *server.Options
	// Tasks keeps the tasks that calls become, and is open until the server has been
	// shut down. Default: the memory of the process.
	Tasks tasks.Store
	// TaskAfter is how long a call runs before it becomes a task, for clients that
	// know tasks. Default 5 s.
	TaskAfter time.Duration
	// UserAgent is what sites are told asks, for the tool and the prompt. Default:
	// one for each, named ModelContextProtocol/1.0.
	UserAgent string
	// IgnoreRobots gets pages that a site's robots.txt forbids to programs. Default
	// false. The prompt never asks robots.txt.
	IgnoreRobots bool
	// AllowPrivate are names, addresses and networks (CIDR) that may be reached
	// though they are not public; see netguard.Rules.AllowHosts. Default none.
	AllowPrivate []string
	// Proxy is as in http.Transport. Default none.
	Proxy func(*http.Request) (*url.URL, error)
	// TrustProxy leaves names to the proxy, which must then refuse private addresses
	// itself. Default: a name is looked up and checked here before it goes to the proxy.
	TrustProxy bool
	// TLS is the configuration of TLS. Default: the system's roots.
	TLS *tls.Config
	// Resolve looks names up. Default: the system's.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Timeout is for a whole page, redirects and body included, and for robots.txt
	// apart from it. Default 30 s.
	Timeout time.Duration
	// MaxBytes is the size of the largest page, decompressed. Default 10 MiB.
	MaxBytes int64
	// MaxImage is the size of the largest image that is given as content; of a larger one only type and size
	// are told. Default 1 MiB.
	MaxImage int
	// MaxRedirects is how many redirects are followed. Default 20; -1 follows none.
	MaxRedirects int
	// MaxPrompt is the most characters of a page that the prompt gives. Default
	// 1,000,000.
	MaxPrompt int
	// MaxWork bounds the simplification of a page: the sum over its nodes of
	// 32 and their depth, and over the lines of its texts of twice the lists and
	// quotes around them. Default 8,000,000, which is some 200,000 nodes.
	MaxWork int
	// MaxFetches is how many calls get pages at once; others wait. Default 16.
	MaxFetches int
	// MaxKept is the size in bytes of the pages that are kept for calls with a
	// start_index. Default 16 MiB; -1 keeps none.
	MaxKept int
	// KeepTime is how long they are kept. Default 5 min.
	KeepTime time.Duration
	// ProgressEvery is how often the progress of a page is told. Default 1 s.
	ProgressEvery time.Duration
	// RobotsTime is how long a robots.txt is kept. Default 1 h, at most 24 h.
	RobotsTime time.Duration
}

// withDefaults returns the options with defaults in the place of zero fields.
func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Tasks == nil {
		opts.Tasks = tasks.Memory()
	}
	opts.TaskAfter = cmp.Or(opts.TaskAfter, 5*time.Second)
	opts.Timeout = cmp.Or(opts.Timeout, 30*time.Second)
	opts.MaxBytes = cmp.Or(opts.MaxBytes, 10<<20)
	opts.MaxImage = cmp.Or(opts.MaxImage, 1<<20)
	opts.MaxRedirects = cmp.Or(opts.MaxRedirects, 20)
	opts.MaxPrompt = cmp.Or(opts.MaxPrompt, 1_000_000)
	opts.MaxWork = cmp.Or(opts.MaxWork, 8_000_000)
	opts.MaxFetches = cmp.Or(opts.MaxFetches, 16)
	opts.MaxKept = cmp.Or(opts.MaxKept, 16<<20)
	opts.KeepTime = cmp.Or(opts.KeepTime, 5*time.Minute)
	opts.ProgressEvery = cmp.Or(opts.ProgressEvery, time.Second)
	opts.RobotsTime = min(cmp.Or(opts.RobotsTime, time.Hour), 24*time.Hour)
	return opts
}

// A fetcher is the state of a server. Its methods may be called by many goroutines.
type fetcher struct {
	opts       Options
	guard      *netguard.Transport // of client, to check URLs before anything is asked
	client     *http.Client
	robots     *cache[*siteRobots] // by origin
	pages      *cache[*page]       // by URL and form
	fetches    chan struct{}       // holds one for each call that gets a page
	conversion chan struct{}       // and one for each page that is being simplified
	decoding   chan struct{}       // and one while an image is decoded, which takes much memory
}

func newFetcher(o *Options) *fetcher {
	opts := o.withDefaults()
	rules := &netguard.Rules{
		AllowHosts: opts.AllowPrivate, Plain: true, MaxBody: opts.MaxBytes, Decompress: true, Timeout: opts.Timeout,
		MaxRedirects: opts.MaxRedirects, Proxy: opts.Proxy, CheckProxied: !opts.TrustProxy, TLS: opts.TLS, Resolve: opts.Resolve,
	}
	client := netguard.Client(rules)
	return &fetcher{
		opts: opts, client: client, guard: netguard.NewTransport(rules),
		robots:     newCache[*siteRobots](4<<20, opts.RobotsTime),
		pages:      newCache[*page](opts.MaxKept, opts.KeepTime),
		fetches:    make(chan struct{}, opts.MaxFetches),
		conversion: make(chan struct{}, min(4, runtime.GOMAXPROCS(0))),
		decoding:   make(chan struct{}, 1),
	}
}

// New makes the server.
func New(version string, o *Options) *server.Server {
	f := newFetcher(o)
	so := servers.Options(f.opts.Server, "Fetch", "Gets pages from the web, as markdown", "")
	s := server.New("fetch", version, so)
	s.Add(server.Tool("fetch", description, f.tool).With(server.ToolOptions{
		Title:       "Fetch a page",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(true)},
	}))
	s.Add(server.Prompt("fetch", "Fetch a URL and extract its contents as markdown", f.prompt))
	tasks.Enable(s, f.opts.Tasks, &tasks.Options{
		Tools: map[string]tasks.Tool{"fetch": {Mode: tasks.May, After: f.opts.TaskAfter, Repeatable: true}},
		// A result may have a page of a million characters, some of them of four bytes.
		MaxResult: 8 << 20,
		Log:       so.Logger,
	})
	return s
}

const description = `Gets a page from the web by its URL and returns its contents: of HTML the article, as markdown, of other texts the text as it is, and images as images. Of other files, such as PDF, it returns type and size.

Use it to read what is on the web now. A long page comes in parts: the end of a part says with which start_index to ask for the next. A page whose article does not have what you look for may have it in its source: ask with raw.`

type toolIn struct {
	URL        string `json:"url" desc:"URL to fetch, http or https" minlen:"1" maxlen:"8192"`
	MaxLength  int    `json:"max_length" desc:"Maximum number of characters to return." min:"1" max:"999999" default:"5000"`
	StartIndex int    `json:"start_index" desc:"Return characters from this index on, for the next part of a page that was truncated." min:"0" default:"0"`
	Raw        bool   `json:"raw" desc:"Return the page as it is, such as its HTML, without simplification." default:"false"`
}

// Facts are what a program may want to know of a page, beside its text.
type Facts struct {
	// URL is where the page was at last, after redirects.
	URL string `json:"url"`
	// Status is the HTTP status code.
	Status int `json:"status"`
	// ContentType is as the site gave it, or "".
	ContentType string `json:"contentType,omitempty"`
	// Encoding is the encoding of the text, by its name in HTML, or "" for an image and other binary data.
	Encoding string `json:"encoding,omitempty"`
	// EncodingGuessed says that the page declares no encoding, or one that it is not in.
	EncodingGuessed bool `json:"encodingGuessed,omitempty"`
	// Title is the title of an HTML page that was simplified, or "".
	Title string `json:"title,omitempty"`
	// NextIndex is the start_index of the next part, or 0 if there is none.
	NextIndex int `json:"nextIndex,omitempty"`
}

// tool is the tool fetch.
func (f *fetcher) tool(ctx context.Context, in toolIn) (*mcp.CallToolResult, error) {
	u, err := parseURL(in.URL)
	if err != nil {
		return nil, mcp.Errorf("Failed to fetch %s: %w", shown(in.URL), err)
	}
	key := fmt.Sprintf("%t %s", in.Raw, u)
	p, kept := f.pages.get(key)
	if !kept || in.StartIndex == 0 {
		if p, err = f.get(ctx, u, in.Raw, true); err != nil {
			return nil, err
		}
	}
	text, next := cut(p.text, in.StartIndex, in.MaxLength)
	switch {
	case text == "":
		text = "<error>No more content available.</error>"
	case next > 0:
		text += fmt.Sprintf("\n\n<error>Content truncated. Call the fetch tool with a start_index of %d to get more content.</error>", next)
		f.pages.put(key, p, p.size())
	}
	facts := p.facts
	facts.NextIndex = next
	meta, err := json.Marshal(facts)
	if err != nil {
		return nil, fmt.Errorf("encode the facts of a page: %w", err)
	}
	contents := mcp.Contents{mcp.Text(p.prefix + "Contents of " + u.String() + ":\n" + text)}
	if p.image != nil && in.StartIndex == 0 {
		contents = append(contents, p.image)
	}
	return &mcp.CallToolResult{
		ResultBase: mcp.ResultBase{Meta: mcp.ResultMeta{Extra: map[string]mcp.RawValue{metaKey: mcp.RawValue(meta)}}},
		Content:    contents,
	}, nil
}

// cut returns at most length characters of a text from the index start on, and the
// index of what follows, or 0 if nothing does.
func cut(text string, start, length int) (part string, next int) {
	from, at := len(text), 0
	for i := range text {
		if at == start {
			from = i
		}
		if at-start == length {
			return text[from:i], at
		}
		at++
	}
	return text[from:], 0
}

type promptIn struct {
	URL string `json:"url" desc:"URL to fetch" maxlen:"8192"`
}

// prompt is the prompt fetch. A person asked for the page, so robots.txt is not, and
// what goes wrong is a message.
func (f *fetcher) prompt(ctx context.Context, in promptIn) (*mcp.GetPromptResult, error) {
	u, err := parseURL(in.URL)
	if err != nil {
		err = mcp.Errorf("Failed to fetch %s: %w", shown(in.URL), err)
	}
	var p *page
	if err == nil {
		p, err = f.get(ctx, u, false, false)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return &mcp.GetPromptResult{
			Description: "Failed to fetch " + shown(in.URL),
			Messages:    []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.Text(err.Error())}},
		}, nil
	}
	text, next := cut(p.text, 0, f.opts.MaxPrompt)
	if next > 0 {
		text += fmt.Sprintf("\n\n<error>Content truncated after %d characters. The fetch tool gets more, with a start_index of %d.</error>", next, next)
	}
	messages := []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.Text(p.prefix + text)}}
	if p.image != nil {
		messages = append(messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: p.image})
	}
	return &mcp.GetPromptResult{Description: "Contents of " + shown(in.URL), Messages: messages}, nil
}
