package shape

import "github.com/parley-mcp/parley/internal/wire"

func (s *Shape) up(_ string, raw wire.RawValue, v any) error {
	if len(raw) == 0 {
		return nil
	}
	return wire.DecodeParams(raw, v)
}
