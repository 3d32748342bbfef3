package flows_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Proves: FLOW-SUB-P: a file that somebody else edits reaches the client that
// subscribed to it, which reads it again. Ruling 24.
func TestFLOW_SUB_P(t *testing.T) {
	dir := t.TempDir()
	write := func(t *testing.T, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	build := func(t testing.TB, o *server.Options) *server.Server {
		return with(server.Directory("file:///notes/", root))(t, o)
	}
	bubbles(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		write(t, "a.txt", "one")
		write(t, "b.txt", "one")
		changes := make(chan string, 16)
		_, c := join(&client.Options{OnResourceUpdated: func(_ context.Context, uri string) { changes <- uri }})
		const a = "file:///notes/a.txt"
		sub, err := c.Subscribe(t.Context(), a, "file:///notes/none.txt", "file:///etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		if got := sub.URIs(); !slices.Equal(got, []string{a}) {
			t.Errorf("the server watches %q, want only what exists", got)
		}
		for _, text := range []string{"two..", "three"} {
			write(t, "a.txt", text)
			write(t, "b.txt", text)
			if text == "three" {
				// The same size: the time of change tells.
				later := time.Now().Add(time.Hour)
				if err := os.Chtimes(filepath.Join(dir, "a.txt"), later, later); err != nil {
					t.Fatal(err)
				}
			}
			if uri := <-changes; uri != a {
				t.Errorf("%s changed, want %s", uri, a)
			}
			r, err := c.ReadResource(t.Context(), a, nil)
			if err != nil || r.Contents[0].Text != text {
				t.Errorf("read %+v, %v; want %q", r, err, text)
			}
		}
		if err := os.Remove(filepath.Join(dir, "a.txt")); err != nil {
			t.Fatal(err)
		}
		write(t, "a.txt", "another file")
		if uri := <-changes; uri != a {
			t.Errorf("%s changed", uri)
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, "a.txt", "unseen change")
		time.Sleep(time.Minute) // of the bubble's time
		synctest.Wait()
		if len(changes) > 0 {
			t.Errorf("after the end %s changed", <-changes)
		}
		if _, err := c.Subscribe(t.Context(), "file:///notes/none.txt"); err == nil {
			t.Error("the server watches what does not exist")
		}
	})
}

// Proves: FLOW-SUB-P: the author tells of changes; templates too; who is not
// subscribed is not told.
func TestFLOW_SUB_P_Told(t *testing.T) {
	watching := make(chan string, 16)
	build := func(t testing.TB, o *server.Options) *server.Server {
		return with(
			server.Text("x:a", "a", "A"), server.Text("x:b", "b", "B"),
			server.Template("gh://{owner}/issues/{id}", "issue", readIssue).With(server.TemplateOptions{
				Watch: func(ctx context.Context, uri string, changed func()) {
					watching <- "begins " + uri
					changed()
					<-ctx.Done()
					watching <- "ends " + uri
				},
			}),
		)(t, o)
	}
	bubbles(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		changes := make(chan string, 16)
		s, c := join(&client.Options{OnResourceUpdated: func(_ context.Context, uri string) { changes <- uri }})
		sub, err := c.Subscribe(t.Context(), "x:a")
		if err != nil {
			t.Fatal(err)
		}
		s.ResourceUpdated("x:b")
		s.ResourceUpdated("x:a")
		if uri := <-changes; uri != "x:a" {
			t.Errorf("%s changed", uri)
		}
		issue, err := c.Subscribe(t.Context(), "gh://me/issues/7")
		if err != nil {
			t.Fatal(err)
		}
		if got := <-watching; got != "begins gh://me/issues/7" {
			t.Error(got)
		}
		if uri := <-changes; uri != "gh://me/issues/7" {
			t.Errorf("%s changed", uri)
		}
		// The end of one subscription is not the end of the other (G8).
		if err := issue.Close(); err != nil {
			t.Fatal(err)
		}
		if got := <-watching; got != "ends gh://me/issues/7" {
			t.Error(got)
		}
		s.ResourceUpdated("gh://me/issues/7")
		s.ResourceUpdated("x:a")
		if uri := <-changes; uri != "x:a" {
			t.Errorf("%s changed", uri)
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
		s.ResourceUpdated("x:a")
		synctest.Wait()
		if len(changes) > 0 {
			t.Errorf("after the end %s changed", <-changes)
		}
	})
}

// Proves: SEC-RES-4: subscriptions are limited, and changes are merged and
// paced, none lost.
func TestSEC_RES_4(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.MaxSubscriptions = 3
		o.Limits.ChangeRate = 2
		s := with()(t, o)
		for i := range 5 {
			s.Add(server.Text(fmt.Sprintf("x:%d", i), "x", "X"))
		}
		return s
	}
	bubbles(t, build, func(t *testing.T, era mcptest.Era, join joiner) {
		var told logtest.List
		s, c := join(&client.Options{OnResourceUpdated: func(_ context.Context, uri string) { told.Add(uri) }})
		sub, err := c.Subscribe(t.Context(), "x:0", "x:1", "x:2")
		if err != nil {
			t.Fatal(err)
		}
		over, err := c.Subscribe(t.Context(), "x:0", "x:1", "x:2", "x:3")
		if err == nil && slices.Contains(over.URIs(), "x:3") {
			t.Errorf("%v: %q are watched", era, over.URIs())
		}
		if err == nil {
			over.Close()
		}
		start := time.Now()
		for range 1000 {
			for i := range 3 {
				s.ResourceUpdated(fmt.Sprintf("x:%d", i))
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		got := told.All()
		for i := range 3 {
			if !slices.Contains(got, fmt.Sprintf("x:%d", i)) {
				t.Errorf("the change of x:%d was lost", i)
			}
		}
		if len(got) > 9 {
			t.Errorf("3,000 changes at once became %d notices after %v", len(got), time.Since(start))
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Proves: FLOW-LIST-CHANGED-P
func TestFLOW_LIST_CHANGED_P(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.DeclareTools, o.DeclarePrompts, o.DeclareResources = true, true, true
		return with()(t, o)
	}
	eachServer(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		told := make(chan string, 64)
		tell := func(what string) func(context.Context) { return func(context.Context) { told <- what } }
		s, c := join(&client.Options{OnToolsChanged: tell("tools"), OnPromptsChanged: tell("prompts"), OnResourcesChanged: tell("resources")})
		if n := len(collect(t, c.Tools(t.Context()))); n != 0 {
			t.Errorf("%d tools at first", n)
		}
		s.Add(server.Tool("sum", "Adds.", sum))
		if got := <-told; got != "tools" {
			t.Errorf("%s changed", got)
		}
		if list := collect(t, c.Tools(t.Context())); len(list) != 1 || list[0].Name != "sum" {
			t.Errorf("tools %+v", list)
		}
		s.Add(server.Prompt("p", "P.", func(context.Context, mcp.None) (string, error) { return "", nil }))
		if got := <-told; got != "prompts" || len(collect(t, c.Prompts(t.Context()))) != 1 {
			t.Errorf("%s changed", got)
		}
		s.Add(server.Text("x:a", "a", "A"))
		if got := <-told; got != "resources" || len(collect(t, c.Resources(t.Context()))) != 1 {
			t.Errorf("%s changed", got)
		}
		if !s.RemoveTools("sum") || s.RemoveTools("sum") {
			t.Error("RemoveTools does not say what it did")
		}
		if got := <-told; got != "tools" || len(collect(t, c.Tools(t.Context()))) != 0 {
			t.Errorf("%s changed", got)
		}
		if _, err := c.CallTool(t.Context(), "sum", sumIn{1, 2}, nil); code(err) != mcp.CodeInvalidParams {
			t.Errorf("a removed tool: %v", err)
		}
	})
}

// Proves: FLOW-LIST-CHANGED-P: in the modern era only who asked is told, and
// each stream carries its own id.
func TestFLOW_LIST_CHANGED_P_Asked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := with(server.Tool("sum", "Adds.", sum), server.Text("x:a", "a", "A"))(t, quiet())
		l := dial(t, s, nil)
		l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{%s}}`, meta("{}"))
		s.RemoveTools("sum")
		s.ResourceUpdated("x:a")
		l.Silent()
		s.Add(server.Tool("sum", "Adds.", sum))
		m := l.ask(`{"jsonrpc":"2.0","id":"s1","method":"subscriptions/listen","params":{%s,"notifications":{"toolsListChanged":true,"promptsListChanged":true}}}`, meta("{}"))
		m.want(`"notifications/subscriptions/acknowledged"`, "method")
		m.want(`{"toolsListChanged":true}`, "params", "notifications") // there are no prompts
		m.want(`"s1"`, "params", "_meta", mcp.MetaSubscriptionID)
		s.ResourceUpdated("x:a")
		s.Add(server.Text("x:b", "b", "B"))
		l.Silent()
		s.RemoveTools("sum")
		m = l.next()
		m.want(`"notifications/tools/list_changed"`, "method")
		m.want(`"s1"`, "params", "_meta", mcp.MetaSubscriptionID)
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s1"}}`)
		l.Silent()
		s.Add(server.Tool("sum", "Adds.", sum))
		l.Silent()
	})
}
