package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nothing but the public registry is named, and everything by its digest.
func TestLock(t *testing.T) {
	lock, err := os.ReadFile(filepath.Join("..", "suite", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Count(string(lock), `"resolved": `)
	if packages == 0 || packages != strings.Count(string(lock), `"resolved": "https://registry.npmjs.org/`) {
		t.Error("package-lock.json names another place than the public registry")
	}
	if n := strings.Count(string(lock), `"integrity": "sha512-`); n != packages {
		t.Errorf("%d packages, but %d digests", packages, n)
	}
}
