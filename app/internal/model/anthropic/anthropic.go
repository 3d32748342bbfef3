package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
)

// Provider is the name of the provider, in [host.ModelInfo] and in errors.
const Provider = "anthropic"

// The defaults of Options.
const (
	DefaultBaseURL = "https://api.anthropic.com"
	// DefaultMaxTokens is what all models take that are offered now.
	DefaultMaxTokens = 32_000
	// DefaultMaxImage is 5 MB as base64: see
	// https://platform.claude.com/docs/en/build-with-claude/vision.
	DefaultMaxImage = 3_750_000
)

// apiVersion is the version of the API. The next one, of 2026-10-21, takes no temperature
// and is otherwise the same for what is sent here; servers of others do not know it yet. See
// https://platform.claude.com/docs/en/api/versioning.
const apiVersion = "2023-06-01"

// Values of Options.Thinking. One above 0 is the most tokens of reasoning, which models
// before Claude 4.6 take.
const (
	// ThinkingDefault leaves it to the model.
	ThinkingDefault = 0
	// ThinkingAdaptive asks for reasoning where the model finds it useful; models since
	// Claude 4.6 take it.
	ThinkingAdaptive = -1
	// ThinkingOff asks for none.
	ThinkingOff = -2
)

// leastThinking is the smallest number of tokens of reasoning that the API takes.
const leastThinking = 1024

// Options are those of New and List.
type Options struct {
	// Model is what requests name it by.
	Model string
	// Key is sent as x-api-key: see [provider.Key]. Servers on this machine may need none.
	Key string
	// BaseURL is where /v1/messages is. Default DefaultBaseURL.
	BaseURL string
	// Client: see [provider.Endpoint].
	Client *http.Client
	// Info is what is known of the model. Name and Provider are filled in. MaxImage below
	// 0: no images; default DefaultMaxImage.
	Info host.ModelInfo
	// Waiting, if it is not nil, is told of each wait before a request is made again.
	Waiting func(reason error, wait time.Duration)
	// MaxTokens bounds an answer where the request does not. Default DefaultMaxTokens.
	MaxTokens int
	// Thinking is a number of tokens, or ThinkingDefault, ThinkingAdaptive, ThinkingOff.
	// With reasoning no temperature is sent: the API takes none then.
	Thinking int
	// Effort is how hard the model works: "low", "medium", "high", or what it takes
	// besides. Empty leaves it to the model.
	Effort string
}

// A Model is one of Anthropic's. Its methods may be called by many goroutines at once.
type Model struct {
	at        *provider.Endpoint
	model     string
	origin    string // whose reasoning it takes
	info      host.ModelInfo
	maxTokens int
	thinking  int
	effort    string

	// noTemperature is set when the model refused a request for its temperature.
	noTemperature atomic.Bool
}

// New checks the options, and makes a model. It makes no request.
func New(o *Options) (*Model, error) {
	at, err := endpoint(o)
	if err != nil {
		return nil, err
	}
	if o.Model == "" || strings.ContainsFunc(o.Model, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return nil, fmt.Errorf("the name of a model of %s is %q; it looks like claude-sonnet-5; 'parley model list %s' lists what there is", Provider, o.Model, Provider)
	}
	if o.Thinking < ThinkingOff {
		return nil, fmt.Errorf("thinking is %d tokens; it is at least %d, or 0 for the model's default", o.Thinking, leastThinking)
	}
	if o.MaxTokens < 0 {
		return nil, fmt.Errorf("an answer of at most %d tokens; it is at least 1, or 0 for the default", o.MaxTokens)
	}
	info := o.Info
	info.Name, info.Provider = o.Model, Provider
	info.MaxImage = max(cmp.Or(info.MaxImage, DefaultMaxImage), 0)
	return &Model{
		at: at, model: o.Model, origin: at.Origin(), info: info, thinking: o.Thinking, effort: o.Effort,
		maxTokens: cmp.Or(o.MaxTokens, DefaultMaxTokens),
	}, nil
}

// endpoint is where the requests go.
func endpoint(o *Options) (*provider.Endpoint, error) {
	at, err := provider.New(&provider.Endpoint{
		Provider: Provider, URL: o.BaseURL, Own: DefaultBaseURL,
		Key: o.Key, KeyHeader: "X-Api-Key",
		Header: http.Header{"Anthropic-Version": {apiVersion}},
		Client: o.Client, Waiting: o.Waiting,
	}, "")
	if err != nil {
		return nil, err
	}
	at.URL = strings.TrimSuffix(at.URL, "/v1")
	return at, nil
}

// Info implements [host.Model].
func (m *Model) Info() host.ModelInfo { return m.info }

// Generate implements [host.Model].
func (m *Model) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		body, err := m.request(r)
		if err != nil {
			yield(host.Piece{}, err)
			return
		}
		err = m.answer(ctx, body, yield)
		if body.Temperature != nil && refuses(err, "temperature") {
			m.noTemperature.Store(true)
			body.Temperature = nil
			err = m.answer(ctx, body, yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(host.Piece{}, advised(err))
		}
	}
}

// refuses tells whether the provider refused a request, with a text that has a word in it.
func refuses(err error, word string) bool {
	fault := new(provider.Error)
	return errors.As(err, &fault) && fault.Status == http.StatusBadRequest && strings.Contains(fault.Text, word)
}

// advised is an error that says what to do where the API's own text does not.
func advised(err error) error {
	fault := new(provider.Error)
	if refuses(err, "prompt is too long") && errors.As(err, &fault) {
		fault.Advice = "/compact makes it shorter"
	}
	return err
}

// maxPages bounds the pages of a list of models.
const maxPages = 50

// List asks for the models that there are. Options.Model is not needed.
func List(ctx context.Context, o *Options) ([]provider.Model, error) {
	at, err := endpoint(o)
	if err != nil {
		return nil, err
	}
	var list []provider.Model
	query := url.Values{"limit": {"1000"}}
	for range maxPages {
		var page struct {
			Data []struct {
				ID     string          `json:"id"`
				Name   string          `json:"display_name"`
				Window provider.Tokens `json:"max_input_tokens"`
			} `json:"data"`
			HasMore bool   `json:"has_more"`
			Last    string `json:"last_id"`
		}
		if err := at.JSON(ctx, http.MethodGet, "/v1/models?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		for _, d := range page.Data {
			list = append(list, provider.Model{ID: d.ID, Name: d.Name, Window: int(d.Window)})
		}
		if !page.HasMore || page.Last == "" || page.Last == query.Get("after_id") {
			break
		}
		query.Set("after_id", page.Last)
	}
	return list, nil
}

// Window asks for the window of the model, in tokens: 0 if the provider does not tell it, or
// tells what cannot be. It makes one request, once.
func Window(ctx context.Context, o *Options) (int, error) {
	at, err := endpoint(o)
	if err != nil {
		return 0, err
	}
	at.MaxTries = 1
	var answer struct {
		Window provider.Tokens `json:"max_input_tokens"`
	}
	err = at.JSON(ctx, http.MethodGet, "/v1/models/"+url.PathEscape(o.Model), nil, &answer)
	return answer.Window.Window(), err
}
