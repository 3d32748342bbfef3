package ui

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A Wording is how a question reads in every face.
type Wording struct {
	// Title is one sentence: what is asked.
	Title string
	// Lines are what there is to know, in the order to show it.
	Lines []Entry
	// Page is the address of a page to visit, or nil.
	Page *Address
	// Form is the form to fill in, or nil.
	Form *Form
	// Choices are what can be answered, in the order to show them.
	Choices []Choice
}

// An Address is one of a page, escaped, in parts: a face marks the domain. The three
// parts together are the whole address.
type Address struct{ Before, Domain, After string }

// A Choice is one way to answer a question.
type Choice struct {
	// Key is what is typed for it: one letter, or the number of an offer.
	Key string
	// Label says what it does, escaped, on one line.
	Label string
	// Answer is what to answer with, once it has what Needs says.
	Answer host.Answer
	Needs  Need
	// Timed says that Answer.Minutes may be set: the agreement then ends by itself.
	Timed bool
}

// A Need is what an answer lacks.
type Need string

// What an answer can lack.
const (
	NeedNothing Need = ""
	// NeedReason is Answer.Reason, which may be left empty.
	NeedReason Need = "reason"
	// NeedEdit is Answer.Edited.
	NeedEdit Need = "edit"
	// NeedModel is Answer.Model, one of Question.Models; it goes with another choice.
	NeedModel Need = "model"
	// NeedValues is Answer.Values.
	NeedValues Need = "values"
	// NeedRoots is Answer.Roots, some of Question.Roots.
	NeedRoots Need = "roots"
	// NeedVisit is that the person is led to the page.
	NeedVisit Need = "visit"
)

// NewWording words a question. Everything in it is escaped.
func NewWording(q *host.Question) *Wording {
	p := &Wording{}
	p.fact("server", name(q.Server)+origin(q.Origin))
	switch q.Kind {
	case host.QuestionCall:
		p.call(q)
	case host.QuestionCalls:
		p.calls(q)
	case host.QuestionChange:
		p.change(q)
	case host.QuestionSample:
		p.sample(q)
	case host.QuestionSampled:
		p.sampled(q)
	case host.QuestionForm:
		p.form(q)
	case host.QuestionPage:
		p.page(q)
	case host.QuestionRoots:
		p.roots(q)
	case host.QuestionUse:
		p.use(q)
	case host.QuestionSkill:
		p.skill(q)
	case host.QuestionApp:
		p.app(q)
	case host.QuestionMessage:
		p.message(q)
	case host.QuestionSignIn:
		p.signIn(q)
	default:
		p.Title = fmt.Sprintf("Server %s asks something that this program does not know: %s.", name(q.Server), name(string(q.Kind)))
	}
	p.warnings(q)
	p.fact("asked because", host.EscapeLine(q.Why))
	p.choices(q)
	return p
}

// origin says where an entry comes from, in brackets.
func origin(s string) string {
	if s == "" {
		return ""
	}
	return " (" + host.EscapeLine(s) + ")"
}

func (p *Wording) fact(label, text string) {
	if text = p.condensed(label, text); text != "" {
		p.Lines = append(p.Lines, Entry{Kind: EntryFact, Label: label, Text: text})
	}
}

// claim adds what a stranger says, if it says anything.
func (p *Wording) claim(label, text string) {
	if text = p.condensed(label, host.EscapeLine(oneLine(strings.TrimSpace(text)))); text != "" {
		p.Lines = append(p.Lines, Entry{Kind: EntryClaim, Label: label, Text: text})
	}
}

// block adds a text of several lines, escaped already.
func (p *Wording) block(label, text string) {
	p.Lines = append(p.Lines, Entry{Kind: EntryBlock, Label: label, Text: p.condensed(label, text)})
}

// value adds JSON.
func (p *Wording) value(label string, raw mcp.RawValue) {
	p.block(label, host.Indent(raw))
	p.Lines[len(p.Lines)-1].Value = raw
}

// condensed is a text without its long runs of blanks, which are suspicious.
func (p *Wording) condensed(label, text string) string {
	short := Condense(text)
	if short != text {
		p.warn(fmt.Sprintf("the %s %s a long run of blanks, shown as its number", label, map[bool]string{true: "hold", false: "holds"}[strings.HasSuffix(label, "s")]))
	}
	return short
}

func (p *Wording) warn(text string) {
	p.Lines = append(p.Lines, Entry{Kind: EntryWarning, Text: text})
}

// call words the call of a tool.
func (p *Wording) call(q *host.Question) {
	p.Title = fmt.Sprintf("The model wants to call %s of server %s.", name(q.Name), name(q.Server))
	if q.ByPage != "" {
		p.Title = fmt.Sprintf("A page of server %s wants to call its tool %s.", name(q.Server), name(q.Name))
		p.fact("page", host.EscapeLine(q.ByPage))
	}
	p.tool(q)
	p.value("arguments", q.Arguments)
}

// calls words several calls of a tool.
func (p *Wording) calls(q *host.Question) {
	p.Title = fmt.Sprintf("The model wants to call %s of server %s %d times.", name(q.Name), name(q.Server), len(q.Batch))
	p.tool(q)
	for i := range q.Batch {
		label := fmt.Sprintf("call %d", i+1)
		p.value("arguments of "+label, q.Batch[i].Arguments)
		p.secrets(label+": ", q.Batch[i].Secrets)
	}
}

// tool shows what is called, and what the server claims about it.
func (p *Wording) tool(q *host.Question) {
	p.fact("tool", host.EscapeLine(q.Name))
	if r, ok := unusual(q.Name); ok {
		p.warn(fmt.Sprintf("the name of the tool holds %s, which is not plain ASCII: it may look like the name of another tool", escapedRune(r)))
	}
	if q.Tool == nil {
		return
	}
	p.claim("title", q.Tool.Title)
	p.claim("description", q.Tool.Description)
	p.claim("the server says", hints(q.Tool.Annotations))
}

// hints are the annotations of a tool in words.
func hints(a *mcp.ToolAnnotations) string {
	if a == nil {
		return ""
	}
	var list []string
	say := func(hint *bool, yes, no string) {
		switch {
		case hint == nil:
		case *hint:
			list = append(list, yes)
		default:
			list = append(list, no)
		}
	}
	say(a.ReadOnlyHint, "it only reads", "it changes things")
	if a.ReadOnlyHint == nil || !*a.ReadOnlyHint {
		say(a.DestructiveHint, "it may destroy", "it only adds")
		say(a.IdempotentHint, "doing it twice is as doing it once", "doing it twice differs from doing it once")
	}
	say(a.OpenWorldHint, "it reaches the outside world", "it stays in a closed world")
	return strings.Join(list, ", ")
}

// unusual returns the first character of a name that may be taken for another one.
func unusual(s string) (rune, bool) {
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return r, true
		}
	}
	return 0, false
}

// escapedRune shows a character with its number.
func escapedRune(r rune) string { return host.EscapeLine(fmt.Sprintf("%q (U+%04X)", string(r), r)) }

// change words a definition that has changed.
func (p *Wording) change(q *host.Question) {
	if q.Tool == nil {
		p.Title = fmt.Sprintf("Server %s has changed what it tells the model: its instructions.", name(q.Server))
	} else {
		p.Title = fmt.Sprintf("Server %s has changed its tool %s since you agreed to it.", name(q.Server), name(q.Name))
		p.tool(q)
	}
}

// changes shows differences as before and after.
func (p *Wording) changes(list []host.Change) {
	for _, c := range list {
		path := "the part " + host.EscapeLine(c.Path)
		switch c.Kind {
		case host.ChangeAdded:
			p.block(path+" is new", host.Escape(c.After))
		case host.ChangeRemoved:
			p.block(path+" is gone; it was", host.Escape(c.Before))
		default:
			p.block(path+" was", host.Escape(c.Before))
			p.block(path+" is now", host.Escape(c.After))
		}
	}
}

// sample words a server's use of the model.
func (p *Wording) sample(q *host.Question) {
	p.Title = fmt.Sprintf("Server %s wants to use the model.", name(q.Server))
	if len(q.Models) > 0 {
		p.fact("model", host.EscapeLine(q.Models[0]))
	}
	if q.Sample == nil {
		return
	}
	s := q.Sample
	if s.SystemPrompt != "" {
		p.block("instruction to the model (untrusted)", host.Escape(s.SystemPrompt))
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		p.block("message of the "+lineOf(string(m.Role))+" (untrusted)", contents(m.Content))
	}
	for i := range s.Tools {
		t := &s.Tools[i]
		p.block("tool for the model (untrusted)", host.Escape(t.Name+"\n"+t.Description+"\n")+host.Indent(t.InputSchema))
	}
	p.claim("asks for the context of", contextOf(s.IncludeContext))
	if s.MaxTokens > 0 {
		p.fact("length", fmt.Sprintf("at most %d tokens", s.MaxTokens))
	}
	if s.Temperature != nil {
		p.fact("temperature", fmt.Sprint(*s.Temperature))
	}
	if len(s.StopSequences) > 0 {
		p.claim("stops at", fmt.Sprintf("%q", s.StopSequences))
	}
}

// contextOf says of whom a server wants the context; none is nothing to say.
func contextOf(s string) string {
	if s == mcp.IncludeNone {
		return ""
	}
	return s
}

// sampled words the answer that would go to a server.
func (p *Wording) sampled(q *host.Question) {
	p.Title = fmt.Sprintf("The model's answer would go to server %s.", name(q.Server))
	if r := q.Sampled; r != nil {
		p.fact("model", host.EscapeLine(r.Model))
		p.claim("ended because", r.StopReason)
		p.block("answer", contents(r.Content))
	}
}

// contents is content as text, escaped.
func contents(list mcp.Contents) string {
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = contentText(c)
	}
	return strings.Join(parts, "\n")
}

// contentText is a block of content as text, escaped.
func contentText(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.ToolUseContent:
		return "[use of tool " + name(c.Name) + "]\n" + host.Indent(c.Input)
	case *mcp.ToolResultContent:
		head := "[result of tool use " + name(c.ToolUseID) + "]"
		if c.IsError {
			head = "[failure of tool use " + name(c.ToolUseID) + "]"
		}
		return head + "\n" + contents(c.Content)
	}
	return host.Escape(host.ContentText(c))
}

// form words a server's form.
func (p *Wording) form(q *host.Question) {
	p.Title = fmt.Sprintf("Server %s asks you for something.", name(q.Server))
	p.Form = NewForm(nil)
	if q.Form == nil {
		return
	}
	p.block("message (untrusted)", host.Escape(q.Form.Message))
	p.Form = NewForm(q.Form.RequestedSchema)
	for i := range p.Form.Fields {
		if f := &p.Form.Fields[i]; f.Secret {
			p.warn(fmt.Sprintf("the field %s looks like a secret; no server should ask for one here", f.Label))
		}
	}
}

// page words a page to visit.
//
// spec 2026-07-28, client/elicitation: clients "MUST show the full URL to the user for
// examination before consent".
func (p *Wording) page(q *host.Question) {
	p.Title = fmt.Sprintf("Server %s wants you to visit a page.", name(q.Server))
	if q.Form != nil {
		p.block("message (untrusted)", host.Escape(q.Form.Message))
	}
	if q.Page == nil {
		return
	}
	p.Page = addressOf(q.Page.URL, q.Page.Host)
	p.fact("the page is at", host.EscapeLine(q.Page.Host))
	p.block("whole address", host.EscapeLine(q.Page.URL))
	for _, w := range q.Page.Warnings {
		p.warn(host.EscapeLine(w))
	}
}

// addressOf splits an address at its domain, if that can be found in it.
func addressOf(address, domain string) *Address {
	i := strings.Index(address, "://")
	if i < 0 || domain == "" {
		return &Address{Before: host.EscapeLine(address)}
	}
	authority := address[i+3:]
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	j := strings.LastIndex(strings.ToLower(authority), strings.ToLower(domain))
	if j < 0 || len(strings.ToLower(authority)) != len(authority) {
		return &Address{Before: host.EscapeLine(address)}
	}
	at := i + 3 + j
	return &Address{host.EscapeLine(address[:at]), host.EscapeLine(address[at : at+len(domain)]), host.EscapeLine(address[at+len(domain):])}
}

// roots words the choice of directories.
func (p *Wording) roots(q *host.Question) {
	p.Title = fmt.Sprintf("Server %s wants to know in which directories it may work.", name(q.Server))
	for i, r := range q.Roots {
		text := host.EscapeLine(r.URI)
		if r.Name != "" {
			text += " (" + name(r.Name) + ")"
		}
		p.fact(fmt.Sprintf("directory %d", i+1), text)
	}
}

// use words a prompt or resource for the conversation, or a skill by its URI.
func (p *Wording) use(q *host.Question) {
	p.Title = fmt.Sprintf("This would go into the conversation: %s of server %s.", name(q.Name), name(q.Server))
	if q.Call != "" {
		p.Title = fmt.Sprintf("The model wants to ask server %s for %s.", name(q.Server), name(q.Name))
	}
	if len(q.Arguments) > 0 {
		p.value("arguments", q.Arguments)
	}
}

// app words a page that a server wants to show.
func (p *Wording) app(q *host.Question) {
	p.Title = fmt.Sprintf("Server %s wants to show a page of its own.", name(q.Server))
	p.fact("page", host.EscapeLine(q.Name))
}

// message words what a page wants to say to the model.
func (p *Wording) message(q *host.Question) {
	p.Title = fmt.Sprintf("A page of server %s wants to say this to the model.", name(q.Server))
	p.fact("page", host.EscapeLine(q.ByPage))
	p.block("message (untrusted)", contents(q.Content))
}

// warnings adds differences, what looks like a secret and what else is suspicious.
func (p *Wording) warnings(q *host.Question) {
	p.changes(q.Changes)
	p.secrets("", q.Secrets)
	for _, w := range q.Warnings {
		p.warn(claim(w))
	}
}

// secrets warns of what looks like a secret.
func (p *Wording) secrets(of string, list []host.Secret) {
	for _, s := range list {
		where := "the text"
		if s.Pointer != "" {
			where = claim(s.Pointer)
		}
		p.warn(fmt.Sprintf("%s%s may hold a secret: %s", of, where, host.EscapeLine(s.Why)))
	}
}

// editLabels are what can be edited, by the kind of the question.
var editLabels = map[host.QuestionKind]string{
	host.QuestionCall:    "edit the arguments first",
	host.QuestionSample:  "edit the request first",
	host.QuestionSampled: "edit the answer first",
}

// choices adds what can be answered.
func (p *Wording) choices(q *host.Question) {
	add := func(key, label string, action host.Action, needs Need) {
		p.Choices = append(p.Choices, Choice{Key: key, Label: label, Answer: host.Answer{Action: action}, Needs: needs})
	}
	switch q.Kind {
	case host.QuestionForm:
		add("y", "fill it in", host.Approve, NeedValues)
		add("n", "decline", host.Refuse, NeedNothing)
		add("c", "cancel: close it without an answer", host.Dismiss, NeedNothing)
		return
	case host.QuestionPage:
		add("o", "open the page", host.Approve, NeedVisit)
		add("n", "decline", host.Refuse, NeedNothing)
		add("c", "cancel: close it without an answer", host.Dismiss, NeedNothing)
		return
	case host.QuestionSignIn:
		add("y", "sign in: your browser opens", host.Approve, NeedNothing)
		add("n", "do not sign in now", host.Refuse, NeedNothing)
		return
	case host.QuestionRoots:
		add("p", "pick directories: their numbers, or all", host.Approve, NeedRoots)
		p.offers(q.Offers, NeedRoots)
		if len(q.Offers) == 1 { // numbers are those of directories here
			p.Choices[len(p.Choices)-1].Key = "a"
		}
		add("n", "tell it of none", host.Refuse, NeedNothing)
		return
	case host.QuestionChange, host.QuestionUse, host.QuestionMessage:
		add("y", "yes", host.Approve, NeedNothing)
	case host.QuestionCalls:
		add("y", "yes, all of them, this time", host.Approve, NeedNothing)
	default:
		add("y", "yes, this time", host.Approve, NeedNothing)
	}
	p.offers(q.Offers, NeedNothing)
	if label := editLabels[q.Kind]; label != "" {
		add("e", label, host.Approve, NeedEdit)
	}
	if len(q.Models) > 1 {
		add("m", "choose another model", host.Approve, NeedModel)
	}
	forModel := q.Call != "" && (q.Kind == host.QuestionSkill || q.Kind == host.QuestionUse)
	switch {
	case q.Kind == host.QuestionCalls:
		add("o", "one by one: ask about each of them", host.Each, NeedNothing)
		add("n", "no, none of them; what you write after it is told to the model", host.Refuse, NeedReason)
	case q.ByPage != "" && (q.Kind == host.QuestionCall || q.Kind == host.QuestionChange):
		add("n", "no; what you write after it is told to the page", host.Refuse, NeedReason)
	case q.Kind == host.QuestionCall, q.Kind == host.QuestionChange, forModel:
		add("n", "no; what you write after it is told to the model", host.Refuse, NeedReason)
	default:
		add("n", "no", host.Refuse, NeedNothing)
	}
}

// offers adds the grants that can be chosen.
func (p *Wording) offers(list []host.Offer, needs Need) {
	label := "from now on, until you take it back: "
	if needs == NeedRoots {
		label = "pick as with p, and "
	}
	for i := range list {
		p.Choices = append(p.Choices, Choice{
			Key:    fmt.Sprint(i + 1),
			Label:  label + host.EscapeLine(list[i].Text),
			Answer: host.Answer{Action: host.Approve, Offer: i + 1},
			Needs:  needs, Timed: true,
		})
	}
}
