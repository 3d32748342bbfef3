package tester

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// Words that answer a question in the place of values. At a terminal they have a slash in front.
const (
	wordAccept  = "accept"
	wordDecline = "decline"
	wordCancel  = "cancel"
)

// A givenAnswer is one of --answer, for one question of the server.
type givenAnswer struct {
	number int
	text   string // a word, or what a model would say
	object bool   // text is a JSON object
	used   bool
}

// readAnswers reads the values of --answer.
func readAnswers(list []string) ([]*givenAnswer, error) {
	answers := make([]*givenAnswer, 0, len(list))
	for i, text := range list {
		a := &givenAnswer{number: i + 1, text: strings.TrimSpace(text)}
		if strings.HasPrefix(a.text, "{") {
			a.object = true
			if _, err := strictjson.ParseObject([]byte(a.text)); err != nil {
				return nil, kit.Usagef("--answer: must be a JSON object: %w", err)
			}
		}
		if a.text == "" {
			return nil, kit.Usagef("--answer must not be empty; write accept, decline, cancel, a JSON object, or text")
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// word reports whether the answer is one of the words.
func (a *givenAnswer) word() bool {
	return a.text == wordAccept || a.text == wordDecline || a.text == wordCancel
}

// maxAsked is how often a server may ask while one method runs.
const maxAsked = 100

// A questionnaire answers what a server asks while it is inspected: with what --answer says, by
// asking the user at the terminal, or with a no and a note that tells how to answer. Its methods
// are safe for concurrent use; one question is asked at a time.
type questionnaire struct {
	p        *inspector
	server   *inspect.Target
	attended bool            // a person is asked
	quiet    bool            // no notes
	method   context.Context //nolint:containedctx // of the method that runs, during which questions are answered
	stop     context.CancelCauseFunc

	mu      sync.Mutex
	asked   int
	answers []*givenAnswer
	wrong   error // an answer that fits no question; ends the method
}

// questionnaire has the questions of a server answered. What the flags do not say is declared if
// the method may ask, which runs in method, and ends with stop.
func (in *inspector) questionnaire(method context.Context, stop context.CancelCauseFunc, flags *inspectFlags, t *inspect.Target, asks bool) (*questionnaire, error) {
	answers, err := readAnswers(flags.answers)
	if err != nil {
		return nil, err
	}
	q := &questionnaire{
		p: in, server: t, answers: answers, method: method, stop: stop, quiet: flags.quiet,
		attended: in.attended(flags),
	}
	elicit, sample := flags.elicit, flags.sample
	if asks {
		elicit, sample = cmp.Or(elicit, "both"), cmp.Or(sample, "on")
	}
	if elicit == "both" || elicit == "form" {
		t.OnElicit = q.elicit
	}
	if elicit == "both" || elicit == "url" {
		t.OnElicitURL = q.visit
	}
	if sample == "on" {
		t.OnSample = q.sample
	}
	if len(answers) > 0 && t.OnElicit == nil && t.OnElicitURL == nil && t.OnSample == nil {
		return nil, kit.Usagef("--answer requires a method that can request input: tools/call, prompts/get, resources/read, tasks/result")
	}
	return q, nil
}

// attended reports whether the user at the terminal can be asked, and no program reads what is told.
func (in *inspector) attended(flags *inspectFlags) bool {
	return in.Streams.InTerminal && !in.JSON && flags.format == "" && !flags.quiet
}

// next counts a question. There is an error if the method has ended, or the question was withdrawn, while
// it waited for those before, and one that ends the method if the server asks without end. mu is held.
func (q *questionnaire) next(ctx context.Context) error {
	for _, life := range []context.Context{q.method, ctx} {
		if life.Err() != nil {
			return context.Cause(life)
		}
	}
	if q.asked++; q.asked > maxAsked {
		return q.fail(&inspect.Error{Exit: inspect.ExitUsage, Code: "too_many_questions", Message: fmt.Sprintf("the server asked more than %d times for input", maxAsked)})
	}
	return nil
}

// take finds the first answer that was not used and fits.
func (q *questionnaire) take(fits func(a *givenAnswer) bool) *givenAnswer {
	for _, a := range q.answers {
		if !a.used && fits(a) {
			a.used = true
			return a
		}
	}
	return nil
}

// fail ends the method: an answer was given that cannot be sent.
func (q *questionnaire) fail(err error) error {
	if q.wrong == nil {
		q.wrong = err
		q.stop(err)
	}
	return err
}

// leftOver tells of answers that no question came for.
func (q *questionnaire) leftOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, a := range q.answers {
		if !a.used {
			n++
		}
	}
	switch {
	case n == 0 || q.quiet:
	case n == 1:
		q.p.Note("parley: the server did not request input for one --answer")
	default:
		q.p.Note("parley: the server did not request input for %d of the --answer flags", n)
	}
}

// elicit answers a form.
func (q *questionnaire) elicit(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.next(ctx); err != nil {
		return nil, err
	}
	var misfit error
	given := q.take(func(a *givenAnswer) bool {
		if !a.object {
			return a.word()
		}
		values, err := objectOf(a.text)
		if err == nil {
			_, err = r.Complete(values)
		}
		if err != nil && misfit == nil {
			misfit = fmt.Errorf("--answer, number %d: %w", a.number, err)
		}
		return err == nil
	})
	switch {
	case given != nil && given.object:
		values, err := objectOf(given.text)
		if err != nil {
			return nil, err
		}
		return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: values}, nil
	case given != nil && given.text == wordAccept:
		if _, err := r.Complete(nil); err != nil {
			return nil, q.fail(kit.Usagef("--answer accept sends the defaults of the form, and %w; write %s", err, exampleOf(r.Form())))
		}
		return client.Accept(struct{}{})
	case given != nil:
		return worded(given.text), nil
	case misfit != nil:
		return nil, q.fail(kit.Usagef("%w; the form wants %s", misfit, exampleOf(r.Form())))
	case q.attended:
		return q.askForm(ctx, r)
	}
	q.declined(r.Params.Message, "", "--answer "+exampleOf(r.Form()))
	return client.Decline()
}

// visit answers the wish that the user visits a page.
func (q *questionnaire) visit(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.next(ctx); err != nil {
		return nil, err
	}
	given := q.take((*givenAnswer).word)
	switch {
	case given != nil:
		return worded(given.text), nil
	case q.attended:
		return q.askPage(ctx, r)
	}
	q.declined(r.Params.Message, r.Page.URL, "--answer accept, after you visit the page")
	return client.Decline()
}

// sample answers in the place of a model.
func (q *questionnaire) sample(ctx context.Context, params *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.next(ctx); err != nil {
		return nil, err
	}
	given := q.take(func(a *givenAnswer) bool { return a.text != wordAccept })
	switch {
	case given != nil && given.word():
		return nil, fmt.Errorf("%w: by --answer %s", client.ErrRefused, given.text)
	case given != nil && given.object:
		var result mcp.CreateMessageResult
		if err := strictjson.Unmarshal([]byte(given.text), &result); err != nil || len(result.Content) == 0 {
			return nil, q.fail(kit.Usagef(`--answer: the server sent a sampling request; write the model's text, decline, or a result such as {"role":"assistant","content":{"type":"text","text":"…"},"model":"m"}`))
		}
		return &result, nil
	case given != nil:
		return saying(given.text), nil
	case q.attended:
		return q.askModel(ctx, params)
	}
	asked := ""
	if n := len(params.Messages); n > 0 {
		asked = kit.Contents(params.Messages[n-1].Content)
	}
	q.declined(asked, "", "--answer 'what a model would say'")
	return nil, fmt.Errorf("%w: no terminal to answer a sampling request", client.ErrRefused)
}

// objectOf are the members of an object.
func objectOf(text string) (map[string]mcp.RawValue, error) {
	var values map[string]mcp.RawValue
	err := strictjson.Unmarshal([]byte(text), &values)
	return values, err
}

// worded is the answer of a word.
func worded(word string) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: map[string]mcp.ElicitAction{
		wordAccept: mcp.ElicitAccept, wordDecline: mcp.ElicitDecline, wordCancel: mcp.ElicitCancel,
	}[word]}
}

// saying is what a model would say, which a user wrote.
func saying(text string) *mcp.CreateMessageResult {
	return &mcp.CreateMessageResult{
		Role: mcp.RoleAssistant, Model: "a person", StopReason: "endTurn",
		Content: mcp.Contents{&mcp.TextContent{Text: text}},
	}
}

// declined notes that nobody was asked.
func (q *questionnaire) declined(asked, page, how string) {
	if !q.quiet {
		q.p.Note("parley: the server asked: %s", kit.Shorten(host.EscapeLine(kit.Shorten(asked, kit.MaxMessage)), kit.MaxMessage))
		if page != "" {
			q.p.Note("  The server asks you to open %s", host.EscapeLine(page))
		}
		q.p.Note("  Parley declined, because there is no terminal to ask at. Answer at a terminal, or first pass %s", host.EscapeLine(how))
	}
}

// exampleOf is an answer that a form wants, as a word for a shell: what is required, or all if
// nothing is. Only plain names are in it.
func exampleOf(form *mcp.ElicitSchema) string {
	if form == nil {
		return "'{}'"
	}
	var members []string
	for i := range form.Properties {
		f := &form.Properties[i]
		if !kit.IsPlainName(f.Name) || len(form.Required) > 0 && !slices.Contains(form.Required, f.Name) {
			continue
		}
		value := `"…"`
		switch f.Schema.Kind() {
		case mcp.FieldInteger, mcp.FieldNumber:
			value = "1"
		case mcp.FieldBoolean:
			value = "true"
		case mcp.FieldChoices:
			value = `["…"]`
		case mcp.FieldUnknown:
			value = cmp.Or(exampleByType[typeOf(f.Schema.Other)], value)
		case mcp.FieldString, mcp.FieldChoice:
		}
		members = append(members, `"`+f.Name+`": `+value)
	}
	return "'{" + strings.Join(members, ", ") + "}'"
}

// exampleByType are values of the types of JSON Schema that are no texts.
var exampleByType = map[string]string{"object": "{}", "array": "[]", "integer": "1", "number": "1", "boolean": "true", "null": "null"}

// typeOf is the only type of a schema, or "".
func typeOf(schema mcp.RawValue) string {
	var s struct {
		Type string `json:"type"`
	}
	if strictjson.Unmarshal(schema, &s) != nil {
		return ""
	}
	return s.Type
}

// show shows what is asked.
func (q *questionnaire) show(question *host.Question, title string) *ui.Wording {
	question.Server, question.Origin = q.server.Name, q.server.Origin
	w := ui.NewWording(question)
	if title == "" {
		title = w.Title
	}
	width := 0
	if q.p.Streams.Width != nil {
		width = q.p.Streams.Width()
	}
	q.p.NotePart("\n%s\n%s", title, ui.Layout(w.Lines, width))
	return w
}

// askPage asks the user at the terminal to visit a page.
func (q *questionnaire) askPage(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	q.show(&host.Question{Kind: host.QuestionPage, Form: r.Params, Page: r.Page}, "")
	word, err := q.choose(ctx, "Open it in your browser? [y]es, [n]o, [c]ancel: ", map[string]string{"y": wordAccept, "n": wordDecline, "c": wordCancel})
	if err != nil {
		return nil, err
	}
	return worded(word), nil
}

// askModel asks the user at the terminal for the answer of a model.
func (q *questionnaire) askModel(ctx context.Context, params *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	q.show(&host.Question{Kind: host.QuestionSample, Sample: params}, "Server "+host.EscapeLine(q.server.Name)+" sent a sampling request. You answer instead of a model.")
	line, err := q.p.AskLine(ctx, "Your answer, or /decline: ")
	if text := strings.TrimSpace(line); err == nil && text != "/"+wordDecline && text != "" {
		return saying(text), nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, fmt.Errorf("%w: the user declined", client.ErrRefused)
}

// choose asks for one of several letters until there is one. The end of the input cancels.
func (q *questionnaire) choose(ctx context.Context, question string, words map[string]string) (string, error) {
	for {
		line, err := q.p.AskLine(ctx, question)
		switch word, ok := words[strings.ToLower(shortest(line))]; {
		case errors.Is(err, io.EOF):
			q.p.Note("")
			return wordCancel, nil
		case err != nil:
			return "", err
		case ok:
			return word, nil
		}
		q.p.Note("  Type one of the letters.")
	}
}

// shortest is the first letter of what was typed.
func shortest(line string) string {
	line = strings.TrimSpace(line)
	return line[:min(len(line), 1)]
}

// Words that can be typed at a field of a form.
var leaving = map[string]string{"/" + wordDecline: wordDecline, "/" + wordCancel: wordCancel}

// askForm has the user at the terminal fill in a form.
func (q *questionnaire) askForm(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	w := q.show(&host.Question{Kind: host.QuestionForm, Form: r.Params}, "")
	word, err := q.choose(ctx, "Fill it in? [y]es, [n]o, [c]ancel: ", map[string]string{"y": wordAccept, "n": wordDecline, "c": wordCancel})
	for err == nil && word == wordAccept {
		var values map[string]mcp.RawValue
		if values, word, err = q.fill(ctx, w.Form); err != nil || word != wordAccept {
			break
		}
		full, wrong := r.Complete(values)
		if wrong != nil {
			q.p.Note("  %s", kit.ErrorText(wrong))
			continue
		}
		raw, encoding := strictjson.Marshal(full)
		if encoding != nil {
			return nil, encoding
		}
		q.p.Note("Parley would send this to the server:\n%s", host.Indent(raw))
		word, err = q.choose(ctx, "Send it? [y]es, [n]o, [c]ancel, [a]gain: ", map[string]string{"y": "send", "n": wordDecline, "c": wordCancel, "a": wordAccept})
		if word == "send" {
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: values}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return worded(word), nil
}

// fill asks for each field of a form.
func (q *questionnaire) fill(ctx context.Context, form *ui.Form) (values map[string]mcp.RawValue, word string, err error) {
	q.p.Note("At any field, type /decline to decline or /cancel to cancel.")
	values = make(map[string]mcp.RawValue)
	for i := range form.Fields {
		f := &form.Fields[i]
		if f.Secret {
			q.p.Note("WARNING: %s looks like a secret; no server should ask for one here", f.Label)
		}
		value, err := q.p.askArgument(ctx, &formArgument{f.Name, f.Required, f}, leaving)
		var left *leftError
		switch {
		case errors.As(err, &left):
			return nil, left.word, nil
		case errors.Is(err, io.EOF):
			q.p.Note("")
			return nil, wordCancel, nil
		case err != nil:
			return nil, "", err
		case value != nil:
			values[f.Name] = value
		}
	}
	return values, wordAccept, nil
}
