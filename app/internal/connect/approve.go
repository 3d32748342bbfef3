package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// An Approval is what waits for the person: an entry of a project, or the rules of one of
// its files that allow.
type Approval struct {
	host.Pin
	// about shows all of it.
	About string
}

// approvalOf is where the store has the person's consent to what others wrote: an
// entry of a project, by its name, or the rules in a file.
func approvalOf(what, name string) host.PinKey {
	return host.PinKey{Server: "configuration " + what, Tool: name}
}

// EntryKey returns the key under which the store has the user's approval of an entry of a project.
func EntryKey(s *config.Server) host.PinKey { return approvalOf("entry", s.Source.File+" "+s.Name) }

// Keep stores the approval.
func (a *Approval) Keep(ctx context.Context, store host.Store) error {
	a.Time = time.Now()
	return store.PutPin(ctx, &a.Pin)
}

// EntryApproval returns the consent to an entry, and whether the person has given it.
func EntryApproval(ctx context.Context, entry *config.Server, store host.Store) (a Approval, agreed bool, err error) {
	before, err := store.Pin(ctx, EntryKey(entry))
	if err != nil {
		return a, false, err
	}
	a.Pin = host.Pin{PinKey: EntryKey(entry), Digest: entry.Digest, Definition: mcp.RawValue("{}")}
	agreed = before != nil && before.Digest == entry.Digest
	a.About = describeEntry(entry, before != nil && !agreed)
	return a, agreed, nil
}

// approvedRules are the rules that the person agreed to, in words, as they are kept.
type approvedRules struct {
	Rules []string `json:"rules"`
}

// agreedRules are the rules of a pin, which may be nil.
func agreedRules(pin *host.Pin) []string {
	var agreed approvedRules
	if pin == nil || json.Unmarshal(pin.Definition, &agreed) != nil {
		return nil // all of it is new then
	}
	return agreed.Rules
}

// RulesApproval returns the consent to the rules of a file.
func RulesApproval(ctx context.Context, pending *config.PendingRules, store host.Store) (a Approval, err error) {
	key := approvalOf("rules", pending.File.Path)
	before, err := store.Pin(ctx, key)
	if err != nil {
		return a, err
	}
	old := agreedRules(before)
	var now approvedRules
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe project's file %s has rules that allow calls without approval:\n", host.EscapeLine(pending.File.Path))
	switch {
	case before == nil:
	case before.Digest == pending.File.Digest: // what else it allows stays
		b.WriteString("  Other files have changed since you approved it, so that it now allows more.\n")
		now.Rules = slices.Clone(old)
	default:
		b.WriteString("  It has changed since you approved it.\n")
	}
	for i := range pending.Rules {
		words := RuleWords(&pending.Rules[i])
		mark := ""
		if before != nil && !slices.Contains(old, words) {
			mark = "new, "
		}
		now.Rules = append(now.Rules, words)
		fmt.Fprintf(&b, "    %sline %d: %s\n", mark, pending.Rules[i].Source.Line, plainly(words))
	}
	raw, err := json.Marshal(now)
	a.Pin = host.Pin{PinKey: key, Digest: pending.File.Digest, Definition: raw}
	a.About = strings.TrimSuffix(b.String(), "\n")
	return a, err
}

// RuleWords returns a rule without its place.
func RuleWords(r *policy.Rule) string {
	plain := *r
	plain.Source = policy.Source{}
	return plain.String()
}

// NotePending prints a note about the rules of project files that wait for approval.
func (c *Connector) NotePending(cfg *config.Config) {
	n := 0
	for i := range cfg.Pending {
		n += len(cfg.Pending[i].Rules)
	}
	switch n {
	case 0:
	case 1:
		c.Note("parley: one rule of the project that allows calls needs your approval; run 'parley config approve' to review it")
	default:
		c.Note("parley: %d rules of the project that allow calls need your approval; run 'parley config approve' to review them", n)
	}
}

// approveEntry lets an entry that others wrote be used: the person agreed to it as
// it is, or agrees now.
func (c *Connector) approveEntry(ctx context.Context, entry *config.Server, attended bool, store host.Store) error {
	a, agreed, err := EntryApproval(ctx, entry, store)
	if err != nil || agreed {
		return err
	}
	if !attended {
		return &notAgreedError{entry.Name}
	}
	c.Note("%s", a.About)
	if agreed, err := c.AskYes(ctx, "Start it in this and later sessions? [y]es, [n]o: "); err != nil {
		return err
	} else if !agreed {
		return &notAgreedError{entry.Name}
	}
	return a.Keep(ctx, store)
}

// A notAgreedError says that an entry that others wrote waits for the person's consent.
type notAgreedError struct{ entry string }

// Error says how to give it.
func (e *notAgreedError) Error() string {
	return fmt.Sprintf("it is from a project file and you have not approved it; run 'parley config approve %s' to review it", host.EscapeLine(e.entry))
}

// describeEntry shows what an entry would start.
func describeEntry(entry *config.Server, changed bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe project's file %s defines the server %s.\n", host.EscapeLine(entry.Source.String()), host.EscapeLine(entry.Name))
	if changed {
		b.WriteString("  It has changed since you approved it.\n")
	}
	// All of it, as it was written: nobody agrees to what is not shown.
	if entry.URL != "" {
		fmt.Fprintf(&b, "  It connects to: %s\n", plainly(entry.URL))
	} else {
		fmt.Fprintf(&b, "  It runs on this machine: %s\n", plainly(entry.Command))
		for _, arg := range entry.Args {
			fmt.Fprintf(&b, "    argument: %s\n", plainly(arg))
		}
	}
	if entry.Dir != "" {
		fmt.Fprintf(&b, "  in the folder: %s\n", plainly(entry.Dir))
	}
	for _, name := range slices.Sorted(maps.Keys(entry.Env)) {
		fmt.Fprintf(&b, "    variable: %s=%s\n", plainly(name), plainly(entry.Env[name]))
	}
	if len(entry.EnvFileNames) > 0 {
		fmt.Fprintf(&b, "    variables from the file %s: %s\n", plainly(entry.EnvFile), plainly(strings.Join(entry.EnvFileNames, ", ")))
	}
	for _, h := range entry.Headers {
		fmt.Fprintf(&b, "    header: %s: %s\n", plainly(h.Name), plainly(h.Value))
	}
	if entry.OAuth != nil {
		fmt.Fprintf(&b, "    signing in: %s\n", plainly(describeOAuth(entry.OAuth)))
	}
	for i := range entry.Inputs {
		fmt.Fprintf(&b, "    input: %s\n", plainly(describeInput(&entry.Inputs[i])))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plainly is a text of an entry in one line: long runs of blanks are told as numbers, and the
// size of what is long stands before it.
func plainly(s string) string {
	const long = 200
	text := ui.Condense(host.EscapeLine(s))
	if len(s) > long {
		text = fmt.Sprintf("(%d bytes) %s", len(s), text)
	}
	return text
}

// describeOAuth shows what an entry says about signing in, but for the secret.
func describeOAuth(o *config.OAuth) string {
	var parts []string
	add := func(label, text string) {
		if text != "" {
			parts = append(parts, label+" "+text)
		}
	}
	add("as client", o.ClientID)
	if o.ClientSecret != "" {
		parts = append(parts, "with a secret")
	}
	add("for the scopes", strings.Join(o.Scopes, " "))
	if o.CallbackPort != 0 {
		add("with callback port", strconv.Itoa(o.CallbackPort))
	}
	add("at", o.MetadataURL)
	return strings.Join(parts, ", ")
}

// describeInput shows what an entry asks for when it is started.
func describeInput(in *config.Input) string {
	text := in.ID
	if in.Description != "" {
		text += ", " + in.Description
	}
	if len(in.Options) > 0 {
		text += ", one of " + strings.Join(in.Options, ", ")
	}
	if in.Default != "" {
		text += "; default " + in.Default
	}
	return text
}
