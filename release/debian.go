package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// debianPackage writes the package of a platform with dpkg-deb.
func debianPackage(ctx context.Context, r *release, p platform, prog *program, out string) error {
	stage, err := os.MkdirTemp("", "deb-")
	if err != nil {
		return err
	}
	defer remove(stage)
	log, err := compressed(r.changes)
	if err != nil {
		return err
	}
	files := []file{
		{name: "usr/bin/parley", mode: 0o755, data: prog.data},
		{name: "usr/share/doc/parley/copyright", mode: 0o644, data: slices.Concat(r.licence, []byte("\n"), prog.notices)},
		{name: "usr/share/doc/parley/changelog.gz", mode: 0o644, data: log},
		{name: "usr/share/bash-completion/completions/parley", mode: 0o644, data: r.completions["bash"]},
		{name: "usr/share/zsh/vendor-completions/_parley", mode: 0o644, data: r.completions["zsh"]},
		{name: "usr/share/fish/vendor_completions.d/parley.fish", mode: 0o644, data: r.completions["fish"]},
	}
	for _, m := range r.manuals {
		page, err := compressed(m.data)
		if err != nil {
			return err
		}
		files = append(files, file{name: "usr/share/man/man1/" + m.name + ".gz", mode: 0o644, data: page})
	}
	size := 0
	for _, f := range files {
		size += len(f.data)
	}
	files = append(files, file{name: "DEBIAN/control", mode: 0o644, data: control(r, p, size)})
	for _, f := range ordered(files) {
		name := filepath.Join(stage, filepath.FromSlash(f.name))
		if strings.HasSuffix(f.name, "/") {
			if err := os.MkdirAll(name, 0o755); err != nil {
				return err
			}
			err = os.Chmod(name, f.mode)
		} else if err = os.WriteFile(name, f.data, f.mode); err == nil {
			err = os.Chmod(name, f.mode) // whatever the umask
		}
		if err != nil {
			return err
		}
	}
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "dpkg-deb", "--root-owner-group", "-Zxz", "--build", stage,
		filepath.Join(out, fmt.Sprintf("parley_%s_%s.deb", r.debianVersion(), p.arch)))
	// Files get this time in the place of theirs, and archive members too.
	c.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.when.Unix(), 10))
	if _, err := c.Output(); err != nil {
		return failure("dpkg-deb", err)
	}
	return nil
}

// debianVersion has a tilde before what precedes a release, so that the release
// is later.
func (r *release) debianVersion() string { return strings.Replace(r.number(), "-", "~", 1) }

func control(r *release, p platform, size int) []byte {
	return fmt.Appendf(nil, `Package: parley
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Recommends: ca-certificates
Section: net
Priority: optional
Homepage: https://%s
Description: use and serve MCP servers from a terminal
 Parley lists and calls what Model Context Protocol servers offer, lets a model
 work with them while a person keeps the last word, and serves them itself.
`, r.debianVersion(), p.arch, r.maintainer, (size+1023)/1024, home)
}
