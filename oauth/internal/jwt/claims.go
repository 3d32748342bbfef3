package jwt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
)

// Claims are the registered claims that OAuth uses. A list of one audience is
// written as a string and both forms are read. Times are whole seconds; the
// zero time is absent. Numbers that are no integer are read too. A member that
// is null is absent.
type Claims struct {
	Issuer    string
	Subject   string
	Audience  []string
	Expiry    time.Time
	NotBefore time.Time
	IssuedAt  time.Time
	ID        string // jti
	ClientID  string // read from azp too, if there is no client_id
	// Scope is separated by spaces. It is read from scope or else scp, each a
	// string or a list.
	Scope    string
	Resource []string // of an ID-JAG: string or list
	JKT      string   // cnf.jkt
	Grant    string   // our own family id, "gid"; empty in tokens of others
	Nonce    string
	AuthTime time.Time
	// Extra is an object whose members are written after the others; it may
	// have none that is a claim above. It is not read: see Token.Raw.
	Extra wire.RawValue
}

// AppendJSON appends the claims that are not zero. It errs for texts that are
// not valid UTF-8, times outside the years 1970 to 9999, and what Extra may
// not be; dst is then returned as it was.
func (c *Claims) AppendJSON(dst []byte) ([]byte, error) {
	w := writer{out: append(dst, '{')}
	w.text("iss", c.Issuer)
	w.text("sub", c.Subject)
	w.list("aud", c.Audience)
	w.date("exp", c.Expiry)
	w.date("nbf", c.NotBefore)
	w.date("iat", c.IssuedAt)
	w.text("jti", c.ID)
	w.text("client_id", c.ClientID)
	w.text("scope", c.Scope)
	w.list("resource", c.Resource)
	if c.JKT != "" {
		w.name("cnf")
		w.out = append(w.out, `{"jkt":`...)
		w.value(c.JKT)
		w.out = append(w.out, '}')
	}
	w.text("gid", c.Grant)
	w.text("nonce", c.Nonce)
	w.date("auth_time", c.AuthTime)
	w.extra(c.Extra)
	if w.err != nil {
		return dst, w.err
	}
	return append(w.out, '}'), nil
}

// MarshalJSON is AppendJSON, for wire.Marshal. A struct that embeds Claims
// therefore writes the claims alone: further ones belong into Extra.
func (c *Claims) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// maxDate is the last second of the year 9999.
const maxDate = 253402300799

// writer writes the members of an object until the first error.
type writer struct {
	out  []byte
	some bool
	err  error
}

func (w *writer) name(name string) {
	if w.some {
		w.out = append(w.out, ',')
	}
	w.some = true
	w.out = append(wire.AppendString(w.out, name), ':')
}

func (w *writer) value(s string) {
	var ok bool
	if w.out, ok = wire.AppendText(w.out, s); !ok && w.err == nil {
		w.err = errors.New("write claims: a text is not valid UTF-8")
	}
}

func (w *writer) text(name, s string) {
	if s != "" {
		w.name(name)
		w.value(s)
	}
}

func (w *writer) list(name string, list []string) {
	switch len(list) {
	case 0:
	case 1:
		w.name(name)
		w.value(list[0])
	default:
		w.name(name)
		for i, s := range list {
			w.out = append(w.out, "[,"[min(i, 1)])
			w.value(s)
		}
		w.out = append(w.out, ']')
	}
}

func (w *writer) date(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	s := t.Unix()
	if (s < 0 || s > maxDate) && w.err == nil {
		w.err = fmt.Errorf("write claims: %s is out of range", name)
	}
	w.name(name)
	w.out = strconv.AppendInt(w.out, s, 10)
}

func (w *writer) extra(raw wire.RawValue) {
	if len(raw) == 0 || w.err != nil {
		return
	}
	o, err := wire.ParseObject(raw, wire.Limits{Bytes: maxToken})
	if err != nil {
		w.err = fmt.Errorf("write further claims: %w", err)
		return
	}
	for name, value := range o.All() {
		switch name {
		case "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "client_id", "scope", "resource", "cnf", "gid", "nonce", "auth_time":
			w.err = fmt.Errorf("write further claims: %s has a field of its own", name)
			return
		}
		w.name(name)
		w.out = append(w.out, value...)
	}
}

// reader reads members of an object. A member of a wrong kind makes err, which
// names it and shows nothing of its value; what is read then is of no use.
type reader struct {
	o   wire.Object
	err error
}

// parseClaims reads the claims of a payload. otherKey says that cnf names a
// key in another way than by jkt.
func parseClaims(o wire.Object) (c Claims, otherKey bool, err error) {
	r := reader{o: o}
	c = Claims{
		Issuer:    r.text("iss"),
		Subject:   r.text("sub"),
		Audience:  r.list("aud"),
		Expiry:    r.date("exp"),
		NotBefore: r.date("nbf"),
		IssuedAt:  r.date("iat"),
		ID:        r.text("jti"),
		ClientID:  r.text("client_id"),
		Scope:     r.scope("scope"),
		Resource:  r.list("resource"),
		Grant:     r.text("gid"),
		Nonce:     r.text("nonce"),
		AuthTime:  r.date("auth_time"),
	}
	if c.ClientID == "" {
		c.ClientID = r.text("azp")
	}
	if c.Scope == "" {
		c.Scope = r.scope("scp")
	}
	c.JKT, otherKey = r.confirmation()
	return c, otherKey, r.err
}

func (r *reader) fail(name string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s is of a wrong kind", ErrMalformed, name)
	}
}

// member returns nil for what is absent or null.
func (r *reader) member(name string) wire.RawValue {
	if raw, ok := r.o.Member(name); ok && raw[0] != 'n' {
		return raw
	}
	return nil
}

func (r *reader) text(name string) string {
	raw := r.member(name)
	if raw == nil {
		return ""
	}
	if raw[0] != '"' {
		r.fail(name)
		return ""
	}
	return wire.Text(raw)
}

// list reads a list of strings, or one string as a list of it.
func (r *reader) list(name string) []string {
	raw := r.member(name)
	if raw == nil {
		return nil
	}
	if raw[0] == '"' {
		return []string{wire.Text(raw)}
	}
	elements, err := wire.ParseArray(raw, wire.Limits{}, 0)
	if err != nil {
		r.fail(name)
		return nil
	}
	list := make([]string, len(elements))
	for i, e := range elements {
		if e[0] != '"' {
			r.fail(name)
			return nil
		}
		list[i] = wire.Text(e)
	}
	return list
}

// date reads a NumericDate (RFC 7519, section 2), which may have a fraction or
// an exponent. The fraction is dropped: a token never lives longer by it.
func (r *reader) date(name string) time.Time {
	raw := r.member(name)
	if raw == nil {
		return time.Time{}
	}
	s, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(s >= 0 && s <= maxDate) {
		r.fail(name)
		return time.Time{}
	}
	return time.Unix(int64(s), 0)
}

// scope reads a scope as RFC 9068 writes it, or as a list, whose elements are
// one scope each.
func (r *reader) scope(name string) string {
	raw := r.member(name)
	if raw == nil || raw[0] == '"' {
		return r.text(name)
	}
	list := r.list(name)
	for _, s := range list {
		if s == "" || strings.ContainsAny(s, " \t\r\n") {
			r.fail(name)
		}
	}
	return strings.Join(list, " ")
}

// confirmation reads cnf (RFC 7800, RFC 9449, section 6).
func (r *reader) confirmation() (jkt string, otherKey bool) {
	raw := r.member("cnf")
	if raw == nil {
		return "", false
	}
	cnf, ok := r.o.Object("cnf")
	if !ok {
		r.fail("cnf")
		return "", false
	}
	inner := reader{o: cnf}
	if jkt = inner.text("jkt"); inner.err != nil {
		r.fail("cnf")
	}
	return jkt, jkt == "" || cnf.Len() > 1
}
