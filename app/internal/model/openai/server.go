package openai

import (
	"net/url"
	"strings"
)

// A server is what must be known of a provider before it has answered.
type server struct {
	// completionTokens says that the bound of an answer is max_completion_tokens: OpenAI's
	// models that reason take no max_tokens. Others know the older name at least.
	completionTokens bool
	// gif says that it takes images of type GIF.
	gif bool
	// maxStop is how many texts may stop an answer; 0: any number.
	maxStop int
}

// servers are the providers that are known, by host name, or by how it ends if it begins
// with a dot. What is not in the table is taken for a server of somebody's own: Ollama takes
// PNG, JPEG and WebP only (openai/openai.go of github.com/ollama/ollama), llama.cpp what its
// decoder knows.
//
// OpenAI: https://platform.openai.com/docs/api-reference/chat/create, and
// https://platform.openai.com/docs/guides/images-vision.
// OpenRouter: https://openrouter.ai/docs/features/multimodal/images.
var servers = map[string]server{
	"api.openai.com":    {completionTokens: true, gif: true, maxStop: 4},
	".api.openai.com":   {completionTokens: true, gif: true, maxStop: 4}, // by region
	".openai.azure.com": {completionTokens: true, gif: true, maxStop: 4},
	"openrouter.ai":     {gif: true},
}

// serverAt is what is known of the server at an address.
func serverAt(address string) server {
	u, err := url.Parse(address)
	if err != nil {
		return server{}
	}
	name := strings.ToLower(u.Hostname())
	for {
		if s, ok := servers[name]; ok {
			return s
		}
		dot := strings.IndexByte(name[min(1, len(name)):], '.')
		if dot < 0 {
			return server{}
		}
		name = name[dot+1:]
	}
}
