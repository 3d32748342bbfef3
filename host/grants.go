package host

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A Scope says how much an offered grant covers.
type Scope string

// The scopes of grants: for calls of tools, narrowest first, and for skills.
const (
	// ScopeArguments is the same call with the same arguments.
	ScopeArguments Scope = "arguments"
	// ScopePattern is calls of the tool whose arguments fit a shown pattern.
	ScopePattern Scope = "pattern"
	// ScopeTool is all calls of the tool.
	ScopeTool Scope = "tool"
	// ScopeReadOnly is the tools that a trusted server calls read-only.
	ScopeReadOnly Scope = "read-only"
	// ScopeServer is all tools of the server.
	ScopeServer Scope = "server"
	// ScopeSkill is the loading of a skill as it is now.
	ScopeSkill Scope = "skill"
)

// An Offer is a grant that an answer may choose.
type Offer struct {
	Scope Scope `json:"scope"`
	// Text says in words what is granted. Names and arguments in it are not escaped.
	Text string `json:"text"`
	// Rule is what the grant allows.
	Rule policy.Rule `json:"rule"`

	skill *GrantSkill // see Grant.Skill
}

// offersFor are the grants that may be chosen for a call, narrowest first. None of them
// holds what looks like a secret, because grants are kept.
func offersFor(server, tool string, args mcp.RawValue, trusted bool) []Offer {
	rule := policy.Rule{Effect: policy.Allow, Kind: policy.KindTool, Server: policy.Quote(server), Name: policy.Quote(tool)}
	var offers []Offer
	if len(ArgumentSecrets(args)) == 0 {
		same := rule
		same.Where = []policy.Predicate{{Op: policy.OpEquals, Values: []mcp.RawValue{args}}}
		offers = append(offers, Offer{Scope: ScopeArguments, Text: "this tool with exactly these arguments", Rule: same})
	}
	if where, text := patternOf(args); len(where) > 0 {
		fits := rule
		fits.Where = where
		if covers(fits, args) {
			offers = append(offers, Offer{Scope: ScopePattern, Text: "this tool where " + text, Rule: fits})
		}
	}
	offers = append(offers, Offer{Scope: ScopeTool, Text: "this tool with any arguments", Rule: rule})
	if trusted {
		reads := rule
		reads.Name, reads.Hints = "", []policy.Hint{policy.HintReadOnly}
		offers = append(offers, Offer{Scope: ScopeReadOnly, Text: "all tools of this server that only read, by its own word", Rule: reads})
	}
	all := rule
	all.Name = ""
	return append(offers, Offer{Scope: ScopeServer, Text: "all tools of this server", Rule: all})
}

// covers reports whether a rule is valid and allows a call with these arguments.
func covers(r policy.Rule, args mcp.RawValue) bool {
	p, err := policy.New([]policy.Rule{r})
	if err != nil {
		return false
	}
	unquote := strings.NewReplacer("[*]", "*", "[?]", "?")
	q := &policy.Query{Kind: r.Kind, Server: unquote.Replace(r.Server), Name: unquote.Replace(r.Name), Arguments: args}
	return p.Decide(q).Effect == policy.Allow
}

// patternOf makes a pattern of the arguments that say where a call goes: paths
// and URLs of the first level. The text says that other arguments may be anything.
func patternOf(args mcp.RawValue) ([]policy.Predicate, string) {
	var where []policy.Predicate
	var words []string
	list, _ := members(args)
	for _, m := range list {
		if _, secret := replaceSecrets(m.value, m.name, true); secret || kindOf(m.value) != '"' {
			continue
		}
		value, err := text(m.value)
		if err != nil {
			continue
		}
		p := policy.Predicate{Pointer: "/" + pointerEscaper.Replace(m.name)}
		switch u, err := url.Parse(value); {
		case strings.HasPrefix(value, "/") && path.Clean(value) != "/" && !strings.ContainsAny(value, "\x00\\"):
			dir := path.Dir(path.Clean(value))
			if dir == "/" {
				dir = path.Clean(value)
			}
			p.Op, p.Dirs = policy.OpInside, []string{dir}
			words = append(words, fmt.Sprintf("%s is inside %s", m.name, dir))
		case err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil && !strings.Contains(u.Hostname(), "*"):
			name := strings.ToLower(u.Hostname())
			if strings.Contains(name, ":") {
				name = "[" + name + "]"
			}
			p.Op, p.Hosts = policy.OpHost, []string{name}
			words = append(words, fmt.Sprintf("%s leads to %s", m.name, p.Hosts[0]))
		default:
			continue
		}
		where = append(where, p)
	}
	var free []string
	for _, m := range list {
		if !slices.ContainsFunc(where, func(p policy.Predicate) bool { return p.Pointer == "/"+pointerEscaper.Replace(m.name) }) {
			free = append(free, m.name)
		}
	}
	about := strings.Join(words, " and ")
	if len(free) > 0 {
		about += ", whatever " + strings.Join(free, ", ") + " is"
	}
	return where, about
}

// grant makes what an answer about a call agrees to.
func (s *Session) grant(q *Question, a *Answer, entry, digest string) *Grant {
	offer := q.Offers[a.Offer-1]
	if offer.Scope == ScopeReadOnly || offer.Scope == ScopeServer {
		digest = ""
	}
	g := s.newGrant(entry, offer.Rule, digest, a)
	g.Skill = offer.skill
	return g
}

// newGrant makes a grant of a rule for the server that the person was asked about, by
// the key of its entry.
func (s *Session) newGrant(entry string, rule policy.Rule, digest string, a *Answer) *Grant {
	g := &Grant{ID: "g" + newID(), Rule: rule, Entry: entry, Digest: digest, Session: s.info.ID, Created: time.Now()}
	if a.Minutes > 0 {
		g.Expires = g.Created.Add(time.Duration(a.Minutes) * time.Minute)
	}
	return g
}

// A liveGrant is a grant of which the host judges calls.
type liveGrant struct {
	Grant
	policy *policy.Policy
}

// liveGrants reads the grants of the store that hold. What was compiled before is not
// compiled again.
func (h *Host) liveGrants(ctx context.Context) ([]*liveGrant, error) {
	list, err := h.opts.Store.Grants(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading grants: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	live := make([]*liveGrant, 0, len(list))
	for _, g := range list {
		if g.Over(time.Now()) != "" {
			delete(h.grants, g.ID)
			continue
		}
		if known := h.grants[g.ID]; known != nil {
			live = append(live, known)
			continue
		}
		g.Rule.Source = policy.Source{File: "grant " + g.ID}
		p, err := policy.New([]policy.Rule{g.Rule})
		if err != nil {
			h.opts.Logger.Warn("a grant is left out", "grant", g.ID, "error", err)
			continue
		}
		h.grants[g.ID] = &liveGrant{g, p}
		live = append(live, h.grants[g.ID])
	}
	return live, nil
}

// addGrant keeps a grant and judges by it from now on.
func (h *Host) addGrant(ctx context.Context, g *Grant) error {
	if err := h.opts.Store.PutGrant(ctx, g); err != nil {
		return fmt.Errorf("keeping a grant: %w", err)
	}
	h.audit(ctx, &AuditEntry{Session: g.Session, Event: "granted", Kind: g.Rule.Kind, Server: g.Rule.Server, Name: g.Rule.Name, Why: g.ID})
	return nil
}

// Grants returns all grants of the store, the oldest first.
func (h *Host) Grants(ctx context.Context) ([]Grant, error) {
	return h.opts.Store.Grants(ctx)
}

// Revoke ends a grant at once, also in sessions that are open. An unknown id is an
// [ErrNoGrant].
func (h *Host) Revoke(ctx context.Context, id string) error {
	if err := h.opts.Store.RevokeGrant(ctx, id, time.Now()); err != nil {
		return fmt.Errorf("revoking: %w", err)
	}
	h.audit(ctx, &AuditEntry{Event: "revoked", Why: id})
	return nil
}

// granted returns the grant that allows an action, or nil. Another process may
// have revoked it: the store is asked before it is used.
func (h *Host) granted(ctx context.Context, q *policy.Query, digest string) (*Grant, error) {
	live, err := h.liveGrants(ctx)
	if err != nil {
		return nil, err
	}
	spec, _ := h.spec(q.Server)
	i := slices.IndexFunc(live, func(g *liveGrant) bool {
		return g.Skill == nil && g.Entry == spec.Key && (g.Digest == "" || g.Digest == digest) && g.policy.Decide(q).Effect == policy.Allow
	})
	if i < 0 {
		return nil, nil // no grant is no error
	}
	return &live[i].Grant, nil
}

// audit adds an entry to the audit log. What cannot be written there is told to
// the log of the program: the person's work goes on.
func (h *Host) audit(ctx context.Context, e *AuditEntry) {
	e.Time = time.Now()
	if err := h.opts.Store.Audit(context.WithoutCancel(ctx), e); err != nil {
		h.opts.Logger.Error("writing the audit log", "error", err)
	}
}
