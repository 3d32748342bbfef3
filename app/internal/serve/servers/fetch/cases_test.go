package fetch_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/fetch"
	"github.com/parley-mcp/parley/host"
)

// A sourceCase is what the official server does, by the lines of its source. SITE stands
// for the address of the site, and AGENT for the user agent of the tool.
type sourceCase struct {
	Name      string
	Source    string
	Options   []string
	Pages     map[string]sourcePage
	Prompt    bool
	URL       string
	Arguments map[string]any
	// Failed says that the tool fails, with the text that is wanted.
	Failed      bool
	Description string
	Want        string
}

type sourcePage struct {
	Type     string
	Status   int
	Location string
	Body     string
	Base64   []byte
}

func (p sourcePage) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if w.Header()["Content-Type"] = nil; p.Type != "" {
		w.Header().Set("Content-Type", p.Type)
	}
	if p.Location != "" {
		w.Header().Set("Location", p.Location)
	}
	if p.Status != 0 {
		w.WriteHeader(p.Status)
	}
	body := p.Base64
	if body == nil {
		body = []byte(p.Body)
	}
	_, _ = w.Write(body)
}

// The tool and the prompt do what the source of the official server says: testdata/cases.json
// has a case for each of its branches, with the lines that it follows.
func TestAsTheOfficialServer(t *testing.T) {
	data, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []sourceCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 50 {
		t.Fatalf("there are %d cases, want 50 at least", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { c.run(t) })
	}
}

func (c *sourceCase) run(t *testing.T) {
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := c.Pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		p.ServeHTTP(w, r)
	}))
	agent := "ModelContextProtocol/1.0 (Autonomous; +https://github.com/parley-mcp/parley)"
	client := s.join(t, func(o *fetch.Options) {
		for _, option := range c.Options {
			name, value, _ := strings.Cut(option, " ")
			switch name {
			case "ignore-robots-txt":
				o.IgnoreRobots = true
			case "user-agent":
				o.UserAgent = value
			default:
				t.Fatalf("unknown option %q", name)
			}
		}
	})
	fill := strings.NewReplacer("SITE", s.url, "AGENT", agent)
	url := fill.Replace(c.URL)
	if c.Prompt {
		res, err := client.GetPrompt(t.Context(), "fetch", map[string]string{"url": url}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fill.Replace(c.Description), res.Description); diff != "" {
			t.Errorf("description of the prompt, %s (-want +got):\n%s", c.Source, diff)
		}
		if len(res.Messages) != 1 || res.Messages[0].Role != "user" {
			t.Fatalf("got %d messages, want one of the user", len(res.Messages))
		}
		if diff := cmp.Diff(fill.Replace(c.Want), host.ContentText(res.Messages[0].Content)); diff != "" {
			t.Errorf("message of the prompt, %s (-want +got):\n%s", c.Source, diff)
		}
		return
	}
	args := map[string]any{"url": url}
	for name, v := range c.Arguments {
		args[name] = v
	}
	text, failed := call(t, client, args)
	if failed != c.Failed {
		t.Errorf("failed: %t, want %t, %s", failed, c.Failed, c.Source)
	}
	if diff := cmp.Diff(fill.Replace(c.Want), text); diff != "" {
		t.Errorf("text of the tool, %s (-want +got):\n%s", c.Source, diff)
	}
}
