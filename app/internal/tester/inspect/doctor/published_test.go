package doctor_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
)

// schemaFile is a schema that others publish, in the folder that PARLEY_SCHEMA_DIR names.
func schemaFile(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("PARLEY_SCHEMA_DIR")
	if dir == "" {
		t.Skip("PARLEY_SCHEMA_DIR is not set")
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// reports are reports of all kinds: with findings and texts that would break a file, without any,
// and with every code.
func reports(t *testing.T) map[string]*doctor.Report {
	t.Helper()
	good, err := examine(t, newScript(sessions), nil)
	if err != nil {
		t.Fatal(err)
	}
	every := &doctor.Report{Server: "https://user@example.com:8080/mcp?a=b c\x00<&>\"\u202e#é"}
	for _, c := range doctor.Codes() {
		every.Findings = append(every.Findings, doctor.Finding{
			Code: c.ID, Severity: c.Severity, Where: "$.tools['a b']", Reason: "because \x1b\xff]]>", Clause: c.Clause, Fix: c.Fix,
		})
	}
	return map[string]*doctor.Report{"bad": bad(t), "good": good, "every code": every, "nothing": {}}
}

// The SARIF of every report fits the schema that OASIS publishes.
func TestSARIFSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile(t, "sarif-schema-2.1.0.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range reports(t) {
		raw, err := doctor.SARIF(r, "v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		log, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(log); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		log.(map[string]any)["version"] = "2.2.0"
		if schema.Validate(log) == nil {
			t.Error("the schema takes another version: it checks nothing")
		}
	}
}

// The JUnit XML of every report fits the schema of the Jenkins xUnit plugin.
func TestJUnitSchema(t *testing.T) {
	schema := schemaFile(t, "junit-10.xsd")
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("there is no xmllint (package libxml2-utils of Debian)")
	}
	fits := func(raw []byte) (string, bool) {
		cmd := exec.CommandContext(t.Context(), xmllint, "--noout", "--nonet", "--schema", schema, "-")
		cmd.Stdin = bytes.NewReader(raw)
		out, err := cmd.CombinedOutput()
		if err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		return string(out), err == nil
	}
	for name, r := range reports(t) {
		raw, err := doctor.JUnit(r)
		if err != nil {
			t.Fatal(err)
		}
		if out, ok := fits(raw); !ok {
			t.Errorf("%s: %s", name, out)
		}
		if _, ok := fits(bytes.Replace(raw, []byte(" tests="), []byte(" test="), 2)); ok {
			t.Error("the schema takes a suite without its number of tests: it checks nothing")
		}
	}
}
