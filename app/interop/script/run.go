package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// StepTimeout is how long one step may take. None takes anywhere near as long; a
// peer that hangs is noticed.
const StepTimeout = 20 * time.Second

// LateMessages is how long progress is waited for that an SDK hands over only
// after its call has returned.
const LateMessages = 2 * time.Second

// A Client is the client of one SDK, connected to a server.
type Client interface {
	// Version is the revision that was agreed on.
	Version() string
	// Server is what the server calls itself.
	Server() string
	// Tools lists the names of all tools, of all pages.
	Tools(ctx context.Context) ([]string, error)
	// Call calls a tool with arguments that encode to an object, or nil.
	// progress, if any, is told about progress in the order in which it came.
	Call(ctx context.Context, tool string, args any, progress func(float64)) (Result, error)
	// Read gives the text of a resource.
	Read(ctx context.Context, uri string) (string, error)
	// Code is the JSON-RPC code of an error of Read; 0 if it has none.
	Code(err error) int64
	// Prompt gives the text of the first message of a prompt.
	Prompt(ctx context.Context, name string, args map[string]string) (string, error)
	// Complete completes an argument of a prompt.
	Complete(ctx context.Context, prompt, argument, typed string) ([]string, error)
	// Subscribe watches a resource, whose changes go to Events.Updated, until
	// stop is called.
	Subscribe(ctx context.Context, uri string) (stop func() error, err error)
	// Close ends the relation.
	Close() error
}

// A Result is what a tool gave.
type Result struct {
	// Text is the text of the first content.
	Text string
	// Structured is the structured content, or nothing.
	Structured []byte
	// Failed says that the tool failed.
	Failed bool
}

// A pass is one client's way through the script.
type pass struct {
	report Report
	client Client
	events *Events
	skip   []string
}

// Run goes through the script, but for the steps to skip, with the client that
// connect makes, whose handlers report to events.
func Run(ctx context.Context, events *Events, skip []string, connect func() (Client, error)) Report {
	c, err := connect()
	if err != nil {
		return Report{Errors: []string{"connect: " + err.Error()}}
	}
	p := &pass{client: c, events: events, skip: skip, report: Report{Version: c.Version(), Server: c.Server()}}
	p.step(ctx, "tools", p.tools)
	p.step(ctx, "calls", p.calls)
	p.step(ctx, StepProgress, p.progress)
	p.step(ctx, "resources", p.resources)
	p.step(ctx, "prompt", p.prompt)
	if Forms(p.report.Version) {
		p.step(ctx, StepQuestions, p.questions)
	}
	p.step(ctx, StepModel, p.model)
	p.step(ctx, StepSubscribe, p.subscribe)
	p.step(ctx, StepGrow, p.grow)
	p.step(ctx, StepCancel, p.cancel)
	p.step(ctx, "close", func(context.Context) error { return c.Close() })
	return p.report
}

// step runs one step within StepTimeout, unless it is to be left out, and notes
// its error.
func (p *pass) step(ctx context.Context, name string, fn func(ctx context.Context) error) {
	if slices.Contains(p.skip, name) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	if err := fn(ctx); err != nil {
		p.report.Errors = append(p.report.Errors, name+": "+err.Error())
	}
}

// text gives the text of a tool that must not fail.
func (p *pass) text(ctx context.Context, tool string, args any) (string, error) {
	r, err := p.client.Call(ctx, tool, args, nil)
	if err == nil && r.Failed {
		err = fmt.Errorf("%s failed: %s", tool, r.Text)
	}
	return r.Text, err
}

func (p *pass) tools(ctx context.Context) error {
	names, err := p.client.Tools(ctx)
	slices.Sort(names)
	p.report.Tools = names
	return err
}

func (p *pass) calls(ctx context.Context) error {
	var err error
	if p.report.Echo, err = p.text(ctx, Echo, map[string]any{"message": EchoText}); err != nil {
		return err
	}
	sum, err := p.client.Call(ctx, Add, map[string]any{"a": 2, "b": 3}, nil)
	if err != nil {
		return err
	}
	if len(sum.Structured) > 0 {
		var out struct {
			Sum float64 `json:"sum"`
		}
		if err := json.Unmarshal(sum.Structured, &out); err != nil {
			return err
		}
		p.report.Sum = out.Sum
	}
	failed, err := p.client.Call(ctx, Fail, map[string]any{"reason": FailReason}, nil)
	if err != nil {
		return err
	}
	if !failed.Failed {
		return fmt.Errorf("%s did not fail", Fail)
	}
	p.report.Failure = failed.Text
	return nil
}

// progress collects progress. Some SDKs hand it over after the call only.
func (p *pass) progress(ctx context.Context) error {
	came := make(chan float64, 10*StepCount)
	_, err := p.client.Call(ctx, Steps, map[string]any{"count": StepCount}, func(v float64) {
		select {
		case came <- v:
		default: // far too many
		}
	})
	late := time.NewTimer(LateMessages)
	defer late.Stop()
	for len(p.report.Progress) < StepCount {
		select {
		case v := <-came:
			p.report.Progress = append(p.report.Progress, v)
		case <-late.C:
			return err
		}
	}
	return err
}

func (p *pass) resources(ctx context.Context) error {
	var err error
	if p.report.Greeting, err = p.client.Read(ctx, Greeting); err != nil {
		return err
	}
	if p.report.Item, err = p.client.Read(ctx, Item); err != nil {
		return err
	}
	_, err = p.client.Read(ctx, Missing)
	if err == nil {
		return fmt.Errorf("%s can be read", Missing)
	}
	if p.report.Missing = p.client.Code(err); p.report.Missing == 0 {
		return err
	}
	return nil
}

func (p *pass) prompt(ctx context.Context) error {
	var err error
	if p.report.Prompt, err = p.client.Prompt(ctx, Review, map[string]string{Language: "go"}); err != nil {
		return err
	}
	p.report.Completion, err = p.client.Complete(ctx, Review, Language, Typed)
	return err
}

func (p *pass) questions(ctx context.Context) error {
	var err error
	p.report.Hello, err = p.text(ctx, AskPerson, nil)
	p.report.Questions = p.events.asked()
	return err
}

func (p *pass) model(ctx context.Context) error {
	var err error
	p.report.Model, err = p.text(ctx, AskModel, nil)
	p.report.Sampled = p.events.prompt()
	return err
}

// subscribe touches the counter until the notice comes: not every SDK waits, in
// its Subscribe, until the server has agreed.
func (p *pass) subscribe(ctx context.Context) error {
	stop, err := p.client.Subscribe(ctx, Counter)
	if err != nil {
		return err
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for p.report.Updated == "" {
		if _, err := p.text(ctx, Touch, nil); err != nil {
			return errors.Join(err, stop())
		}
		select {
		case p.report.Updated = <-p.events.updated:
		case <-again.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), stop())
		}
	}
	return stop()
}

func (p *pass) grow(ctx context.Context) error {
	if _, err := p.text(ctx, Grow, nil); err != nil {
		return err
	}
	select {
	case <-p.events.changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	names, err := p.client.Tools(ctx)
	if slices.Contains(names, Grown) {
		p.report.Grown = Grown
	}
	return err
}

// cancel cancels a call once it is under way, and asks whether the server
// noticed.
func (p *pass) cancel(ctx context.Context) error {
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := p.client.Call(calling, Hang, nil, func(float64) { cancel() })
	switch {
	case err == nil:
		return fmt.Errorf("%s was not cancelled", Hang)
	case calling.Err() == nil || ctx.Err() != nil:
		return err
	}
	p.report.Stopped, err = p.text(ctx, Stopped, nil)
	return err
}
