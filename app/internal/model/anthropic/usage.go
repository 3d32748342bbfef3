package anthropic

import (
	"encoding/json"

	"github.com/parley-mcp/parley/host"
)

// usage counts tokens as the API does: input without what was cached.
type usage struct{ input, output, cached, written int64 }

// maxTokens bounds what is believed of a count.
const maxTokens = 1 << 40

// read takes counts that have come. They are of the whole answer until then; what is
// missing or no number stays as it was.
func (u *usage) read(data json.RawMessage) {
	var in struct {
		Input   *int64 `json:"input_tokens"`
		Output  *int64 `json:"output_tokens"`
		Read    *int64 `json:"cache_read_input_tokens"`
		Written *int64 `json:"cache_creation_input_tokens"`
	}
	_ = json.Unmarshal(data, &in) // what there is
	set := func(to *int64, value *int64) {
		if value != nil {
			*to = min(max(*value, 0), maxTokens)
		}
	}
	set(&u.input, in.Input)
	set(&u.output, in.Output)
	set(&u.cached, in.Read)
	set(&u.written, in.Written)
}

// What a token costs that is read from the cache or written to it, for that of the input:
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching#pricing.
const (
	readPrice  = 0.1
	writePrice = 1.25
)

// host is the usage as the host counts it, with its cost if the prices are known.
func (u *usage) host(info *host.ModelInfo) host.Usage {
	in := float64(u.input) + readPrice*float64(u.cached) + writePrice*float64(u.written)
	return host.Usage{
		Input: u.input + u.cached + u.written, Output: u.output, CacheRead: u.cached, CacheWrite: u.written,
		Cost: (in*info.InputPrice + float64(u.output)*info.OutputPrice) / 1e6,
	}
}
