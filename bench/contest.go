package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/parley-mcp/parley/bench/control"
	"github.com/parley-mcp/parley/bench/driver"
	"github.com/parley-mcp/parley/bench/fixture"
	"github.com/parley-mcp/parley/bench/report"
)

// A contestant is one server, ready to be measured.
type contestant struct {
	server string
	x      float64
	round  func(context.Context) (report.Metrics, error)
	stop   func() error
}

// contest lets contestants take turns, so that what else the machine does meets
// all of them. It stops them at the end.
func contest(ctx context.Context, scenario string, rounds int, field []*contestant) (results []report.Result, err error) {
	defer func() {
		for _, c := range field {
			err = errors.Join(err, c.stop())
		}
	}()
	results = make([]report.Result, len(field))
	for i, c := range field {
		results[i] = report.Result{Scenario: scenario, Server: c.server, X: c.x}
	}
	for range rounds {
		for i, c := range field {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			m, err := c.round(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", scenario, c.server, err)
			}
			results[i].Rounds = append(results[i].Rounds, m)
		}
	}
	return results, nil
}

// A load is something that keeps a server busy: a Web or a Pipe.
type load interface {
	Run(time.Duration) (driver.Measured, error)
}

// used measures what a load costs the process that serves it.
func used(child *control.Child, l load, d time.Duration) (report.Metrics, error) {
	// The garbage of this process is collected now, not in the measurement.
	runtime.GC()
	if err := child.ResetPeak(); err != nil {
		return nil, err
	}
	before, err := child.Stats()
	if err != nil {
		return nil, err
	}
	did, err := l.Run(d)
	if err != nil {
		return nil, err
	}
	after, err := child.Stats()
	if err != nil {
		return nil, err
	}
	peak, err := child.PeakRSS()
	if err != nil {
		return nil, err
	}
	return perRequest(before, after, did, peak), nil
}

func perRequest(before, after control.Stats, did driver.Measured, peak int64) report.Metrics {
	n := float64(did.Requests)
	m := report.Metrics{
		report.Rate:      n / did.Elapsed.Seconds(),
		report.CPU:       float64(after.CPU-before.CPU) / n,
		report.P50:       did.P50,
		report.P99:       did.P99,
		report.PeakRSS:   float64(peak),
		report.Size:      float64(did.Size),
		report.Delivered: float64(did.Notifications) / n,
	}
	if after.Mallocs > 0 {
		m[report.Allocs] = float64(after.Mallocs-before.Mallocs) / n
		m[report.Bytes] = float64(after.TotalAlloc-before.TotalAlloc) / n
	}
	return m
}

// warming is the part of the time of a measurement that a server is kept busy
// before the first.
const warming = 3

// web starts a server and opens the connections of a load to it.
func (b *bench) web(ctx context.Context, server string, args []string, l driver.Load) (*contestant, error) {
	child, err := control.Start(ctx, b.program(server, false, args...))
	if err != nil {
		return nil, err
	}
	l.Addr = child.Addr
	w, err := l.Open(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", server, err), child.Stop())
	}
	c := &contestant{
		server: server,
		round:  func(context.Context) (report.Metrics, error) { return used(child, w, b.time) },
		stop: func() error {
			w.Close()
			return child.Stop()
		},
	}
	if _, err := w.Run(b.time / warming); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", server, err), c.stop())
	}
	return c, nil
}

// pipe starts a server over stdio.
func (b *bench) pipe(ctx context.Context, server string, slots int, era driver.Era) (*contestant, error) {
	child, err := control.Start(ctx, b.program(server, true, "-stdio"))
	if err != nil {
		return nil, err
	}
	check := driver.Result(fixture.Text, 0)
	if server == report.Floor { // it knows no results
		check = driver.Line(fixture.Text)
	}
	p := driver.OpenPipe(child.In, child.Out, slots, driver.Echo(fixture.Text), era, check)
	c := &contestant{
		server: server,
		round:  func(context.Context) (report.Metrics, error) { return used(child, p, b.time) },
		stop:   child.Stop,
	}
	if era != driver.Stateless && server != report.Floor {
		err = p.Greet()
	}
	if err == nil {
		_, err = p.Run(b.time / warming)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", server, err), c.stop())
	}
	return c, nil
}

// idle measures so many sessions that do nothing, in a new process each round.
func (b *bench) idle(server string, sessions int, stream bool, args []string) *contestant {
	return &contestant{
		server: server,
		round: func(ctx context.Context) (_ report.Metrics, err error) {
			child, err := control.Start(ctx, b.program(server, false, args...))
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, child.Stop()) }()
			return resting(ctx, child, sessions, stream)
		},
		stop: func() error { return nil },
	}
}

// resting is what a session costs that is open and does nothing. The first few
// are not counted: with them comes what is there once.
func resting(ctx context.Context, child *control.Child, sessions int, stream bool) (report.Metrics, error) {
	const few = 10
	s, err := driver.OpenSessions(ctx, child.Addr, few)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	listen := func() error {
		if !stream {
			return nil
		}
		return s.Listen(ctx)
	}
	if err := listen(); err != nil {
		return nil, err
	}
	before, rssBefore, err := settled(child)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := s.More(sessions); err != nil {
		return nil, err
	}
	if err := listen(); err != nil {
		return nil, err
	}
	opening := time.Since(start)
	after, rssAfter, err := settled(child)
	if err != nil {
		return nil, err
	}
	n := float64(sessions)
	m := report.Metrics{
		report.RSS:     float64(rssAfter-rssBefore) / n,
		report.Elapsed: float64(opening.Microseconds()) / n,
	}
	if after.Heap > 0 {
		m[report.Memory] = float64(after.Heap+after.Stack-before.Heap-before.Stack) / n
		m[report.Goroutines] = float64(after.Goroutines-before.Goroutines) / n
	}
	return m, nil
}

// settled is what a process holds when all garbage is collected: what is pooled
// goes in the second collection.
func settled(child *control.Child) (stats control.Stats, rss int64, err error) {
	for range 2 {
		if stats, err = child.Settled(); err != nil {
			return stats, 0, err
		}
	}
	rss, err = child.RSS()
	return stats, rss, err
}

// mem starts a program that is client and server at once.
func (b *bench) mem(ctx context.Context, server string) (*contestant, error) {
	child, err := control.Start(ctx, b.program(server, false, "-mem"))
	if err != nil {
		return nil, err
	}
	const few = 200
	ran, err := child.Run(few, 1)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", server, err), child.Stop())
	}
	calls := max(few, int(few*b.time/max(ran.Elapsed, 1)))
	return &contestant{
		server: server,
		round: func(context.Context) (report.Metrics, error) {
			ran, err := child.Run(calls, 1)
			n := float64(calls)
			return report.Metrics{
				report.Elapsed: float64(ran.Elapsed) / float64(time.Microsecond) / n,
				report.CPU:     float64(ran.CPU) / n,
				report.Allocs:  float64(ran.Mallocs) / n,
				report.Bytes:   float64(ran.Bytes) / n,
			}, err
		},
		stop: child.Stop,
	}, nil
}
