package chat

import (
	"context"

	"github.com/parley-mcp/parley/app/internal/model/anthropic"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
)

// anthropicProvider is Anthropic's Messages API.
func anthropicProvider() *modelProvider {
	options := func(o *modelOptions) *anthropic.Options {
		info := o.info
		if info.MaxImage == 0 {
			info.MaxImage = -1 // the client's word for none
		}
		return &anthropic.Options{Model: o.model, Key: o.key, BaseURL: o.baseURL, Info: info, Waiting: o.waiting}
	}
	return &modelProvider{
		name: anthropic.Provider, baseURL: anthropic.DefaultBaseURL, maxImage: anthropic.DefaultMaxImage,
		open: func(o *modelOptions) (host.Model, error) { return anthropic.New(options(o)) },
		list: func(ctx context.Context, o *modelOptions) ([]provider.Model, error) {
			return anthropic.List(ctx, options(o))
		},
		window: func(ctx context.Context, o *modelOptions) (int, error) { return anthropic.Window(ctx, options(o)) },
	}
}
