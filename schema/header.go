package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/httptoken"
	"github.com/parley-mcp/parley/internal/wire"
)

// HeaderBinding is a member of the arguments that is repeated in the HTTP
// header Mcp-Param-{Name} (spec 2026-07-28, basic/transports/streamable-http,
// Custom Headers from Tool Parameters).
type HeaderBinding struct {
	// Name is the part of the header's name after "Mcp-Param-", as written
	// in the schema. It is a token (RFC 9110), unique without regard to case.
	Name string
	// Path is the chain of member names that leads to the value.
	Path []string
	// Type is "string", "integer" or "boolean".
	Type string
}

// Value returns the header's value for arguments, before any base64 encoding.
// It is absent if the member is absent or null; an empty string is a value.
// Arguments must be valid JSON. The error says that the member is not of the
// binding's type, or an integer beyond ±(2^53-1).
func (b *HeaderBinding) Value(arguments wire.RawValue) (value string, present bool, err error) {
	raw := arguments
	i := wire.SkipSpace(raw, 0)
	for _, name := range b.Path {
		if i = wire.MemberNamed(raw, i, name); i < 0 {
			return "", false, nil
		}
	}
	switch c := wire.At(raw, i); {
	case c == 'n':
		return "", false, nil
	case c == '"' && b.Type == "string":
		end, _ := wire.SkipString(raw, i)
		if end > 0 {
			return wire.Text(raw[i:end]), true, nil
		}
	case (c == 't' || c == 'f') && b.Type == "boolean":
		return strconv.FormatBool(c == 't'), true, nil
	case (c == '-' || '0' <= c && c <= '9') && b.Type == "integer":
		if text, ok := safeInteger(raw[i:max(i, wire.SkipScalar(raw, i))]); ok {
			return text, true, nil
		}
		return "", false, fmt.Errorf("member %s: want an integer between -(2^53-1) and 2^53-1 for the header Mcp-Param-%s",
			wire.QuoteName(strings.Join(b.Path, ".")), b.Name)
	}
	return "", false, fmt.Errorf("member %s: want %s for the header Mcp-Param-%s",
		wire.QuoteName(strings.Join(b.Path, ".")), b.Type, b.Name)
}

// A header carries integers between these.
var leastSafe, mostSafe = wire.IntDecimal(-(1<<53 - 1)), wire.IntDecimal(1<<53 - 1)

// safeInteger spells an integer in decimal if a double holds it exactly.
func safeInteger(tok []byte) (string, bool) {
	d := wire.ReadDecimal(tok)
	if !d.IsInteger() || d.Compare(&leastSafe) < 0 || d.Compare(&mostSafe) > 0 {
		return "", false
	}
	return d.Integer(), true
}

// Equal says whether a header's value, after base64 decoding, and the value
// that [HeaderBinding.Value] returned are the same; integers are compared as
// numbers.
func (b *HeaderBinding) Equal(header, value string) bool {
	if b.Type != "integer" {
		return header == value
	}
	if !isNumber(header) {
		return false
	}
	h, ok := safeInteger([]byte(header))
	v, okV := safeInteger([]byte(value))
	return ok && okV && h == v
}

// isNumber says whether s is a number as JSON spells it.
func isNumber(s string) bool {
	c := wire.At([]byte(s), 0)
	return (c == '-' || '0' <= c && c <= '9') && len(s) <= 64 && wire.Valid([]byte(s), wire.Limits{}) == nil
}

// addHeader adds a binding, unless its name is taken or is no token.
func addHeader(list []HeaderBinding, b HeaderBinding) ([]HeaderBinding, error) {
	if !httptoken.Valid(b.Name) || len(b.Name) > 128 {
		return nil, fmt.Errorf("%w: name %s must be a token of RFC 9110: letters, digits and hyphens", ErrHeader, wire.QuoteName(b.Name))
	}
	for _, other := range list {
		if strings.EqualFold(other.Name, b.Name) {
			return nil, fmt.Errorf("%w: name %s is given twice; header names ignore case", ErrHeader, wire.QuoteName(b.Name))
		}
	}
	b.Path = slices.Clone(b.Path)
	return append(list, b), nil
}

// header binds a field with the tag header (spec 2026-07-28, server/tools,
// x-mcp-header; Ruling 15).
func (w *walk) header(f *field, tags *tagSet) (err error) {
	name, ok := tags.set["header"]
	if !ok {
		return nil
	}
	if f.node.own != nil {
		return w.errorf("tag header does not fit a type that says its schema itself: %w", ErrHeader)
	}
	t := f.node.jsonType()
	if t != "string" && t != "integer" && t != "boolean" {
		return w.errorf("tag header fits strings, integers and booleans only: %w", ErrHeader)
	}
	if w.reach > 0 {
		return w.errorf("tag header must be reachable by fields alone, not inside a slice, map or recursive type: %w", ErrHeader)
	}
	w.headers, err = addHeader(w.headers, HeaderBinding{Name: name, Path: w.names, Type: t})
	if err != nil {
		return w.errorf("tag header: %w", err)
	}
	f.header = name
	return nil
}
