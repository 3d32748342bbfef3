package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/parley-mcp/parley/bench/report"
)

// machine says what the figures were measured on.
func machine() []report.Fact {
	facts := []report.Fact{
		{Name: "processor", Is: fmt.Sprintf("%s, %d cores", processor(), runtime.NumCPU())},
		{Name: "system", Is: system()},
		{Name: "Go", Is: strings.TrimPrefix(runtime.Version(), "go")},
	}
	if out, err := exec.Command("node", "--version").Output(); err == nil { //nolint:noctx // it ends at once
		facts = append(facts, report.Fact{Name: "Node.js", Is: strings.TrimPrefix(strings.TrimSpace(string(out)), "v")})
	}
	return facts
}

func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range bytes.Lines(data) {
		if name, is, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			return string(bytes.TrimSpace(is))
		}
	}
	return "unknown"
}

func system() string {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return runtime.GOOS
	}
	word := func(field [65]int8) string {
		var b strings.Builder
		for _, c := range field {
			if c == 0 {
				break
			}
			b.WriteByte(byte(c))
		}
		return b.String()
	}
	return word(u.Sysname) + " " + word(u.Release) + ", " + runtime.GOARCH
}

// peers says which versions of the others were measured.
func (b *bench) peers() ([]report.Fact, error) {
	data, err := os.ReadFile(filepath.Join(b.dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	var facts []report.Fact
	for _, p := range []report.Fact{
		{Name: report.GoSDK, Is: "github.com/modelcontextprotocol/go-sdk"},
		{Name: report.MCPGo, Is: "github.com/mark3labs/mcp-go"},
	} {
		_, rest, ok := strings.Cut(string(data), "\t"+p.Is+" ")
		if !ok {
			return nil, fmt.Errorf("go.mod does not require %s", p.Is)
		}
		version, _, _ := strings.Cut(rest, "\n")
		facts = append(facts, report.Fact{Name: p.Name, Is: p.Is + " " + version})
	}
	facts = append(facts, b.npmPeer(report.TS, filepath.Join(b.dir, "servers", "ts"), "@modelcontextprotocol/server")...)
	return append(facts, b.npmPeer(report.Original, b.peersDir(), "@modelcontextprotocol/server-filesystem")...), nil
}

// npmPeer is the version of a package of npm, by the lock file of a folder.
func (b *bench) npmPeer(peer, dir, name string) []report.Fact {
	var lock struct {
		Packages map[string]struct {
			Version string `json:"version"`
		} `json:"packages"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil || json.Unmarshal(data, &lock) != nil {
		return nil
	}
	p, ok := lock.Packages["node_modules/"+name]
	if !ok {
		return nil
	}
	return []report.Fact{{Name: peer, Is: name + " " + p.Version}}
}
