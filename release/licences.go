package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// known are licences by words that only they have. What is built from modules
// under these may be given away as a program, with their texts or names.
var known = []struct {
	name  string
	words []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004"}},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee"}},
	{"MIT", []string{"permission is hereby granted, free of charge", `the software is provided "as is"`}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "to endorse or promote products derived from"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms", "this list of conditions"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
}

// licenceOf names the licence of a text, or returns "".
func licenceOf(text []byte) string {
	plain := strings.ToLower(strings.Join(strings.Fields(string(text)), " "))
	plain = strings.NewReplacer("“", `"`, "”", `"`).Replace(plain)
	for _, l := range known {
		all := true
		for _, w := range l.words {
			all = all && strings.Contains(plain, w)
		}
		if all {
			return l.name
		}
	}
	return ""
}

// licences prints the licence of each module that the program is built from, on
// any platform, and of those that the library needs. It fails if one has none of
// the known ones.
func licences(ctx context.Context, repo string) error {
	modules := make(map[string]string) // path and version → folder
	for _, p := range allPlatforms {
		target, err := parsePlatforms(p)
		if err != nil {
			return err
		}
		if err := linked(ctx, repo, target[0], modules); err != nil {
			return err
		}
	}
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		licence, _, err := moduleLicence(modules[name])
		if err != nil {
			return err
		}
		if licence == "" {
			bad = append(bad, name)
			licence = "unknown"
		}
		fmt.Printf("%-14s %s\n", licence, name)
	}
	if len(bad) > 0 {
		return fmt.Errorf("no known licence: %s", strings.Join(bad, ", "))
	}
	return nil
}

// linked adds the modules whose packages the program or the library contain.
func linked(ctx context.Context, repo string, p platform, modules map[string]string) error {
	c := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Module", "./...", "./app/cmd/parley", "./contrib/otel", "./contrib/prometheus/...")
	c.Dir = repo
	c.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", inWorkspace)
	out, err := c.Output()
	if err != nil {
		return failure("go list", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var pkg struct {
			Module *struct{ Path, Version, Dir string }
		}
		if err := d.Decode(&pkg); err != nil {
			return err
		}
		if m := pkg.Module; m != nil && !ours(m.Path) {
			modules[m.Path+" "+m.Version] = m.Dir
		}
	}
	return nil
}

// moduleLicence reads the licence files of a module. Where there are several,
// the first that is known counts; text is all of them.
func moduleLicence(dir string) (name string, text []byte, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	for _, f := range list {
		plain := strings.ToUpper(f.Name())
		if f.IsDir() || !strings.HasPrefix(plain, "LICEN") && !strings.HasPrefix(plain, "COPYING") &&
			!strings.HasPrefix(plain, "NOTICE") && !strings.HasPrefix(plain, "UNLICENSE") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return "", nil, err
		}
		name = cmp.Or(name, licenceOf(data))
		text = append(append(text, data...), '\n')
	}
	return name, text, nil
}

// notices returns the licences of the modules that a program contains, and of
// Go, as most of them want to be shown with it. cache is the folder of modules.
func notices(program []byte, cache, goroot string) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	add := func(title, dir string) error {
		name, text, err := moduleLicence(dir)
		if err != nil {
			return err
		}
		if name == "" {
			return fmt.Errorf("%s has no known licence", title)
		}
		fmt.Fprintf(&b, "%s (%s)\n\n%s\n", title, name, text)
		return nil
	}
	if err := add("The Go standard library, "+info.GoVersion, goroot); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if ours(m.Path) {
			continue
		}
		folder, err := module.EscapePath(m.Path)
		if err != nil {
			return nil, err
		}
		version, err := module.EscapeVersion(m.Version)
		if err != nil {
			return nil, err
		}
		if err := add(m.Path+" "+m.Version, filepath.Join(cache, filepath.FromSlash(folder)+"@"+version)); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
