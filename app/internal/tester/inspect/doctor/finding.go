// Package doctor checks a server from the view of clients and models. In each protocol version
// that the server supports, it reads everything the server offers and sends requests that a
// server must reject. It compares both with the specification, with the limits of model
// providers, and with known dangers to users. It calls no tool that could have an effect.
//
// [Examine] returns a [Report]. Each [Finding] has a code from the table [Codes], a reason and a
// fix.
package doctor

import (
	"cmp"
	"slices"
	"strings"
)

// A Finding is one thing that is wrong, or worth knowing.
type Finding struct {
	// Code is the name of its kind.
	Code string `json:"code"`
	// Severity is that of the code.
	Severity Severity `json:"severity"`
	// Where is a place in what the server offers, as a JSONPath in the lock of 'parley lock', or a
	// method, or a stream.
	Where string `json:"where"`
	// Reason is what was found.
	Reason string `json:"reason"`
	// Clause is what it breaks.
	Clause string `json:"clause"`
	// Fix is what to write instead.
	Fix string `json:"fix"`
	// Revisions are those in which it was found.
	Revisions []string `json:"revisions,omitempty"`
}

// A Revision is what was found out about one revision of the protocol.
type Revision struct {
	// Version is its date.
	Version string `json:"version"`
	// Spoken says that the server speaks it.
	Spoken bool `json:"spoken"`
	// Tools, Prompts, Resources and Templates are how many there are.
	Tools     int `json:"tools,omitempty"`
	Prompts   int `json:"prompts,omitempty"`
	Resources int `json:"resources,omitempty"`
	Templates int `json:"resourceTemplates,omitempty"`
}

// A Cost is what a tool takes of the context of a model.
type Cost struct {
	// Tool is its name at the server, and Name what a model calls it where nothing is in the way.
	Tool string `json:"tool"`
	Name string `json:"name"`
	// Tokens is an estimate.
	Tokens int `json:"tokens"`
}

// A Report is what was found out about a server.
type Report struct {
	// Server is what the program calls it.
	Server string `json:"server"`
	// Revisions are those that were tried.
	Revisions []Revision `json:"revisions"`
	// Model is what a model is told of the tools, in the newest revision, and Tokens what that
	// takes in all.
	Model  []Cost `json:"model"`
	Tokens int    `json:"tokens"`
	// Findings are sorted: the worst first.
	Findings []Finding `json:"findings"`
	// More is how many findings were left out.
	More int `json:"more,omitempty"`
}

// Bounds of a report.
const (
	maxFindings = 2000
	maxReason   = 600 // bytes
	maxSame     = 100 // findings of one code
)

// Count is how many findings have a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Fails reports whether there is a finding that is as bad as a severity.
func (r *Report) Fails(least Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return slices.Index(Severities(), f.Severity) <= slices.Index(Severities(), least)
	})
}

// spoken is how many revisions the server speaks.
func (r *Report) spoken() int {
	n := 0
	for _, v := range r.Revisions {
		if v.Spoken {
			n++
		}
	}
	return n
}

// A collector joins the findings of all revisions.
type collector struct {
	list  []*Finding
	known map[string]*Finding
	same  map[string]int
	more  int
}

func newCollector() *collector {
	return &collector{known: make(map[string]*Finding), same: make(map[string]int)}
}

// add adds what was found in a revision; "" belongs to none. An empty fix is that of the code.
func (c *collector) add(id, where, reason, fix, revision string) {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	key := id + "\x00" + where + "\x00" + reason
	f := c.known[key]
	if f == nil {
		if len(c.list) == maxFindings || c.same[id] == maxSame {
			c.more++
			return
		}
		code := codeOf(id)
		f = &Finding{Code: id, Severity: code.Severity, Where: where, Reason: reason, Clause: code.Clause, Fix: cmp.Or(fix, code.Fix)}
		c.known[key] = f
		c.list = append(c.list, f)
		c.same[id]++
	}
	if revision != "" && !slices.Contains(f.Revisions, revision) {
		f.Revisions = append(f.Revisions, revision)
	}
}

// findings are all of them, sorted.
func (c *collector) findings() []Finding {
	list := make([]Finding, 0, len(c.list))
	for _, f := range c.list {
		list = append(list, *f)
	}
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Severities(), a.Severity), slices.Index(Severities(), b.Severity)),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Where, b.Where), cmp.Compare(a.Reason, b.Reason),
		)
	})
	return list
}
