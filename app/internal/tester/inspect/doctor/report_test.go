package doctor_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
)

// bad is a report with findings of each severity, and texts that would break a file.
func bad(t *testing.T) *doctor.Report {
	t.Helper()
	s := newScript(sessions)
	s.tool()["inputSchema"] = object{"type": "array", "$schema": "http://json-schema.org/draft-07/schema#"}
	s.tool()["description"] = ""
	s.tool()["name"] = "a]]><b>\x01\"&\x1b[31m"
	r, err := examine(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Count(doctor.Error) == 0 || r.Count(doctor.Warning) == 0 || r.Count(doctor.Note) == 0 || !r.Fails(doctor.Error) {
		t.Fatalf("there is:\n%s", listed(r))
	}
	return r
}

// junitElements are the elements of the usual schema of JUnit's XML: what may stand in each, in
// this order, and which attributes it must and may have.
var junitElements = map[string]struct{ children, must, may []string }{
	"testsuites": {[]string{"testsuite"}, nil, []string{"name", "time", "tests", "failures", "disabled", "errors"}},
	"testsuite": {
		[]string{"properties", "testcase", "system-out", "system-err"},
		[]string{"name", "tests", "failures", "errors"},
		[]string{"time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
	},
	"testcase":   {[]string{"skipped", "error", "failure", "system-out", "system-err"}, []string{"name"}, []string{"classname", "assertions", "time", "status"}},
	"failure":    {nil, nil, []string{"type", "message"}},
	"system-out": {nil, nil, nil},
}

// checkJUnit holds XML to the schema of JUnit, and counts to what they count.
func checkJUnit(t *testing.T, raw []byte) (tests, failures int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(raw)))
	var open []string
	last := make(map[int]int) // the place of the last child, by depth
	counts := make(map[string]string)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			rule, known := junitElements[name]
			if !known {
				t.Fatalf("element %s is not known", name)
			}
			if depth := len(open); depth == 0 && name != "testsuites" {
				t.Fatalf("the root is %s", name)
			} else if depth > 0 {
				place := slices.Index(junitElements[open[depth-1]].children, name)
				if place < last[depth] {
					t.Fatalf("%s must not be here in %s", name, open[depth-1])
				}
				last[depth] = place
			}
			has := make(map[string]bool)
			for _, a := range e.Attr {
				has[a.Name.Local] = true
				if !slices.Contains(rule.must, a.Name.Local) && !slices.Contains(rule.may, a.Name.Local) {
					t.Errorf("%s has the attribute %s", name, a.Name.Local)
				}
				if name == "testsuite" {
					counts[a.Name.Local] = a.Value
				}
			}
			for _, must := range rule.must {
				if !has[must] {
					t.Errorf("%s has no attribute %s", name, must)
				}
			}
			if name == "testcase" {
				tests++
			}
			if name == "failure" {
				failures++
			}
			open = append(open, name)
			last[len(open)] = 0
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	if counts["tests"] != strconv.Itoa(tests) || counts["failures"] != strconv.Itoa(failures) {
		t.Errorf("it has %d tests and %d failures, and says %v", tests, failures, counts)
	}
	return tests, failures
}

func TestJUnit(t *testing.T) {
	r := bad(t)
	raw, err := doctor.JUnit(r)
	if err != nil {
		t.Fatal(err)
	}
	codes := make(map[string]bool)
	for _, f := range r.Findings {
		if f.Severity != doctor.Note {
			codes[f.Code] = true
		}
	}
	tests, failures := checkJUnit(t, raw)
	if tests != len(doctor.Codes()) || failures != len(codes) {
		t.Errorf("%d tests and %d failures\n%s", tests, failures, raw)
	}
	if strings.ContainsAny(string(raw), "\x01\x1b") {
		t.Error("it has control characters")
	}
}

// at is a member of a value, through objects and the first items of lists.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for _, name := range path {
		if list, ok := v.([]any); ok {
			if len(list) == 0 {
				t.Fatalf("nothing at %v", path)
			}
			v = list[0]
		}
		m, ok := v.(map[string]any)
		if !ok || m[name] == nil {
			t.Fatalf("no member %s of %v", name, path)
		}
		v = m[name]
	}
	return v
}

// The report has what SARIF 2.1.0 requires: sections 3.13 (log), 3.14 (run), 3.18 and 3.19
// (tool), 3.27 (result), 3.28 (location) and 3.49 (rule).
func TestSARIF(t *testing.T) {
	r := bad(t)
	raw, err := doctor.SARIF(r, "v1")
	if err != nil {
		t.Fatal(err)
	}
	var log any
	if err := json.Unmarshal(raw, &log); err != nil {
		t.Fatal(err)
	}
	if at(t, log, "version") != "2.1.0" || at(t, log, "runs", "tool", "driver", "name") != "parley doctor" {
		t.Errorf("%s", raw)
	}
	rules, _ := at(t, log, "runs", "tool", "driver", "rules").([]any)
	results, _ := at(t, log, "runs", "results").([]any)
	if len(rules) != len(doctor.Codes()) || len(results) != len(r.Findings) {
		t.Errorf("%d rules, %d results", len(rules), len(results))
	}
	levels := []any{"none", "note", "warning", "error"}
	for _, rule := range rules {
		at(t, rule, "shortDescription", "text")
		at(t, rule, "help", "text")
		if !slices.Contains(levels, at(t, rule, "defaultConfiguration", "level")) {
			t.Errorf("the level of %v", rule)
		}
	}
	for _, result := range results {
		index, ok := at(t, result, "ruleIndex").(float64)
		if !ok || at(t, rules[int(index)], "id") != at(t, result, "ruleId") || !slices.Contains(levels, at(t, result, "level")) {
			t.Errorf("%v", result)
		}
		at(t, result, "message", "text")
		at(t, result, "locations", "logicalLocations", "fullyQualifiedName")
		uri, _ := at(t, result, "locations", "physicalLocation", "artifactLocation", "uri").(string)
		if uri == "" || strings.ContainsAny(uri, " \\<>") {
			t.Errorf("the URI is %q", uri)
		}
	}
}

// A report without findings has empty lists, no null.
func TestEmptyReports(t *testing.T) {
	r, err := examine(t, newScript(sessions), nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := doctor.SARIF(r, "v1")
	if err != nil || strings.Contains(string(raw), "null") {
		t.Errorf("%v\n%s", err, raw)
	}
	if raw, err = doctor.JUnit(r); err != nil {
		t.Fatal(err)
	}
	checkJUnit(t, raw)
	if raw, err = json.Marshal(r); err != nil || strings.Contains(string(raw), "null") {
		t.Errorf("%v\n%s", err, raw)
	}
}
