package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A heldSkill is a skill on which the model acts, with the number of the last record before
// a text of it: that of the skill, or a result.
type heldSkill struct {
	*SkillRecord
	n int64
}

// hold notes that the model acts on a skill from a record on, or that it has changed.
//
// SEP-2640, The Acting Window and the Held Entry.
func (st *state) hold(rec *SkillRecord, n int64) {
	i := st.find(skillKey{rec.Server, rec.URI})
	if i < 0 {
		if !rec.Changed {
			st.skills = append(st.skills, heldSkill{rec, n})
		}
		return
	}
	held := heldSkill{rec, n}
	switch {
	case rec.Changed: // its text is where it was
		changed := *st.skills[i].SkillRecord
		changed.Changed = true
		held = heldSkill{&changed, st.skills[i].n}
	case rec.Entry == nil && rec.Digest == st.skills[i].Digest:
		same := *rec
		same.Entry = st.skills[i].Entry
		held = heldSkill{&same, n}
	}
	st.skills = slices.Clone(st.skills)
	st.skills[i] = held
}

// A skillKey names a skill: its server and its URI.
type skillKey struct{ server, uri string }

// noteSkill notes that a call gives the text or a file of a skill.
func (st *state) noteSkill(c *CallRecord) {
	var in skillArguments
	if c.Tool != "" || c.ModelName != loadSkillTool && c.ModelName != readSkillTool || wire.Decode(c.Arguments, &in) != nil {
		return
	}
	if st.ofSkills == nil {
		st.ofSkills = make(map[string]skillKey)
	}
	st.ofSkills[c.ID] = skillKey{in.Server, in.URI}
}

// renew notes that the result of a call, the record n, holds something of a skill: a file,
// or more of what was too long to be given whole. The model acts on the skill until a
// summary takes the place of that, too.
func (st *state) renew(c *CallRecord, n int64) {
	key, ok := st.ofSkills[c.ID]
	if c.Tool == "" && c.ModelName == readTool {
		var in readArguments
		if wire.Decode(c.Arguments, &in) == nil {
			key, ok = st.ofSkills[in.Call]
		}
	}
	if i := st.find(key); ok && i >= 0 {
		st.skills = slices.Clone(st.skills)
		st.skills[i].n = n - 1
	}
}

// find returns the index of a skill on which the model acts, or -1.
func (st *state) find(key skillKey) int {
	return slices.IndexFunc(st.skills, func(k heldSkill) bool { return k.Server == key.server && k.URI == key.uri })
}

// release ends what the model acts on by texts that a summary takes the place of.
func (st *state) release(through int64) {
	st.skills = slices.DeleteFunc(slices.Clone(st.skills), func(k heldSkill) bool { return k.n < through })
}

// acting are the skills on which the model acts.
func (s *Session) acting() []*SkillRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.acting()
}

func (st *state) acting() []*SkillRecord {
	list := make([]*SkillRecord, len(st.skills))
	for i, k := range st.skills {
		list[i] = k.SkillRecord
	}
	return list
}

// held is the skill of a server on which the model acts, or nil.
func (s *Session) held(server, uri string) *SkillRecord {
	for _, k := range s.acting() {
		if k.Server == server && k.URI == uri {
			return k
		}
	}
	return nil
}

// hasChanged reports whether the server is known to have changed a skill since it was
// loaded.
func (h *Host) hasChanged(rec *SkillRecord) bool {
	now := h.servers.current().skill(rec.Server, rec.URI)
	return rec.Changed || now != nil && (now.digest != rec.Digest || now.pinServer != rec.Owner)
}

// A GrantSkill is the skill for which a grant was given: it counts only while the model
// acts on the skill as it was then.
type GrantSkill struct {
	// Server is the name of the server in this host, and Owner that with a digest of the
	// key of its entry.
	Server string `json:"server"`
	Owner  string `json:"owner"`
	URI    string `json:"uri"`
	// Digest is that of the entry.
	Digest string `json:"digest"`
}

func grantSkill(rec *SkillRecord) GrantSkill {
	return GrantSkill{rec.Server, rec.Owner, rec.URI, rec.Digest}
}

// judgeRuns decides about a tool that runs code on this machine while the model acts on
// skills: only the person's consent for each of them lets it through. It reports whether
// it has decided.
//
// SEP-2640: hosts "MUST NOT allow MCP-served skill content to cause host-side code
// execution without explicit per-skill user approval".
func (s *Session) judgeRuns(ctx context.Context, q *policy.Query, digest string, out *verdict) (bool, error) {
	if q.Kind != policy.KindTool || len(s.acting()) == 0 {
		return false, nil
	}
	g, missing, err := s.grantedForSkills(ctx, q, digest)
	if err != nil {
		return true, err
	}
	once := out.once && out.effect == policy.Ask // a rule wants to be asked each time
	if g != nil && !once {
		out.effect, out.grant, out.forSkills = policy.Allow, g.ID, true
		out.why = "the person agreed to it for the skill that the model acts on: grant " + g.ID
		return true, nil
	}
	if len(missing) > 0 {
		k, each := missing[0], "the skill"
		if len(missing) > 1 {
			each = "each skill"
		}
		out.why = "the model acts on " + skillsNamed(missing) + ", and this tool runs code on this machine: that needs your consent for " + each + ", whatever rules and grants allow"
		if len(missing) == 1 && !once && !k.Dynamic && !s.host.hasChanged(k) {
			skill := grantSkill(k)
			out.skill = &skill
		}
	}
	out.effect, out.once = policy.Ask, true
	return true, nil
}

// maxSkillsNamed bounds the skills that a question names.
const maxSkillsNamed = 16

// skillsNamed names skills in a sentence.
func skillsNamed(list []*SkillRecord) string {
	var names []string
	for i, k := range list {
		if i == maxSkillsNamed {
			names = append(names, fmt.Sprintf("%d more skills", len(list)-i))
			break
		}
		names = append(names, fmt.Sprintf("the skill %s of server %s", EscapeLine(k.URI), EscapeLine(k.Server)))
	}
	return strings.Join(names, " and ")
}

// grantedForSkills returns a grant if the person agreed to a call for all skills on which
// the model acts, and otherwise those for which they have not.
func (s *Session) grantedForSkills(ctx context.Context, q *policy.Query, digest string) (last *Grant, missing []*SkillRecord, err error) {
	live, err := s.host.liveGrants(ctx)
	if err != nil {
		return nil, nil, err
	}
	spec, _ := s.host.spec(q.Server)
	for _, k := range s.acting() {
		i := -1
		if !s.host.hasChanged(k) {
			i = slices.IndexFunc(live, func(g *liveGrant) bool {
				return g.Skill != nil && *g.Skill == grantSkill(k) && g.Entry == spec.Key &&
					cmp.Or(g.Digest, digest) == digest && g.policy.Decide(q).Effect == policy.Allow
			})
		}
		if i < 0 {
			missing = append(missing, k)
			continue
		}
		last = &live[i].Grant
	}
	if len(missing) > 0 {
		return nil, missing, nil
	}
	return last, nil, nil
}

// stillGranted returns a grant that allows a call now, or nil.
func (s *Session) stillGranted(ctx context.Context, c *readyCall, q *policy.Query) (*Grant, error) {
	if c.forSkills {
		g, _, err := s.grantedForSkills(ctx, q, c.tool.digest)
		return g, err
	}
	return s.host.granted(ctx, q, c.tool.digest)
}

// offersForSkill are the grants that may be chosen for a tool that runs code, for one
// skill.
func offersForSkill(server, tool string, args mcp.RawValue, skill *GrantSkill) []Offer {
	var offers []Offer
	for _, o := range offersFor(server, tool, args, false) {
		if o.Scope == ScopeArguments || o.Scope == ScopeTool {
			o.Text += fmt.Sprintf(", while the model acts on the skill %s of server %s as it is now", skill.URI, skill.Server)
			o.skill = skill
			offers = append(offers, o)
		}
	}
	return offers
}
