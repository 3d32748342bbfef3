package interop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
	"github.com/parley-mcp/parley/server"
)

const weatherPage = "ui://weather/view.html"

// appServer has a tool with a page that says all that a page can say, one for pages
// alone, and one without.
func appServer(mw ...server.Middleware) *server.Server {
	s := server.New("weather", "1.0.0", nil)
	s.Use(mw...)
	apps.Enable(s)
	say := func(context.Context, mcp.None) (string, error) { return "21 degrees", nil }
	s.Add(
		apps.Page(weatherPage, "<!doctype html><title>Weather</title>", &apps.PageOptions{
			CSP: &apps.Domains{
				Connect: []string{"https://api.example.com"}, Resource: []string{"https://*.example.org"},
				Frame: []string{"https://player.example.net"}, BaseURI: []string{"https://cdn.example.org"},
			},
			Permissions:   apps.Permissions{Camera: true, Microphone: true, Geolocation: true, ClipboardWrite: true},
			Domain:        "weather.example.com",
			PrefersBorder: new(false),
		}),
		apps.Tool(server.Tool("weather", "Tells the weather.", say), weatherPage, &apps.ToolOptions{Visibility: []apps.Caller{apps.Model, apps.App}}),
		apps.Tool(server.Tool("refresh", "Tells it anew.", say), weatherPage, &apps.ToolOptions{Visibility: []apps.Caller{apps.App}}),
		server.Tool("plain", "Has no page.", say),
	)
	return s
}

// What we declare, as tools, pages and client, fits the schemas that ext-apps publishes.
func TestAppsSchema(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(peersDir(t), "node_modules/@modelcontextprotocol/ext-apps/dist/src/generated/schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var oracle struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(data, &oracle); err != nil {
		t.Fatal(err)
	}
	valid := func(what, definition string, value mcp.RawValue) {
		t.Helper()
		compiled, err := schema.Compile(mcp.RawValue(oracle.Defs[definition]), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Check(value); err != nil || len(value) == 0 {
			t.Errorf("%s: %s: %v", what, value, err)
		}
	}
	for _, version := range []string{modern, legacy} {
		declared := make(chan mcp.RawValue, 16)
		e := &endpoint{}
		e.serve(t, appServer(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if caps := c.ClientCapabilities(); caps != nil && len(declared) < cap(declared) {
					declared <- caps.Extensions[apps.ID]
				}
				return next(c)
			}
		}), nil)
		d, _ := dialer(t, e.url)
		c, err := client.Connect(bounded(t), d, &client.Options{Versions: []string{version}, Extensions: []client.Extension{apps.Extension()}})
		if err != nil {
			t.Fatal(err)
		}
		for tool, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if tool.Name != "plain" {
				valid(tool.Name, "McpUiToolMeta", tool.Meta["ui"])
			}
		}
		for r, err := range c.Resources(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			valid("the list entry of "+r.URI, "McpUiResourceMeta", r.Meta["ui"])
		}
		res, err := c.ReadResource(t.Context(), weatherPage, nil)
		if err != nil {
			t.Fatal(err)
		}
		valid("the contents", "McpUiResourceMeta", res.Contents[0].Meta["ui"])
		valid("the client", "McpUiClientCapabilities", <-declared)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The Inspector reports our page and what it declares, in each mode of its negotiation;
// without an app it exits with 2. A tool for pages alone is there for it only when it
// says that it shows pages.
func TestInspectorApps(t *testing.T) {
	for era, version := range map[string]string{"legacy": legacy, "auto": modern, "modern": modern} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			peersDir(t)
			e := &endpoint{}
			e.serve(t, appServer(e.seen.note), nil)
			target := []string{e.url, "--transport", "http"}

			var got struct {
				AppInfo map[string]any `json:"appInfo"`
			}
			inspector(t, era, target, &got, "--method", "tools/call", "--tool-name", "weather", "--app-info")
			want := map[string]any{
				"hasApp": true, "toolName": "weather", "resourceUri": weatherPage, "resourceMimeType": apps.MIMEType,
				"visibility": []any{"model", "app"},
				"csp": map[string]any{
					"connectDomains": []any{"https://api.example.com"}, "resourceDomains": []any{"https://*.example.org"},
					"frameDomains": []any{"https://player.example.net"}, "baseUriDomains": []any{"https://cdn.example.org"},
				},
				"permissions": map[string]any{
					"camera": map[string]any{}, "microphone": map[string]any{}, "geolocation": map[string]any{}, "clipboardWrite": map[string]any{},
				},
				"domain": "weather.example.com", "prefersBorder": false,
			}
			if diff := cmp.Diff(want, got.AppInfo); diff != "" {
				t.Error(diff)
			}
			inspector(t, era, target, &got, "--method", "tools/call", "--tool-name", "refresh", "--app-info", "--advertise-apps")
			if got.AppInfo["toolName"] != "refresh" || got.AppInfo["hasApp"] != true {
				t.Errorf("refresh: %v", got.AppInfo)
			}
			if code := inspectorExit(t, era, target, "--method", "tools/call", "--tool-name", "plain", "--app-info"); code != 2 {
				t.Errorf("plain: exit %d, want 2", code)
			}
			if inspectorExit(t, era, target, "--method", "tools/call", "--tool-name", "refresh", "--app-info") == 0 {
				t.Error("a tool for pages is there for a client without them")
			}
			e.seen.checkVersion(t, version)
		})
	}
}

// inspectorExit is the exit code of one method.
func inspectorExit(t *testing.T, era string, target []string, args ...string) int {
	t.Helper()
	command := append([]string{inspectorJS, "--cli"}, target...)
	cmd := node(t, append(append(command, "--protocol-era", era, "--format", "json", "--quiet"), args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if err != nil && !ok {
		t.Fatalf("inspector %v: %v\n%s", args, err, stderr.Bytes())
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

// The server of ext-apps with our client, in both eras: which tools have which page, the
// page as text and as bytes, and what is said of it in the contents or in the list.
func TestAppsServer(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c, err := client.Connect(bounded(t), peer(t, "apps.mjs", "serve"), &client.Options{
				Versions: []string{version}, Extensions: []client.Extension{apps.Extension()},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			for name, model := range map[string]bool{"show-cart": true, "set-quantity": false} {
				tool, err := c.Tool(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				ui, err := apps.Of(tool)
				if err != nil || ui == nil || ui.URI != "ui://cart/view.html" || ui.Visible(apps.Model) != model || !ui.Visible(apps.App) {
					t.Errorf("%s: %+v, %v", name, ui, err)
				}
			}
			meta := apps.PageMeta{
				CSP: &apps.Domains{Connect: []string{"https://api.example.com"}}, Permissions: apps.Permissions{Camera: true}, PrefersBorder: new(true),
			}
			for _, uri := range []string{"ui://cart/view.html", "ui://cart/blob.html"} {
				page, err := apps.Fetch(t.Context(), c, uri, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(meta, page.Meta); diff != "" || page.HTML != "<!doctype html><title>Cart</title>" {
					t.Errorf("%s: %q\n%s", uri, page.HTML, diff)
				}
			}
			if res, err := apps.CallForPage(t.Context(), c, "set-quantity", nil, nil); err != nil || res.IsError {
				t.Errorf("for a page: %+v, %v", res, err)
			}
		})
	}
}

// What the host's side of ext-apps reads in our tools, permissions and capability is
// what ours does.
func TestAppsHost(t *testing.T) {
	e := &endpoint{}
	e.serve(t, appServer(), nil)
	d, _ := dialer(t, e.url)
	c, err := client.Connect(bounded(t), d, &client.Options{DiscoverProbe: patience, Extensions: []client.Extension{apps.Extension()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	type reading struct {
		URI       string `json:"uri"`
		AppOnly   bool   `json:"appOnly"`
		ModelOnly bool   `json:"modelOnly"`
	}
	want := make(map[string]reading)
	var tools []*mcp.Tool
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ui, err := apps.Of(tool)
		if err != nil {
			t.Fatal(err)
		}
		model, app := ui.Visible(apps.Model), ui.Visible(apps.App)
		own := reading{AppOnly: app && !model, ModelOnly: model && !app}
		if ui != nil {
			own.URI = ui.URI
		}
		want[tool.Name], tools = own, append(tools, tool)
	}
	permissions := apps.Permissions{Camera: true, Microphone: true, Geolocation: true, ClipboardWrite: true}
	argument, err := json.Marshal(map[string]any{
		"tools": tools, "permissions": permissions,
		"capabilities": map[string]any{"extensions": map[string]any{apps.ID: apps.Extension().Settings}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := node(t, "apps.mjs", "read", string(argument)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tools     map[string]reading `json:"tools"`
		Allow     string             `json:"allow"`
		MIMETypes []string           `json:"mimeTypes"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Tools); diff != "" || len(want) != 3 {
		t.Error(diff)
	}
	if got.Allow != permissions.Allow() || len(got.MIMETypes) != 1 || got.MIMETypes[0] != apps.MIMEType {
		t.Errorf("allow %q, types %q", got.Allow, got.MIMETypes)
	}
}
