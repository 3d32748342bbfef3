// Package thinking is a server with one tool, with which a model writes down thoughts one after the
// other, revises them and starts branches. The server does not store thoughts: it counts them, stores
// the names of branches, and returns the model's position.
package thinking

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Defaults of Options.
const (
	DefaultMaxThought  = 256 << 10
	DefaultMaxBranches = 1000
	DefaultMaxCallers  = 1000
)

// Options are what is not required of the server. A nil *Options, and each zero field, means the
// default that is told.
type Options struct {
	// Server is what the server is made with. Its texts are replaced. Default: the defaults of
	// package server.
	Server *server.Options
	// Thoughts gets each thought for people to read, in a box. It is written to by one goroutine at
	// a time. Default: thoughts are written nowhere.
	Thoughts io.Writer
	// MaxThought is the most bytes of a thought, and MaxBranches the most branches of one caller.
	// Defaults 256 KiB and 1,000.
	MaxThought, MaxBranches int
	// MaxCallers is how many sessions, or callers without one, are remembered; the one that has been
	// there for longest is forgotten for a new one. Default 1,000.
	MaxCallers int
}

const instructions = `Write down thoughts with sequentialthinking, one in each call, when a problem has several steps or
its extent is not clear yet.`

const description = `Thinks about a problem step by step: each call is one thought. Use it to plan, to take a
hard problem apart, or where it may turn out that an earlier step was wrong.

Give thoughtNumber, from 1, and totalThoughts, your estimate, which may change at any time: there can be
more thoughts than it said. A thought may be a step, a question, a doubt, a hypothesis or its check. With
isRevision and revisesThought it corrects an earlier thought; with branchFromThought and branchId it tries
another way from there; needsMoreThoughts says that the estimate was too low. Check the answer before you
set nextThoughtNeeded to false, and do that only when you are content with it.`

// New makes the server. Each session, and each caller where there are no sessions, has thoughts of its
// own. It owns nothing that outlives its sessions.
func New(version string, o *Options) *server.Server {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.MaxThought = cmp.Or(opts.MaxThought, DefaultMaxThought)
	opts.MaxBranches = cmp.Or(opts.MaxBranches, DefaultMaxBranches)
	opts.MaxCallers = cmp.Or(opts.MaxCallers, DefaultMaxCallers)
	s := server.New("thinking", version, servers.Options(opts.Server, "Sequential thinking",
		"One tool in which a model thinks step by step", instructions))
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			return next(c.WithContext(context.WithValue(c, callerKey{}, c.SessionRef()+" "+c.Principal().LimitKey())))
		}
	})
	t := &thoughts{o: &opts, of: make(map[string]*history)}
	s.Add(server.Tool("sequentialthinking", description, t.think).With(server.ToolOptions{
		// A repeated call counts another thought, so it is not idempotent.
		Title: "Sequential Thinking", Annotations: servers.Hints(true, false, false),
		Types: map[reflect.Type]mcp.RawValue{
			reflect.TypeFor[thought](): mcp.RawValue(fmt.Sprintf(`{"type":"string","description":"The thought.","maxLength":%d}`, opts.MaxThought)),
		},
	}))
	return s
}

// callerKey is the key of the context for whose thoughts they are.
type callerKey struct{}

// A Number counts thoughts. Models also write it as a text.
type Number int64

const maxNumber = 1<<53 - 1

// JSONSchema says that a number may be written as a text.
func (Number) JSONSchema() string {
	return fmt.Sprintf(`{"type":["integer","string"],"minimum":1,"maximum":%d,"pattern":"^[0-9]{1,16}$","maxLength":16}`, maxNumber)
}

// UnmarshalJSON reads a number or the text of one.
func (n *Number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	if err != nil || v < 1 || v > maxNumber || v != float64(int64(v)) {
		return fmt.Errorf("must be a whole number from 1 to %d", maxNumber)
	}
	*n = Number(v)
	return nil
}

// A Flag is true or false. Models also write it as a text.
type Flag bool

// JSONSchema says that a flag may be written as a text.
func (Flag) JSONSchema() string {
	return `{"type":["boolean","string"],"pattern":"^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$","maxLength":5}`
}

// UnmarshalJSON reads a flag or the text of one.
func (f *Flag) UnmarshalJSON(text []byte) error {
	switch word := strings.ToLower(strings.Trim(string(text), `"`)); word {
	case "true", "false":
		*f = word == "true"
		return nil
	}
	return fmt.Errorf("must be true or false")
}

// A thought is the text of one. Its schema has the length that the options allow.
type thought string

type thoughtIn struct {
	Thought           thought `json:"thought"`
	NextThoughtNeeded Flag    `json:"nextThoughtNeeded" desc:"Whether another thought is to follow."`
	ThoughtNumber     Number  `json:"thoughtNumber" desc:"The number of this thought, from 1."`
	TotalThoughts     Number  `json:"totalThoughts" desc:"How many thoughts it will take, as far as you know now."`
	IsRevision        Flag    `json:"isRevision,omitzero" desc:"Whether it corrects an earlier thought."`
	RevisesThought    Number  `json:"revisesThought,omitzero" desc:"The number of the thought that it corrects."`
	BranchFromThought Number  `json:"branchFromThought,omitzero" desc:"The number of the thought that it branches off from."`
	BranchID          string  `json:"branchId,omitzero" desc:"A name for the branch." maxlen:"1000"`
	NeedsMoreThoughts Flag    `json:"needsMoreThoughts,omitzero" desc:"Whether more thoughts are needed than was estimated."`
}

// State is where the model is.
type State struct {
	ThoughtNumber        int64    `json:"thoughtNumber"`
	TotalThoughts        int64    `json:"totalThoughts"`
	NextThoughtNeeded    bool     `json:"nextThoughtNeeded"`
	Branches             []string `json:"branches" desc:"The names of all branches, in the order in which they began."`
	ThoughtHistoryLength int      `json:"thoughtHistoryLength" desc:"How many thoughts there have been."`
}
