package chat

import (
	"context"

	"github.com/parley-mcp/parley/app/internal/model/gemini"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
)

// geminiProvider is Google's Gemini API.
func geminiProvider() *modelProvider {
	options := func(o *modelOptions) *gemini.Options {
		return &gemini.Options{Model: o.model, Key: o.key, BaseURL: o.baseURL, Info: o.info, Waiting: o.waiting}
	}
	return &modelProvider{
		name: gemini.Provider, baseURL: gemini.DefaultBaseURL, maxImage: 10 << 20,
		open: func(o *modelOptions) (host.Model, error) { return gemini.New(options(o)) },
		list: func(ctx context.Context, o *modelOptions) ([]provider.Model, error) {
			return gemini.List(ctx, options(o))
		},
		window: func(ctx context.Context, o *modelOptions) (int, error) { return gemini.Window(ctx, options(o)) },
	}
}
