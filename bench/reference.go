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
	name, title string
	about       string   // what else there is to know
	serve       []string // arguments of "parley serve"; DIR stands for a folder of its own
	original    []string // the script below node_modules, and its arguments
	env         []string // of both
	prepare     func(dir string) error
	call        func(dir string) driver.Call
	want        string // is in the result
}

// Names of the scenarios of references.
const (
	filesRead    = "reference-filesystem-read"
	filesList    = "reference-filesystem-list"
	memoryOpen   = "reference-memory-open"
	memorySearch = "reference-memory-search"
	memoryCreate = "reference-memory-create"
	thinkingOne  = "reference-thinking"
	everyEcho    = "reference-everything-echo"
)

// referenceDir stands for the folder in arguments.
const referenceDir = "DIR"

// references are the calls that are measured. A server is added by a row.
func references() []reference {
	files := reference{
		serve:    []string{"filesystem", referenceDir},
		original: []string{"@modelcontextprotocol/server-filesystem/dist/index.js", referenceDir},
		prepare:  fillFolder,
	}
	memory := reference{
		serve: []string{"memory"}, original: []string{"@modelcontextprotocol/server-memory/dist/index.js"},
		env:     []string{"MEMORY_FILE_PATH=" + filepath.Join(referenceDir, memoryFile)},
		prepare: fillMemory,
	}
	return []reference{
		files.of(filesRead, "read_text_file of 4 KiB", "line 0 of a file",
			func(dir string) driver.Call { return pathCall("read_text_file", filepath.Join(dir, "file.txt")) }),
		files.of(filesList, "list_directory of 100", "[FILE] entry-42.txt",
			func(dir string) driver.Call { return pathCall("list_directory", filepath.Join(dir, "many")) }),
		memory.of(memoryOpen, "open_nodes of 3 in 300", "Entity 40 has fact 2",
			func(string) driver.Call {
				return toolCall("open_nodes", `{"names":["entity 4","entity 40","entity 140"]}`)
			}),
		memory.of(memorySearch, "search_nodes in 300", "Entity 240 has fact 2",
			func(string) driver.Call { return toolCall("search_nodes", `{"query":"ENTITY 240 HAS"}`) }),
		memory.of(memoryCreate, "create_entities, after 300", "created",
			func(string) driver.Call {
				return toolCall("create_entities", `{"entities":[{"name":"entity `+driver.Number+`","entityType":"created","observations":["One fact."]}]}`)
			}).saying("Each call creates another one. The file grows, more for the quicker server. Ours is on the disk, by fsync, before the answer; " +
			"the original does not wait for the disk, and of calls at the same time it keeps the last."),
		reference{
			serve: []string{"thinking"}, original: []string{"@modelcontextprotocol/server-sequential-thinking/dist/index.js"},
		}.of(thinkingOne, "sequentialthinking", "thoughtHistoryLength",
			func(string) driver.Call {
				return toolCall("sequentialthinking", `{"thought":"What is asked for, and what is known?","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":5}`)
			}).saying("The thoughts are written to standard error, as both do it unless they are told not to."),
		reference{
			serve: []string{"everything"}, original: []string{"@modelcontextprotocol/server-everything/dist/index.js"},
		}.of(everyEcho, "echo", fixture.Text,
			func(string) driver.Call { return toolCall("echo", `{"message":"`+fixture.Text+`"}`) }),
	}
}

// of is a row for a call of a server.
func (r reference) of(name, title, want string, call func(dir string) driver.Call) reference {
	r.name, r.title, r.want, r.call = name, "parley serve "+r.serve[0]+": "+title, want, call
	r.about = "64 calls under way over stdio, in " + fixture.Legacy + "."
	return r
}

// saying adds what else there is to know about a row.
func (r reference) saying(about string) reference {
	r.about += " " + about
	return r
}

// toolCall is a call with arguments, which are JSON.
func toolCall(tool, arguments string) driver.Call {
	return driver.Call{Method: "tools/call", Name: tool, Params: fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments)}
}

// pathCall is a call with a path.
func pathCall(tool, path string) driver.Call {
	text, _ := json.Marshal(path) // a string
	return toolCall(tool, fmt.Sprintf(`{"path":%s}`, text))
}

// memoryFile is the name of the file of a memory.
const memoryFile = "memory.jsonl"

// fillMemory makes a memory of 300 entities, each with three facts and a relation to the next.
func fillMemory(dir string) error {
	const entities = 300
	var text strings.Builder
	for i := range entities {
		fmt.Fprintf(&text, `{"type":"entity","name":"entity %d","entityType":"thing","observations":["Entity %[1]d has fact 0","Entity %[1]d has fact 1","Entity %[1]d has fact 2"]}`+"\n", i)
	}
	for i := range entities {
		fmt.Fprintf(&text, `{"type":"relation","from":"entity %d","to":"entity %d","relationType":"comes before"}`+"\n", i, (i+1)%entities)
	}
	return os.WriteFile(filepath.Join(dir, memoryFile), []byte(text.String()), 0o600)
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

// referenceTargets are those of every row: at least five times the calls of the original, in at most a third
// of its memory.
func referenceTargets() []report.Target {
	var list []report.Target
	for _, r := range references() {
		list = append(list,
			report.Target{What: r.title + ": calls/s to the original", Scenario: r.name, Metric: report.Rate, To: report.Original, Unit: x, AtLeast: 5, Aim: 8},
			report.Target{What: r.title + ": peak RSS to the original", Scenario: r.name, Metric: report.PeakRSS, To: report.Original, Unit: x, AtLeast: 0.33, Aim: 0.25, Less: true})
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
	for _, variable := range r.env {
		p.Env = append(p.Env, strings.ReplaceAll(variable, referenceDir, dir))
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
	c := exec.CommandContext(ctx, "go", "build", "-o", program, "./app/cmd/parley") // our own words
	c.Dir = filepath.Join(b.dir, "..")
	c.Env = append(os.Environ(), "GOWORK=") // the workspace has it
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build parley: %w\n%s", err, out)
	}
	return program, nil
}
