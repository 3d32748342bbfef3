package main

import (
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestCutChangelog(t *testing.T) {
	const old = "# Changelog\n\n## Unreleased\n\n- New.\n\n## v0.1.0 - 2026-01-01\n\n- Old.\n"
	got, err := cutChangelog([]byte(old), "v0.2.0", day)
	if err != nil {
		t.Fatal(err)
	}
	const want = "# Changelog\n\n## Unreleased\n\n## v0.2.0 - 2026-11-22\n\n- New.\n\n## v0.1.0 - 2026-01-01\n\n- Old.\n"
	if string(got) != want {
		t.Errorf("got:\n%s", got)
	}
	section, err := changes(got, "v0.2.0")
	if err != nil || string(section) != "- New.\n" {
		t.Errorf("changes: %q, %v", section, err)
	}
	if _, err := cutChangelog(got, "v0.3.0", day); err == nil {
		t.Error("a release with nothing new was taken")
	}
	if _, err := changes(got, "v0.3.0"); err == nil {
		t.Error("there are changes of a version that is not there")
	}
}

func TestSetVersions(t *testing.T) {
	mod, err := setRequirements([]byte("module x\n\nrequire (\n\tgithub.com/parley-mcp/parley v0.0.0\n\tgithub.com/spf13/cobra v1.10.2\n)\n"), "v0.1.0")
	if err != nil || !strings.Contains(string(mod), "parley v0.1.0") || !strings.Contains(string(mod), "cobra v1.10.2") {
		t.Errorf("go.mod: %v\n%s", err, mod)
	}
	work, err := setWorkspace([]byte("go 1.26.0\n\nuse (\n\t.\n\t./app\n)\n\nreplace (\n\tgithub.com/parley-mcp/parley v0.0.0 => ./\n\tgithub.com/parley-mcp/parley/contrib/otel v0.0.0 => ./contrib/otel\n)\n"), "v0.1.0")
	if err != nil || strings.Count(string(work), " v0.1.0 => ./") != 2 {
		t.Errorf("go.work: %v\n%s", err, work)
	}
}

func TestBadVersions(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v0.1", "v0.1.0+x", "v2.0.0", "latest"} {
		if err := prepare(t.Context(), t.TempDir(), version, day); err == nil || strings.Contains(err.Error(), "git") {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestLicenceOf(t *testing.T) {
	for text, want := range map[string]string{
		"Permission to use, copy, modify, and distribute\nthis software for any purpose with or without fee":           "ISC",
		"Permission is hereby granted, free of charge, …\nTHE SOFTWARE IS PROVIDED “AS IS”":                            "MIT",
		"Redistribution and use in source and binary forms, … to endorse or promote products derived from":             "BSD-3-Clause",
		"Redistribution and use in source and binary forms, …\n1. Redistributions must retain this list of conditions": "BSD-2-Clause",
		"Apache License\n   Version 2.0, January 2004":                                                                 "Apache-2.0",
		"You may not use this software.": "",
	} {
		if got := licenceOf([]byte(text)); got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
	}
}

func TestDifferences(t *testing.T) {
	got := strings.Join(differences("a\nb\nc\n", "b\nc\nd\n"), " ")
	if got != "- a + d" {
		t.Errorf("got %q", got)
	}
	if got := differences("a\n", "a\n"); got != nil {
		t.Errorf("equal texts differ: %q", got)
	}
}

// The same files give the same archive in any order, and folders are there.
func TestTarball(t *testing.T) {
	a, err := tarball([]file{{name: "x/b", mode: 0o644, data: []byte("b")}, {name: "a", mode: 0o755}}, day)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tarball([]file{{name: "a", mode: 0o755}, {name: "x/b", mode: 0o644, data: []byte("b")}}, day)
	if err != nil || string(a) != string(b) {
		t.Errorf("the archives differ (%v)", err)
	}
	if !strings.Contains(string(a), "x/\x00") {
		t.Error("there is no folder x")
	}
}
