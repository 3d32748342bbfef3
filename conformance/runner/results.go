package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A scenario is one scenario of the suite, run for one revision.
type scenario struct {
	// leg is one of [legs]: what is tested, and by which version of the suite.
	leg string
	// revision is the protocol revision that is spoken on the wire.
	revision string
	// name is the suite's name for the scenario.
	name string
}

// The legs of the suite that are run.
const (
	legServer = "server"
	legClient = "client"
	legIssuer = "authorization-server"
	// legProxy and legProxyHandshake test proxies of the server, which speaks the
	// newest revision and the last one with a handshake to them.
	legProxy          = "proxy"
	legProxyHandshake = "proxy-handshake"
	// legOldServer tests servers with what only an older version of the suite asks.
	legOldServer = "old-server"
)

// legs are all of them, in the order of the table.
var legs = []string{legServer, legProxy, legProxyHandshake, legClient, legIssuer, legOldServer, legBridge, legBridgeHandshake, legNew}

// authorization reports whether a scenario for clients is one of authorization.
func (s scenario) authorization() bool {
	return s.leg == legClient && strings.HasPrefix(s.name, "auth/")
}

// extension reports whether a scenario is one of the extensions for skills (SEP-2640) and
// tasks (SEP-2663), but for one that the suite skips itself and that so checks nothing:
// ext/tasks has a test of its own for notifications.
func (s scenario) extension() bool {
	return strings.HasPrefix(s.name, "sep-2640-") || strings.HasPrefix(s.name, "tasks-") && s.name != "tasks-status-notifications"
}

// String names the scenario for people.
func (s scenario) String() string { return s.leg + " " + s.revision + " " + s.name }

// counts are the checks of one scenario by status. INFO is left out: those
// are notes about messages that came by, and how many do depends on timing.
type counts struct {
	success, failure, warning, skipped int
}

// A result is what one scenario reported.
type result struct {
	counts
	// complaints are the checks that failed or warned, a line each; names are their names.
	complaints, names []string
}

// readChecks counts the checks of a checks.json of the suite. A status that is not
// known is an error, so that none is passed over.
func readChecks(r io.Reader) (*result, error) {
	var checks []struct {
		Name, Description, Status, ErrorMessage string
	}
	if err := json.NewDecoder(r).Decode(&checks); err != nil {
		return nil, fmt.Errorf("reading checks: %w", err)
	}
	res := new(result)
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			res.success++
		case "SKIPPED":
			res.skipped++
		case "INFO":
		case "FAILURE":
			res.failure++
			res.names = append(res.names, c.Name)
			res.complaints = append(res.complaints, fmt.Sprintf("failed: %s: %s", c.Name, cmp.Or(c.ErrorMessage, c.Description)))
		case "WARNING":
			res.warning++
			res.names = append(res.names, c.Name)
			res.complaints = append(res.complaints, fmt.Sprintf("warned: %s: %s", c.Name, cmp.Or(c.ErrorMessage, c.Description)))
		default:
			return nil, fmt.Errorf("check %s has the unknown status %q; teach readChecks about it", c.Name, c.Status)
		}
	}
	return res, nil
}

// stamp is the time that the suite appends to the name of a folder of results.
var stamp = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-\d{3}Z$`)

// readResults reads the results that the suite has put into the folder dir, in
// a folder for each scenario, and returns them by the scenario's name. Two
// results of one scenario are an error.
func readResults(dir, leg string) (map[string]*result, error) {
	results := make(map[string]*result)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		folder, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := stamp.ReplaceAllString(filepath.ToSlash(folder), "")
		if leg != legClient { // the others mark their folders
			bare, ok := strings.CutPrefix(name, leg+"-")
			if !ok {
				return fmt.Errorf("folder %s is not named after a scenario for the %s", folder, leg)
			}
			name = bare
		}
		if results[name] != nil {
			return fmt.Errorf("scenario %s has two results in %s", name, dir)
		}
		checks, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if results[name], err = readChecks(bytes.NewReader(checks)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	return results, nil
}
