package host

import (
	"net/url"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// notKept takes the place of a secret in the store.
const notKept = "[not kept: it looks like a secret]"

// stored is a body as the store keeps it. What looks like a secret in the arguments of
// calls, in what a server asks the model and in what the person edited is replaced, and
// addresses of pages are without their query. The session that is open has the body as
// it was: what is sent is what was shown. The body itself is not changed.
func stored(b Body) Body {
	switch b := b.(type) {
	case *CallRecord:
		kept := *b
		kept.Arguments, kept.Text = withoutSecret(b.Arguments, true), withoutSecretMembers(b.Text)
		return &kept
	case *StartRecord:
		kept := *b
		kept.Arguments = withoutSecret(b.Arguments, true)
		return &kept
	case *QuestionRecord:
		return &QuestionRecord{b.stored()}
	case *AnswerRecord:
		kept := *b
		kept.Edited = withoutSecret(b.Edited, true)
		return &kept
	}
	return b
}

// stored is a question as the store keeps it.
func (q *Question) stored() Question {
	kept := *q
	kept.Arguments = withoutSecret(q.Arguments, true)
	kept.Batch = slices.Clone(q.Batch)
	for i := range kept.Batch {
		kept.Batch[i].Arguments = withoutSecret(kept.Batch[i].Arguments, true)
	}
	if q.Sample != nil {
		kept.Sample = recoded(q.Sample)
	}
	if q.Sampled != nil {
		kept.Sampled = recoded(q.Sampled)
	}
	if q.Form != nil {
		form := *q.Form
		form.URL, form.Message = withoutQuery(form.URL), Redact(form.Message)
		kept.Form = &form
	}
	if q.Page != nil {
		page := *q.Page
		page.URL = withoutQuery(page.URL)
		kept.Page = &page
	}
	if q.SignIn != nil {
		in := *q.SignIn
		in.Resource, in.Issuer, in.Previous = withoutQuery(in.Resource), withoutQuery(in.Issuer), withoutQuery(in.Previous)
		kept.SignIn = &in
	}
	return kept
}

// recoded is a value of which no text has the shape of a secret: the value itself if
// there is none.
func recoded[T any](v *T) *T {
	raw, err := wire.Marshal(v)
	if err != nil {
		return v // it is not written, for the same reason
	}
	kept := new(T)
	if wire.Decode(withoutSecret(raw, false), kept) != nil {
		return nil
	}
	return kept
}

// withoutQuery is an address without user, query and fragment, which may be what lets
// its bearer in.
func withoutQuery(address string) string {
	if address == "" {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return "[not kept]"
	}
	u.User = nil
	hidden := u.RawQuery != "" || u.Fragment != ""
	u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = "", "", "", false
	kept := Redact(u.String())
	if hidden {
		kept += "?[not kept]"
	}
	return kept
}

// withoutSecret is a JSON value in which what [ArgumentSecrets] finds is replaced: by its
// shape, and with byName also by the names of members. A value without any is returned
// as it is.
func withoutSecret(raw mcp.RawValue, byName bool) mcp.RawValue {
	if kept, changed := replaceSecrets(raw, "", byName); changed {
		return kept
	}
	return raw
}

// replaceSecrets is withoutSecret for a value below a name; it reports whether there was
// something to replace.
func replaceSecrets(raw mcp.RawValue, name string, byName bool) (mcp.RawValue, bool) {
	switch kindOf(raw) {
	case '{':
		return replaceInObject(raw, name, byName)
	case '[':
		list, err := items(raw)
		if err != nil {
			return quoted(notKept), true // nothing of it would be found
		}
		out, changed := mcp.RawValue("["), false
		for i, item := range list {
			kept, replaced := replaceSecrets(item, name, byName)
			changed = changed || replaced
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, kept...)
		}
		return append(out, ']'), changed
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if byName && SecretName(name) {
			return quoted(notKept), true
		}
	case '"':
		value, err := text(raw)
		switch {
		case err != nil || value != "" && byName && SecretName(name):
			return quoted(notKept), true
		case len(secretSpans(value)) > 0:
			return quoted(Redact(value)), true
		}
	}
	return raw, false
}

// replaceInObject is replaceSecrets for an object; the order of its members stays.
func replaceInObject(raw mcp.RawValue, object string, byName bool) (mcp.RawValue, bool) {
	o, err := wire.ParseObject(raw, wire.Limits{})
	if err != nil {
		return quoted(notKept), true
	}
	out, changed := mcp.RawValue("{"), false
	for name, value := range o.All() {
		kept, replaced := replaceSecrets(value, telling(object, name), byName)
		changed = changed || replaced
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted(name)...), ':'), kept...)
	}
	return append(out, '}'), changed
}

// withoutSecretMembers is what was to be JSON and is none, without what looks like a secret
// by its shape, or by the name of the member before it.
func withoutSecretMembers(broken string) string {
	var b strings.Builder
	raw, done := mcp.RawValue(broken), 0
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := stringEnd(raw, i)
		value := skipSpace(raw, end)
		if value < len(raw) && raw[value] == ':' {
			value = skipSpace(raw, value+1)
		}
		name := strings.Trim(string(raw[i:end]), `"`)
		if i = end; value > end && value < len(raw) && raw[value] == '"' && SecretName(name) {
			b.WriteString(broken[done:value] + string(quoted(notKept)))
			i = stringEnd(raw, value)
			done = i
		}
	}
	return Redact(b.String() + broken[done:])
}

// quoted is a text as a JSON string.
func quoted(s string) mcp.RawValue {
	raw, err := wire.Marshal(valid(s))
	if err != nil {
		return mcp.RawValue(`""`)
	}
	return raw
}
