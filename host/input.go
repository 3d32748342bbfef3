package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A ResourceInput is a resource that the person puts into a conversation.
type ResourceInput struct{ Server, URI string }

// A PromptInput is a prompt of a server that the person uses.
type PromptInput struct {
	Server, Name string
	Arguments    map[string]string
}

// gather makes the records of what the person puts in: resources and prompts are
// fetched from their servers first, so that nothing is written if one is missing.
func (s *Session) gather(ctx context.Context, in *Input) ([]Body, error) {
	ctx = withSession(ctx, s, "")
	var bodies []Body
	for i := range in.Resources {
		more, err := s.resource(ctx, &in.Resources[i])
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, more...)
	}
	if in.Page != nil {
		said, err := s.fromPage(ctx, in.Page, "it would be told to the model now")
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, s.labelled(in.Page.Server, said.Name, said)...)
	}
	if in.Prompt != nil {
		more, err := s.prompt(ctx, in.Prompt)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, more...)
	}
	if in.Skill != nil {
		more, err := s.skill(ctx, in.Skill)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, more...)
	}
	if !utf8.ValidString(in.Text) {
		return nil, errors.New("the text is no valid UTF-8")
	}
	if err := s.attachable(in.Attached); err != nil {
		return nil, err
	}
	content := slices.Clone(in.Attached)
	if in.Text != "" {
		content = append(content, mcp.Text(in.Text))
	}
	if len(content) > 0 {
		bodies = append(bodies, &UserRecord{Content: content})
	}
	if len(bodies) == 0 {
		return nil, errors.New("there is nothing to say")
	}
	var before []Body
	for _, c := range s.pageContexts() {
		before = append(before, s.labelled(c.Server, c.Name, c)...)
	}
	return append(before, bodies...), nil
}

// attachable checks what the person attaches. It is not cut: they would not see what the
// model was not given.
func (s *Session) attachable(attached mcp.Contents) error {
	info, err := s.describe()
	if err != nil {
		return err
	}
	images, left := 0, s.host.opts.MaxResultBytes*4
	for _, c := range attached {
		switch c := c.(type) {
		case *mcp.TextContent:
			if left -= len(c.Text); left < 0 {
				return fmt.Errorf("the attached texts have more than %d bytes", s.host.opts.MaxResultBytes*4)
			}
			if !utf8.ValidString(c.Text) {
				return errors.New("an attached text is no valid UTF-8")
			}
		case *mcp.ImageContent:
			images++
			switch {
			case info.MaxImage == 0:
				return fmt.Errorf("the model %s takes no images", info.Name)
			case images > maxImages:
				return fmt.Errorf("there are more than %d images", maxImages)
			case len(c.Data) > info.MaxImage:
				return fmt.Errorf("an image has %d bytes; the model %s takes at most %d", len(c.Data), info.Name, info.MaxImage)
			case !takes(c, info.MaxImage):
				return fmt.Errorf("an image is said to be %s, and is not", c.MIMEType)
			}
		default:
			return fmt.Errorf("%T cannot be attached: texts and images can", c)
		}
	}
	return nil
}

// use asks the rules about what the person themselves asks for: their wish is the
// consent, unless a rule says otherwise.
func (s *Session) use(ctx context.Context, kind policy.Kind, server, name string, args mcp.RawValue) error {
	q := s.query(kind, server, name, args)
	v := s.ruled(q)
	if !v.once { // no rule asks or denies
		v = verdict{effect: policy.Allow, why: "the person asked for it"}
	}
	_, err := s.settle(ctx, &proposal{query: q, verdict: v, question: &Question{
		Kind: QuestionUse, Server: server, Origin: s.host.origin(server), Name: name, Arguments: args,
	}})
	return err
}

// resource reads a resource for the conversation.
func (s *Session) resource(ctx context.Context, in *ResourceInput) ([]Body, error) {
	args, err := wire.Marshal(map[string]string{"uri": in.URI})
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w", in.URI, err)
	}
	if err := s.use(ctx, policy.KindResource, in.Server, in.URI, args); err != nil {
		return nil, err
	}
	c, err := s.host.Client(ctx, in.Server)
	if err != nil {
		return nil, err
	}
	result, err := c.ReadResource(ctx, in.URI, nil)
	if err != nil {
		return nil, fmt.Errorf("server %q: reading %s: %w", in.Server, in.URI, err)
	}
	rec := &UserRecord{Server: in.Server, Name: "resource " + in.URI}
	left := s.host.opts.MaxResultBytes * 4
	for i := range result.Contents {
		text, isCut := cut(ResourceText(&result.Contents[i]), left)
		left -= len(text)
		if isCut {
			text += "\n[host: cut off here]"
		}
		rec.Content = append(rec.Content, mcp.Text(text))
		if isCut {
			break
		}
	}
	return s.labelled(in.Server, rec.Name, rec), nil
}

// labelled puts the labels of a server before what comes from it.
func (s *Session) labelled(server, name string, bodies ...Body) []Body {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(s.fresh(s.host.labels(server, ""), server, name), bodies...)
}

// prompt expands a prompt of a server.
func (s *Session) prompt(ctx context.Context, in *PromptInput) ([]Body, error) {
	args, err := wire.Marshal(maps.Clone(in.Arguments))
	if err != nil {
		return nil, fmt.Errorf("prompt %s: %w", in.Name, err)
	}
	if err := s.use(ctx, policy.KindPrompt, in.Server, in.Name, args); err != nil {
		return nil, err
	}
	c, err := s.host.Client(ctx, in.Server)
	if err != nil {
		return nil, err
	}
	result, err := c.GetPrompt(ctx, in.Name, in.Arguments, nil)
	if err != nil {
		return nil, fmt.Errorf("server %q: prompt %s: %w", in.Server, in.Name, err)
	}
	if len(result.Messages) == 0 {
		return nil, fmt.Errorf("server %q: prompt %s is empty", in.Server, in.Name)
	}
	info, err := s.describe()
	if err != nil {
		return nil, err
	}
	var bodies []Body
	left := s.host.opts.MaxResultBytes * 4
	images := 0
	for _, m := range result.Messages {
		content := m.Content
		if images < maxImages && takes(content, info.MaxImage) {
			images++
		} else {
			text, isCut := cut(ContentText(content), left)
			left -= len(text)
			if isCut {
				text += "\n[host: cut off here]"
			}
			content = mcp.Text(text)
		}
		bodies = append(bodies, &UserRecord{Server: in.Server, Name: "prompt " + in.Name, Role: m.Role, Content: mcp.Contents{content}})
	}
	return s.labelled(in.Server, "prompt "+in.Name, bodies...), nil
}
