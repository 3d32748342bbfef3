// Package clients measures clients: each in a process of its own, against a
// target that is the same for all, so that what the process uses is what the
// client costs.
package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/parley-mcp/parley/bench/control"
	"github.com/parley-mcp/parley/bench/fixture"
	"github.com/parley-mcp/parley/bench/report"
)

// Options say what to measure. Programs are found beneath Dir and Bin.
type Options struct {
	// Dir is the folder of module bench.
	Dir string
	// Bin is where Build has put the programs.
	Bin string
	// Rounds is how often each client is measured in each scenario.
	Rounds int
	// Time is about how long each measurement takes.
	Time time.Duration
	// Only chooses scenarios by name. Default: all.
	Only *regexp.Regexp
	// Who chooses clients by name. Default: all.
	Who func(name string) bool
	// Done is told each result as it is there. Default: nobody.
	Done func(report.Scenario, report.Result)
}

// A scenario is what the clients do.
type scenario struct {
	report.Scenario

	http        bool
	legacy      bool
	concurrency int
}

func scenarios() []scenario {
	define := func(name, title, about string, http, legacy bool, concurrency int) scenario {
		return scenario{report.Scenario{
			Name: name, Title: title, About: about,
			Columns: []report.Metric{report.CPU, report.Allocs, report.Bytes, report.Rate, report.Elapsed, report.PeakRSS},
		}, http, legacy, concurrency}
	}
	return []scenario{
		define("client-http", "Client over HTTP", "Calls of a tool in "+fixture.Modern+", one after the other. The floor is net/http with prebuilt bytes.", true, false, 1),
		define("client-http-16", "Client over HTTP, 16 calls at once", "Calls of a tool in "+fixture.Modern+".", true, false, 16),
		define("client-http-legacy", "Client over HTTP, "+fixture.Legacy+", 16 calls at once", "Calls of a tool after a handshake.", true, true, 16),
		define("client-stdio", "Client over stdio", "Calls of a tool in "+fixture.Modern+", one after the other. The floor writes prebuilt lines, with a goroutine that reads.", false, false, 1),
		define("client-stdio-64", "Client over stdio, 64 calls at once", "Calls of a tool in "+fixture.Modern+".", false, false, 64),
		define("client-stdio-legacy", "Client over stdio, "+fixture.Legacy+", 64 calls at once", "Calls of a tool after a handshake.", false, true, 64),
	}
}

// Scenarios lists what Run measures.
func Scenarios() []report.Scenario {
	var list []report.Scenario
	for _, s := range scenarios() {
		list = append(list, s.Scenario)
	}
	return list
}

// Build builds the programs of this package into bin. dir is the folder of
// module bench.
func Build(ctx context.Context, dir, bin string) error {
	c := exec.CommandContext(ctx, "go", "build", "-o", bin+string(filepath.Separator), "./clients/...")
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the clients: %w\n%s", err, out)
	}
	return nil
}

// Run measures. Clients take turns within each round. The client in TypeScript
// is left out where its packages are not installed.
func Run(ctx context.Context, o Options) ([]report.Result, error) {
	var all []report.Result
	for _, s := range scenarios() {
		if o.Only != nil && !o.Only.MatchString(s.Name) {
			continue
		}
		results, err := measure(ctx, o, s)
		if err != nil {
			return all, fmt.Errorf("%s: %w", s.Name, err)
		}
		for _, r := range results {
			if o.Done != nil {
				o.Done(s.Scenario, r)
			}
		}
		all = append(all, results...)
	}
	return all, nil
}

// A contestant is a client that is connected and has warmed up.
type contestant struct {
	child  *control.Child
	counts bool // its allocations
	calls  int  // that take about as long as a measurement should
	result report.Result
}

func measure(ctx context.Context, o Options, s scenario) (results []report.Result, err error) {
	to := []string{"-stdio", filepath.Join(o.Bin, "target")}
	if s.http {
		target, err := control.Start(ctx, control.Program{Path: filepath.Join(o.Bin, "target"), Args: []string{"-http", "127.0.0.1:0"}})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, target.Stop()) }()
		to = []string{"-http", "http://" + target.Addr + "/mcp"}
	}
	if s.legacy {
		to = append(to, "-legacy")
	}
	var field []*contestant
	defer func() {
		for _, c := range field {
			err = errors.Join(err, c.child.Stop())
		}
	}()
	for _, p := range programs(o) {
		if o.Who != nil && !o.Who(p.name) {
			continue
		}
		p.Args = append(p.Args, to...)
		child, err := control.Start(ctx, p.Program)
		if err != nil {
			return nil, err
		}
		c := &contestant{child: child, counts: p.counts, result: report.Result{Scenario: s.Name, Server: p.name}}
		field = append(field, c)
		if err := c.warmUp(o.Time, s.concurrency); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for range o.Rounds {
		for _, c := range field {
			if err := errors.Join(context.Cause(ctx), c.round(s.concurrency)); err != nil {
				return nil, fmt.Errorf("%s: %w", c.result.Server, err)
			}
		}
	}
	for _, c := range field {
		results = append(results, c.result)
	}
	return results, nil
}

// A program is one client.
type program struct {
	control.Program

	name   string
	counts bool // its allocations
}

func programs(o Options) []program {
	var list []program
	for _, p := range []struct{ name, file string }{
		{report.Parley, "parley"}, {report.GoSDK, "gosdk"}, {report.MCPGo, "mcpgo"}, {report.Floor, "floor"},
	} {
		list = append(list, program{control.Program{Path: filepath.Join(o.Bin, p.file)}, p.name, true})
	}
	ts := filepath.Join(o.Dir, "clients", "ts")
	node, err := exec.LookPath("node")
	if _, missing := os.Stat(filepath.Join(ts, "node_modules")); err == nil && missing == nil {
		list = append(list, program{control.Program{Path: node, Args: []string{"client.mjs"}, Dir: ts}, report.TS, false})
	}
	return list
}

// Numbers of calls that a measurement has at least and at most.
const (
	fewest = 64
	most   = 1_000_000
)

// warmUp makes calls until it is known how many fill the time.
func (c *contestant) warmUp(d time.Duration, concurrency int) error {
	c.calls = fewest
	for {
		ran, err := c.child.Run(c.calls, concurrency)
		if err != nil {
			return err
		}
		enough := ran.Elapsed >= d/4 || c.calls == most
		c.calls = min(max(int(float64(c.calls)*float64(d)/float64(max(ran.Elapsed, 1))), fewest), c.calls*16, most)
		if enough {
			return nil
		}
	}
}

func (c *contestant) round(concurrency int) error {
	if err := c.child.ResetPeak(); err != nil {
		return err
	}
	ran, err := c.child.Run(c.calls, concurrency)
	if err != nil {
		return err
	}
	peak, err := c.child.PeakRSS()
	if err != nil {
		return err
	}
	n := float64(c.calls)
	m := report.Metrics{
		report.CPU:     float64(ran.CPU) / n,
		report.Elapsed: float64(ran.Elapsed) / float64(time.Microsecond) / n,
		report.Rate:    n / ran.Elapsed.Seconds(),
		report.PeakRSS: float64(peak),
	}
	if c.counts {
		m[report.Allocs], m[report.Bytes] = float64(ran.Mallocs)/n, float64(ran.Bytes)/n
	}
	c.result.Rounds = append(c.result.Rounds, m)
	return nil
}
