package interop_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The peers are the same for everybody: package.json names exact versions, and
// the lock says where each package comes from and what it holds.
func TestLock(t *testing.T) {
	for _, dir := range []string{"peers", "peers/servers"} {
		t.Run(dir, func(t *testing.T) { checkLock(t, dir) })
	}
}

func checkLock(t *testing.T, dir string) {
	t.Helper()
	var manifest struct {
		Dependencies         map[string]string `json:"dependencies"`
		OptionalDependencies map[string]string `json:"optionalDependencies"`
	}
	decodeFile(t, dir+"/package.json", &manifest)
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	for _, list := range []map[string]string{manifest.Dependencies, manifest.OptionalDependencies} {
		for name, version := range list {
			if !exact.MatchString(version) {
				t.Errorf("package.json: %s %s is no exact version", name, version)
			}
		}
	}
	var lock struct {
		Packages map[string]struct {
			Resolved  string `json:"resolved"`
			Integrity string `json:"integrity"`
		} `json:"packages"`
	}
	decodeFile(t, dir+"/package-lock.json", &lock)
	for name, p := range lock.Packages {
		if name != "" && (!strings.HasPrefix(p.Resolved, "https://registry.npmjs.org/") || p.Integrity == "") {
			t.Errorf("package-lock.json: %s comes from %q with integrity %q", name, p.Resolved, p.Integrity)
		}
	}
}

func decodeFile(t *testing.T, name string, to any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
