package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
	schemas "github.com/parley-mcp/parley/schema/provider"
)

// DefaultBaseURL is Google's own.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// Provider is the name of the provider, in errors and in reasoning.
const Provider = "gemini"

// Options say which model it is and where.
type Options struct {
	// Model is what requests name the model by, such as gemini-2.5-flash; "models/" before it
	// may be there.
	Model string
	// Key is the provider's; see [provider.Key]. Without one none is sent.
	Key string
	// BaseURL is what /models/NAME is appended to; one without a path gets /v1beta. Default
	// DefaultBaseURL.
	BaseURL string
	// Client makes the requests. Default: see [provider.Endpoint].
	Client *http.Client
	// Info is what is known of the model besides. Name and Provider are filled in where they
	// are empty, as is Schemas.
	Info host.ModelInfo
	// MaxAudio is the most bytes of one sound that the model takes; 0: none.
	MaxAudio int
	// ThinkingLevel is how much a model from Gemini 3 on thinks: "minimal", "low", "medium"
	// or "high". Empty leaves it to the model.
	ThinkingLevel string
	// ThinkingBudget is how many tokens Gemini 2.5 thinks at most; -1 lets it choose. Nil
	// leaves it to the model.
	ThinkingBudget *int
	// HideThoughts says not to ask for summaries of thoughts. Those of models that are known
	// to think are asked for.
	HideThoughts bool
	// Waiting, if it is not nil, is told of each wait before the next try.
	Waiting func(reason error, wait time.Duration)
}

// A Model is a [host.Model]. It may be used by many goroutines at once.
type Model struct {
	endpoint *provider.Endpoint
	info     host.ModelInfo
	name     string // of the model, in requests
	origin   string // whose reasoning it takes
	maxAudio int
	thinking *thinkingConfig // nil: the model's own
	// thoughtless says that the model refused to be asked for thoughts.
	thoughtless atomic.Bool
}

// New checks the options and returns the model. Nothing is sent before its first turn.
func New(o *Options) (*Model, error) {
	name := strings.TrimPrefix(strings.TrimSpace(o.Model), "models/")
	switch {
	case name == "":
		return nil, errors.New("no model is named; a name looks like gemini-2.5-flash")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("/?#%:", r) }):
		return nil, fmt.Errorf("%q names no model; a name looks like gemini-2.5-flash", name)
	case o.ThinkingLevel != "" && o.ThinkingBudget != nil:
		return nil, errors.New("a level of thinking and a budget of thinking exclude each other: Gemini 3 takes a level, Gemini 2.5 a budget")
	}
	e, err := endpoint(o)
	if err != nil {
		return nil, err
	}
	m := &Model{endpoint: e, info: o.Info, name: name, origin: e.Origin(), maxAudio: o.MaxAudio}
	m.info.Name = cmp.Or(m.info.Name, name)
	m.info.Provider = cmp.Or(m.info.Provider, Provider)
	if m.info.Schemas.Keywords == nil {
		m.info.Schemas = schemas.Gemini
	}
	thoughts := !o.HideThoughts && thinks(name)
	if thoughts || o.ThinkingLevel != "" || o.ThinkingBudget != nil {
		m.thinking = &thinkingConfig{IncludeThoughts: thoughts, ThinkingLevel: o.ThinkingLevel, ThinkingBudget: o.ThinkingBudget}
	}
	return m, nil
}

// endpoint checks what requests need.
func endpoint(o *Options) (*provider.Endpoint, error) {
	return provider.New(&provider.Endpoint{
		Provider: Provider, URL: o.BaseURL, Own: DefaultBaseURL,
		Key: o.Key, KeyHeader: "X-Goog-Api-Key", Client: o.Client, Waiting: o.Waiting,
	}, "/v1beta")
}

// newest is the generation of a model whose name does not tell it.
const newest = 1000

// generation is that of a model by its name: 2 of gemini-2.5-flash, newest of
// gemini-flash-latest, and 0 of what is no Gemini.
func generation(name string) int {
	rest, ok := strings.CutPrefix(name, "gemini-")
	if !ok {
		return 0
	}
	n, digits := 0, 0
	for digits < len(rest) && digits < 3 && '0' <= rest[digits] && rest[digits] <= '9' {
		n = 10*n + int(rest[digits]-'0')
		digits++
	}
	if digits == 0 {
		return newest
	}
	return n
}

// thinks reports whether a model is known to think.
func thinks(name string) bool { return generation(name) >= 3 || strings.HasPrefix(name, "gemini-2.5") }

// Info says which model it is and what it takes.
func (m *Model) Info() host.ModelInfo { return m.info }

// maxContinuations bounds how often one answer is asked to go on.
const maxContinuations = 32

// Generate streams one turn. The errors are those of [provider.Endpoint.Stream]. What the
// provider sent before an error was yielded.
func (m *Model) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		req, err := m.request(r)
		if err != nil {
			yield(host.Piece{}, err)
			return
		}
		a := newAnswer(m, r, yield)
		for hop := 0; ; {
			err := m.stream(ctx, req, a)
			switch {
			case errors.Is(err, errStopped):
				return
			case m.withoutThoughts(err, req):
				continue
			case err == nil && a.goesOn() && hop < maxContinuations:
				hop++
				req.ContinuationToken = a.next()
				continue
			case err == nil:
				err = a.end()
			}
			if err != nil && !errors.Is(err, errStopped) {
				yield(host.Piece{}, advised(m.endpoint, err))
			}
			return
		}
	}
}

// errStopped says that the consumer wants no more.
var errStopped = errors.New("stopped")

// stream makes a request and yields what comes.
func (m *Model) stream(ctx context.Context, req *request, a *answer) error {
	for event, err := range m.endpoint.Stream(ctx, "/models/"+m.name+":streamGenerateContent?alt=sse", req) {
		if err != nil {
			return a.fail(err)
		}
		if err := a.event(event.Data); err != nil {
			return err
		}
	}
	return a.close()
}

// withoutThoughts reports whether a request was refused because the model does not think,
// and can be made again without asking for thoughts.
func (m *Model) withoutThoughts(err error, req *request) bool {
	fault := new(provider.Error)
	config := req.GenerationConfig
	if !errors.As(err, &fault) || fault.Status != http.StatusBadRequest || config == nil || config.ThinkingConfig == nil ||
		config.ThinkingConfig.ThinkingLevel != "" || config.ThinkingConfig.ThinkingBudget != nil {
		return false
	}
	text := strings.ToLower(fault.Text)
	if !strings.Contains(text, "thinking") && !strings.Contains(text, "thoughts") {
		return false
	}
	m.thoughtless.Store(true)
	config.ThinkingConfig = nil
	return true
}

// advised says what to do about a key that is wrong: Google refuses it with status 400.
func advised(e *provider.Endpoint, err error) error {
	fault := new(provider.Error)
	if errors.As(err, &fault) && fault.Status == http.StatusBadRequest && fault.Advice == "" && strings.Contains(fault.Text, "API key") {
		fault.Advice = e.OtherKey()
	}
	return err
}

// maxPages bounds the pages of a list of models.
const maxPages = 50

// List lists the models that can be asked, by their names. Of the options those of the
// endpoint count.
func List(ctx context.Context, o *Options) ([]provider.Model, error) {
	e, err := endpoint(o)
	if err != nil {
		return nil, err
	}
	var list []provider.Model
	token := ""
	for range maxPages {
		var answer struct {
			Models []struct {
				Name        string          `json:"name"`
				DisplayName string          `json:"displayName"`
				Window      provider.Tokens `json:"inputTokenLimit"`
				Methods     []string        `json:"supportedGenerationMethods"`
			} `json:"models"`
			NextPageToken string `json:"nextPageToken"`
		}
		path := "/models?pageSize=1000"
		if token != "" {
			path += "&pageToken=" + url.QueryEscape(token)
		}
		if err := e.JSON(ctx, http.MethodGet, path, nil, &answer); err != nil {
			return nil, advised(e, err)
		}
		for _, m := range answer.Models {
			id := strings.TrimPrefix(m.Name, "models/")
			if id == "" || m.Methods != nil && !slices.Contains(m.Methods, "generateContent") {
				continue
			}
			list = append(list, provider.Model{ID: id, Name: m.DisplayName, Window: int(m.Window)})
		}
		if answer.NextPageToken == "" || answer.NextPageToken == token {
			break
		}
		token = answer.NextPageToken
	}
	slices.SortStableFunc(list, func(a, b provider.Model) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// Window asks for the window of the model, in tokens: 0 if the provider does not tell it, or
// tells what cannot be. It makes one request, once.
func Window(ctx context.Context, o *Options) (int, error) {
	e, err := endpoint(o)
	if err != nil {
		return 0, err
	}
	e.MaxTries = 1
	var answer struct {
		Window provider.Tokens `json:"inputTokenLimit"`
	}
	name := strings.TrimPrefix(strings.TrimSpace(o.Model), "models/")
	err = e.JSON(ctx, http.MethodGet, "/models/"+url.PathEscape(name), nil, &answer)
	return answer.Window.Window(), err
}
