package server

import (
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// A progress token is cut off only where it is the last member of the object itself, and the rest
// is the text of the same _meta without it.
func TestCutToken(t *testing.T) {
	for raw, want := range map[string]struct {
		text  string
		token mcp.ID
	}{
		`{"a":1,"progressToken":7}`:             {`{"a":1`, mcp.IntID(7)},
		`{"progressToken":7}`:                   {`{`, mcp.IntID(7)},
		`{"progressToken":123456789012345678}`:  {`{`, mcp.IntID(123456789012345678)},
		`{"progressToken":1234567890123456789}`: {`{"progressToken":1234567890123456789`, mcp.ID{}},
		`{"progressToken":"7"}`:                 {`{"progressToken":"7"`, mcp.ID{}},
		`{"progressToken":-7}`:                  {`{"progressToken":-7`, mcp.ID{}},
		`{"progressToken":7.0}`:                 {`{"progressToken":7.0`, mcp.ID{}},
		`{"progressToken": 7}`:                  {`{"progressToken": 7`, mcp.ID{}},
		`{"progressToken":7 }`:                  {`{"progressToken":7 `, mcp.ID{}},
		`{"progressToken":7,"a":1}`:             {`{"progressToken":7,"a":1`, mcp.ID{}},
		`{"a":{"progressToken":7}}`:             {`{"a":{"progressToken":7}`, mcp.ID{}},
		`{"a":",\"progressToken\":7"}`:          {`{"a":",\"progressToken\":7"`, mcp.ID{}},
		`{"xprogressToken":7}`:                  {`{"xprogressToken":7`, mcp.ID{}},
		`{"a":7}`:                               {`{"a":7`, mcp.ID{}},
		`{}`:                                    {`{`, mcp.ID{}},
		`7`:                                     {``, mcp.ID{}},
	} {
		text, token := cutToken(wire.RawValue(raw))
		if string(text) != want.text || token != want.token {
			t.Errorf("%s: %s and %v, want %s and %v", raw, text, token, want.text, want.token)
		}
	}
}
