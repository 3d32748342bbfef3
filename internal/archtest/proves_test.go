package archtest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/racetest"
)

// flows are the flows of the protocol. The protocol part of each, ending in -P, is proved with
// scripted handlers in the place of a person; the host part, -H, with what a person sees.
var flows = []string{
	"INIT", "RES", "SUB", "TOOL", "PROMPT", "SAMPLE", "ELICIT", "CACHE", "ROOTS", "LIST-CHANGED", "PROGRESS", "CANCEL", "LOG",
	"COMPLETE", "PING", "BATCH", "AUTH", "SHUTDOWN",
}

// securityOfHost are the points of security that a host has a part in.
var securityOfHost = []string{
	"SEC-CAP-1", "SEC-INIT-1", "SEC-RES-3", "SEC-RES-5", "SEC-TOOL-3", "SEC-TOOL-4", "SEC-TOOL-5", "SEC-TOOL-7", "SEC-PROMPT-4",
	"SEC-SAMPLE-1", "SEC-SAMPLE-2", "SEC-SAMPLE-3", "SEC-SAMPLE-4", "SEC-ELICIT-1", "SEC-ELICIT-2", "SEC-ROOTS-1",
	"SEC-PROG-1", "SEC-LOG-1", "SEC-COMP-1", "SEC-ICON-1", "SEC-CANCEL-1", "SEC-AUTH-1", "SEC-DOS-1",
}

// Each flow has tests of its parts, and each point of security that is the host's has one in
// package host or in the program.
func TestProved(t *testing.T) {
	racetest.SkipSerial(t)
	everywhere, atHost := proved(t, ""), proved(t, "host", "app")
	for _, flow := range flows {
		if !everywhere["FLOW-"+flow+"-P"] && flow != "AUTH" { // that of AUTH is in the tests of oauth, clause by clause
			t.Errorf("no test proves FLOW-%s-P", flow)
		}
		if !atHost["FLOW-"+flow+"-H"] {
			t.Errorf("no test of host or app proves FLOW-%s-H", flow)
		}
	}
	for _, point := range securityOfHost {
		if !atHost[point] {
			t.Errorf("no test of host or app proves %s", point)
		}
	}
}

// proved are the ids that comments of tests in folders name after "Proves:".
func proved(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	ids := make(map[string]bool)
	for _, folder := range folders {
		root := filepath.Join("..", "..", folder)
		if err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "node_modules" || len(d.Name()) > 2 && d.Name()[0] == '.'):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, id := range provedBy(string(text)) {
				ids[id] = true
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

var (
	anID        = regexp.MustCompile(`\b(?:FLOW|SEC|PART|MSG)-[A-Z0-9]+(?:-[A-Z0-9]+)*\b`)
	proofInside = regexp.MustCompile(`(?m)^\s*//.*\bProves: .*(?:\n\s*//.*)*`)
)

// provedBy are the ids of one file.
func provedBy(text string) []string {
	var ids []string
	for _, comment := range proofInside.FindAllString(text, -1) {
		_, after, _ := strings.Cut(comment, "Proves: ")
		ids = append(ids, anID.FindAllString(after, -1)...)
	}
	return ids
}
