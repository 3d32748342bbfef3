package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
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
}

// query fills in what the host knows about an action.
func (s *Session) query(kind policy.Kind, server, name string, args mcp.RawValue) *policy.Query {
	s.mu.Lock()
	labels := s.state.labelList()
	s.mu.Unlock()
	q := &policy.Query{
		Kind: kind, Server: server, Name: name, Arguments: args, Labels: labels,
		Time: time.Now(), Dir: s.host.opts.Dir, Client: s.host.opts.Info.Name,
	}
	if spec, ok := s.host.spec(server); ok {
		q.Trusted = spec.Trusted
	}
	return q
}

// callQuery is the query about a call.
func (s *Session) callQuery(c *readyCall) *policy.Query {
	q := s.query(policy.KindTool, c.tool.Server, c.tool.Def.Name, c.args)
	q.Annotations = c.tool.Def.Annotations
	return q
}

// judge decides about an action by the rules, by flow labels and by grants, in
// this order. digest is that of the tool's definition.
func (s *Session) judge(ctx context.Context, q *policy.Query, labels []policy.Label, digest string) (verdict, error) {
	v := s.host.opts.Policy.Decide(q)
	out := verdict{effect: v.Effect, why: v.Why()}
	if v.Effect == policy.Approve {
		out.effect = policy.Ask // the person at this host is who agrees
	}
	if v.Rule != nil {
		out.reason = v.Rule.Reason
		out.once = v.Effect != policy.Allow // a rule that asks wants to be asked each time
	}
	if out.effect == policy.Deny {
		return out, nil
	}
	if slices.Contains(labels, policy.LabelSends) && slices.Contains(q.Labels, policy.LabelUntrusted) && slices.Contains(q.Labels, policy.LabelPrivate) {
		out.effect, out.once = policy.Ask, true
		out.why = "this conversation has read private data and untrusted input, and the call can send data out"
		return out, nil
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
	// client is that of the connection whose definition was agreed to.
	client *client.Client
	// warnings say what is suspicious about the tool.
	warnings []string
}

// errCall is every mistake of the model in a call; the model is told.
var errCall = errors.New("the call is wrong")

// authorize finds the tool of a call and gets consent for it. The error is a
// *ConsentError, an errCall, or why the run cannot go on.
func (s *Session) authorize(ctx context.Context, catalog *Catalog, call *CallRecord) (*readyCall, error) {
	tool, ok := catalog.Named(call.ModelName)
	if !ok || tool.Hidden {
		return nil, fmt.Errorf("%w: there is no tool %q", errCall, call.ModelName)
	}
	if call.Arguments == nil {
		return nil, fmt.Errorf("%w: the arguments of %s are no JSON object: %s", errCall, call.ModelName, bounded(call.Text, 200))
	}
	ready := &readyCall{record: call, tool: tool, args: call.Arguments, warnings: catalog.warnings(tool)}
	changes, known, err := s.checkPin(ctx, tool)
	if err == nil && !known {
		err = s.checkRename(ctx, catalog, ready)
	}
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		if err := s.askChange(ctx, ready, changes); err != nil {
			return nil, err
		}
	}
	if err := s.authorizeArguments(ctx, ready); err != nil {
		return nil, err
	}
	// The person, or the author of the rule, agreed to this definition.
	return ready, s.pin(ctx, tool)
}

// authorizeArguments lets a call through, asks the person, or refuses.
func (s *Session) authorizeArguments(ctx context.Context, c *readyCall) error {
	tool := c.tool
	labels := s.host.labels(tool.Server, tool.Def.Name)
	q := s.callQuery(c)
	v, err := s.judge(ctx, q, labels, tool.digest)
	if err != nil {
		return err
	}
	refuse := func(why, reason string, refused bool) error {
		s.audited(ctx, q, "refused", why)
		return &ConsentError{Kind: policy.KindTool, Server: tool.Server, Name: tool.Def.Name, Why: why, Refused: refused, Reason: reason}
	}
	switch v.effect {
	case policy.Allow:
		c.why, c.grant = v.why, v.grant
		s.audited(ctx, q, "allowed", v.why)
		return nil
	case policy.Deny:
		return refuse(v.why, v.reason, true)
	case policy.Ask, policy.Approve: // the person at this host is who agrees
	}
	question := &Question{
		Kind: QuestionCall, Server: tool.Server, Origin: s.host.origin(tool.Server), Call: c.record.ID,
		Name: tool.Def.Name, Tool: tool.Def, Arguments: c.args, Secrets: ArgumentSecrets(c.args),
		Warnings: c.warnings, Why: v.why,
	}
	if !v.once {
		question.Offers = offersFor(tool.Server, tool.Def.Name, c.args, q.Trusted)
	}
	a, err := s.ask(ctx, question, s.checkEdited(q), func(a *Answer) *Grant { return s.grant(question, a, tool.owner.spec.Key, tool.digest) })
	switch {
	case errors.Is(err, errUnattended):
		return refuse("it needs a person's consent, and nobody can be asked here ("+v.why+")", "", false)
	case err != nil:
		return err
	case a.Action != Approve:
		return refuse("the person refused", a.Reason, true)
	}
	c.why = "the person agreed"
	if a.Edited != nil {
		c.args, c.edited, c.why = a.Edited, true, "the person agreed, with other arguments"
		q.Arguments = c.args
	}
	s.audited(ctx, q, "approved", c.why)
	return nil
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
	if cl == nil || now == nil || now.digest != c.tool.digest || now.owner != c.tool.owner {
		return errors.New("the server changed this tool between the consent and the call, or has it no more; nothing was done")
	}
	c.client = cl
	q := s.callQuery(c)
	if v := s.host.opts.Policy.Decide(q); v.Effect == policy.Deny {
		return fmt.Errorf("it is not allowed any more: %s", v.Why())
	}
	if c.grant != "" {
		g, err := s.host.granted(ctx, q, c.tool.digest)
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
	key := tool.pinKey()
	old, err := s.host.opts.Store.Pin(ctx, key)
	if err != nil {
		return fmt.Errorf("reading what was agreed to: %w", err)
	}
	if old != nil && old.Digest == tool.digest {
		return nil
	}
	return s.keepPin(ctx, tool.Server, key, tool.definition, tool.digest)
}

// keepPin keeps what the person agreed to about a server, or one of its tools.
func (s *Session) keepPin(ctx context.Context, server string, key PinKey, d *Definition, digest string) error {
	raw, err := d.MarshalJSON()
	if err == nil {
		err = s.host.opts.Store.PutPin(ctx, &Pin{PinKey: key, Digest: digest, Definition: raw, Time: time.Now()})
	}
	if err != nil {
		return fmt.Errorf("keeping what was agreed to: %w", err)
	}
	s.host.audit(ctx, &AuditEntry{Session: s.info.ID, Event: "pinned", Kind: policy.KindTool, Server: server, Name: key.Tool, Why: digest})
	return nil
}

// askChange asks whether a tool may be used although its definition differs from
// the one that the person agreed to. No rule answers that.
func (s *Session) askChange(ctx context.Context, c *readyCall, changes []Change) error {
	tool := c.tool
	a, err := s.ask(ctx, &Question{
		Kind: QuestionChange, Server: tool.Server, Origin: s.host.origin(tool.Server), Call: c.record.ID,
		Name: tool.Def.Name, Tool: tool.Def, Changes: changes, Warnings: c.warnings,
		Why: "the server has changed this tool since you agreed to it",
	}, nil, nil)
	refuse := func(why, reason string, refused bool) error {
		return &ConsentError{Kind: policy.KindTool, Server: tool.Server, Name: tool.Def.Name, Why: why, Refused: refused, Changed: true, Reason: reason}
	}
	audited := &policy.Query{Kind: policy.KindTool, Server: tool.Server, Name: tool.Def.Name}
	switch {
	case errors.Is(err, errUnattended):
		return refuse("the server has changed this tool since it was agreed to, and nobody can be asked here", "", false)
	case err != nil:
		return err
	case a.Action != Approve:
		s.audited(ctx, audited, "refused", "the changed definition")
		return refuse("the person does not agree to the changed tool", a.Reason, true)
	}
	s.audited(ctx, audited, "approved", "the changed definition")
	return s.pin(ctx, tool)
}
