package openai

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
	schemas "github.com/parley-mcp/parley/schema/provider"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// DefaultProvider is the name of the provider unless Options says another.
const DefaultProvider = "openai"

// Options say which model it is and where.
type Options struct {
	// Model is what requests name the model by.
	Model string
	// Key is the provider's; see [provider.Key]. Without one none is sent.
	Key string
	// BaseURL is what /chat/completions is appended to, unless it is there already; one
	// without a path gets /v1.
	// Default DefaultBaseURL.
	BaseURL string
	// Provider is what Info and errors call the provider. Default DefaultProvider.
	Provider string
	// Client makes the requests. Default: see [provider.Endpoint].
	Client *http.Client
	// Info is what is known of the model besides. Name and Provider are filled in where they
	// are empty, as is Schemas.
	Info host.ModelInfo
	// MaxAudio is the most bytes of one sound (WAV or MP3) that the model takes; 0: none.
	MaxAudio int
	// Effort is how much a model that reasons shall think: "low", "medium", "high", or
	// another word of the provider's. Empty leaves it to the model.
	Effort string
	// Waiting, if it is not nil, is told of each wait before the next try.
	Waiting func(reason error, wait time.Duration)
}

// A Model is a [host.Model] that is reached over chat completions. It may be used by many
// goroutines at once.
type Model struct {
	endpoint *provider.Endpoint
	server   server
	info     host.ModelInfo
	name     string // of the model, in requests
	origin   string // whose reasoning it takes
	effort   string
	maxAudio int

	mu      sync.Mutex
	refused parameters // what the model has refused until now
}

// New checks the options and returns the model. Nothing is sent before its first turn.
func New(o *Options) (*Model, error) {
	if strings.TrimSpace(o.Model) == "" {
		return nil, errors.New("no model is named; a name looks like gpt-5.1, or llama3.2 for a server on this machine")
	}
	e, err := endpoint(o)
	if err != nil {
		return nil, err
	}
	m := &Model{
		endpoint: e, server: serverAt(e.URL), info: o.Info, name: o.Model, origin: e.Origin(),
		effort: o.Effort, maxAudio: o.MaxAudio,
	}
	m.info.Name = cmp.Or(m.info.Name, o.Model)
	m.info.Provider = cmp.Or(m.info.Provider, e.Provider)
	if m.info.Schemas.Keywords == nil {
		m.info.Schemas = schemas.OpenAI
	}
	return m, nil
}

// endpoint checks what requests need.
func endpoint(o *Options) (*provider.Endpoint, error) {
	address := strings.TrimRight(strings.TrimSpace(o.BaseURL), "/")
	return provider.New(&provider.Endpoint{
		Provider: cmp.Or(o.Provider, DefaultProvider), URL: strings.TrimSuffix(address, "/chat/completions"), Own: DefaultBaseURL,
		Key: o.Key, KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Client: o.Client, Waiting: o.Waiting,
	}, "/v1")
}

// Info says which model it is and what it takes.
func (m *Model) Info() host.ModelInfo { return m.info }

// Generate streams one turn. The errors are those of [provider.Endpoint.Stream]. What the
// provider sent before an error was yielded, but for reasoning and calls that are not whole.
func (m *Model) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		messages, err := m.messages(r)
		if err != nil {
			yield(host.Piece{}, err)
			return
		}
		for {
			req := m.request(r, messages)
			err := m.stream(ctx, req, yield)
			switch {
			case err == nil, errors.Is(err, errStopped):
				return
			case m.learn(err, req):
				continue
			}
			yield(host.Piece{}, advised(err))
			return
		}
	}
}

// advised is an error with what the person can do, if its words are known.
func advised(err error) error {
	fault := new(provider.Error)
	if !errors.As(err, &fault) || fault.Advice != "" {
		return err
	}
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(fault.Text), word) })
	}
	switch {
	case says("context length", "context size", "context window", "context_length"):
		fault.Advice = "/compact makes the conversation shorter"
	case says("not support tools", "not support tool", "not support function", "tool choice requires"):
		fault.Advice = "choose a model that can call tools"
	case says("not support image", "not a multimodal model", "image input is not supported"):
		fault.Advice = "choose a model that takes images"
	}
	return err
}

// errStopped says that the consumer wants no more.
var errStopped = errors.New("stopped")

// stream makes a request and yields what comes.
func (m *Model) stream(ctx context.Context, req *request, yield func(host.Piece, error) bool) error {
	a := &answer{endpoint: m.endpoint, origin: m.origin, stops: req.Stop, yield: yield}
	for event, err := range m.endpoint.Stream(ctx, "/chat/completions", req) {
		if err != nil {
			return err
		}
		done, err := a.event(event.Data)
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	return a.end()
}

// List lists the models that the provider has, by their names. Of the options those of the
// endpoint count.
func List(ctx context.Context, o *Options) ([]provider.Model, error) {
	e, err := endpoint(o)
	if err != nil {
		return nil, err
	}
	models, err := listed(ctx, e)
	if err != nil {
		return nil, err
	}
	var list []provider.Model
	for _, m := range models {
		if m.ID == "" {
			continue
		}
		window := cmp.Or(m.window(), m.MaxContextLength, m.Meta.Trained)
		list = append(list, provider.Model{ID: m.ID, Name: m.Name, Window: int(window)})
	}
	slices.SortStableFunc(list, func(a, b provider.Model) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// A listedModel is a model of a provider's list.
type listedModel struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	OwnedBy string `json:"owned_by"`
	// The window is context_length at OpenRouter, context_window at Groq, max_model_len at vLLM,
	// and meta.n_ctx at llama.cpp, in versions that tell it.
	ContextLength provider.Tokens `json:"context_length"`
	ContextWindow provider.Tokens `json:"context_window"`
	MaxModelLen   provider.Tokens `json:"max_model_len"`
	// MaxContextLength is the window at Mistral, and at LM Studio the largest that the model can
	// have.
	MaxContextLength provider.Tokens `json:"max_context_length"`
	Meta             struct {
		Window provider.Tokens `json:"n_ctx"`
		// Trained is the largest window that the model can have.
		Trained provider.Tokens `json:"n_ctx_train"`
	} `json:"meta"`
}

// window is how many tokens the model has, as far as its entry says so.
func (m *listedModel) window() provider.Tokens {
	return cmp.Or(m.ContextLength, m.ContextWindow, m.MaxModelLen, m.Meta.Window)
}

// listed asks for the list of models.
func listed(ctx context.Context, e *provider.Endpoint) ([]listedModel, error) {
	var answer struct {
		Data []listedModel `json:"data"`
	}
	err := e.JSON(ctx, http.MethodGet, "/models", nil, &answer)
	return answer.Data, err
}
