package config

import (
	"errors"
	"fmt"
	"math"

	"github.com/parley-mcp/parley/strictjson"
)

// A ModelEntry is what the person knows of a model.
type ModelEntry struct {
	// BaseURL is where its provider is; empty is the address of all models of the provider.
	BaseURL string `json:"baseUrl,omitzero"`
	// NoKey says that no key is sent there.
	NoKey bool `json:"noKey,omitzero"`
	// Window is how many tokens a request and its answer may have. 0: unknown.
	Window int `json:"window,omitzero"`
	// MaxImage is the most bytes of one image. Nil is the provider's default.
	MaxImage *int `json:"maxImage,omitzero"`
	// InputPrice and OutputPrice are dollars for a million tokens. 0: unknown.
	InputPrice  float64 `json:"inputPrice,omitzero"`
	OutputPrice float64 `json:"outputPrice,omitzero"`
}

// maxTokens bounds what is believed of a window.
const maxTokens = 1 << 30

// ownModels reads what is known of models, by PROVIDER:NAME.
func (f *file) ownModels(n *node) {
	if n.kind != kindObject {
		f.problem(n, "models: expected an object, found %s", n.kind)
		f.modelFault()
		return
	}
	for _, m := range n.members {
		var e ModelEntry
		if err := strictjson.Unmarshal(m.value.json(), &e, &strictjson.Options{RefuseUnknown: true}); err != nil {
			f.problem(m.value, "models: %s: %v", show(m.name), err)
			f.modelFault()
			continue
		}
		if err := e.check(); err != nil {
			f.problem(m.value, "models: %s: %v", show(m.name), err)
			f.modelFault()
			continue
		}
		if f.l.config.Own.Models == nil {
			f.l.config.Own.Models = make(map[string]ModelEntry)
		}
		f.l.config.Own.Models[m.name] = e
	}
}

// modelFault notes that the last problem is about models: what cannot be read may be the
// address of one.
func (f *file) modelFault() {
	if own := f.l.config.Own; own.ModelFault == nil && !f.Foreign {
		list := f.l.config.Problems
		own.ModelFault = errors.New(list[len(list)-1].String())
	}
}

func (e *ModelEntry) check() error {
	switch {
	case e.Window < 0 || e.Window > maxTokens:
		return fmt.Errorf("window: write a number of tokens from 0 to %d", maxTokens)
	case e.MaxImage != nil && (*e.MaxImage < 0 || *e.MaxImage > maxTokens):
		return fmt.Errorf("maxImage: write a number of bytes from 0 to %d", maxTokens)
	case !isPrice(e.InputPrice) || !isPrice(e.OutputPrice):
		return fmt.Errorf("inputPrice and outputPrice: write dollars for a million tokens, from 0")
	}
	return nil
}

func isPrice(f float64) bool { return f >= 0 && !math.IsInf(f, 0) }
