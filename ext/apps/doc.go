// Package apps is the extension for pages: a tool names an HTML page of its server,
// and a host that shows pages shows the tool's results in it (SEP-1865, MCP Apps).
//
// A server offers the page as a resource, and says at the tool which one it is:
//
//	apps.Enable(s)
//	s.Add(
//		apps.Page("ui://weather/view.html", html, nil),
//		apps.Tool(server.Tool("weather", "Tells the weather.", weather), "ui://weather/view.html", nil),
//	)
//
// Clients that show no pages see an ordinary tool, with metadata that they ignore: its
// text is what they, and models, read. A client declares [Extension], reads with [Of]
// which page a tool has, and gets it with [Fetch], together with the policy under which
// it may be shown.
//
// A host of package host takes a [Loader], and decides about pages and what they call.
//
// A page is a program that a stranger wrote. What this package checks is that it is
// what was declared: the type, the size, the origins. That it runs in a frame of its
// own, with sandbox and policy, is the host's work, and so is the conversation with it
// (ui/initialize and what follows).
//
// The extension works in the revisions in which tools have `_meta`, from 2025-06-18 on.
// Older ones see tools without pages.
package apps
