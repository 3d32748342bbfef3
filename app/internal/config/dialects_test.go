package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/config"
)

// What single clients say in members of their own.
func TestDialects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, text string
		want       config.Server
		notes      string
		fails      string
	}{
		"claude-code, oauth": {
			file: ".claude.json",
			text: `{"mcpServers":{"s":{"url":"https://a.example","oauth":{"clientId":"c","callbackPort":80,"authServerMetadataUrl":"https://b.example"},"alwaysLoad":true}}}`,
			want: config.Server{Transport: config.TransportHTTP, URL: "https://a.example", OAuth: &config.OAuth{ClientID: "c", CallbackPort: 80, MetadataURL: "https://b.example"}},
		},
		"claude-code, websocket by its URL": {
			file: ".claude.json", text: `{"mcpServers":{"s":{"url":"wss://a.example"}}}`,
			want: config.Server{Transport: config.TransportWebSocket, URL: "wss://a.example"},
		},
		"claude-code, authorization by hand": {
			file: ".claude.json", text: `{"mcpServers":{"s":{"url":"https://a.example","headers":{"authorization":"x"}}}}`,
			want: config.Server{Transport: config.TransportHTTP, URL: "https://a.example", Headers: []config.Header{{Name: "authorization", Value: "x"}}, NoOAuth: true},
		},
		"claude-desktop, spaces": {
			file: ".config/Claude/claude_desktop_config.json", text: `{"mcpServers":{"s":{"command":"npx -y x"}}}`,
			want: config.Server{Transport: config.TransportStdio, Command: "npx -y x"}, notes: "the command has spaces",
		},
		"copilot, no tools": {
			file: ".copilot/mcp-config.json", text: `{"mcpServers":{"s":{"type":"local","command":"x","tools":[]}}}`,
			want: config.Server{Transport: config.TransportStdio, Command: "x", DenyTools: []string{"*"}},
		},
		"cursor, approved within": {
			file: ".cursor/mcp.json", text: `{"mcpServers":{"s":{"command":"x","autoApprove":["a"]}}}`,
			want: config.Server{Transport: config.TransportStdio, Command: "x"}, notes: "tools that are approved within the entry (line 1) are asked for",
		},
		"goose, variables": {
			file: ".config/goose/config.yaml",
			text: "extensions:\n  s:\n    type: streamable_http\n    uri: https://$HOST.example/${UNSET}\n    envs: {HOST: own, UNSET: set}\n    headers: {A: $HOST}\n",
			want: config.Server{Transport: config.TransportHTTP, URL: "https://own.example/set", Headers: []config.Header{{Name: "A", Value: "own"}}},
		},
		"goose, texts are plain": {
			file: ".config/goose/config.yaml", text: "extensions:\n  s: {type: stdio, cmd: x, args: ['$HOME'], envs: {A: '${B}'}}\n",
			want: config.Server{Transport: config.TransportStdio, Command: "x", Args: []string{"$HOME"}, Env: map[string]string{"A": "${B}"}},
		},
		"goose, code": {
			file: ".config/goose/config.yaml", text: "extensions:\n  s: {type: inline_python, code: 'print(1)'}\n", fails: "is a part of goose and no server",
		},
		"opencode, oauth off": {
			file: ".config/opencode/opencode.json", text: `{"mcp":{"s":{"type":"remote","url":"https://a.example","oauth":false}}}`,
			want: config.Server{Transport: config.TransportHTTP, URL: "https://a.example", NoOAuth: true},
		},
		"crush, oauth": {
			file: ".config/crush/crush.json",
			text: `{"mcp":{"s":{"type":"http","url":"https://a.example","oauth":true,"oauth_client_id":"c","oauth_client_secret":"d","oauth_scopes":["e","f"],"oauth_callback_port":81,"timeout":2,"enabled_tools":["t"]}}}`,
			want: config.Server{
				Transport: config.TransportHTTP, URL: "https://a.example", ConnectTimeout: 2 * time.Second, AllowTools: []string{"t"},
				OAuth: &config.OAuth{ClientID: "c", ClientSecret: "d", Scopes: []string{"e", "f"}, CallbackPort: 81},
			},
			notes: "the timeout counts seconds in files of crush: it is 2s",
		},
		"kit, the older shape": {
			file: ".mcphost.json", text: `{"mcpServers":{"s":{"command":"x","args":["a"]}}}`,
			want: config.Server{Transport: config.TransportStdio, Command: "x", Args: []string{"a"}},
		},
		"inspector": {
			file:  ".mcp-inspector/mcp.json",
			text:  `{"mcpServers":{"s":{"url":"https://a.example","protocolEra":"legacy","roots":[{"uri":"file:///"}],"oauth":{"authorizationUrl":"x","tokenUrl":"y"}}}}`,
			want:  config.Server{Transport: config.TransportHTTP, URL: "https://a.example", Versions: []string{"legacy"}, OAuth: &config.OAuth{}, Roots: []config.Root{{URI: "file:///"}}},
			notes: "roots of an entry count in 'parley inspect --config' alone: write roots into parley.jsonc; oauth: the endpoints are found by discovery, and not taken from the entry",
		},
		"inspector, any era": {
			file: ".mcp-inspector/mcp.json", text: `{"mcpServers":{"s":{"url":"https://a.example","protocolEra":"auto"}}}`,
			want: config.Server{Transport: config.TransportHTTP, URL: "https://a.example"},
		},
		"tbxark, allowed": {
			file: "tbxark.json", text: `{"mcpProxy":{},"mcpServers":{"s":{"url":"https://a.example","transportType":"sse","options":{"toolFilter":{"mode":"allow","list":["t"]}}}}}`,
			want: config.Server{Transport: config.TransportSSE, URL: "https://a.example", AllowTools: []string{"t"}},
		},
		"tbxark, mode unknown": {
			file: "tbxark.json", text: `{"mcpProxy":{},"mcpServers":{"s":{"url":"https://a.example","options":{"toolFilter":{"mode":"maybe"}}}}}`,
			fails: "mode is allow or block",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.env["HOST"] = "of-the-machine"
			d.write("home/"+test.file, test.text)
			c := d.load()
			if strings.HasPrefix(test.file, "tbxark") {
				var err error
				if c, err = config.LoadFile(d.path("home/"+test.file), d.options); err != nil {
					t.Fatal(err)
				}
			}
			s := d.server(c, "s")
			if test.fails != "" {
				if s.Err == nil || !strings.Contains(s.Err.Error(), test.fails) {
					t.Errorf("error %v", s.Err)
				}
				return
			}
			e, err := s.Expand(nil)
			if err != nil {
				t.Fatal(err)
			}
			got := config.Server{
				Transport: e.Transport, Command: e.Command, URL: e.URL, OAuth: e.OAuth, NoOAuth: e.NoOAuth, ConnectTimeout: e.ConnectTimeout,
				Versions: e.Versions, AllowTools: e.AllowTools, DenyTools: e.DenyTools, Roots: e.Roots,
			}
			if len(e.Args) > 0 {
				got.Args = e.Args
			}
			if len(e.Env) > 0 {
				got.Env = e.Env
			}
			if len(e.Headers) > 0 {
				got.Headers = e.Headers
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(config.Server{})); diff != "" {
				t.Error(diff)
			}
			if notes := strings.Join(e.Notes, "; "); !strings.HasPrefix(notes, test.notes) || test.notes == "" && notes != "" {
				t.Errorf("notes %q", notes)
			}
		})
	}
}
