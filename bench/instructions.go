package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/parley-mcp/parley/bench/control"
	"github.com/parley-mcp/parley/bench/driver"
	"github.com/parley-mcp/parley/bench/fixture"
	"github.com/parley-mcp/parley/bench/report"
)

// Instructions are counted by valgrind's tool callgrind, in two runs of a program that has one
// processor: what the second one takes more is that of the requests that it serves more. The
// scheduler's depend on what else the machine does, and are left out. Where collections of garbage
// fall counts too: of few large requests, one more or less is a tenth. So the guard counts without
// them, and holds the bytes that requests allocate instead.
//
// Valgrind 3.19 reports the instruction RDTSCP even where the processor lacks it, and then refuses to run
// it. The Go runtime uses it when a lock is contended, so GODEBUG turns it off.
const (
	fewRequests  = 500
	manyRequests = 2500
)

var errNoValgrind = errors.New("instructions are counted by valgrind, which is not installed")

// Names of the scenarios.
const (
	instructionsModern   = "instructions-http-modern"
	instructionsSession  = "instructions-http-session"
	instructionsStdio    = "instructions-stdio"
	instructionsList     = "instructions-list-100"
	instructionsProgress = "instructions-progress"
	instructionsEvents   = "instructions-session-progress"
	instructionsClient   = "instructions-client-http"
	instructionsTask     = "instructions-tasks-get"
)

// A counted program is run under valgrind. work has it serve, or make, n requests.
type counted struct {
	program   control.Program
	few, many int      // requests of the two runs
	env       []string // added to the program's
	work      func(ctx context.Context, c *control.Child, n int) error
}

// instructions are the scenarios in which instructions are counted.
func instructions() []*scenario {
	echo, answer := driver.Echo(fixture.Text), driver.Result(fixture.Text, 0)
	row := func(name, title, about string, size int, servers []string, of func(b *bench, server string) counted) *scenario {
		return &scenario{
			Scenario: report.Scenario{Name: name, Title: title, About: about, Columns: []report.Metric{report.Instructions}},
			servers:  servers,
			exact:    true,
			enter: func(_ context.Context, b *bench, server string, _ int) (*contestant, error) {
				c := of(b, server)
				c.few, c.many = max(fewRequests/size/b.less, 2), max(manyRequests/size/b.less, 4)
				if b.guarding {
					c.env = []string{"GOGC=off"}
				}
				return &contestant{
					server: server,
					round:  func(ctx context.Context) (report.Metrics, error) { return c.count(ctx) },
					stop:   func() error { return nil },
				}, nil
			},
		}
	}
	web := func(name, title, about string, size int, servers []string, l driver.Load, args ...string) *scenario {
		return row(name, title, about, size, servers, func(b *bench, server string) counted {
			return counted{program: b.program(server, false, args...), work: func(ctx context.Context, c *control.Child, n int) error {
				l := l
				l.Addr, l.Conns = c.Addr, 1
				w, err := l.Open(ctx)
				if err != nil {
					return err
				}
				defer w.Close()
				_, err = w.Times(n)
				return err
			}}
		})
	}
	const many = 100
	list := driver.Load{Call: driver.List(), Check: driver.Result(fixture.Filler(many-1), 400*many)}
	progress := driver.Load{Call: driver.Progress(manyEvents), Check: driver.Stream(fixture.Done)}
	events := progress
	events.Era = driver.Session
	ours := []string{report.Floor, report.Parley}
	return []*scenario{
		web(instructionsModern, "Instructions: HTTP "+fixture.Modern+", answered as JSON", "Calls of echo over one connection.",
			1, inGo, driver.Load{Call: echo, Check: answer}, "-mode", fixture.ModeJSON),
		web(instructionsSession, "Instructions: HTTP "+fixture.Legacy+", one session", "Calls of echo in one session over one connection.",
			1, inGo, driver.Load{Era: driver.Session, Call: echo, Check: answer}, "-mode", fixture.ModeSession),
		row(instructionsStdio, "Instructions: stdio "+fixture.Modern, "Calls of echo, the next when the answer is there.", 1, inGo,
			func(b *bench, server string) counted {
				check := answer
				if server == report.Floor { // it knows no results
					check = driver.Line(fixture.Text)
				}
				return counted{program: b.program(server, true, "-stdio"), work: func(_ context.Context, c *control.Child, n int) error {
					_, err := driver.OpenPipe(c.In, c.Out, 1, echo, driver.Stateless, check).Times(n)
					return err
				}}
			}),
		web(instructionsList, "Instructions: tools/list of 100", "All tools in one page.", 10, inGo, list, "-mode", fixture.ModeJSON, "-tools", strconv.Itoa(many)),
		web(instructionsProgress, "Instructions: HTTP "+fixture.Modern+", 1,000 notifications", "A call that reports progress 1,000 times.",
			100, ours, progress, "-mode", fixture.ModeSSE),
		web(instructionsEvents, "Instructions: HTTP "+fixture.Legacy+", 1,000 notifications in a session", "A call that reports progress 1,000 times; the events are kept for a client that comes back.",
			100, []string{report.Parley}, events, "-mode", fixture.ModeSession),
		web(instructionsTask, "Instructions: HTTP "+fixture.Modern+", tasks/get", "The state of a task that has ended, with its result.",
			1, []string{report.Parley}, driver.Load{Call: driver.Task(), Check: answer}, "-mode", fixture.ModeJSON, "-task"),
		row(instructionsClient, "Instructions: client over HTTP", "Calls of echo, of a target that answers with bytes that are ready.", 1, inGo,
			func(b *bench, server string) counted {
				return counted{program: b.clientProgram(server), work: func(_ context.Context, c *control.Child, n int) error {
					_, err := c.Run(n, 1)
					return err
				}}
			}),
	}
}

// clientProgram is a client that calls a target of its own; see counted.target.
func (b *bench) clientProgram(name string) control.Program {
	return control.Program{Path: filepath.Join(b.bin, "clients", programs[name]), Args: []string{target}}
}

// target stands in the arguments of a client for the address of its target.
const target = "-target"

// count counts the instructions of one request.
func (c counted) count(ctx context.Context) (report.Metrics, error) {
	var counts [2]float64
	for i, n := range []int{c.few, c.many} {
		count, err := c.run(ctx, n)
		if err != nil {
			return nil, err
		}
		counts[i] = count
	}
	return report.Metrics{report.Instructions: (counts[1] - counts[0]) / float64(c.many-c.few)}, nil
}

// run counts the instructions of a program that serves n requests.
func (c counted) run(ctx context.Context, n int) (count float64, err error) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return 0, errNoValgrind
	}
	dir, err := os.MkdirTemp("", "callgrind")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := c.program
	if i := len(p.Args) - 1; i >= 0 && p.Args[i] == target {
		t, err := control.Start(ctx, control.Program{Path: filepath.Join(filepath.Dir(p.Path), "target"), Args: []string{"-http", "127.0.0.1:0"}})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, t.Stop()) }()
		p.Args = []string{"-http", "http://" + t.Addr + "/mcp"}
	}
	out := filepath.Join(dir, "out")
	p.Args = append([]string{"--tool=callgrind", "--quiet", "--callgrind-out-file=" + out, p.Path}, p.Args...)
	p.Path, p.Env = "valgrind", slices.Concat(p.Env, c.env, []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off"})
	child, err := control.Start(ctx, p)
	if err != nil {
		return 0, err
	}
	err = c.work(ctx, child, n)
	if err = errors.Join(err, child.Stop()); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(out) // our own
	if err != nil {
		return 0, err
	}
	return instructionsOf(text)
}
