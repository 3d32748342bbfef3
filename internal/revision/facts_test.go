package revision_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/mcp"
)

func TestRowsAreNewestFirst(t *testing.T) {
	var versions []string
	for _, f := range revision.All() {
		versions = append(versions, f.Version)
		if found, ok := revision.Lookup(f.Version); !ok || found != f {
			t.Errorf("Lookup(%q) = %v, %t", f.Version, found, ok)
		}
	}
	want := []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	if !slices.Equal(versions, want) {
		t.Errorf("All() = %v, want %v", versions, want)
	}
	if f, ok := revision.Lookup("1900-01-01"); ok {
		t.Errorf("Lookup of an unknown version = %v", f)
	}
}

// Ruling 1, ruling 3: which revisions are modern, and what a handshake falls back to.
func TestEras(t *testing.T) {
	if got := revision.Newest().Version; got != "2026-07-28" {
		t.Errorf("Newest() = %s", got)
	}
	if got := revision.NewestHandshake().Version; got != "2025-11-25" {
		t.Errorf("NewestHandshake() = %s", got)
	}
	modern, handshakes := revision.Modern(), revision.Handshakes()
	if len(modern) != 1 || len(handshakes) != 4 {
		t.Errorf("%d modern and %d handshake revisions", len(modern), len(handshakes))
	}
	for _, f := range modern {
		if f.Handshake || f.Sessions || f.Resume || f.Batch {
			t.Errorf("%s is modern and has a handshake, sessions, resumption or batches", f.Version)
		}
	}
	for _, f := range handshakes {
		if f.InputRequired || f.MetaVersion || f.RouteHeaders || f.Cacheable || f.ResultType {
			t.Errorf("%s has a handshake and something modern", f.Version)
		}
	}
}

// Proves: FLOW-BATCH (one revision alone has batches). Ruling 9, ruling 10.
func TestSingleRevisionFacts(t *testing.T) {
	for _, f := range revision.All() {
		if want := f.Version == "2025-03-26"; f.Batch != want {
			t.Errorf("%s: Batch = %t", f.Version, f.Batch)
		}
		if want := f.Version < "2025-11-25"; f.NullID != want {
			t.Errorf("%s: NullID = %t", f.Version, f.NullID)
		}
		if want := f.Version == "2025-11-25"; f.URLRequiredError != want || f.ElicitID != want || f.Priming != want || f.Tasks != want {
			t.Errorf("%s: URLRequiredError %t, ElicitID %t, Priming %t, Tasks %t", f.Version, f.URLRequiredError, f.ElicitID, f.Priming, f.Tasks)
		}
	}
}

// Ruling 12, ruling 26.
func TestHTTPStatus(t *testing.T) {
	for _, test := range []struct {
		code              int64
		modern, handshake int
	}{
		{-32700, 400, 400},
		{-32600, 400, 400},
		{-32601, 404, 200},
		{-32602, 200, 200},
		{-32603, 200, 200},
		{-32020, 400, 200},
		{-32021, 400, 200},
		{-32022, 400, 200},
		{-31001, 429, 200},
		{-31002, 429, 200},
		{-31004, 503, 200},
		{-31003, 200, 200},
		{-31006, 403, 403},
		{7, 200, 200},
	} {
		for _, f := range revision.All() {
			want := test.modern
			if f.Handshake {
				want = test.handshake
			}
			if got := f.HTTPStatus(test.code); got != want {
				t.Errorf("%s: HTTPStatus(%d) = %d, want %d", f.Version, test.code, got, want)
			}
		}
	}
}

// Transports know these names of package mcp, which they may not import. Ruling 2.
func TestNamesForTransports(t *testing.T) {
	if revision.MetaVersionKey != mcp.MetaProtocolVersion || revision.Initialize != mcp.MethodInitialize {
		t.Errorf("%q and %q are not those of package mcp", revision.MetaVersionKey, revision.Initialize)
	}
	for _, f := range revision.All() {
		var want []string
		if f.MetaVersion {
			want = []string{mcp.MetaProtocolVersion, mcp.MetaClientCapabilities}
		}
		if !slices.Equal(f.RequiredMeta, want) {
			t.Errorf("%s: RequiredMeta = %v, want %v", f.Version, f.RequiredMeta, want)
		}
	}
}

// Ruling 23.
func TestNotFoundCode(t *testing.T) {
	for _, f := range revision.All() {
		want := int64(-32602)
		if f.Handshake {
			want = -32002
		}
		if f.NotFoundCode != want {
			t.Errorf("%s: NotFoundCode = %d, want %d", f.Version, f.NotFoundCode, want)
		}
	}
}

var methodConst = regexp.MustCompile(`"method":\s*\{\s*"const":\s*"([^"]+)"`)

// Each revision has exactly the methods that its schema has.
func TestMethodsOfRevisions(t *testing.T) {
	dir := os.Getenv("PARLEY_SPEC_DIR")
	if dir == "" {
		t.Skip("PARLEY_SPEC_DIR is not set")
	}
	schemas := map[string]map[string]bool{}
	every := map[string]bool{}
	for _, f := range revision.All() {
		data, err := os.ReadFile(filepath.Join(dir, f.Version, "schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		schemas[f.Version] = map[string]bool{}
		for _, m := range methodConst.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "tasks/") {
				continue // core tasks were an experiment
			}
			schemas[f.Version][m[1]], every[m[1]] = true, true
		}
	}
	if len(every) != 29 {
		t.Errorf("the schemas have %d methods: %v", len(every), slices.Sorted(maps.Keys(every)))
	}
	for _, f := range revision.All() {
		for method := range every {
			if got, want := f.Has(method), schemas[f.Version][method]; got != want {
				t.Errorf("%s: Has(%q) = %t, want %t", f.Version, method, got, want)
			}
		}
		if f.Has("x/unknown") {
			t.Errorf("%s has an unknown method", f.Version)
		}
	}
}

// Sets name revisions by what they have in common; zero is the stateless ones.
func TestSets(t *testing.T) {
	for set, want := range map[revision.Set][]string{
		0:                    {"2026-07-28"},
		revision.Stateless:   {"2026-07-28"},
		revision.Handshake:   {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"},
		revision.CoreTasks:   {"2025-11-25"},
		revision.Metadata:    {"2026-07-28", "2025-11-25", "2025-06-18"},
		revision.Set(1 << 7): nil,
	} {
		var got []string
		for _, f := range revision.All() {
			if set.Has(f) {
				got = append(got, f.Version)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("set %b has %v, want %v", set, got, want)
		}
	}
	if revision.CoreTasks.Overlaps(revision.Stateless) || !revision.CoreTasks.Overlaps(revision.Metadata) {
		t.Error("which sets overlap")
	}
}
