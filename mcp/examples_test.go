package mcp_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// explicitDefaults are members whose false is the same as their absence, which
// is how they are written (see the package documentation).
var explicitDefaults = map[string]bool{"isError": true, "hasMore": true, "required": true}

// withoutDefaults takes explicit defaults out of a JSON value.
func withoutDefaults(v any) any {
	switch v := v.(type) {
	case object:
		for name, member := range v {
			if explicitDefaults[name] && member == false {
				delete(v, name)
				continue
			}
			v[name] = withoutDefaults(member)
		}
	case []any:
		for i := range v {
			v[i] = withoutDefaults(v[i])
		}
	}
	return v
}

func normal(t testing.TB, raw mcp.RawValue) mcp.RawValue {
	t.Helper()
	var v any
	if err := wire.Decode(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := wire.Marshal(withoutDefaults(v))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// exampleType finds the Go type for the examples of a folder, and the member of
// the example that it is for: none for the whole.
func exampleType(t *testing.T, folder string, example wire.Object) (goType reflect.Type, member string) {
	if goType, ok := types[folder]; ok {
		return goType, ""
	}
	switch folder {
	case "InputRequests":
		return reflect.TypeFor[mcp.InputRequests](), ""
	case "InputResponses":
		return reflect.TypeFor[mcp.InputResponses](), ""
	case "UnsupportedProtocolVersionError":
		return reflect.TypeFor[mcp.UnsupportedVersionData](), "error.data"
	case "MissingRequiredClientCapabilityError":
		return reflect.TypeFor[mcp.MissingCapabilityData](), "error.data"
	}
	if name, ok := strings.CutSuffix(folder, "Response"); ok {
		return types[name], "result"
	}
	if method, ok := example.Member("method"); ok {
		row, ok := mcp.Lookup(strings.Trim(string(method), `"`))
		if !ok {
			t.Fatalf("no method %s", method)
		}
		return row.Params, "params"
	}
	return nil, ""
}

// Each example of the newest schema is decoded by its Go type and encoded to
// the same JSON value.
func TestExamplesRoundTrip(t *testing.T) {
	root := filepath.Join(specDir(t), newest, "examples")
	files, err := filepath.Glob(filepath.Join(root, "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples in %s: %v", root, err)
	}
	checked := 0
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			example, err := wire.ParseObject(data, wire.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			goType, member := exampleType(t, folder, example)
			if goType == nil {
				if noType[folder] == "" {
					t.Fatalf("no Go type for %s, and no reason", folder)
				}
				return
			}
			raw := example.Raw()
			for name := range strings.SplitSeq(member, ".") {
				if name == "" {
					break
				}
				var ok bool
				if raw, ok = example.Member(name); !ok {
					return // roots/list without params
				}
				example, _ = example.Object(name)
			}
			checked++
			roundTrip(t, raw, reflect.New(goType).Interface())
		})
	}
	if checked < 90 {
		t.Errorf("checked %d examples only", checked)
	}
}

func roundTrip(t *testing.T, raw mcp.RawValue, v any) {
	t.Helper()
	if err := wire.DecodeParams(raw, v); err != nil {
		t.Fatal(err)
	}
	out, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if !wire.Equal(normal(t, raw), normal(t, out)) {
		t.Errorf("%T\n got %s\nwant %s", v, out, raw)
	}
}

// The inner requests and responses of the examples for asking have types too.
func TestExamplesOfInputRoundTrip(t *testing.T) {
	root := filepath.Join(specDir(t), newest, "examples")
	data, err := os.ReadFile(filepath.Join(root, "InputRequests", "elicitation-and-sampling-input-requests.json"))
	if err != nil {
		t.Fatal(err)
	}
	var requests mcp.InputRequests
	if err := wire.DecodeParams(data, &requests); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for key, request := range maps.All(requests) {
		row, ok := mcp.Lookup(request.Method)
		if !ok {
			t.Fatalf("%s: no method %s", key, request.Method)
		}
		seen[row.Name] = true
		roundTrip(t, request.Params, reflect.New(row.Params).Interface())
	}
	if !seen[mcp.MethodElicit] || !seen[mcp.MethodCreateMessage] {
		t.Errorf("saw %v only", seen)
	}
}
