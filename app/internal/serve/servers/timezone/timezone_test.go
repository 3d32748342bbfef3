package timezone_test

import (
	"archive/zip"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/timezone"
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
// of modelcontextprotocol/servers (at 6abf04ee) that the answer follows. Notes are ours alone, and so is
// is_dst where the database has negative saving; other tests have them.
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
		got = regexp.MustCompile(`,\s+"note": ".*"`).ReplaceAllString(got, "")
		said := strings.TrimSpace(want.String())
		if strings.Contains(said, `"Europe/Dublin"`) || strings.Contains(said, `"Africa/Casablanca"`) {
			dst := regexp.MustCompile(`"is_dst": \w+`)
			got, said = dst.ReplaceAllString(got, ""), dst.ReplaceAllString(said, "")
		}
		if diff := cmp.Diff(said, got); failed || diff != "" {
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
		`{"timezone":5}`:                                    "/timezone",
		`{"timezone":"UTC","format":"x"}`:                   `unknown member "format"`,
		`{"timezone":"` + strings.Repeat("A/", 5000) + `"}`: "/timezone: must have at most 100 characters",
		`{"timezone":"UTC\u0000"}`:                          "unknown time zone",
		`{"timezone":"..\\..\\windows"}`:                    "unknown time zone",
	} {
		if got, failed := call(t, c, "get_current_time", mcp.RawValue(args)); !failed || !strings.Contains(got, want) {
			t.Errorf("%.60s: %q does not fail with %q", args, got, want)
		}
	}
	if _, err := timezone.New("1.0.0", &timezone.Options{Local: "Paris"}); err == nil {
		t.Error("a local zone that does not exist")
	}
}

// Daylight saving time is when clocks are ahead, also where the database has a negative saving.
func TestDaylightSaving(t *testing.T) {
	for _, test := range []struct {
		zone, now string
		want      bool
	}{
		{"Europe/Dublin", "2026-01-15T12:00:00Z", false},
		{"Europe/Dublin", "2026-07-15T12:00:00Z", true},
		{"Europe/Dublin", "2060-01-15T12:00:00Z", false}, // by the rule after the last entry
		{"Europe/Dublin", "2060-07-15T12:00:00Z", true},
		{"Africa/Casablanca", "2026-03-01T12:00:00Z", false}, // Ramadan
		{"Africa/Casablanca", "2026-07-15T12:00:00Z", true},
		{"Africa/El_Aaiun", "2026-03-01T12:00:00Z", false},
		{"Africa/El_Aaiun", "2026-07-15T12:00:00Z", true},
		{"Africa/Windhoek", "2010-01-15T12:00:00Z", true},
		{"Africa/Windhoek", "2010-07-15T12:00:00Z", false},
		{"Africa/Windhoek", "1992-01-15T12:00:00Z", false},
		{"Africa/Windhoek", "2026-01-15T12:00:00Z", false},
		{"Europe/Prague", "1946-11-01T12:00:00Z", false},
		{"Europe/Prague", "1947-01-15T12:00:00Z", false},
		{"Europe/Prague", "2026-07-15T12:00:00Z", true},
		{"Europe/London", "1942-07-15T12:00:00Z", true}, // double summer time
		{"Europe/London", "1942-01-15T12:00:00Z", true},
		{"Europe/London", "1970-01-15T12:00:00Z", false}, // British Standard Time
		{"Australia/Lord_Howe", "2026-01-15T12:00:00Z", true},
		{"Australia/Lord_Howe", "2026-07-15T12:00:00Z", false},
		{"America/New_York", "2026-07-15T12:00:00Z", true},
		{"Europe/Istanbul", "2026-07-15T12:00:00Z", false},
		{"UTC", "2026-07-15T12:00:00Z", false},
	} {
		c := mcptest.Client(t, newServer(t, test.now, nil))
		got, err := client.Call[timezone.Time](t.Context(), c, "get_current_time", map[string]any{"timezone": test.zone})
		if err != nil || got.IsDST != test.want {
			t.Errorf("%s at %s: %+v, %v, want %t", test.zone, test.now, got, err, test.want)
		}
	}
}

// A time that clocks show twice, or not at all, has a note. Reports: modelcontextprotocol/servers#4781 and
// #4719.
func TestNotes(t *testing.T) {
	for _, test := range []struct{ now, zone, time, at, utc, note string }{
		{"2026-11-01T12:00:00Z", "America/New_York", "01:30", "2026-11-01T01:30:00-04:00", "2026-11-01T05:30:00+00:00", "Clocks show 01:30 on 2026-11-01 twice, because they are put back. This is the first time; the second is 2026-11-01T01:30:00-05:00."},
		{"2026-11-01T12:00:00Z", "America/New_York", "00:59", "2026-11-01T00:59:00-04:00", "2026-11-01T04:59:00+00:00", ""},
		{"2026-11-01T12:00:00Z", "America/New_York", "02:00", "2026-11-01T02:00:00-05:00", "2026-11-01T07:00:00+00:00", ""},
		{"2026-03-08T12:00:00Z", "America/New_York", "02:30", "2026-03-08T02:30:00-05:00", "2026-03-08T07:30:00+00:00", "Clocks do not show 02:30 on 2026-03-08, because they are put forward over it. At the moment that was converted they show 2026-03-08T03:30:00-04:00."},
		{"2026-03-08T12:00:00Z", "America/New_York", "01:59", "2026-03-08T01:59:00-05:00", "2026-03-08T06:59:00+00:00", ""},
		{"2026-03-08T12:00:00Z", "America/New_York", "03:00", "2026-03-08T03:00:00-04:00", "2026-03-08T07:00:00+00:00", ""},
		{"2026-10-25T12:00:00Z", "Europe/Dublin", "01:30", "2026-10-25T01:30:00+01:00", "2026-10-25T00:30:00+00:00", "Clocks show 01:30 on 2026-10-25 twice, because they are put back. This is the first time; the second is 2026-10-25T01:30:00+00:00."},
		{"2026-04-04T16:00:00Z", "Australia/Lord_Howe", "01:45", "2026-04-05T01:45:00+11:00", "2026-04-04T14:45:00+00:00", "Clocks show 01:45 on 2026-04-05 twice, because they are put back. This is the first time; the second is 2026-04-05T01:45:00+10:30."},
	} {
		c := mcptest.Client(t, newServer(t, test.now, nil))
		got, err := client.Call[timezone.Conversion](t.Context(), c, "convert_time", map[string]any{"source_timezone": test.zone, "time": test.time, "target_timezone": "UTC"})
		if err != nil || got.Source.Datetime != test.at || got.Target.Datetime != test.utc || got.Source.Note != test.note || got.Target.Note != "" {
			t.Errorf("%s %s: %+v, %v", test.zone, test.time, got, err)
		}
	}
}

// Without a zone the local one is meant, and the schema says so. Reports:
// modelcontextprotocol/servers#2853 and QwenLM/qwen-code#277.
func TestLocalZoneIsDefault(t *testing.T) {
	c := mcptest.Client(t, newServer(t, "2025-07-01T12:00:00Z", nil))
	for args, want := range map[string]string{
		`{}`:                 `"datetime": "2025-07-01T14:00:00+02:00"`,
		`{"timezone":""}`:    `"timezone": "Europe/Paris"`,
		`{"timezone":"UTC"}`: `"datetime": "2025-07-01T12:00:00+00:00"`,
	} {
		if got, failed := call(t, c, "get_current_time", mcp.RawValue(args)); failed || !strings.Contains(got, want) {
			t.Errorf("%s: %s", args, got)
		}
	}
	for args, want := range map[string]string{
		`{"time":"12:00","target_timezone":"UTC"}`: "2025-07-01T10:00:00+00:00",
		`{"time":"12:00","source_timezone":"UTC"}`: "2025-07-01T14:00:00+02:00",
		`{"time":"12:00"}`:                         `"time_difference": "+0.0h"`,
	} {
		if got, failed := call(t, c, "convert_time", mcp.RawValue(args)); failed || !strings.Contains(got, want) {
			t.Errorf("%s: %s", args, got)
		}
	}
	for tool, err := range c.Tools(t.Context()) {
		if err != nil || !strings.Contains(string(tool.InputSchema), `"default":"Europe/Paris"`) || strings.Contains(string(tool.InputSchema), "allOf") || strings.Contains(string(tool.InputSchema), `"required":["timezone"`) {
			t.Errorf("%s, %v", tool.InputSchema, err)
		}
	}
}

// A zone has its name in the IANA database, in Windows, or that of its file; anything else is refused with
// the names that can be meant. Reports: modelcontextprotocol/servers#231, #489, #612, #786 and #1775.
func TestZones(t *testing.T) {
	c := mcptest.Client(t, newServer(t, "2025-07-01T12:00:00Z", nil))
	for name, want := range map[string]string{
		"W. Europe Standard Time":                  "Europe/Berlin",
		"pacific standard time":                    "America/Los_Angeles",
		"UTC":                                      "UTC",
		"UTC+12":                                   "Etc/GMT-12",
		" Europe/Paris ":                           "Europe/Paris",
		"/usr/share/zoneinfo/Europe/Berlin":        "Europe/Berlin",
		":Europe/Berlin":                           "Europe/Berlin",
		":/var/db/timezone/zoneinfo/Asia/Tokyo":    "Asia/Tokyo",
		"/usr/share/zoneinfo/posix/Asia/Kathmandu": "Asia/Kathmandu",
	} {
		got, err := client.Call[timezone.Time](t.Context(), c, "get_current_time", map[string]any{"timezone": name})
		if err != nil || got.Timezone != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"IST":                            "can mean Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
		"cst":                            "can mean America/Chicago, Asia/Shanghai or America/Havana",
		"EDT":                            "can mean America/New_York",
		"Paris":                          "did you mean Europe/Paris?",
		"new york":                       "did you mean America/New_York?",
		"中国标准时间":                         "unknown time zone",
		"Local":                          "unknown time zone",
		"+02:00":                         "the offset UTC+2 is the zone Etc/GMT-2, which is 2 hours ahead of UTC",
		"GMT+5":                          "the offset UTC+5 is the zone Etc/GMT-5, which is 5 hours ahead of UTC",
		"utc+1":                          "the offset UTC+1 is the zone Etc/GMT-1, which is 1 hour ahead of UTC",
		"UTC-03":                         "the offset UTC-3 is the zone Etc/GMT+3, which is 3 hours behind UTC",
		"UTC+5:30":                       "no zone is named by the offset UTC+5:30; name a city that has it",
		"GMT-0230":                       "no zone is named by the offset UTC-2:30; name a city that has it",
		"UTC+05:00":                      "is the zone Etc/GMT-5,",
		"UTC+15":                         "no zone is named by the offset UTC+15; name a city that has it",
		"GMT -13":                        "no zone is named by the offset UTC-13; name a city that has it",
		"GMT+00":                         "the offset UTC+0 is the zone UTC",
		"..":                             "unknown time zone",
		"../Europe/Paris":                "unknown time zone",
		"Europe/../Europe/Paris":         "unknown time zone",
		"/etc/localtime":                 "unknown time zone",
		"/usr/share/zoneinfo/":           "unknown time zone",
		"/x/zoneinfo/../../../etc/hosts": "unknown time zone",
		"CET-1CEST":                      "unknown time zone",
		"Etc/GMT+1x":                     "unknown time zone",
		"GMT+":                           "unknown time zone",
		"Etc/GMT-":                       "unknown time zone",
		"Etc/GMT+":                       "unknown time zone",
	} {
		got, failed := call(t, c, "get_current_time", map[string]any{"timezone": name})
		if !failed || !strings.Contains(got, "Invalid timezone: ") || !strings.Contains(got, want) || strings.Contains(got, "did you mean Etc/") {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// The names of Windows are those of the Go that built the test, and each leads to a zone.
func TestWindowsNames(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(runtime.GOROOT(), "src", "time", "zoneinfo_abbrs_windows.go")) //nolint:staticcheck // the test was built by this Go
	if err != nil {
		t.Skip("this Go has no list of the names of Windows: ", err)
	}
	rows := regexp.MustCompile(`"([^"]+)":\s+\{"[^"]*", "[^"]*"\},\s*// (\S+)`).FindAllStringSubmatch(string(source), -1)
	if len(rows) < 100 {
		t.Fatalf("%d names", len(rows))
	}
	c := mcptest.Client(t, newServer(t, "2025-07-01T12:00:00Z", nil))
	for _, row := range rows {
		want := row[2]
		if row[1] == "UTC" {
			want = "UTC" // a name of the IANA database as well
		}
		got, err := client.Call[timezone.Time](t.Context(), c, "get_current_time", map[string]any{"timezone": row[1]})
		if err != nil || got.Timezone != want {
			t.Errorf("%q: %+v, %v, want %s", row[1], got, err, want)
		}
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
