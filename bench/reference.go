package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/parley-mcp/parley/bench/control"
	"github.com/parley-mcp/parley/bench/driver"
	"github.com/parley-mcp/parley/bench/fixture"
	"github.com/parley-mcp/parley/bench/report"
)

// A reference is one call of a server that parley contains, measured beside the original
// of it: both as people start them, over stdio.
type reference struct {
	name, title, about string
	serve              []string // arguments of "parley serve"; DIR stands for a folder of its own
	original           []string // the script below node_modules, and its arguments
	prepare            func(dir string) error
	call               func(dir string) driver.Call
	want               string // is in the result
}

// Names of the scenarios of references.
const (
	filesRead = "reference-filesystem-read"
	filesList = "reference-filesystem-list"
)

// referenceDir stands for the folder in arguments.
const referenceDir = "DIR"

// references are the calls that are measured. A server is added by a row.
func references() []reference {
	const server = "@modelcontextprotocol/server-filesystem/dist/index.js"
	serve, original := []string{"filesystem", referenceDir}, []string{server, referenceDir}
	return []reference{
		{
			name: filesRead, title: "parley serve filesystem: read_text_file of 4 KiB", about: "64 calls under way over stdio, in " + fixture.Legacy + ".",
			serve: serve, original: original, prepare: fillFolder, want: "line 0 of a file",
			call: func(dir string) driver.Call { return toolCall("read_text_file", filepath.Join(dir, "file.txt")) },
		},
		{
			name: filesList, title: "parley serve filesystem: list_directory of 100", about: "64 calls under way over stdio, in " + fixture.Legacy + ".",
			serve: serve, original: original, prepare: fillFolder, want: "[FILE] entry-42.txt",
			call: func(dir string) driver.Call { return toolCall("list_directory", filepath.Join(dir, "many")) },
		},
	}
}

// toolCall is a call with a path.
func toolCall(tool, path string) driver.Call {
	text, _ := json.Marshal(path) //nolint:errchkjson // a string
	return driver.Call{Method: "tools/call", Name: tool, Params: fmt.Sprintf(`"name":%q,"arguments":{"path":%s}`, tool, text)}
}

// fillFolder makes a file of 4 KiB and a directory of 100.
func fillFolder(dir string) error {
	var text strings.Builder
	for i := 0; text.Len() < 4<<10; i++ {
		fmt.Fprintf(&text, "line %d of a file\n", i)
	}
	err := os.WriteFile(filepath.Join(dir, "file.txt"), []byte(text.String()[:4<<10]), 0o600)
	err = errors.Join(err, os.Mkdir(filepath.Join(dir, "many"), 0o700))
	for i := range 100 {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "many", fmt.Sprintf("entry-%d.txt", i)), nil, 0o600))
	}
	return err
}

// referenceScenarios are the rows as scenarios.
func referenceScenarios() []*scenario {
	var list []*scenario
	for _, r := range references() {
		list = append(list, &scenario{
			Scenario: report.Scenario{
				Name: r.name, Title: r.title, About: r.about,
				Columns: []report.Metric{report.Rate, report.CPU, report.P50, report.P99, report.PeakRSS, report.Size},
			},
			servers: []string{report.Parley, report.Original},
			enter: func(ctx context.Context, b *bench, server string, _ int) (*contestant, error) {
				return b.reference(ctx, &r, server)
			},
		})
	}
	return list
}

// reference starts one of the two servers of a row, in a folder of its own.
func (b *bench) reference(ctx context.Context, r *reference, server string) (*contestant, error) {
	dir, err := os.MkdirTemp("", "parley-reference")
	if err != nil {
		return nil, err
	}
	c, err := b.startReference(ctx, r, server, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", server, err), os.RemoveAll(dir))
	}
	stop := c.stop
	c.stop = func() error { return errors.Join(stop(), os.RemoveAll(dir)) }
	return c, nil
}

func (b *bench) startReference(ctx context.Context, r *reference, server, dir string) (*contestant, error) {
	if r.prepare != nil {
		if err := r.prepare(dir); err != nil {
			return nil, err
		}
	}
	p := control.Program{Stdio: true, Foreign: true}
	args := r.original
	if server == report.Parley {
		program, err := b.buildParley(ctx)
		if err != nil {
			return nil, err
		}
		p.Path, args = program, append([]string{"serve"}, r.serve...)
	} else {
		script, err := filepath.Abs(filepath.Join(b.peersDir(), "node_modules", args[0]))
		if err != nil {
			return nil, err
		}
		p.Path, args = "node", append([]string{script}, args[1:]...)
	}
	for _, arg := range args {
		p.Args = append(p.Args, strings.ReplaceAll(arg, referenceDir, dir))
	}
	child, err := control.Start(ctx, p)
	if err != nil {
		return nil, err
	}
	pipe := driver.OpenPipe(child.In, child.Out, inFlight, r.call(dir), driver.Session, driver.Result(r.want, 0))
	c := &contestant{
		server: server,
		round:  func(context.Context) (report.Metrics, error) { return used(child, pipe, b.time) },
		stop:   child.Stop,
	}
	if err = pipe.Greet(); err == nil {
		_, err = pipe.Run(b.time / warming)
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// buildParley builds the program, which is of another module, once.
func (b *bench) buildParley(ctx context.Context) (string, error) {
	program := b.parley()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	c := exec.CommandContext(ctx, "go", "build", "-o", program, "./app/cmd/parley") //nolint:gosec // our own words
	c.Dir = filepath.Join(b.dir, "..")
	c.Env = append(os.Environ(), "GOWORK=") // the workspace has it
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build parley: %w\n%s", err, out)
	}
	return program, nil
}
