package openai

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/model/provider"
)

// The owners that programs which run models name in their lists.
const (
	ownerLlamaCpp = "llamacpp"
	ownerLMStudio = "organization_owner"
)

// Window asks for the window of the model, in tokens: 0 if the provider does not tell it, or
// tells what cannot be. For a program that runs models it is the window that the model was
// given, which may be smaller than the one that it can have: Ollama and LM Studio know it while
// the model is loaded. It makes at most two requests, each once.
func Window(ctx context.Context, o *Options) (int, error) {
	e, err := endpoint(o)
	if err != nil {
		return 0, err
	}
	e.MaxTries = 1
	models, err := listed(ctx, e)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(models, func(m listedModel) bool { return sameModel(m.ID, o.Model) })
	if i < 0 {
		return 0, nil
	}
	m := &models[i]
	window := m.window()
	switch {
	case window > 0, serverAt(e.URL) != server{}:
	case m.OwnedBy == ownerLlamaCpp:
		window, err = llamaCppWindow(ctx, e, o.Model)
	case m.OwnedBy == ownerLMStudio:
		window, err = lmStudioWindow(ctx, e, o.Model)
	case m.MaxContextLength > 0:
		window = m.MaxContextLength
	default:
		window, err = ollamaWindow(ctx, e, o.Model)
	}
	return window.Window(), err
}

// sameModel reports whether a listed name is that of a model: Ollama adds a tag.
func sameModel(listed, name string) bool { return listed == name || listed == name+":latest" }

// beside is the endpoint of a program's own interface, which is beside /v1.
func beside(e *provider.Endpoint) *provider.Endpoint {
	at := *e
	at.URL = strings.TrimSuffix(e.URL, "/v1")
	return &at
}

// llamaCppWindow is the window of llama.cpp, for each of its slots:
// https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md.
func llamaCppWindow(ctx context.Context, e *provider.Endpoint, model string) (provider.Tokens, error) {
	var answer struct {
		Settings struct {
			Window provider.Tokens `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	err := beside(e).JSON(ctx, http.MethodGet, "/props?model="+url.QueryEscape(model), nil, &answer)
	return answer.Settings.Window, err
}

// lmStudioWindow is the window of a model that LM Studio has loaded:
// https://lmstudio.ai/docs/developer/rest/endpoints.
func lmStudioWindow(ctx context.Context, e *provider.Endpoint, model string) (provider.Tokens, error) {
	var answer struct {
		Data []struct {
			ID     string          `json:"id"`
			Window provider.Tokens `json:"loaded_context_length"`
		} `json:"data"`
	}
	err := beside(e).JSON(ctx, http.MethodGet, "/api/v0/models", nil, &answer)
	for _, m := range answer.Data {
		if sameModel(m.ID, model) {
			return m.Window, err
		}
	}
	return 0, err
}

// ollamaWindow is the window of a model that Ollama has loaded:
// https://docs.ollama.com/api/ps.
func ollamaWindow(ctx context.Context, e *provider.Endpoint, model string) (provider.Tokens, error) {
	var answer struct {
		Models []struct {
			Name   string          `json:"name"`
			Model  string          `json:"model"`
			Window provider.Tokens `json:"context_length"`
		} `json:"models"`
	}
	err := beside(e).JSON(ctx, http.MethodGet, "/api/ps", nil, &answer)
	for _, m := range answer.Models {
		if sameModel(cmp.Or(m.Name, m.Model), model) {
			return m.Window, err
		}
	}
	return 0, err
}
