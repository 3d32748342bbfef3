package interop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// hostPage is a host of one page: it shows /page of another origin (%s) in a frame,
// speaks the host's half of the conversation, and passes calls on.
const hostPage = `<!doctype html><meta charset="utf-8"><title>Host</title>
<iframe id="frame" sandbox="allow-scripts allow-same-origin" style="width:700px;height:200px;border:0"></iframe>
<script>
const frame = document.getElementById("frame");
window.seen = [];
const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
const call = (params) => fetch("/call", { method: "POST", body: JSON.stringify(params) }).then((r) => r.json());
addEventListener("message", async ({ source, data }) => {
  if (source !== frame.contentWindow) return;
  seen.push(data.method);
  if (data.method === "ui/initialize") send({ id: data.id, result: {
    protocolVersion: "2026-01-26", hostInfo: { name: "host", version: "1" }, hostCapabilities: { serverTools: {} },
    hostContext: { theme: "light", toolInfo: { tool: { name: "show-palette" } } } } });
  if (data.method === "ui/notifications/initialized") send({
    method: "ui/notifications/tool-result", params: await call({ name: "show-palette", arguments: {} }) });
  if (data.method === "ui/notifications/size-changed") frame.style.height = data.params.height + "px";
  if (data.method === "tools/call") { send({ id: data.id, result: await call(data.params) }); seen.push("answered"); }
});
frame.src = "%s";
</script>`

// A browsedHost is a host with a client of a server, as two origins on the loopback
// interface: its own, and that of the frame.
type browsedHost struct {
	url   string
	leaks atomic.Int64 // requests that the policy should have stopped
}

// browse serves a page of a server to a browser, under the policy that Fetch gives.
// With %s in it the page knows the origin of the host.
func browse(t *testing.T, s *server.Server, uri string) *browsedHost {
	t.Helper()
	c, err := client.Connect(bounded(t), mem.New(s, nil), &client.Options{Extensions: []client.Extension{apps.Extension()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	page, err := apps.Fetch(t.Context(), c, uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &browsedHost{}
	frame := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", page.CSP)
		_, _ = io.WriteString(w, strings.ReplaceAll(page.HTML, "HOST", h.url))
	}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, hostPage, frame+"/page")
	})
	mux.HandleFunc("/leak", func(http.ResponseWriter, *http.Request) { h.leaks.Add(1) })
	mux.HandleFunc("POST /call", func(w http.ResponseWriter, r *http.Request) {
		var p mcp.CallToolParams
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
			return
		}
		res, err := apps.CallForPage(r.Context(), c, p.Name, p.Arguments, nil)
		if err != nil {
			t.Error(err)
			return
		}
		out, err := res.AppendJSON(nil)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(out)
	})
	h.url = listen(t, mux)
	return h
}

// open opens the host in a browser that runs scripts.
func (h *browsedHost) open(t *testing.T) tab {
	t.Helper()
	do := chromium(t)
	if err := do(emulation.SetScriptExecutionDisabled(false), chromedp.EmulateViewport(760, 300), chromedp.Navigate(h.url)); err != nil {
		t.Fatal(err)
	}
	return do
}

// until waits until an expression is true in the page of the host.
func until(expression string) chromedp.Action { return chromedp.Poll(expression, nil) }

// The page of "parley serve everything" works in a real browser, in a frame of another
// origin, under its own policy: it draws what it is given, and asks for more.
func TestAppsPageInChromium(t *testing.T) {
	h := browse(t, everything.New("1.0.0", nil), "ui://everything/palette.html")
	do := h.open(t)
	picture := func(name string) chromedp.Action {
		return chromedp.ActionFunc(func(ctx context.Context) error {
			var data []byte
			if err := chromedp.FullScreenshot(&data, 100).Do(ctx); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(t.ArtifactDir(), name+".png"), data, 0o600)
		})
	}
	var seen []string
	if err := do(
		until(`seen.includes("ui/notifications/initialized")`),
		until(`document.getElementById("frame").offsetHeight > 210`), // the colours are drawn
		picture("palette"),
		chromedp.ActionFunc(func(ctx context.Context) error {
			var at struct{ X, Y float64 } // of the button, at the lower left
			if err := chromedp.Evaluate(`(({left, bottom}) => ({X: left + 70, Y: bottom - 32}))(frame.getBoundingClientRect())`, &at).Do(ctx); err != nil {
				return err
			}
			return chromedp.MouseClickXY(at.X, at.Y).Do(ctx)
		}),
		until(`seen.includes("answered")`),
		picture("another"),
		chromedp.Evaluate(`seen`, &seen),
	); err != nil {
		t.Fatal(err)
	}
	if seen[0] != "ui/initialize" || seen[1] != "ui/notifications/initialized" {
		t.Errorf("the page said %q", seen)
	}
}

// A page that declares nothing reaches nothing outside of it, however it tries.
func TestAppsPolicyInChromium(t *testing.T) {
	const hostile = `<!doctype html><meta charset="utf-8"><base href="HOST/">
<img src="HOST/leak?img"><script src="HOST/leak?script"></script><link rel="stylesheet" href="HOST/leak?style">
<iframe src="HOST/leak?frame"></iframe><object data="HOST/leak?object"></object><video src="HOST/leak?video"></video>
<style>@font-face { font-family: x; src: url("HOST/leak?font") } body { font-family: x; background: url("HOST/leak?background") }</style>text
<script>
addEventListener("load", async () => {
  try { new WebSocket("HOST/leak?socket".replace("http", "ws")); } catch {}
  try { navigator.sendBeacon("HOST/leak?beacon"); } catch {}
  let refused;
  await fetch("HOST/leak?fetch", { mode: "no-cors" }).catch(() => { refused = "refused"; });
  await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
  parent.postMessage({ jsonrpc: "2.0", method: refused ?? "reached" }, "*");
});
</script>`
	s := server.New("hostile", "1", nil)
	s.Add(apps.Page("ui://hostile/page", hostile, nil))
	h := browse(t, s, "ui://hostile/page")
	var seen []string
	if err := h.open(t)(until(`seen.length > 0`), chromedp.Evaluate(`seen`, &seen)); err != nil {
		t.Fatal(err)
	}
	if seen[0] != "refused" || h.leaks.Load() != 0 {
		t.Errorf("the page says %q; %d requests came out of it", seen, h.leaks.Load())
	}
}
