package timezone_test

import (
	"archive/zip"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/servers/timezone"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// newServer makes a server with a clock.
func newServer(t testing.TB, now string, o *server.Options) *server.Server {
	t.Helper()
	at, err := time.Parse(time.RFC3339, now)
	if err != nil {
		t.Fatal(err)
	}
	s, err := timezone.New("1.0.0", &timezone.Options{Server: o, Local: "Europe/Paris", Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call calls a tool and returns its text; failed says that it failed or was refused.
func call(t *testing.T, c *client.Client, tool string, args any) (text string, failed bool) {
	t.Helper()
	result, err := c.CallTool(t.Context(), tool, args, nil)
	if err != nil {
		return err.Error(), true
	}
	if len(result.Content) != 1 {
		t.Fatalf("%+v", result)
	}
	said, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("%+v", result)
	}
	return said.Text, result.IsError
}

// The answers of the reference server: testdata/answers.json has what its functions gave, at a clock that
// stands still, with the time zones of Go 1.26. line is the line of src/time/src/mcp_server_time/server.py
// of modelcontextprotocol/servers (at 6abf04ee) that the answer follows.
func TestAnswersOfTheOriginal(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answers []struct {
		Now       string            `json:"now"`
		Tool      string            `json:"tool"`
		Arguments map[string]string `json:"arguments"`
		Line      int               `json:"line"`
		Want      json.RawMessage   `json:"want"`
		Error     string            `json:"error"`
	}
	if err := json.Unmarshal(raw, &answers); err != nil {
		t.Fatal(err)
	}
	clients := make(map[string]*client.Client)
	tools := make(map[string]int)
	for _, a := range answers {
		c := clients[a.Now]
		if c == nil {
			c = mcptest.Client(t, newServer(t, a.Now, nil))
			clients[a.Now] = c
		}
		tools[a.Tool]++
		got, failed := call(t, c, a.Tool, a.Arguments)
		if a.Error != "" {
			if !failed || !strings.Contains(got, a.Error) {
				t.Errorf("%s %v (line %d): %q, want the error %q", a.Tool, a.Arguments, a.Line, got, a.Error)
			}
			continue
		}
		var want strings.Builder
		enc := json.NewEncoder(&want)
		enc.SetIndent("", "  ")
		if err := enc.Encode(a.Want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSpace(want.String()), got); failed || diff != "" {
			t.Errorf("%s at %s, %v (line %d): %s", a.Tool, a.Now, a.Arguments, a.Line, diff)
		}
	}
	for tool, n := range tools {
		if n < 50 {
			t.Errorf("%s has %d answers", tool, n)
		}
	}
}

// The tools in every revision, with structured content where it is known.
func TestTools(t *testing.T) {
	build := func(tb testing.TB, o *server.Options) *server.Server {
		return newServer(tb, "2025-07-01T12:00:00Z", o)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		got, failed := call(t, c, "convert_time", map[string]string{"source_timezone": "Europe/Paris", "time": "9:30", "target_timezone": "Asia/Tokyo"})
		if failed || !strings.Contains(got, `"time_difference": "+7.0h"`) || !strings.Contains(got, "2025-07-01T16:30:00+09:00") {
			t.Error(got)
		}
		for tool, err := range c.Tools(t.Context()) {
			if err != nil || !strings.Contains(tool.Description, "Europe/Paris") {
				t.Errorf("%v, %v", tool, err)
			}
		}
	})
}

// What is wrong is refused, with words that say so.
func TestBadInput(t *testing.T) {
	c := mcptest.Client(t, newServer(t, "2025-07-01T12:00:00Z", nil))
	for args, want := range map[string]string{
		`{}`:                              "timezone",
		`{"timezone":5}`:                  "/timezone",
		`{"timezone":"UTC","format":"x"}`: `unknown member "format"`,
		`{"timezone":"` + strings.Repeat("A/", 5000) + `"}`: "no such time zone",
		`{"timezone":"UTC\u0000"}`:                          "no such time zone",
		`{"timezone":"..\\..\\windows"}`:                    "no such time zone",
	} {
		if got, failed := call(t, c, "get_current_time", mcp.RawValue(args)); !failed || !strings.Contains(got, want) {
			t.Errorf("%.60s: %q does not fail with %q", args, got, want)
		}
	}
	if _, err := timezone.New("1.0.0", &timezone.Options{Local: "Paris"}); err == nil {
		t.Error("a local zone that does not exist")
	}
}

// Zones are completed by their beginning and by the city, and the time of one is a resource.
func TestResource(t *testing.T) {
	c := mcptest.Client(t, newServer(t, "2025-07-01T12:00:00Z", nil))
	res, err := c.ReadResource(t.Context(), "time://now/America/Argentina/Ushuaia", nil)
	if err != nil || len(res.Contents) != 1 || !strings.Contains(res.Contents[0].Text, "2025-07-01T09:00:00-03:00") {
		t.Errorf("%+v, %v", res, err)
	}
	for _, uri := range []string{"time://now/Nowhere", "time://now/../../etc/passwd"} {
		if res, err := c.ReadResource(t.Context(), uri, nil); err == nil {
			t.Errorf("%+v", res)
		}
	}
	for typed, want := range map[string][]string{
		"ushu": {"America/Argentina/Ushuaia"}, "europe/par": {"Europe/Paris"}, "new_y": {"America/New_York"}, "nowhere": nil,
	} {
		got, err := c.Complete(t.Context(), &mcp.CompleteParams{
			Ref: mcp.ResourceRef("time://now/{+timezone}"), Argument: mcp.CompletionArgument{Name: "timezone", Value: typed},
		})
		if err != nil || !slices.Equal(got.Values, want) {
			t.Errorf("%s: %+v, %v", typed, got, err)
		}
	}
}

// The list of zones is that of the Go that built the test, and each can be loaded.
func TestNames(t *testing.T) {
	names := timezone.Names()
	if !slices.IsSorted(names) || !slices.Contains(names, "Europe/Paris") {
		t.Errorf("%d names", len(names))
	}
	for _, name := range names {
		if _, err := time.LoadLocation(name); err != nil {
			t.Error(err)
		}
	}
	z, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip")) //nolint:staticcheck // the test was built by this Go
	if err != nil {
		t.Skip("this Go has no list of zones: ", err)
	}
	defer func() { _ = z.Close() }()
	var want []string
	for _, f := range z.File {
		if !f.FileInfo().IsDir() {
			want = append(want, f.Name)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("zones.txt is not what this Go has: %s", diff)
	}
}
