// Package odd is a collection of unusual and faulty servers, as public reports describe them, and how
// a client must treat each. Each server is a file in the folder cases. To add a report, add a file:
//
//	{
//	  "about": "The title of a tool is a number.",
//	  "reports": ["https://github.com/OWNER/REPO/issues/N"],
//	  "area": "lists",
//	  "answers": {"tools/list": [{"result": {"tools": [{"name": "echo", "title": 5, "inputSchema": {"type": "object"}}]}}]},
//	  "expect": {"tools": ["echo"], "call": {"tool": "echo", "text": "ok"}, "told": ["/tools/0/title"]}
//	}
//
// A [Peer] is such a server, over any transport. Tests run each case through the library, the
// program, the proxy and the bridge, and beside the SDKs of others.
package odd
