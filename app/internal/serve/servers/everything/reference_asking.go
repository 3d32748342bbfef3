package everything

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

type visitIn struct {
	URL       string `json:"url" desc:"The page, http or https." format:"uri" maxlen:"2000" default:"https://example.com/parley/demonstration"`
	Message   string `json:"message" desc:"What the person is told." minlen:"1" maxlen:"1000" default:"Please look at this page. It does not matter what you do there."`
	ID        string `json:"elicitationId,omitzero" desc:"The identifier of the question, in revisions that have one; default: a random one." maxlen:"200"`
	ErrorPath bool   `json:"errorPath" desc:"Refuse the first call until another page was visited, in revisions that have an error for that." default:"false"`
}

// asyncForm is the form of trigger-elicitation-request-async.
type asyncForm struct {
	Name   string `json:"name" title:"Your name" minlen:"1" maxlen:"100"`
	Colour string `json:"favoriteColor,omitzero" title:"Favourite colour" enum:"Red,Blue,Green,Yellow,Purple"`
	Agree  bool   `json:"agreeToTerms,omitzero" title:"Do you agree to the terms?" desc:"There are none; this is a demonstration."`
}

// maxRefused is how many calls of trigger-url-elicitation that were refused are remembered.
const maxRefused = 100

// asking are the tools that ask as those of the reference server do.
func (r *reference) asking() []server.Feature {
	return []server.Feature{
		server.Tool("trigger-url-elicitation", "Asks the person to visit a page.", r.visit).
			With(server.ToolOptions{Title: "Ask to visit a page", Annotations: readOnly}),
		server.Tool("trigger-elicitation-request-async", "Asks the person a form. May be a task.", fillInAsync).
			With(server.ToolOptions{Title: "Ask a form as a task", Annotations: readOnly}),
		server.Tool("trigger-sampling-request-async", "Asks the model of the client, with the person's consent. May be a task.", sampleAsync).
			With(server.ToolOptions{Title: "Ask the model as a task", Annotations: readOnly}),
	}
}

// visit sends the user to a page. It checks nothing afterwards, since nothing depends on it.
func (r *reference) visit(ctx context.Context, in visitIn) (string, error) {
	u, err := url.Parse(in.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", mcp.Errorf("url must be the address of a page, such as https://example.com/")
	}
	c := server.CallFrom(ctx)
	// A session whose client can be sent to pages is of the one revision that has the error.
	if in.ErrorPath && c.Handshake() && server.CanElicitURL(ctx) && r.refuse(c.SessionID()+"\x00"+in.URL+"\x00"+in.ID) {
		return "", mcp.NewError(mcp.CodeURLElicitationRequired, "another page has to be visited first").With(mcp.URLElicitationRequiredData{
			Elicitations: []mcp.ElicitParams{{
				Mode: mcp.ModeURL, URL: "https://example.com/parley/first", ElicitationID: rand.Text(),
				Message: "Please look at this page first. It does not matter what you do there.",
			}},
		})
	}
	question := &mcp.ElicitParams{Mode: mcp.ModeURL, Message: in.Message, URL: in.URL}
	if c.Handshake() {
		question.ElicitationID = in.ID
	}
	raw, err := server.Ask(ctx, question)
	if err != nil {
		return "", err
	}
	var answer mcp.ElicitResult
	switch err := strictjson.Unmarshal(raw, &answer); {
	case err != nil:
		return "", err
	case answer.Action != mcp.ElicitAccept:
		return "The person did not go there.", nil
	}
	if err := c.Elicited(ctx, question.ElicitationID); err != nil {
		return "", err
	}
	return "The person agreed to go there.", nil
}

// refuse reports whether a call is the first of its kind, and remembers that it was refused. The next
// one is let through, and forgotten.
func (r *reference) refuse(call string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.refused, call); i >= 0 {
		r.refused = slices.Delete(r.refused, i, i+1)
		return false
	}
	if r.refused = append(r.refused, call); len(r.refused) > maxRefused {
		r.refused = slices.Delete(r.refused, 0, 1)
	}
	return true
}

func fillInAsync(ctx context.Context, _ mcp.None) (string, error) {
	answer, err := server.Elicit[asyncForm](ctx, "Please fill in these fields.")
	switch {
	case err != nil:
		return "", err
	case !server.CallFrom(ctx).Detached():
		return answeredInCall(answer)
	case answer.Action == mcp.ElicitDecline:
		return "[DECLINED] User declined to provide the requested information.", nil
	case !answer.Accepted():
		return "[CANCELLED] User cancelled the elicitation dialog.", nil
	}
	lines := []string{"[COMPLETED] User provided the requested information!", "- Name: " + answer.Value.Name}
	if answer.Value.Colour != "" {
		lines = append(lines, "- Favorite Color: "+answer.Value.Colour)
	}
	return strings.Join(append(lines, fmt.Sprintf("- Agreed to terms: %t", answer.Value.Agree)), "\n"), nil
}

func sampleAsync(ctx context.Context, in sampleIn) (string, error) {
	answer, err := askModel(ctx, &in)
	switch {
	case err != nil:
		return "", err
	case !server.CallFrom(ctx).Detached():
		return answeredInCall(answer)
	}
	text, err := servers.Indent(answer)
	return "[COMPLETED] Async sampling completed!\n\n**Result:**\n" + text, err
}

// answeredInCall is the text for an answer to a call that is no task.
func answeredInCall(answer any) (string, error) {
	text, err := servers.Indent(answer)
	return "[SYNC] Client executed synchronously:\n" + text, err
}
