package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// Bounds of what a server may put into a question to the model.
const (
	maxSampleMessages = 256
	maxSampleMedia    = 5 << 20
)

// options are what the server's client is set up with: a capability is
// declared only if there is a handler for it.
func (l *link) options() *client.Options {
	h := l.host
	o := &client.Options{
		Info:           h.opts.Info,
		Versions:       l.spec.Versions,
		Logger:         h.opts.Logger.With("server", l.spec.Name),
		Extensions:     h.opts.Extensions,
		OnToolsChanged: func(context.Context) { l.stale.Store(true) },
	}
	if h.opts.Elicitor != nil {
		o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return l.elicit(ctx, mcp.ModeForm, &ElicitQuestion{Params: r.Params})
		}
		o.OnElicitURL = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return l.elicit(ctx, mcp.ModeURL, &ElicitQuestion{Params: r.Params, Page: r.Page})
		}
	}
	may := h.opts.Policy.Decide(KindSampling, l.spec.Name, sampleRequest).Effect
	if h.opts.SampleModel != nil && (may == Allow || may == Ask && h.opts.Consent != nil) {
		o.OnSample = l.sample
	}
	if len(h.opts.Roots) > 0 && h.opts.Policy.Decide(KindRoots, l.spec.Name, "list").Effect != Deny {
		o.OnRoots = func(context.Context) ([]mcp.Root, error) { return h.opts.Roots, nil }
	}
	if log := h.opts.OnLog; log != nil {
		o.LogLevel = h.opts.LogLevel
		o.OnLog = func(_ context.Context, p *mcp.LogParams) { log(l.spec.Name, p) }
	}
	return o
}

// elicit asks the person for a server.
func (l *link) elicit(ctx context.Context, mode string, q *ElicitQuestion) (*mcp.ElicitResult, error) {
	h := l.host
	if h.opts.Policy.Decide(KindElicit, l.spec.Name, mode).Effect == Deny {
		return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
	}
	if l.asked.Add(1) > int64(h.opts.MaxQuestions) {
		err := &BudgetError{"questions", fmt.Sprintf("%d questions of server %s", h.opts.MaxQuestions, l.spec.Name)}
		return nil, fmt.Errorf("%w: %w", client.ErrRefused, err)
	}
	q.Server, q.Origin = l.spec.Name, l.spec.Origin
	var res *mcp.ElicitResult
	err := h.withPerson(ctx, func() (err error) {
		res, err = h.opts.Elicitor.Elicit(ctx, q)
		return err
	})
	return res, err
}

// Names of the two moments of sampling, for rules.
const (
	sampleRequest = "request"
	sampleAnswer  = "answer"
)

// sample calls the model for a server: the request and the answer are authorized
// each, and shown to the person unless a rule allows them. The conversation of
// the host is no part of it.
//
// spec 2026-07-28, client/sampling: there SHOULD always be a human in the loop
// with the ability to deny sampling requests.
func (l *link) sample(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	h := l.host
	if n := l.samples.Add(1); n > int64(h.opts.MaxSamples) {
		err := &BudgetError{"samples", fmt.Sprintf("%d uses of the model by server %s", h.opts.MaxSamples, l.spec.Name)}
		return nil, fmt.Errorf("%w: %w", client.ErrRefused, err)
	}
	req, shown, err := sampleMessages(p)
	if err != nil {
		return nil, err
	}
	req.MaxTokens = h.opts.MaxSampleTokens
	if p.MaxTokens > 0 && p.MaxTokens < int64(req.MaxTokens) {
		req.MaxTokens = int(p.MaxTokens)
	}
	if err := l.authorizeSample(ctx, sampleRequest, shown); err != nil {
		return nil, err
	}
	answer, err := l.generate(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := l.authorizeSample(ctx, sampleAnswer, answer); err != nil {
		return nil, err
	}
	return &mcp.CreateMessageResult{
		Role:       mcp.RoleAssistant,
		Content:    mcp.Contents{mcp.Text(answer)},
		Model:      h.opts.SampleModel.Name(),
		StopReason: mcp.StopEndTurn,
	}, nil
}

// generate runs one turn of the model, without tools.
func (l *link) generate(ctx context.Context, req *Request) (string, error) {
	var b strings.Builder
	for piece, err := range l.host.opts.SampleModel.Generate(ctx, req) {
		if err != nil {
			return "", fmt.Errorf("model: %w", err)
		}
		if b.Len()+len(piece.Text) > maxTurnText {
			return "", errors.New("the model's answer is too long")
		}
		b.WriteString(piece.Text)
	}
	return b.String(), nil
}

// authorizeSample gets consent for one half of a sampling.
func (l *link) authorizeSample(ctx context.Context, name, shown string) error {
	h := l.host
	err := h.consent(ctx, &consentRequest{
		key: grantKey{KindSampling, l.spec.Name, name},
		question: &Question{
			Kind: KindSampling, Server: l.spec.Name, Origin: l.spec.Origin, Name: name,
			Text: shown, Secrets: TextSecrets(shown),
		},
	})
	if errors.Is(err, ErrConsent) {
		return fmt.Errorf("%w: %w", client.ErrRefused, err)
	}
	return err
}

// sampleMessages checks what a server wants to ask the model, and writes it
// down for the person.
func sampleMessages(p *mcp.CreateMessageParams) (*Request, string, error) {
	if len(p.Messages) == 0 || len(p.Messages) > maxSampleMessages {
		return nil, "", mcp.NewError(mcp.CodeInvalidParams, "%d messages: between 1 and %d are possible", len(p.Messages), maxSampleMessages)
	}
	req := &Request{System: p.SystemPrompt, Stop: p.StopSequences}
	var shown strings.Builder
	if p.SystemPrompt != "" {
		fmt.Fprintf(&shown, "system: %s\n", p.SystemPrompt)
	}
	for _, m := range p.Messages {
		for _, c := range m.Content {
			text, err := sampleContent(c)
			if err != nil {
				return nil, "", err
			}
			fmt.Fprintf(&shown, "%s: %s\n", m.Role, text)
		}
		req.Messages = append(req.Messages, Message{Role: m.Role, Content: m.Content})
	}
	return req, strings.TrimSuffix(shown.String(), "\n"), nil
}

// sampleContent checks one block and returns what the person sees of it.
func sampleContent(c mcp.Content) (string, error) {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text, nil
	case *mcp.ImageContent:
		if len(c.Data) > maxSampleMedia {
			return "", mcp.NewError(mcp.CodeInvalidParams, "an image of %d bytes: at most %d are possible", len(c.Data), maxSampleMedia)
		}
		if sniffed := http.DetectContentType(c.Data); sniffed != c.MIMEType {
			return "", mcp.NewError(mcp.CodeInvalidParams, "an image that says it is %s but looks like %s", c.MIMEType, sniffed)
		}
		return fmt.Sprintf("[image, %s, %d bytes]", c.MIMEType, len(c.Data)), nil
	default:
		return "", mcp.NewError(mcp.CodeInvalidParams, "only text and images can be sampled from here")
	}
}
