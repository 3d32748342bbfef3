package host_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-mcp/parley/internal/clausetest"
)

// TestMustsOfPages compares what the specification of pages requires of a host with the
// tests of this folder. Each clause with MUST or MUST NOT that binds a host and is not met
// by package ext/apps alone is a row, in the order of its sections. What only the program
// around the host can do, which shows the page, has words of the guide in the place of
// tests.
//
// SEP-1865, modelcontextprotocol/ext-apps, specification/2026-01-26/apps.mdx.
func TestMustsOfPages(t *testing.T) {
	guide := filepath.Join("..", "docs", "guide", "apps.md")
	clausetest.Check(t, guide, pageMusts)
}

var pageMusts = []clausetest.Clause{
	{Text: "Content Requirements: a uri that does not begin with ui:// is no page", Side: clausetest.Client, Tests: []string{"TestPageRefused"}},
	{Text: "Content Requirements: what has another type is not shown", Side: clausetest.Client, Tests: []string{"TestPageRefused"}},
	{Text: "Host Behavior: a page comes with the policy of its declared origins", Side: clausetest.Client, Tests: []string{"TestPageShown"}},
	{Text: "Host Behavior: policies are logged (SHOULD)", Side: clausetest.Client, Tests: []string{"TestPageShown"}},
	{Text: "Resource Discovery: a page is had by resources/read", Side: clausetest.Client, Tests: []string{"TestPageShown", "TestPageRefused"}},
	{
		Text: "Visibility: a tool without \"model\" is not in the model's list", Side: clausetest.Client,
		Tests: []string{"TestVisibilityOfTools", "TestToolsForPagesAreHidden"},
	},
	{
		Text: "Visibility: a page cannot call a tool without \"app\"", Side: clausetest.Client,
		Tests: []string{"TestVisibilityForPages", "TestCallForPageRefused"},
	},
	{Text: "Visibility: a page cannot call tools of another server", Side: clausetest.Client, Tests: []string{"TestPageStaysAtItsServer"}},
	{
		Text: "Requirements of display modes: a view is not switched to a mode that it does not declare", Side: clausetest.Host,
		Heading: "A host with sessions", Says: "only to a display mode that it declared",
	},
	{
		Text: "Requirements of display modes: the mode that results is returned", Side: clausetest.Host,
		Heading: "A host with sessions", Says: "answer with the resulting mode",
	},
	{
		Text: "Sandbox proxy: nothing is sent to a view before it is initialized", Side: clausetest.Host,
		Heading: "A host with sessions", Says: "Send an app nothing before it has sent `ui/notifications/initialized`",
	},
	{
		Text: "Host Behavior of container dimensions: the frame follows the size of the view", Side: clausetest.Host,
		Heading: "A host with sessions", Says: "give the frame the size in `ui/notifications/size-changed`",
	},
	{
		Text: "Notifications: the arguments of the call are sent after initialization", Side: clausetest.Host,
		Heading: "A host with sessions", Says: "`ui/notifications/tool-input` | `StartRecord.Arguments`",
	},
	{Text: "Notifications: the whole result of the call is there for the view", Side: clausetest.Client, Tests: []string{"TestResultForPage"}},
	{
		Text: "Notifications: the result of the call is sent", Side: clausetest.Host,
		Heading: "A host with sessions", Says: "`ui/notifications/tool-result` | `Session.ResultForPage`",
	},
	{
		Text: "Notifications: that the call was cancelled is sent", Side: clausetest.Host,
		Heading: "A host with sessions", Says: "`ui/notifications/tool-cancelled` | a `ResultRecord` with an outcome other than `done`",
	},
	{
		Text: "Notifications: a view is told before it is taken down", Side: clausetest.Host,
		Heading: "A host with sessions", Says: "`ui/resource-teardown` before you remove it",
	},
	{
		Text: "Auditable Communication: calls of views are logged", Side: clausetest.Client,
		Tests: []string{"TestCallForPage", "TestCallForPageRefused"},
	},
}
