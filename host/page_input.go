package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A PageInput is what a page of a server wants to say to the model.
type PageInput struct {
	// Server and URI name the page, which was shown in the session.
	Server, URI string
	// Content is what it says. Structured is JSON beside it, or nil.
	Content    mcp.Contents
	Structured mcp.RawValue
}

// UpdateContext takes what a page wants the model to know from the next message on
// (ui/update-model-context), if the person agrees: it goes into the conversation before
// that message, marked as the server's. An update takes the place of the one before; one
// without content takes it back, which is not asked about. What no message came for is
// gone with the session.
func (s *Session) UpdateContext(ctx context.Context, in PageInput) error {
	ctx, end, err := s.beside(ctx)
	if err != nil {
		return err
	}
	defer end()
	key := PinKey{in.Server, in.URI}
	var rec *UserRecord
	if len(in.Content) > 0 || len(in.Structured) > 0 {
		if rec, err = s.fromPage(ctx, &in, "it would be told to the model with your next message"); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contexts = slices.DeleteFunc(s.contexts, func(c pageContext) bool { return c.key == key })
	if rec != nil {
		s.contexts = append(s.contexts, pageContext{key, rec})
	}
	return nil
}

// A pageContext is what a page wants the model to know.
type pageContext struct {
	key    PinKey
	record *UserRecord
}

// pageContexts are the records of what pages want the model to know.
func (s *Session) pageContexts() []*UserRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*UserRecord
	for _, c := range s.contexts {
		list = append(list, c.record)
	}
	return list
}

// said forgets what pages wanted the model to know, once it is in the log. s.mu is held.
func (s *Session) said(b Body) {
	if rec, ok := b.(*UserRecord); ok && rec.ByPage != "" {
		s.contexts = slices.DeleteFunc(s.contexts, func(c pageContext) bool { return c.record == rec })
	}
}

// fromPage gets consent for what a page says, and makes the record of it.
func (s *Session) fromPage(ctx context.Context, in *PageInput, why string) (*UserRecord, error) {
	spec, ok := s.host.spec(in.Server)
	if !ok {
		return nil, fmt.Errorf("server %q: %w", in.Server, ErrNoServer)
	}
	s.mu.Lock()
	err := s.checkShown(&spec, in.URI)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	info, err := s.describe()
	if err != nil {
		return nil, err
	}
	rec := &UserRecord{Server: in.Server, Name: "page " + in.URI, ByPage: in.URI}
	b := &pageText{left: s.host.opts.MaxResultBytes, maxImage: info.MaxImage, record: rec}
	for _, c := range in.Content {
		b.add(c)
	}
	if len(in.Structured) > 0 {
		b.add(mcp.Text(string(in.Structured)))
	}
	if len(rec.Content) == 0 {
		return nil, fmt.Errorf("server %q, page %s: there is nothing to say", in.Server, quoteFlag(in.URI))
	}
	var text strings.Builder
	for _, c := range rec.Content {
		text.WriteString(ContentText(c) + "\n")
	}
	p := &proposal{
		query:   s.query(policy.KindApp, in.Server, in.URI, nil),
		verdict: verdict{effect: policy.Ask, why: why}, // that the page may be shown says nothing about this
		question: &Question{
			Kind: QuestionMessage, Server: in.Server, Origin: s.host.origin(in.Server), Name: in.URI, ByPage: in.URI,
			Content: rec.Content, Secrets: TextSecrets(text.String()),
		},
	}
	if v := s.ruled(p.query); v.effect == policy.Deny {
		p.verdict = v
	} else if err := s.countQuestion(in.Server); err != nil {
		return nil, err
	}
	_, err = s.settle(ctx, p)
	return rec, err
}

// A pageText collects what a page says, within bounds.
type pageText struct {
	left, images, maxImage int
	record                 *UserRecord
}

// add adds a block: an image that the model takes, or text.
func (t *pageText) add(c mcp.Content) {
	if t.images < maxImages && takes(c, t.maxImage) {
		t.images++
		t.record.Content = append(t.record.Content, c)
		return
	}
	if t.left <= 0 {
		return
	}
	text, isCut := cut(valid(ContentText(c)), t.left)
	if text == "" { // models refuse it
		return
	}
	t.left -= len(text)
	if isCut {
		t.left = 0
		text += "\n[host: cut off here]"
	}
	t.record.Content = append(t.record.Content, mcp.Text(text))
}

// countQuestion counts a question that a page of a server puts to the person.
func (s *Session) countQuestion(server string) error {
	set := &s.host.servers
	set.mu.Lock()
	defer set.mu.Unlock()
	sup := set.find(server)
	if sup == nil {
		return fmt.Errorf("server %q: %w", server, ErrNoServer)
	}
	return sup.countQuestion()
}

// countQuestion counts a question of the server to the person. The error says that it has
// asked too often.
func (l *link) countQuestion() error {
	if most := l.host.opts.MaxQuestions; l.asked.Add(1) > int64(most) {
		return &BudgetError{"questions", fmt.Sprintf("%d questions of server %s", most, l.spec.Name)}
	}
	return nil
}
