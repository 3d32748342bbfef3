package flows_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Proves: FLOW-ELICIT-P: a choice with titles reaches the person with its
// titles in every revision that has forms; the oldest of them says it with
// enumNames (the table of translations).
func TestFLOW_ELICIT_P_Titles(t *testing.T) {
	type paint struct {
		Colour string `json:"colour" enum:"r,g" titles:"Red,Green"`
	}
	build := with(server.Tool("paint", "Asks for a colour.", func(ctx context.Context, _ mcp.None) (string, error) {
		a, err := server.Elicit[paint](ctx, "Which colour?")
		return a.Value.Colour, err
	}))
	var seen []mcp.EnumOption
	o := &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		field, _ := r.Form().Properties.Lookup("colour")
		seen = field.Options()
		return client.Accept(paint{Colour: "g"})
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		seen = nil
		got, err := client.Call[string](t.Context(), c, "paint", nil)
		if era.Version < "2025-06-18" {
			if err == nil {
				t.Errorf("a revision without forms got %q", got)
			}
			return
		}
		if err != nil || got != "g" {
			t.Errorf("got %q, %v", got, err)
		}
		if d := cmp.Diff([]mcp.EnumOption{{Const: "r", Title: "Red"}, {Const: "g", Title: "Green"}}, seen); d != "" {
			t.Error(d)
		}
	})
}
