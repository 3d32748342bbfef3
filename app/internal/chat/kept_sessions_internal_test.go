package chat

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A wrong part of an answer shows no secret that the server repeats, also at the end of a long name, and
// the problems of the host stay as they are.
func TestProblemsWithSecrets(t *testing.T) {
	t.Parallel()
	p := connect.New(&kit.Console{Streams: &kit.Streams{}})
	p.Streams.Masker().Learn("plum-token-1")
	far := []client.Problem{{Method: mcp.MethodToolsList, Subject: strings.Repeat("n", 58) + "plum-token-1", Place: "/tools/0/plum-token-1", Effect: client.Omitted, Why: "for plum-token-1"}}
	for _, name := range []string{far[0].Subject, "plum-token-1", ""} {
		far[0].Subject = name
		status := shownHost{Host: statusOf{status: host.ServerStatus{Problems: far}}, console: p.Console}.Status()
		if wrong := status[0].Wrong(); strings.Contains(wrong, "plum-") || !strings.Contains(wrong, mask.Hidden) {
			t.Errorf("%q: %s", name, wrong)
		}
		if far[0].Why != "for plum-token-1" {
			t.Fatalf("changed to %+v", far[0])
		}
	}
}

// statusOf is a host with one server.
type statusOf struct {
	ui.Host
	status host.ServerStatus
}

func (h statusOf) Status() []host.ServerStatus { return []host.ServerStatus{h.status} }
