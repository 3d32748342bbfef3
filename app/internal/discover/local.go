package discover

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/strictjson"
)

// A Port is where a program that runs models may listen.
type Port struct {
	// Kind is the program that usually listens there.
	Kind string
	// Address is a host and a port, as net.Dial takes it.
	Address string
}

// The programs. KindOther is one that lists its models in the same format.
const (
	KindOllama   = "Ollama"
	KindLMStudio = "LM Studio"
	KindLlamaCpp = "llama.cpp"
	KindVLLM     = "vLLM"
	KindOther    = "an OpenAI-compatible server"
)

// UsualPorts are the ports on which the programs listen if nobody told them otherwise.
func UsualPorts() []Port {
	return []Port{
		{KindOllama, "127.0.0.1:11434"},
		{KindLMStudio, "127.0.0.1:1234"},
		{KindLlamaCpp, "127.0.0.1:8080"},
		{KindVLLM, "127.0.0.1:8000"},
	}
}

// A Local is a program on this machine that runs models, with the interface of OpenAI's chat
// completions.
type Local struct {
	// Kind is one of the constants.
	Kind string
	// Address is its host and port, BaseURL where its interface is.
	Address, BaseURL string
	// Models are the names of its models, in its order. They hold printable characters and no blanks.
	// There may be none.
	Models []string
}

// Bounds of what a port may answer.
const (
	maxAnswer = 256 << 10
	maxHeader = 16 << 10
	maxModels = 200
	maxName   = 200
)

// local asks all ports at once.
func local(ctx context.Context, o *Options) []Local {
	ports := o.Ports
	if ports == nil {
		ports = UsualPorts()
	}
	wait := o.Wait
	if wait <= 0 {
		wait = DefaultWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	// No proxy, no kept connection, no redirect: what is asked is this port alone.
	tr := &http.Transport{
		DialContext: o.Dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	defer tr.CloseIdleConnections()
	c := &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answers := make([]*Local, len(ports))
	var wg sync.WaitGroup
	for i, p := range ports {
		wg.Go(func() { answers[i] = p.ask(ctx, c) })
	}
	wg.Wait()
	var found []Local
	for _, l := range answers {
		if l != nil {
			found = append(found, *l)
		}
	}
	return found
}

// ask asks one port for its models. It returns nil if nothing is there, or something else.
func (p Port) ask(ctx context.Context, c *http.Client) *Local {
	base := "http://" + p.Address + "/v1"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "parley")
	resp, err := c.Do(r)
	if err != nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil || len(text) > maxAnswer {
		return nil
	}
	l := &Local{Address: p.Address, BaseURL: base}
	if !l.read(p.Kind, text) {
		return nil
	}
	return l
}

// A modelList is OpenAI's list of models, which all of the programs give.
type modelList struct {
	Object string `json:"object"`
	Data   []struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	} `json:"data"`
}

// read takes the models of an answer. It reports false for anything but a list of models.
func (l *Local) read(usual string, text []byte) bool {
	var list modelList
	if err := strictjson.Unmarshal(text, &list); err != nil || list.Object != "list" {
		return false
	}
	owner := ""
	for i, m := range list.Data {
		if m.Object != "model" || m.ID == "" {
			return false
		}
		if i == 0 {
			owner = m.OwnedBy
		}
		if len(l.Models) < maxModels && printable(m.ID) {
			l.Models = append(l.Models, m.ID)
		}
	}
	l.Kind = kindOf(usual, owner)
	return true
}

// kindOf tells the program. vLLM and llama.cpp write their own names into owned_by, and
// nothing else
// (github.com/vllm-project/vllm vllm/entrypoints/openai/engine/protocol.py,
// github.com/ggml-org/llama.cpp tools/server/server-context.cpp).
// Ollama has the namespace of the model there, "library" for its own
// (github.com/ollama/ollama openai/openai.go), LM Studio a text of no meaning: they are told
// by their port.
func kindOf(usual, owner string) string {
	switch {
	case owner == "vllm":
		return KindVLLM
	case owner == "llamacpp":
		return KindLlamaCpp
	case usual == KindOllama, usual == KindLMStudio:
		return usual
	}
	return KindOther
}

// printable reports whether a name can be shown, written into a file and sent back as it is.
// One with blanks could be read as words of this program.
func printable(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && host.EscapeLine(name) == name &&
		!strings.ContainsFunc(name, unicode.IsSpace)
}
