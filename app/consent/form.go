package consent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// What a person can type at any point of a form.
const (
	declineWord = "/decline"
	cancelWord  = "/cancel"
)

// maxTries is how often one field is asked.
const maxTries = 5

// Errors by which a form is left.
var (
	errDecline = errors.New("declined")
	errCancel  = errors.New("cancelled")
)

// Elicit shows a server's form or URL. The answers to a form are shown once
// more before they are sent; a URL is shown whole, and never opened from here.
func (t *Terminal) Elicit(ctx context.Context, q *host.ElicitQuestion) (*mcp.ElicitResult, error) {
	t.printf("\nA server asks you something.\n")
	t.server(q.Server, q.Origin)
	t.said("  message (untrusted): ", q.Params.Message)
	var res *mcp.ElicitResult
	var err error
	if q.Page != nil {
		res, err = t.page(ctx, q)
	} else {
		res, err = t.form(ctx, q.Params.RequestedSchema)
	}
	switch {
	case errors.Is(err, errDecline):
		return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
	case errors.Is(err, errCancel), errors.Is(err, host.ErrConsent):
		return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
	}
	return res, err
}

// form asks for the fields, one after the other.
func (t *Terminal) form(ctx context.Context, schema *mcp.ElicitSchema) (*mcp.ElicitResult, error) {
	t.printf("  Type %s to say no, %s to close the question.\n", declineWord, cancelWord)
	content := make(map[string]mcp.RawValue)
	var review strings.Builder
	if schema == nil {
		schema = &mcp.ElicitSchema{}
	}
	for i := range schema.Properties {
		f := newField(schema, i)
		value, err := t.field(ctx, f)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		content[f.name] = value
		fmt.Fprintf(&review, "%s: %s\n", host.EscapeLine(f.name), host.Indent(value))
	}
	t.printf("  This would be sent to the server:\n")
	t.block(strings.TrimSuffix(review.String(), "\n"))
	if err := t.agree(ctx, "Send it? [y]es / [n]o / [c]ancel: "); err != nil {
		return nil, err
	}
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: content}, nil
}

// page shows a URL and asks whether the person goes there.
//
// spec 2026-07-28, client/elicitation: clients "MUST NOT automatically
// pre-fetch the URL", "MUST show the full URL to the user for examination
// before consent".
func (t *Terminal) page(ctx context.Context, q *host.ElicitQuestion) (*mcp.ElicitResult, error) {
	t.printf("  It wants you to visit this page:\n    %s\n", host.EscapeLine(q.Page.URL))
	t.printf("  The page is at: %s\n", host.EscapeLine(q.Page.Host))
	for _, w := range q.Page.Warnings {
		t.printf("  WARNING: %s\n", host.EscapeLine(w))
	}
	t.printf("  Nothing opens it from here: copy it into your browser if you trust it.\n")
	if err := t.agree(ctx, "Do you go there? [y]es / [n]o / [c]ancel: "); err != nil {
		return nil, err
	}
	return &mcp.ElicitResult{Action: mcp.ElicitAccept}, nil
}

// agree reads yes, or an error by which the question is left.
func (t *Terminal) agree(ctx context.Context, prompt string) error {
	for range maxUnread {
		line, err := t.answer(ctx, prompt)
		if err != nil {
			return err
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		case "n", "no", declineWord:
			return errDecline
		case "c", "cancel", cancelWord:
			return errCancel
		}
		t.printf("Please answer y, n or c.\n")
	}
	return errCancel
}

// field asks for one field until the answer fits; nil leaves it out.
func (t *Terminal) field(ctx context.Context, f *field) (mcp.RawValue, error) {
	t.describe(f)
	for range maxTries {
		line, err := t.answer(ctx, fmt.Sprintf("  %s%s: ", host.EscapeLine(shorten(f.name, maxName)), f.hint()))
		if err != nil {
			return nil, err
		}
		switch strings.TrimSpace(line) {
		case declineWord:
			return nil, errDecline
		case cancelWord:
			return nil, errCancel
		case "":
			if f.schema.Default != nil {
				return f.schema.Default, nil
			}
			if !f.required {
				return nil, nil
			}
			t.printf("  It is required.\n")
			continue
		}
		value, err := f.parse(strings.TrimSpace(line))
		if err == nil {
			return encode(value)
		}
		t.printf("  %v.\n", err)
	}
	t.printf("  No answer fitted; the question is closed.\n")
	return nil, errCancel
}

// encode writes an answer as JSON.
func encode(v any) (mcp.RawValue, error) { return jsonrpc.JSON(v).AppendJSON(nil) }
