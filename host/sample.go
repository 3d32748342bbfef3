package host

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// Bounds of what a server may put into a question to the model.
const (
	maxSampleMessages = 256
	maxSampleMedia    = 5 << 20
	maxSampleTools    = 64
)

// Names of the two moments of sampling, for rules.
const (
	sampleRequest = "request"
	sampleAnswer  = "answer"
)

// sample calls a model for a server: the request and the answer are shown to the
// person, who may change both, unless a rule allows them. The conversation of
// the host is no part of it.
//
// spec 2026-07-28, client/sampling: there SHOULD always be a human in the loop
// with the ability to deny sampling requests.
func (l *link) sample(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	h := l.host
	c, err := l.whose(ctx)
	if err != nil {
		return nil, err
	}
	ctx, end := c.until(ctx)
	defer end()
	if n := l.samples.Add(1); n > int64(h.opts.MaxSamples) {
		err := &BudgetError{"samples", fmt.Sprintf("%d uses of the model by server %s", h.opts.MaxSamples, l.spec.Name)}
		return nil, fmt.Errorf("%w: %w", client.ErrRefused, err)
	}
	if err := checkSample(p); err != nil {
		return nil, err
	}
	models, err := c.session.sampleModels()
	if err != nil {
		return nil, err
	}
	p, model, err := l.authorizeSample(ctx, c, p, preferred(models, p.ModelPreferences))
	if err != nil {
		return nil, err
	}
	if err := c.session.spent(); err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrRefused, err)
	}
	result, usage, err := h.generateSample(ctx, model, p)
	if _, writeErr := c.session.write(&UsageRecord{For: "server " + l.spec.Name, Usage: usage.priced(model.info)}); writeErr != nil {
		return nil, writeErr
	}
	if err != nil {
		return nil, err
	}
	return l.authorizeAnswer(ctx, c, result)
}

// preferred sorts models by what a server would prefer:
// the names that it hints at first, in its order; then by its priorities.
//
// spec 2026-07-28, client/sampling: preferences are advisory, "the client makes the final model
// selection".
func preferred(models []describedModel, p *mcp.ModelPreferences) []describedModel {
	if p == nil {
		return models
	}
	hinted := func(m *describedModel) int {
		i := slices.IndexFunc(p.Hints, func(hint mcp.ModelHint) bool {
			return hint.Name != "" && strings.Contains(strings.ToLower(m.info.Name), strings.ToLower(hint.Name))
		})
		if i < 0 {
			return len(p.Hints)
		}
		return i
	}
	most := 0.0
	for _, m := range models {
		most = max(most, m.info.InputPrice+m.info.OutputPrice)
	}
	weight := func(priority *float64, value float64) float64 {
		if priority == nil {
			return 0
		}
		return *priority * value
	}
	score := func(m *describedModel) float64 {
		info := &m.info
		cheap := 1.0
		if most > 0 {
			cheap = 1 - (info.InputPrice+info.OutputPrice)/most
		}
		return weight(p.CostPriority, cheap) + weight(p.SpeedPriority, info.Speed) + weight(p.IntelligencePriority, info.Intelligence)
	}
	slices.SortStableFunc(models, func(a, b describedModel) int {
		return cmp.Or(cmp.Compare(hinted(&a), hinted(&b)), cmp.Compare(score(&b), score(&a)))
	})
	return models
}

// authorizeSample gets consent for what goes to the model, and returns it as the
// person left it, with the model that they chose.
func (l *link) authorizeSample(ctx context.Context, c sessionCall, p *mcp.CreateMessageParams, models []describedModel) (*mcp.CreateMessageParams, *describedModel, error) {
	q := &Question{
		Kind: QuestionSample, Server: l.spec.Name, Origin: l.spec.Origin, Call: c.call, Name: sampleRequest,
		Sample: p, Secrets: TextSecrets(sampleText(p)),
	}
	for _, m := range models {
		q.Models = append(q.Models, m.info.Name)
	}
	var edited *mcp.CreateMessageParams
	check := func(a *Answer) error {
		if a.Model != "" && !slices.Contains(q.Models, a.Model) {
			return fmt.Errorf("there is no model %q; the models are %s", a.Model, strings.Join(q.Models, ", "))
		}
		if a.Edited == nil {
			return nil
		}
		e := new(mcp.CreateMessageParams)
		if err := wire.Decode(a.Edited, e); err != nil {
			return fmt.Errorf("the edited request does not fit: %w", err)
		}
		if err := checkSample(e); err != nil {
			return fmt.Errorf("the edited request does not fit: %w", err)
		}
		edited = e
		return nil
	}
	a, err := l.consent(ctx, c, q, check)
	if err != nil {
		return nil, nil, err
	}
	if edited != nil {
		p = edited
	}
	i := max(0, slices.Index(q.Models, a.Model))
	return p, &models[i], nil
}

// authorizeAnswer gets consent for the answer that goes to the server.
func (l *link) authorizeAnswer(ctx context.Context, c sessionCall, r *mcp.CreateMessageResult) (*mcp.CreateMessageResult, error) {
	var b strings.Builder
	for _, part := range r.Content {
		b.WriteString(blockText(Block{Content: part}))
	}
	q := &Question{
		Kind: QuestionSampled, Server: l.spec.Name, Origin: l.spec.Origin, Call: c.call, Name: sampleAnswer,
		Sampled: r, Secrets: TextSecrets(b.String()),
	}
	var edited *mcp.CreateMessageResult
	_, err := l.consent(ctx, c, q, func(a *Answer) error {
		if a.Edited == nil {
			return nil
		}
		e := new(mcp.CreateMessageResult)
		if err := wire.Decode(a.Edited, e); err != nil {
			return fmt.Errorf("the edited answer does not fit: %w", err)
		}
		edited = e
		return nil
	})
	if err != nil {
		return nil, err
	}
	if edited != nil {
		return edited, nil
	}
	return r, nil
}

// consent gets consent for one half of a sampling: that of a rule, or the
// person's, who may also be asked because an answer looks as if it held a secret.
func (l *link) consent(ctx context.Context, c sessionCall, q *Question, check func(*Answer) error) (Answer, error) {
	s := c.session
	query := s.query(policy.KindSampling, l.spec.Name, q.Name, nil)
	v, err := s.judge(ctx, query, nil, "")
	if err != nil {
		return Answer{}, err
	}
	if v.effect == policy.Allow && q.Kind == QuestionSampled && len(q.Secrets) > 0 {
		v.effect, v.once = policy.Ask, true
		v.why = "the answer looks as if it held a secret: " + q.Secrets[0].Why
	}
	p := &proposal{query: query, verdict: v, question: q, check: check}
	if !v.once {
		rule := policy.Rule{Effect: policy.Allow, Kind: policy.KindSampling, Server: policy.Quote(l.spec.Name), Name: q.Name}
		q.Offers = []Offer{{Scope: ScopeServer, Text: "this server, any text of this kind", Rule: rule}}
		p.grant = func(a *Answer) *Grant { return s.newGrant(l.spec.Key, rule, "", a) }
	}
	a, err := s.settle(ctx, p)
	if err != nil {
		return a, fmt.Errorf("%w: %w", client.ErrRefused, err)
	}
	return a, nil
}

// requestOf is what a model is asked for a server.
func (h *Host) requestOf(m *describedModel, p *mcp.CreateMessageParams) *Request {
	req := &Request{System: p.SystemPrompt, Stop: p.StopSequences, Temperature: p.Temperature, MaxTokens: h.opts.MaxSampleTokens}
	if p.MaxTokens > 0 && p.MaxTokens < int64(req.MaxTokens) {
		req.MaxTokens = int(p.MaxTokens)
	}
	for _, msg := range p.Messages {
		message := Message{Role: msg.Role}
		for _, c := range msg.Content {
			message.Blocks = append(message.Blocks, Block{Content: asTaken(c, m.info.MaxImage)})
		}
		req.Messages = append(req.Messages, message)
	}
	if p.ToolChoice == nil || p.ToolChoice.Mode != mcp.ToolChoiceNone {
		for i := range p.Tools {
			req.Tools = append(req.Tools, ToolSpec{Name: plainName(p.Tools[i].Name), Description: p.Tools[i].Description, InputSchema: p.Tools[i].InputSchema})
		}
	}
	return req
}

// generateSample runs one turn of a model for a server.
func (h *Host) generateSample(ctx context.Context, m *describedModel, p *mcp.CreateMessageParams) (_ *mcp.CreateMessageResult, usage Usage, err error) {
	defer recovered(h.opts.Logger, "Model.Generate", &err)
	req := h.requestOf(m, p)
	result := &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: valid(m.info.Name)}
	var b strings.Builder
	stop := StopEnd
	for piece, err := range m.Generate(ctx, req) {
		if err != nil {
			return nil, usage, fmt.Errorf("model %s: %w", result.Model, err)
		}
		if b.Len()+len(piece.Text) > maxTurnText || len(result.Content) > maxSampleTools {
			return nil, usage, fmt.Errorf("model %s: the answer is too long", result.Model)
		}
		b.WriteString(piece.Text)
		if piece.Usage != nil {
			usage = piece.Usage.valid()
		}
		if piece.Call != nil {
			input, err := compact(piece.Call.Input)
			if err != nil {
				return nil, usage, fmt.Errorf("model %s: the arguments of a call are no JSON object: %w", result.Model, err)
			}
			result.Content = append(result.Content, &mcp.ToolUseContent{
				ID: bounded(piece.Call.ID, maxName), Name: bounded(ofServer(p, piece.Call.Name), maxName), Input: input,
			})
			stop = StopCalls
		}
		if piece.Stop != "" {
			stop = piece.Stop
		}
	}
	if stop == StopRefusal {
		return nil, usage, fmt.Errorf("%w: the model refused to answer", client.ErrRefused)
	}
	if b.Len() > 0 || len(result.Content) == 0 {
		result.Content = append(mcp.Contents{mcp.Text(strings.ToValidUTF8(b.String(), "\uFFFD"))}, result.Content...)
	}
	result.StopReason = map[StopReason]string{
		StopEnd: mcp.StopEndTurn, StopCalls: mcp.StopToolUse, StopLength: mcp.StopMaxTokens, StopSequence: mcp.StopStopSequence,
	}[stop]
	return result, usage, ctx.Err()
}

// ofServer is the server's name of a tool that the model has called.
func ofServer(p *mcp.CreateMessageParams, called string) string {
	for i := range p.Tools {
		if name := p.Tools[i].Name; plainName(name) == called {
			return name
		}
	}
	return called
}

// asTaken is content as a model takes it: an image that it does not take is named, and a tool
// has the name that the model is told.
func asTaken(c mcp.Content, maxImage int) mcp.Content {
	switch c := c.(type) {
	case *mcp.ImageContent:
		if !takes(c, maxImage) {
			return mcp.Text(ContentText(c))
		}
	case *mcp.ToolUseContent:
		taken := *c
		taken.Name = plainName(c.Name)
		return &taken
	case *mcp.ToolResultContent:
		taken := *c
		taken.Content = make(mcp.Contents, len(c.Content))
		for i, part := range c.Content {
			taken.Content[i] = asTaken(part, maxImage)
		}
		return &taken
	}
	return c
}

// sampleText is what a server wants to ask the model, as one text.
func sampleText(p *mcp.CreateMessageParams) string {
	var b strings.Builder
	b.WriteString(p.SystemPrompt)
	for _, m := range p.Messages {
		for _, c := range m.Content {
			b.WriteString("\n" + blockText(Block{Content: c}))
		}
	}
	for i := range p.Tools {
		fmt.Fprintf(&b, "\n%s %s %s", p.Tools[i].Name, p.Tools[i].Description, p.Tools[i].InputSchema)
	}
	return b.String()
}

// checkSample checks what a server wants to ask the model.
//
// SEC-SAMPLE-4: size, type and number of media, and that each use of a tool has its result.
func checkSample(p *mcp.CreateMessageParams) error {
	if len(p.Messages) == 0 || len(p.Messages) > maxSampleMessages {
		return mcp.NewError(mcp.CodeInvalidParams, "%d messages: between 1 and %d are possible", len(p.Messages), maxSampleMessages)
	}
	if len(p.Tools) > maxSampleTools {
		return mcp.NewError(mcp.CodeInvalidParams, "%d tools: at most %d are possible", len(p.Tools), maxSampleTools)
	}
	var open []string // uses of tools without a result
	for i := range p.Messages {
		var err error
		if open, err = checkSampleMessage(&p.Messages[i], open); err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return mcp.NewError(mcp.CodeInvalidParams, "a use of a tool has no result")
	}
	if n := sampleImages(p); n > maxImages {
		return mcp.NewError(mcp.CodeInvalidParams, "%d images: at most %d are possible", n, maxImages)
	}
	return nil
}

// sampleImages counts the images in messages and in the results of tools.
func sampleImages(p *mcp.CreateMessageParams) int {
	n := 0
	count := func(list mcp.Contents) {
		for _, c := range list {
			if _, ok := c.(*mcp.ImageContent); ok {
				n++
			}
		}
	}
	for i := range p.Messages {
		count(p.Messages[i].Content)
		for _, c := range p.Messages[i].Content {
			if r, ok := c.(*mcp.ToolResultContent); ok {
				count(r.Content)
			}
		}
	}
	return n
}

// checkSampleMessage checks one message. open are the uses of tools that wait for their
// results; those that wait after it are returned.
func checkSampleMessage(m *mcp.SamplingMessage, open []string) ([]string, error) {
	var uses, results []string
	for _, c := range m.Content {
		switch c := c.(type) {
		case *mcp.ToolUseContent:
			if m.Role != mcp.RoleAssistant {
				return nil, mcp.NewError(mcp.CodeInvalidParams, "use of tool %q in a message of the user", c.Name)
			}
			uses = append(uses, c.ID)
		case *mcp.ToolResultContent:
			if m.Role != mcp.RoleUser {
				return nil, mcp.NewError(mcp.CodeInvalidParams, "a result of a tool in a message of the assistant")
			}
			results = append(results, c.ToolUseID)
			for _, part := range c.Content {
				if err := checkMedia(part); err != nil {
					return nil, err
				}
			}
		default:
			if err := checkMedia(c); err != nil {
				return nil, err
			}
		}
	}
	if m.Role == mcp.RoleAssistant {
		return append(open, uses...), nil
	}
	slices.Sort(open)
	slices.Sort(results)
	switch {
	case !slices.Equal(open, results):
		return nil, mcp.NewError(mcp.CodeInvalidParams, "uses and results of tools do not belong together: each use needs one result in the next message")
	case len(results) > 0 && len(results) != len(m.Content):
		return nil, mcp.NewError(mcp.CodeInvalidParams, "a message with results of tools has nothing else")
	}
	return nil, nil
}

// checkMedia checks a block of content.
func checkMedia(c mcp.Content) error {
	switch c := c.(type) {
	case *mcp.TextContent:
		return nil
	case *mcp.ImageContent:
		if len(c.Data) > maxSampleMedia {
			return mcp.NewError(mcp.CodeInvalidParams, "an image of %d bytes: at most %d are possible", len(c.Data), maxSampleMedia)
		}
		if sniffed := http.DetectContentType(c.Data); sniffed != c.MIMEType {
			return mcp.NewError(mcp.CodeInvalidParams, "an image that says it is %s but looks like %s", c.MIMEType, sniffed)
		}
		return nil
	default:
		return mcp.NewError(mcp.CodeInvalidParams, "only text, images and the use of tools can be sampled from here")
	}
}
