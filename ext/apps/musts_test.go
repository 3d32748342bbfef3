package apps_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-mcp/parley/internal/clausetest"
)

// TestMusts compares what the specification requires with the tests of this folder. Each
// clause with MUST, MUST NOT or REQUIRED is a row, in the order of its sections, but for
// the messages between a page and its host: this package has none of them. What only a
// program can do has words of the guide in the place of tests.
//
// SEP-1865, modelcontextprotocol/ext-apps, specification/2026-01-26/apps.mdx.
func TestMusts(t *testing.T) {
	guide := filepath.Join("..", "..", "docs", "guide", "apps.md")
	clausetest.Check(t, guide, musts)
}

func row(side clausetest.Side, text string, tests ...string) clausetest.Clause {
	return clausetest.Clause{Text: text, Side: side, Tests: tests}
}

func told(side clausetest.Side, text, heading, says string) clausetest.Clause {
	return clausetest.Clause{Text: text, Side: side, Heading: heading, Says: says}
}

var musts = []clausetest.Clause{
	row(clausetest.Server, "UI Resource Format: the uri begins with ui://", "TestConstructorsRefuse"),
	row(clausetest.Client, "UI Resource Format: a uri of another scheme is no page", "TestOf", "TestFetchRefuses"),
	told(
		clausetest.Server, "UI Resource Format: the form of domain is looked up in the host's documentation",
		"Add an app to a tool", "look it up in that host's documentation",
	),
	row(clausetest.Server, "Content Requirements: the type is text/html;profile=mcp-app", "TestHost", "TestPageContents"),
	row(clausetest.Client, "Content Requirements: what has another type is no page", "TestFetchRefuses"),
	row(clausetest.Server, "Content Requirements: the content is text or a blob", "TestConstructorsRefuse", "TestPageContents"),
	row(clausetest.Client, "Content Requirements: both are taken, and one of them must be there", "TestFetchRefuses"),
	row(clausetest.Server, "Content Requirements: it is an HTML5 document", "TestConstructorsRefuse"),
	row(clausetest.Client, "Host Behavior: the policy is made of the declared origins", "TestCSP", "TestHost"),
	row(clausetest.Client, "Host Behavior: without csp it is the one that is listed", "TestCSP", "TestFetchRefuses"),
	row(clausetest.Client, "Host Behavior: no origin that was not declared is allowed", "TestCSP", "TestCSPRefuses"),
	row(clausetest.Server, "Resource Discovery: the page of a tool exists", "TestConstructorsRefuse", "TestHost", "TestMounted"),
	row(clausetest.Client, "Resource Discovery: a page is had by resources/read", "TestHost", "TestPageContents"),
	row(clausetest.Client, "Visibility: a tool without \"model\" is not in the model's list", "TestHost", "TestOf"),
	row(clausetest.Client, "Visibility: a page cannot call a tool without \"app\"", "TestHost", "TestCallForPageSendsNothing"),
	told(
		clausetest.Host, "Sandbox proxy: a host that is a web page shows it through a proxy frame",
		"Show apps in a client", "a host that is itself a web page puts a frame of another origin between itself and it",
	),
	told(clausetest.Host, "Sandbox proxy: host and proxy have other origins", "Show apps in a client", "at an origin that is not the host's"),
	row(clausetest.Client, "Client (Host) Capabilities: mimeTypes is declared", "TestDeclared"),
	row(clausetest.Server, "Graceful Degradation: a result has content that says something", "TestText", "TestWithoutExtension"),
	told(clausetest.Host, "Iframe Sandboxing: a page is shown in a sandboxed frame", "Show apps in a client", "Show it in a frame with `sandbox`"),
	told(
		clausetest.Host, "Content Security Policy Enforcement: the policy is enforced",
		"Show apps in a client", "The document comes with the policy that it must be shown with",
	),
	row(clausetest.Client, "Content Security Policy Enforcement: nothing undeclared can be connected to", "TestCSP", "TestCSPRefuses"),
}
