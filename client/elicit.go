package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// An ElicitRequest is a question of the server to the person. All its text is
// untrusted; show it together with the server's name.
type ElicitRequest struct {
	// Params are the question.
	Params *mcp.ElicitParams
	// Server is what the asking server says about itself, or nil.
	Server *mcp.Implementation
	// Call is the request of this client that the question belongs to, or nil
	// if that is not known; see [RequestFrom]. The context of the handler has
	// the values of that request's context.
	Call *Request
	// Method and Target are those of Call, for example tools/call and the
	// tool's name; empty without it.
	Method, Target string
	// Page is the page to visit; nil for a form.
	Page *ElicitPage

	form *schema.Compiled
}

// An ElicitPage is a page that a server wants the person to visit.
type ElicitPage struct {
	// URL is the whole address, which must be shown before consent.
	URL string
	// Host is the host to highlight, as it will be looked up.
	Host string
	// Warnings say what is suspicious about the address, in words for the
	// person; empty if nothing is.
	Warnings []string
}

// Form returns the fields to fill in, or nil for a page.
func (r *ElicitRequest) Form() *mcp.ElicitSchema { return r.Params.RequestedSchema }

// Complete returns the values that will be sent if content is accepted:
// content with the form's defaults for what it leaves out. The error says
// which values do not fit the form. It is what the client does by itself with
// an accepted answer; call it to check while the person is still there.
func (r *ElicitRequest) Complete(content map[string]mcp.RawValue) (map[string]mcp.RawValue, error) {
	if r.form == nil {
		return nil, errors.New("a page to visit has no form")
	}
	full := make(map[string]mcp.RawValue, len(r.Params.RequestedSchema.Properties))
	maps.Copy(full, content)
	for i := range r.Params.RequestedSchema.Properties {
		p := &r.Params.RequestedSchema.Properties[i]
		if _, given := full[p.Name]; !given && len(p.Schema.Default) > 0 {
			full[p.Name] = p.Schema.Default
		}
	}
	for name := range full {
		if _, ok := r.Params.RequestedSchema.Properties.Lookup(name); !ok {
			return nil, fmt.Errorf("the form has no field %q", name)
		}
	}
	raw, err := wire.Marshal(full)
	if err == nil {
		err = r.form.Check(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer does not fit the form: %w", err)
	}
	return full, nil
}

// Accept is the answer of a person who filled in the form with v, which must
// encode to a JSON object: a struct, a map, raw JSON. For a page v is nil.
func Accept(v any) (*mcp.ElicitResult, error) {
	r := &mcp.ElicitResult{Action: mcp.ElicitAccept}
	if v == nil {
		return r, nil
	}
	raw, err := wire.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	o, err := wire.ParseObject(raw, wire.Limits{})
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	r.Content = make(map[string]mcp.RawValue, o.Len())
	for name, value := range o.All() {
		r.Content[name] = value
	}
	return r, nil
}

// Decline is the answer of a person who said no.
func Decline() (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
}

// CancelElicit is the answer of a person who did not choose.
func CancelElicit() (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
}

// prepareElicit checks a question to the person.
func (c *Client) prepareElicit(of *call, p *mcp.ElicitParams) (*question, error) {
	r := &ElicitRequest{Params: p, Call: of.request()}
	if of != nil {
		r.Method, r.Target = of.method, of.target
	}
	if s := c.session(); s != nil {
		r.Server = s.server
	}
	var handler func(context.Context, *ElicitRequest) (*mcp.ElicitResult, error)
	var err error
	switch p.Mode {
	case "", mcp.ModeForm:
		handler = c.opts.OnElicit
		r.form, err = compileForm(p.RequestedSchema)
	case mcp.ModeURL:
		handler = c.opts.OnElicitURL
		r.Page, err = readPage(p.URL)
	}
	if handler == nil {
		return nil, &undeclaredError{fmt.Sprintf("elicitation in mode %.64q", p.Mode), mcp.CodeInvalidParams}
	}
	if err != nil {
		return nil, &invalidError{err}
	}
	return &question{mcp.MethodElicit, func(ctx context.Context) (any, error) {
		answer, err := handler(ctx, r)
		if err != nil {
			return nil, err
		}
		return r.finish(answer)
	}}, nil
}

// Bounds of what is looked at in a form.
const (
	maxFields = 10_000   // of a schema more values are too many, too
	maxOther  = 64 << 10 // bytes of the schemas of fields of no kind, together
)

// compileForm compiles a form (ruling 20). The values of a field whose schema cannot be used, by itself or
// next to the others, are not checked, as are arguments of tools (ruling 38).
func compileForm(form *mcp.ElicitSchema) (*schema.Compiled, error) {
	switch {
	case form == nil:
		return nil, errors.New("requestedSchema is missing")
	case len(form.Properties) > maxFields:
		return nil, fmt.Errorf("a form has at most %d fields, not %d", maxFields, len(form.Properties))
	}
	lim := &schema.Limits{AssertFormats: true, IgnoreHeaders: true, Lenient: true}
	left := maxOther
	alone := func(other mcp.RawValue) bool {
		if left -= len(other); left < 0 {
			return false
		}
		_, err := schema.Compile(other, lim)
		return err == nil
	}
	compiled, err := compileFields(form, lim, alone)
	if err != nil { // two define one name, are of other dialects, or refer to what is not in the whole form
		compiled, err = compileFields(form, lim, func(mcp.RawValue) bool { return false })
	}
	return compiled, err
}

// compileFields compiles a form whose fields of no kind are checked only if usable says so.
func compileFields(form *mcp.ElicitSchema, lim *schema.Limits, usable func(other mcp.RawValue) bool) (*schema.Compiled, error) {
	checked := *form
	checked.Properties = slices.Clone(form.Properties)
	for i := range checked.Properties {
		s := &checked.Properties[i].Schema
		if s.Kind() == mcp.FieldUnknown && !usable(s.Other) {
			s.Other = wire.RawValue("{}")
		}
	}
	raw, err := wire.Marshal(&checked)
	if err != nil {
		return nil, err
	}
	return schema.Compile(raw, lim)
}

// finish checks the handler's answer and fills in defaults, in a copy.
func (r *ElicitRequest) finish(answer *mcp.ElicitResult) (*mcp.ElicitResult, error) {
	if answer == nil {
		return nil, errNoAnswer
	}
	full := *answer
	full.Content = nil
	switch answer.Action {
	case mcp.ElicitDecline, mcp.ElicitCancel:
	case mcp.ElicitAccept:
		if r.form == nil {
			break
		}
		var err error
		if full.Content, err = r.Complete(answer.Content); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("the handler answered with the unknown action %q", answer.Action)
	}
	return &full, nil
}

// maxURL bounds the address of a page; what is longer cannot be examined.
const maxURL = 8192

// readPage parses an address for the person. Only web pages are let
// through: other schemes can run programs (ruling 18).
func readPage(address string) (*ElicitPage, error) {
	if len(address) > maxURL {
		return nil, fmt.Errorf("url is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, errors.New("url is not a whole address")
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("url has the scheme %.32q; only https and http are opened", u.Scheme)
	}
	for _, r := range address {
		if unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) || r == '\\' {
			return nil, errors.New("url holds spaces, backslashes, or characters that control or are not shown")
		}
	}
	p := &ElicitPage{URL: address, Host: u.Host}
	host := strings.ToLower(u.Hostname())
	if u.Scheme == "http" && host != "localhost" && !loopback(host) {
		p.Warnings = append(p.Warnings, "the connection is not encrypted")
	}
	if u.User != nil {
		p.Warnings = append(p.Warnings, "the address holds a user name before the host, which can hide the true host")
	}
	for label := range strings.SplitSeq(host, ".") {
		if strings.HasPrefix(label, "xn--") {
			p.Warnings = append(p.Warnings, "the host is written in Punycode and may look like another one")
			break
		}
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r > '~' }) {
		p.Warnings = append(p.Warnings, "the host holds letters that are not ASCII and may look like another one")
	}
	if numeric(host) && !loopback(host) {
		p.Warnings = append(p.Warnings, "the host is a number instead of a name")
	}
	return p, nil
}

// numeric reports whether a host is an address: as it is usually written, or
// ending in a number as no name does, which browsers read as an address too
// (WHATWG URL, "ends in a number": 2130706433, 0x7f.1, 192.168.1).
func numeric(host string) bool {
	if net.ParseIP(host) != nil {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
