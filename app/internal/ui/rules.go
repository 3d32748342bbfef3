package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// RuleText says in words what a rule is about, escaped: "calls of write_file of
// server files where /path is inside /home/ada".
func RuleText(r *policy.Rule) string {
	kind := r.Kind
	if kind == "" {
		kind = policy.KindTool
	}
	thing := map[policy.Kind]string{
		policy.KindTool: "tool", policy.KindPrompt: "prompt", policy.KindResource: "resource",
		policy.KindSampling: "use of the model", policy.KindElicitation: "question", policy.KindRoots: "directories",
		policy.KindSkill: "skill", policy.KindApp: "app",
	}[kind]
	if thing == "" {
		thing = name(string(kind))
	}
	text := fmt.Sprintf("%s %s of %s", thing, globText(r.Name), serverGlob(r.Server))
	if len(r.Hints) > 0 {
		text += fmt.Sprintf(", if the server says that it is %s", host.EscapeLine(strings.Join(words(r.Hints), " and ")))
	}
	for i := range r.Where {
		joint := " where "
		if i > 0 {
			joint = " and "
		}
		text += joint + predicateText(&r.Where[i])
	}
	return text
}

// words returns names as they are written.
func words[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

func serverGlob(glob string) string {
	if glob == "" || glob == "*" {
		return "any server"
	}
	return "server " + host.EscapeLine(unquote(glob))
}

func globText(glob string) string {
	if glob == "" || glob == "*" {
		return "of any name"
	}
	return host.EscapeLine(unquote(glob))
}

// unquote shows a glob that policy.Quote made as what it stands for.
func unquote(glob string) string {
	plain := strings.NewReplacer("[*]", "*", "[?]", "?").Replace(glob)
	if policy.Quote(plain) == glob {
		return plain
	}
	return glob
}

// predicateText says in words what an argument must be.
func predicateText(p *policy.Predicate) string {
	what, is := host.EscapeLine(p.Pointer), " is "
	if p.Pointer == "" {
		what, is = "the arguments", " are "
	}
	list := func(texts []string) string { return host.EscapeLine(strings.Join(texts, " or ")) }
	switch p.Op {
	case policy.OpEquals:
		values := make([]string, len(p.Values))
		for i, v := range p.Values {
			values[i] = compact(v, maxClaim)
		}
		return what + is + strings.Join(values, " or ")
	case policy.OpGlob:
		return what + " matches " + list(p.Globs)
	case policy.OpInside:
		return what + " is inside " + list(p.Dirs)
	case policy.OpHost:
		return what + " leads to " + list(p.Hosts)
	case policy.OpRange:
		return what + " is " + rangeText(p.Min, p.Max)
	}
	return what + " fulfils a condition that this program does not know"
}

func rangeText(low, high mcp.RawValue) string {
	switch {
	case low == nil:
		return "at most " + compact(high, maxName)
	case high == nil:
		return "at least " + compact(low, maxName)
	}
	return "from " + compact(low, maxName) + " to " + compact(high, maxName)
}

// GrantText says in a sentence what a grant allows and until when, escaped.
func GrantText(g *host.Grant, now time.Time) string {
	text := fmt.Sprintf("%s: %s", name(g.ID), RuleText(&g.Rule))
	if k := g.Skill; k != nil {
		text += fmt.Sprintf(", while the model acts on the skill %s of server %s as it was then", name(k.URI), name(k.Server))
	}
	switch over := g.Over(now); {
	case over == "revoked":
		return text + "; taken back at " + clock(g.Revoked) + "."
	case over != "":
		return text + "; " + over + " at " + clock(g.Expires) + "."
	case !g.Expires.IsZero():
		return text + "; until " + clock(g.Expires) + "."
	}
	return text + "; until you take it back."
}

// GivenBy finds the question whose answer was a grant, in the records of the session of the
// grant: its title, escaped, and the number of its record; 0 if it is not there.
func GivenBy(records []host.Record, grant string) (title string, record int64) {
	asked := make(map[string]*host.Record)
	for i := range records {
		switch b := records[i].Body.(type) {
		case *host.QuestionRecord:
			asked[b.ID] = &records[i]
		case *host.AnswerRecord:
			if r := asked[b.Question]; b.Grant != nil && b.Grant.ID == grant && r != nil {
				q, _ := r.Body.(*host.QuestionRecord)
				return NewWording(&q.Question).Title, r.N
			}
		}
	}
	return "", 0
}

// clock is a time for people.
func clock(t time.Time) string { return t.Format("2006-01-02 15:04") }
