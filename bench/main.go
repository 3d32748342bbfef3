// Command bench measures Parley beside other libraries and beside the floor: the
// least that a server can do for the same traffic. README.md says how.
//
//	go run . -out ../docs
//	go run . -guard
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/parley-mcp/parley/bench/clients"
	"github.com/parley-mcp/parley/bench/control"
	"github.com/parley-mcp/parley/bench/plot/figures"
	"github.com/parley-mcp/parley/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) // this is main
	}
}

// bench is one run.
type bench struct {
	dir, bin string
	rounds   int
	time     time.Duration
	sessions int
	less     int  // of the requests whose instructions are counted, one of so many
	guarding bool // the guard measures
	only     *regexp.Regexp
	out      io.Writer
}

// short measures a shorter time, for series of many.
func (b *bench) short() *bench {
	c := *b
	c.time /= 4
	return &c
}

// program is what starts a server.
func (b *bench) program(server string, stdio bool, args ...string) control.Program {
	if server == report.TS {
		return control.Program{Path: "node", Args: append([]string{"server.mjs"}, args...), Dir: filepath.Join(b.dir, "servers", "ts"), Stdio: stdio}
	}
	return control.Program{Path: filepath.Join(b.bin, "servers", programs[server]), Args: args, Stdio: stdio}
}

// programs are the names of the programs in Go.
var programs = map[string]string{report.Parley: "parley", report.GoSDK: "gosdk", report.MCPGo: "mcpgo", report.Floor: "floor"}

func run(ctx context.Context) error {
	b := &bench{sessions: sessions, less: 1, out: os.Stdout}
	rounds := flag.Int("rounds", 5, "how often each server is measured")
	each := flag.Duration("time", 800*time.Millisecond, "how long one measurement takes")
	only := flag.String("only", "", "measure the scenarios whose names match this regular expression; the results of the others are kept")
	out := flag.String("out", "", "folder of the documentation, where the report is written; none: it is only printed")
	quick := flag.Bool("quick", false, "one short round: to see that all works")
	dir := flag.String("dir", ".", "folder of module bench")
	bin := flag.String("bin", "", "folder for the built programs. Default: a temporary one")
	guard := flag.Bool("guard", false, "measure Parley and the floor shortly, and fail if a ceiling is broken")
	build := flag.Bool("build", false, "only build the programs, into -bin")
	flag.Parse()
	var err error
	if b.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	b.dir, b.rounds, b.time = *dir, *rounds, *each
	if *quick {
		b.rounds, b.time, b.sessions, b.less = 1, 50*time.Millisecond, 50, 20
	}
	remove, err := b.build(ctx, *bin)
	if err != nil || *build {
		return err
	}
	defer remove()
	r := &report.Run{Date: time.Now().UTC().Format(time.DateOnly), Rounds: b.rounds, Machine: machine()}
	if r.Peers, err = b.peers(); err != nil {
		return err
	}
	if *guard {
		return b.guard(ctx, r)
	}
	anybody := func(string) bool { return true }
	take := func(s report.Scenario, results []report.Result) { b.take(r, s, results) }
	if err := b.all(ctx, b.only.MatchString, anybody, take); err != nil {
		return err
	}
	return b.finish(r, *out)
}

// build builds the programs that are measured. Without a folder for them it
// makes one, which remove removes.
func (b *bench) build(ctx context.Context, bin string) (remove func(), err error) {
	remove = func() {}
	if bin == "" {
		if bin, err = os.MkdirTemp("", "parley-bench"); err != nil {
			return nil, err
		}
		remove = func() { _ = os.RemoveAll(bin) }
	}
	b.bin, err = filepath.Abs(bin)
	if err == nil {
		err = errors.Join(b.compile(ctx, "servers", "./servers/..."), clients.Build(ctx, b.dir, filepath.Join(b.bin, "clients")))
	}
	if err == nil {
		err = b.compileProgram(ctx)
	}
	if err != nil {
		remove()
	}
	return remove, err
}

// compile builds packages into a folder of the programs.
func (b *bench) compile(ctx context.Context, folder string, packages ...string) error {
	to := filepath.Join(b.bin, folder) + string(filepath.Separator)
	c := exec.CommandContext(ctx, "go", append([]string{"build", "-o", to}, packages...)...) // our own words
	c.Dir = b.dir
	c.Env = append(os.Environ(), "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the %s: %w\n%s", folder, err, out)
	}
	return nil
}

// all measures the chosen scenarios with the chosen servers and clients, and
// gives the results away as they come.
func (b *bench) all(ctx context.Context, chosen, who func(name string) bool, take func(report.Scenario, []report.Result)) error {
	for _, s := range scenarios() {
		if !chosen(s.Name) {
			continue
		}
		if s.peers && !b.hasPeers() {
			continue
		}
		s.servers = slices.DeleteFunc(slices.Clone(s.servers), func(server string) bool {
			ceiling := b.guarding && s.exact && server != report.Parley // against ceilings, not beside the floor
			return ceiling || !who(server) || server == report.TS && !b.hasTS() || (server == inspectorName || server == report.Original) && !b.hasPeers()
		})
		results, err := s.measure(ctx, b)
		if err != nil {
			return err
		}
		take(s.Scenario, results)
	}
	for _, s := range clients.Scenarios() {
		if !chosen(s.Name) {
			continue
		}
		results, err := clients.Run(ctx, clients.Options{
			Dir: b.dir, Bin: filepath.Join(b.bin, "clients"), Rounds: b.rounds, Time: b.time / 2,
			Only: regexp.MustCompile("^" + regexp.QuoteMeta(s.Name) + "$"), Who: who,
		})
		if err != nil {
			return err
		}
		take(s, results)
	}
	return nil
}

// take keeps results, and prints them.
func (b *bench) take(r *report.Run, s report.Scenario, results []report.Result) {
	r.Scenarios = append(r.Scenarios, s)
	r.Results = append(r.Results, results...)
	b.print(r.Table(s) + "\n")
}

// hasTS tells whether the packages of the server in TypeScript are installed.
func (b *bench) hasTS() bool {
	_, missing := os.Stat(filepath.Join(b.dir, "servers", "ts", "node_modules"))
	_, noNode := exec.LookPath("node")
	return missing == nil && noNode == nil
}

// finish prints the targets, and writes the report beside the results that other
// runs left.
func (b *bench) finish(r *report.Run, docs string) error {
	if docs != "" {
		var err error
		if r, err = b.write(r, docs); err != nil {
			return err
		}
	}
	b.print(r.Targets(targets()) + "\n" + speed(r))
	return nil
}

func (b *bench) write(r *report.Run, docs string) (*report.Run, error) {
	folder := filepath.Join(docs, "benchmarks")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "results.json")
	whole, err := report.Load(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		whole = r
	case err != nil:
		return nil, err
	default:
		whole.Merge(r)
	}
	whole.Sort(order())
	if err := whole.Save(file); err != nil {
		return nil, err
	}
	page := filepath.Join(docs, "benchmarks.md")
	old, err := os.ReadFile(page)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	drawn, err := figures.Write(whole, folder)
	if err != nil {
		return nil, err
	}
	text, err := report.Splice(string(old), whole.Page(targets(), speed(whole), pictures(drawn)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page, err)
	}
	return whole, os.WriteFile(page, []byte(text), 0o644)
}

// order is the order of the scenarios in the report.
func order() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.Name)
	}
	for _, s := range clients.Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

// pictures gives the picture of a scenario as Markdown, or nothing.
func pictures(drawn []figures.Figure) func(report.Scenario) string {
	return func(s report.Scenario) string {
		for _, f := range drawn {
			if f.File == figures.File(s) {
				return fmt.Sprintf("![%s](benchmarks/%s)", f.Title, f.File)
			}
		}
		return ""
	}
}

// print says how far it is.
func (b *bench) print(text string) { _, _ = io.WriteString(b.out, text) }
