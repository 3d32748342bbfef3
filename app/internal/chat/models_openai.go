package chat

import (
	"context"

	"github.com/parley-mcp/parley/app/internal/model/openai"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
)

// openaiProvider is OpenAI, and every server that speaks its format.
func openaiProvider() *modelProvider {
	options := func(o *modelOptions) *openai.Options {
		return &openai.Options{Model: o.model, Key: o.key, BaseURL: o.baseURL, Info: o.info, Waiting: o.waiting}
	}
	return &modelProvider{
		name: "openai", baseURL: openai.DefaultBaseURL, maxImage: 15 << 20,
		open: func(o *modelOptions) (host.Model, error) { return openai.New(options(o)) },
		list: func(ctx context.Context, o *modelOptions) ([]provider.Model, error) {
			return openai.List(ctx, options(o))
		},
		window: func(ctx context.Context, o *modelOptions) (int, error) { return openai.Window(ctx, options(o)) },
	}
}
