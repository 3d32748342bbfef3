package everything

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// What is in this file, reference_asking.go and reference_prompts.go has the names, arguments and texts that
// @modelcontextprotocol/server-everything gives it, so that what was written for that server works with
// this one. docs/guide/server-everything.md lists what differs.

type sumIn struct {
	A float64 `json:"a" desc:"The first number."`
	B float64 `json:"b" desc:"The second number."`
}

type structuredIn struct {
	Location string `json:"location" desc:"The city." enum:"New York,Chicago,Los Angeles"`
}

// Weather is what get-structured-content gives.
type Weather struct {
	Temperature float64 `json:"temperature" desc:"In degrees, whatever they are."`
	Conditions  string  `json:"conditions"`
	Humidity    float64 `json:"humidity" desc:"In percent."`
}

// weathers are those of the reference server.
var weathers = map[string]Weather{
	"New York": {33, "Cloudy", 82}, "Chicago": {36, "Light rain / drizzle", 82}, "Los Angeles": {73, "Sunny / Clear", 48},
}

type gzipIn struct {
	Name       string `json:"name" desc:"The name of the compressed file." default:"README.md.gz" minlen:"1" maxlen:"200"`
	Data       string `json:"data" desc:"A data: URL with what is to be compressed." default:"data:text/plain,Nothing%20to%20read." maxlen:"1400000"`
	OutputType string `json:"outputType" desc:"What comes back: a link to read later, or the file." enum:"resourceLink,resource" default:"resourceLink"`
}

type queryIn struct {
	Topic     string `json:"topic" desc:"What is to be looked into." maxlen:"1000"`
	Ambiguous bool   `json:"ambiguous" desc:"Pretend that the topic has several meanings, and ask for one." default:"false"`
}

// A reference has what tools of this file share.
type reference struct {
	updates atomic.Bool // resources pretend to change

	mu      sync.Mutex
	files   []file   // compressed ones, the oldest first
	refused []string // calls of trigger-url-elicitation, the oldest first
}

type file struct {
	id, name string
	data     []byte
}

// maxFiles is how many compressed files are kept for reading.
const maxFiles = 20

// tools are those that the reference server has besides. Those that change something need the scopes.
func (r *reference) tools(scopes []string) []server.Feature {
	return []server.Feature{
		server.Tool("get-sum", "Adds two numbers, and says so in words.", func(_ context.Context, in sumIn) (string, error) {
			n := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
			return fmt.Sprintf("The sum of %s and %s is %s.", n(in.A), n(in.B), n(in.A+in.B)), nil
		}).With(server.ToolOptions{Title: "Sum", Annotations: readOnly}),

		server.Tool("get-structured-content", "Gives invented weather as structured data.", func(_ context.Context, in structuredIn) (Weather, error) {
			return weathers[in.Location], nil
		}).With(server.ToolOptions{Title: "Structured content", Annotations: readOnly}),

		server.Tool("get-env", "Lists the environment variables of the server, with the values of a few harmless ones.", environment).
			With(server.ToolOptions{Title: "Environment", Annotations: readOnly}),

		server.Tool("gzip-file-as-resource", "Compresses the content of a data: URL, and gives it as a resource.", r.compress).
			With(server.ToolOptions{Title: "Compress", Annotations: readOnly}),

		server.Tool("simulate-research-query", "Pretends to research a topic in four stages; may ask what is meant. Is always a task.", query).
			With(server.ToolOptions{Title: "Research a query", Annotations: readOnly}),

		server.Tool("toggle-subscriber-updates", "Has the dynamic resources pretend to change for their subscribers, or ends that.",
			func(context.Context, mcp.None) (string, error) {
				for {
					on := r.updates.Load()
					if !r.updates.CompareAndSwap(on, !on) {
						continue
					}
					if on {
						return "Stopped simulated resource updates", nil
					}
					return "Started simulated resource updated notifications at a 5 second pace. Clients receive updates for the dynamic resources they are subscribed to.", nil
				}
			}).With(server.ToolOptions{Title: "Toggle updates", Scopes: scopes}),
	}
}

// shown are the variables whose values are no secret.
var shown = []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}

// environment hides what is not known to be harmless: variables are how servers are given keys.
func environment(context.Context, mcp.None) (string, error) {
	values := make(map[string]string)
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		if !slices.Contains(shown, name) {
			value = "(not shown)"
		}
		values[name] = value
	}
	return servers.Indent(values)
}

// compress makes no requests: it takes data: URLs alone.
func (r *reference) compress(_ context.Context, in gzipIn) (mcp.Content, error) {
	data, err := dataURL(in.Data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	f := file{id: rand.Text(), name: in.Name, data: out.Bytes()}
	uri := "demo://resource/session/" + f.id + "/" + url.PathEscape(f.name)
	const mimeType = "application/gzip"
	if in.OutputType == "resource" {
		return mcp.Embed(mcp.ResourceContents{URI: uri, MIMEType: mimeType, Blob: f.data}), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files = append(r.files, f); len(r.files) > maxFiles {
		r.files = slices.Delete(r.files, 0, 1)
	}
	link := mcp.Link(uri, f.name)
	link.MIMEType = mimeType
	return link, nil
}

// dataURL is the content of a data: URL.
func dataURL(text string) ([]byte, error) {
	rest, is := strings.CutPrefix(text, "data:")
	head, body, found := strings.Cut(rest, ",")
	if !is || !found {
		return nil, mcp.Errorf("only data: URLs are taken, such as data:text/plain,hello: this server makes no requests")
	}
	if strings.HasSuffix(head, ";base64") {
		data, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return nil, mcp.Errorf("the data: URL has broken base64: %w", err)
		}
		return data, nil
	}
	plain, err := url.PathUnescape(body)
	if err != nil {
		return nil, mcp.Errorf("the data: URL has a broken escape: %w", err)
	}
	return []byte(plain), nil
}

// interpretation is the question of simulate-research-query.
type interpretation struct {
	Interpretation string `json:"interpretation" title:"Clarification" desc:"What is meant by the topic?" enum:"technical,historical,current"`
}

type pythonInterpretation struct {
	Interpretation string `json:"interpretation" title:"Clarification" desc:"What is meant by the topic?" enum:"programming,snake,comedy"`
}

// query runs in the stages of the reference server.
func query(ctx context.Context, in queryIn) (string, error) {
	chosen := ""
	stages := []string{"Gathering sources", "Analyzing content", "Synthesizing findings", "Generating report"}
	for i, stage := range stages {
		if err := server.Progress(ctx, float64(i+1), float64(len(stages)), stage+"..."); err != nil {
			return "", err
		}
		if i == 2 && in.Ambiguous && server.CanElicit(ctx) {
			var err error
			if chosen, err = clarify(ctx, in.Topic); err != nil {
				return "", err
			}
		}
		if err := sleep(ctx, time.Second); err != nil {
			return "", err
		}
	}
	title, more := in.Topic, ""
	if chosen != "" {
		title, more = fmt.Sprintf("%s (%s)", in.Topic, chosen), "- **Clarification**: "+chosen+"\n"
	}
	report := fmt.Sprintf("# Research Report: %s\n\n## Research Parameters\n- **Topic**: %s\n%s\n## Synthesis\n", title, in.Topic, more)
	for i, stage := range stages {
		report += fmt.Sprintf("- Stage %d: %s ✓\n", i+1, stage)
	}
	return report, nil
}

func clarify(ctx context.Context, topic string) (string, error) {
	message := fmt.Sprintf("The topic %q can mean several things. Which one is it?", topic)
	said := func(action mcp.ElicitAction, value string, err error) (string, error) {
		switch {
		case err != nil:
			return "", err
		case action == mcp.ElicitAccept:
			return value, nil
		case action == mcp.ElicitDecline:
			return "User declined - using default interpretation", nil
		}
		return "User cancelled - using default interpretation", nil
	}
	if strings.Contains(strings.ToLower(topic), "python") {
		a, err := server.Elicit[pythonInterpretation](ctx, message)
		return said(a.Action, a.Value.Interpretation, err)
	}
	a, err := server.Elicit[interpretation](ctx, message)
	return said(a.Action, a.Value.Interpretation, err)
}
