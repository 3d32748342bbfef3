// Package everything is a demonstration server that uses every feature of the
// protocol. It uses no files, network or programs, so that users can try it
// without risk.
package everything

import (
	"cmp"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/server"
)

// Options are what is not required of the server. A nil *Options, and each zero
// field, means the default that is told.
type Options struct {
	// Server is what the server is made with, for tests. Its texts are
	// replaced. Default: the defaults of package server.
	Server *server.Options
	// Tick is how often the resource demo://ticks changes; what is simulated for sessions and
	// subscribers comes a fifth as often. Default 1 s.
	Tick time.Duration
	// WriteScope is a scope that callers must have been granted to use the
	// tools that change something: drop-table and those that toggle something. Default
	// none: all callers may use them.
	WriteScope string
	// ReadOnly leaves these tools out. Default false.
	ReadOnly bool
	// Tasks keeps the tasks that calls of tools become, and is open until the server has
	// been shut down. Default: the memory of the process.
	Tasks tasks.Store
}

// New makes the server. It owns nothing that outlives its sessions.
func New(version string, o *Options) *server.Server {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Tick = cmp.Or(opts.Tick, time.Second)
	so := servers.Options(opts.Server, "Everything", "A demonstration of every feature of the protocol", instructions)
	write := servers.Scopes(opts.WriteScope)
	s := server.New("everything", version, so)
	s.Add(plainTools()...)
	s.Add(contentTools()...)
	s.Add(askingTools(write)...)
	apps.Enable(s)
	s.Add(pageTools()...)
	s.Add(taskTools()...)
	if opts.Tasks == nil {
		opts.Tasks = tasks.Memory()
	}
	rules := taskRules()
	rules.Log = so.Logger
	tasks.Enable(s, opts.Tasks, rules)
	s.Add(toggle(s, write))
	ref := &reference{}
	s.Add(ref.tools(write)...)
	s.Add(ref.asking()...)
	s.Add(newSimulatedLog(s, 5*opts.Tick).feature(write))
	if opts.ReadOnly {
		s.RemoveTools("drop-table", "toggle-extra-tool", "toggle-simulated-logging", "toggle-subscriber-updates")
	}
	s.Add(resources(opts.Tick)...)
	s.Add(prompts()...)
	s.Add(ref.resources(opts.Tick)...)
	s.Add(documents()...)
	s.Add(ref.prompts()...)
	addSkills(s, so.Logger)
	return s
}
