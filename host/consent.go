package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// ErrConsent is what every [ConsentError] is, for errors.Is.
var ErrConsent = errors.New("consent is missing")

// A ConsentError says that something was not done for lack of consent.
type ConsentError struct {
	Kind         policy.Kind
	Server, Name string
	// Why says in words what stood in the way.
	Why string
	// Refused says that a rule or the person said no. Otherwise no person could
	// be asked.
	Refused bool
	// Changed says that the definition is another one than was agreed to, which no rule
	// answers.
	Changed bool
	// Reason is what the person wants the model to know, or empty.
	Reason string
}

// Error says what was not done, and why.
func (e *ConsentError) Error() string {
	what := fmt.Sprintf("%s %s/%s", e.Kind, e.Server, e.Name)
	if e.Kind == policy.KindTool {
		what = fmt.Sprintf("tool %s/%s", e.Server, e.Name)
	}
	return what + " was not run: " + e.Why
}

// Is reports that it is an ErrConsent.
func (e *ConsentError) Is(target error) bool { return target == ErrConsent }

// A verdict is what may be done, and why.
type verdict struct {
	effect policy.Effect
	why    string
	grant  string // the id of the grant that allows it, or empty
	// once says that the answer cannot be remembered.
	once bool
	// reason is what a refusal tells the model.
	reason string
	// forSkills says that the grant was given for the skills on which the model acts, and
	// skill is the one for which a grant can be given, or nil.
	forSkills bool
	skill     *GrantSkill
}

// query fills in what the host knows about an action.
func (s *Session) query(kind policy.Kind, server, name string, args mcp.RawValue) *policy.Query {
	s.mu.Lock()
	labels := s.state.labelList()
	s.mu.Unlock()
	q := &policy.Query{
		Kind: kind, Server: server, Name: name, Arguments: args, Labels: labels,
		Time: time.Now(), Client: s.host.opts.Info.Name,
	}
	if spec, ok := s.host.spec(server); ok {
		q.Trusted, q.Dir = spec.Trusted, spec.Dir
	}
	return q
}

// callQuery is the query about a call.
func (s *Session) callQuery(c *readyCall) *policy.Query {
	q := s.query(policy.KindTool, c.tool.Server, c.tool.Def.Name, c.args)
	q.Annotations = c.tool.Def.Annotations
	return q
}

// ruled is what the rules alone say about an action.
func (s *Session) ruled(q *policy.Query) verdict {
	v := s.host.opts.Policy.Decide(q)
	out := verdict{effect: v.Effect, why: v.Why()}
	if v.Rule != nil {
		out.reason = cmp.Or(v.Rule.Reason, v.Unjudged) // the model may call again with an absolute path
		out.once = v.Effect != policy.Allow            // a rule that asks wants to be asked each time
	}
	return out
}

// judge decides about an action by the rules, by flow labels and by grants, in
// this order. digest is that of the tool's definition.
func (s *Session) judge(ctx context.Context, q *policy.Query, labels []policy.Label, digest string) (verdict, error) {
	out := s.ruled(q)
	if out.effect == policy.Approve {
		out.effect = policy.Ask // the person at this host is who agrees
	}
	if out.effect == policy.Deny {
		return out, nil
	}
	if slices.Contains(labels, policy.LabelSends) && slices.Contains(q.Labels, policy.LabelUntrusted) && slices.Contains(q.Labels, policy.LabelPrivate) {
		out.effect, out.once = policy.Ask, true
		out.why = "this conversation has read private data and untrusted input, and the call can send data out"
		return out, nil
	}
	if slices.Contains(labels, policy.LabelRuns) {
		if decided, err := s.judgeRuns(ctx, q, digest, &out); decided || err != nil {
			return out, err
		}
	}
	if out.effect == policy.Allow || out.once {
		return out, nil
	}
	g, err := s.host.granted(ctx, q, digest)
	if err != nil {
		return out, err
	}
	if g != nil {
		out.effect, out.why, out.grant = policy.Allow, "the person agreed before: grant "+g.ID, g.ID
	}
	return out, nil
}

// A readyCall is a call that may be carried out.
type readyCall struct {
	record *CallRecord
	tool   *Tool
	args   mcp.RawValue
	edited bool
	why    string
	grant  string // the id of the grant that allows it, or empty
	// forSkills says that the grant was given for the skills on which the model acts.
	forSkills bool
	// askAgain says that the person is asked once more where the tool has changed since,
	// instead of the call being not run; changed says that it has.
	askAgain, changed bool
	// client is that of the connection whose definition was agreed to.
	client *client.Client
	// result is what the server answered, or nil; failure says why there is none.
	result  *mcp.CallToolResult
	failure error
	// flags are what is suspicious about the tool; warnings say it, and more, in words.
	flags    []Flag
	warnings []string
}

// errCall is every mistake of the model in a call; the model is told.
var errCall = errors.New("the call is wrong")

// authorize finds the tool of a call of the model and gets consent for it. The error is a
// *ConsentError, an errCall, or why the run cannot go on.
func (a *authorizer) authorize(ctx context.Context, call *CallRecord) (*readyCall, error) {
	tool, ok := a.catalog.Named(call.ModelName)
	if !ok || tool.Hidden || tool.Server != call.Server || tool.Def.Name != call.Tool {
		return nil, fmt.Errorf("%w: there is no tool %q", errCall, call.ModelName)
	}
	if call.Arguments == nil {
		return nil, fmt.Errorf("%w: the arguments of %s are no JSON object", errCall, call.ModelName)
	}
	return a.consent(ctx, call, tool)
}

// consent gets consent for a call of a tool.
func (a *authorizer) consent(ctx context.Context, call *CallRecord, tool *Tool) (*readyCall, error) {
	s := a.session
	ready := &readyCall{record: call, tool: tool, args: call.Arguments, flags: a.catalog.flags(tool)}
	if edited := a.edited[call.ID]; edited != nil {
		ready.args, ready.edited = edited, true
	}
	for _, f := range ready.flags {
		ready.warnings = append(ready.warnings, f.Text)
	}
	changes, known, err := s.checkPin(ctx, tool)
	if err == nil && !known {
		err = s.checkRename(ctx, a.catalog, ready)
	}
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		if err := a.changed(ctx, ready, changes); err != nil {
			return nil, err
		}
	}
	if err := a.arguments(ctx, ready); err != nil {
		return nil, err
	}
	// The person, or the author of the rule, agreed to this definition.
	return ready, s.pin(ctx, tool)
}

// arguments lets a call through, asks the person, or refuses.
func (a *authorizer) arguments(ctx context.Context, c *readyCall) error {
	s, tool := a.session, c.tool
	q := s.callQuery(c)
	v, err := s.judge(ctx, q, s.host.labels(tool.Server, tool.Def.Name), tool.digest)
	if err != nil {
		return err
	}
	if done, err := a.asked(ctx, c, q, &v); done {
		c.why = "the person agreed"
		return err
	}
	if v.effect == policy.Ask {
		if err := s.countForPage(c); err != nil {
			return err
		}
	}
	question := &Question{
		Kind: QuestionCall, Server: tool.Server, Origin: s.host.origin(tool.Server), Call: c.record.ID, ByPage: c.record.ByPage,
		Name: tool.Def.Name, Tool: tool.Def, Arguments: c.args, Secrets: ArgumentSecrets(c.args), Warnings: c.warnings,
	}
	switch {
	case c.edited: // for this time only
	case v.skill != nil:
		question.Offers = offersForSkill(tool.Server, tool.Def.Name, c.args, v.skill)
	case !v.once:
		question.Offers = offersFor(tool.Server, tool.Def.Name, c.args, q.Trusted)
	}
	answer, err := s.settle(ctx, &proposal{
		query: q, verdict: v, question: question, check: s.checkEdited(q),
		grant: func(a *Answer) *Grant { return s.grant(question, a, tool.owner.spec.Key, tool.digest) },
	})
	if err != nil {
		return err
	}
	c.why, c.grant, c.forSkills = v.why, v.grant, v.forSkills
	switch {
	case v.effect != policy.Allow:
		c.why = "the person agreed"
	case v.grant == "":
		return s.noticeFlags(c)
	}
	if answer.Edited != nil {
		c.args, c.edited = answer.Edited, true
	}
	if c.edited {
		c.why = "the person agreed, with other arguments"
	}
	return nil
}

// noticeFlags tells the person, once in a session that is open, what is suspicious about
// a tool that a rule let through: nobody was shown a question with it.
func (s *Session) noticeFlags(c *readyCall) error {
	var texts []string
	for _, f := range c.flags {
		if f.Kind == FlagHidden || f.Kind == FlagLookalike || f.Kind == FlagInstruction {
			texts = append(texts, f.Text)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(texts) == 0 || !s.firstNoticeLocked(c.tool.digest) {
		return nil
	}
	text := fmt.Sprintf("tool %s is called by a rule, without a question: %s", quoteFlag(c.tool.Def.Name), strings.Join(texts, " "))
	_, err := s.appendLocked(&NoticeRecord{Level: mcp.LogWarning, Server: c.tool.Server, Text: bounded(text, maxWhy), Untrusted: true})
	return err
}

// checkEdited says whether arguments that the person wrote may be sent: rules that
// deny hold for them too.
func (s *Session) checkEdited(q *policy.Query) func(*Answer) error {
	return func(a *Answer) error {
		if a.Edited == nil {
			return nil
		}
		args, err := compact(a.Edited)
		if err != nil {
			return fmt.Errorf("the edited arguments are no JSON object: %w", err)
		}
		edited := *q
		edited.Arguments, a.Edited = args, args
		if v := s.host.opts.Policy.Decide(&edited); v.Effect == policy.Deny {
			return fmt.Errorf("the edited arguments are denied: %s", v.Why())
		}
		return nil
	}
}

// audited adds a decision to the audit log.
func (s *Session) audited(ctx context.Context, q *policy.Query, event, why string) {
	e := &AuditEntry{Session: s.info.ID, Event: event, Kind: q.Kind, Server: q.Server, Name: Redact(q.Name), Why: bounded(why, maxWhy)}
	s.mu.Lock()
	e.Record = int64(len(s.records))
	s.mu.Unlock()
	if q.Arguments != nil {
		sum := sha256.Sum256(q.Arguments)
		e.Arguments = hex.EncodeToString(sum[:])
	}
	s.host.audit(ctx, e)
}

// errToolChanged is why a call is not sent: its tool is another one than was agreed to.
var errToolChanged = errors.New("the server changed this tool between the consent and the call; nothing was done")

// stillAllowed says why a call that was authorized may not be sent now: the tool has
// changed, or rules and grants have, while the person was asked about others.
func (s *Session) stillAllowed(ctx context.Context, c *readyCall) error {
	// A server that is started again lists its tools first.
	if _, err := s.host.Client(ctx, c.tool.Server); err != nil {
		return err
	}
	cl, now, err := s.host.listed(ctx, c.tool.Server, c.tool.Def.Name)
	if err != nil {
		return err
	}
	switch {
	case cl == nil || now == nil || now.owner != c.tool.owner:
		return errors.New("the server was replaced, or has this tool no more, between the consent and the call; nothing was done")
	case now.digest != c.tool.digest:
		return errToolChanged
	}
	c.client = cl
	q := s.callQuery(c)
	if v := s.host.opts.Policy.Decide(q); v.Effect == policy.Deny {
		return fmt.Errorf("it is not allowed any more: %s", v.Why())
	}
	if c.grant != "" {
		g, err := s.stillGranted(ctx, c, q)
		if err != nil {
			return err
		}
		if g == nil {
			return errors.New("the grant that allowed it was taken back or is over; nothing was done")
		}
	}
	return nil
}

// checkPin compares the definition of a tool with the one that the person agreed
// to. Without one there is nothing to compare, and the tool is not known.
func (s *Session) checkPin(ctx context.Context, tool *Tool) (changes []Change, known bool, err error) {
	pin, err := s.host.opts.Store.Pin(ctx, tool.pinKey())
	if err != nil {
		return nil, false, fmt.Errorf("reading what was agreed to: %w", err)
	}
	if spec, _ := s.host.spec(tool.Server); pin == nil || pin.Digest == tool.digest || spec.BuiltIn {
		return nil, pin != nil, nil
	}
	old := new(Definition)
	if old.UnmarshalJSON(pin.Definition) == nil {
		changes = Diff(old, tool.definition)
	}
	if len(changes) == 0 { // what was agreed to cannot be read, or differs in what is not shown
		changes = []Change{{Path: "definition", Kind: ChangeEdited}}
	}
	return changes, true, nil
}

// checkRename warns of a tool that looks like one that the person agreed to and that is
// gone.
func (s *Session) checkRename(ctx context.Context, catalog *Catalog, c *readyCall) error {
	pins, err := s.host.opts.Store.Pins(ctx, c.tool.pinKey().Server)
	if err != nil {
		return fmt.Errorf("reading what was agreed to: %w", err)
	}
	var gone []*Definition
	for _, pin := range pins {
		if _, there := catalog.Named(modelName(c.tool.Server, pin.Tool)); there || pin.Tool == "" {
			continue
		}
		old := new(Definition)
		if old.UnmarshalJSON(pin.Definition) == nil {
			gone = append(gone, old)
		}
	}
	for _, r := range Renames(gone, []*Definition{c.tool.definition}) {
		c.warnings = append(c.warnings, fmt.Sprintf("the server had this tool under the name %q, to which you agreed", r.From))
	}
	return nil
}

// pin keeps the definition that a call was approved with.
func (s *Session) pin(ctx context.Context, tool *Tool) error {
	about := &AuditEntry{Kind: policy.KindTool, Server: tool.Server, Name: tool.Def.Name}
	return s.keepPin(ctx, about, tool.pinKey(), tool.digest, tool.definition.MarshalJSON)
}

// keepPin keeps what the person agreed to, unless it is kept already, and audits that.
func (s *Session) keepPin(ctx context.Context, about *AuditEntry, key PinKey, digest string, definition func() ([]byte, error)) error {
	old, err := s.host.opts.Store.Pin(ctx, key)
	if err != nil {
		return fmt.Errorf("reading what was agreed to: %w", err)
	}
	if old != nil && old.Digest == digest {
		return nil
	}
	raw, err := definition()
	if err == nil {
		err = s.host.opts.Store.PutPin(ctx, &Pin{PinKey: key, Digest: digest, Definition: raw, Time: time.Now()})
	}
	if err != nil {
		return fmt.Errorf("keeping what was agreed to: %w", err)
	}
	about.Session, about.Event, about.Why = s.info.ID, "pinned", digest
	s.host.audit(ctx, about)
	return nil
}

// askChange asks whether a tool may be used although its definition differs from
// the one that the person agreed to. No rule answers that.
func (s *Session) askChange(ctx context.Context, c *readyCall, changes []Change) error {
	tool := c.tool
	if err := s.countForPage(c); err != nil {
		return err
	}
	_, err := s.settle(ctx, &proposal{
		query:   &policy.Query{Kind: policy.KindTool, Server: tool.Server, Name: tool.Def.Name},
		verdict: verdict{effect: policy.Ask, why: "the server has changed this tool since you agreed to it"},
		question: &Question{
			Kind: QuestionChange, Server: tool.Server, Origin: s.host.origin(tool.Server), Call: c.record.ID, ByPage: c.record.ByPage,
			Name: tool.Def.Name, Tool: tool.Def, Changes: changes, Warnings: c.warnings,
		},
		changed: true,
	})
	if err != nil {
		return err
	}
	return s.pin(ctx, tool)
}
