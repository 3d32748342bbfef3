package wire

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func isUnknown(err error) bool { return errors.Is(err, ErrUnknown) }

// decodeError says in our words what the decoder found.
func decodeError(data []byte, err error) error {
	if syntax, ok := err.(*jsontext.SyntacticError); ok { //nolint:errorlint // only the outermost error tells what happened
		return syntaxError(data, syntax)
	}
	semantic, ok := err.(*json.SemanticError) //nolint:errorlint // only the outermost error tells what happened
	if !ok {
		return newError("", err, "cannot be decoded")
	}
	pointer := string(semantic.JSONPointer)
	if semantic.Err == json.ErrUnknownName { //nolint:errorlint // only the outermost error tells what happened
		return unknownError(semantic)
	}
	if inner, ok := errors.AsType[*Error](semantic.Err); ok {
		// Of a type of ours that decodes itself: its place is within ours.
		return &Error{Pointer: pointer + inner.Pointer, Offset: -1, Reason: inner.Reason, Err: inner.Err}
	}
	return newError(pointer, semantic.Err, "%s", reason(semantic))
}

func syntaxError(data []byte, err *jsontext.SyntacticError) error {
	// The scanner has the better words; it finds the same errors.
	if _, _, found := scan(data, Limits{Depth: maxDepth}, nil); found != nil {
		return found
	}
	cause := ErrSyntax
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Offset: err.ByteOffset, Reason: "unexpected end of text", Err: cause}
	}
	return &Error{Pointer: string(err.JSONPointer), Offset: err.ByteOffset, Reason: "not valid JSON", Err: cause}
}

func unknownError(err *json.SemanticError) error {
	e := newError(string(err.JSONPointer.Parent()), ErrUnknown, "unknown member %s", QuoteName(err.JSONPointer.LastToken()))
	if names := fieldNames(err.GoType); len(names) > 0 && len(names) <= 12 {
		e.Reason += "; known are " + strings.Join(names, ", ")
	}
	return e
}

// reason says what was expected, and of values only the kind.
func reason(err *json.SemanticError) string {
	got := ""
	if err.JSONKind != 0 {
		got = ", got " + Kind(byte(err.JSONKind))
	}
	want := typeName(err.GoType)
	switch {
	case err.Err == nil:
		return "expected " + want + got
	case errors.Is(err.Err, strconv.ErrRange):
		return "number is out of range"
	case errors.Is(err.Err, strconv.ErrSyntax):
		return "expected " + want + ", got another kind of number"
	case err.GoType == nil:
		return "cannot be decoded"
	case err.GoType.Kind() == reflect.Array:
		return "expected " + want + " of length " + strconv.Itoa(err.GoType.Len())
	case ownText(err.GoType):
		return printable(err.Err.Error(), 300)
	}
	return "expected " + want
}

// ownText says whether errors of a type's own methods may be shown, which is
// so for the user's types. Those of the standard library repeat the value.
func ownText(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	first, _, _ := strings.Cut(t.PkgPath(), "/")
	return first != "" && !slices.Contains(standard, first)
}

// standard are the first elements of the paths of the standard library.
var standard = strings.Fields(`archive bufio bytes cmp compress container context crypto database debug embed encoding errors
	expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime
	slices sort strconv strings structs sync syscall testing text time unicode unique unsafe weak`)

// typeName says in JSON's words what a type takes.
func typeName(t reflect.Type) string {
	if t == nil {
		return "another value"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return "an RFC 3339 time"
	case durationType:
		return durationForm
	case reflect.TypeFor[[]byte]():
		return "base64"
	}
	if words, ok := standardTexts[t.String()]; ok {
		return words
	}
	if decodesItself(t) {
		return "another value"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "integer of 0 or more"
	}
	return "another value"
}

// standardTexts say what types of the standard library take that decode a text.
var standardTexts = map[string]string{
	"netip.Addr": "an IP address", "net.IP": "an IP address", "netip.AddrPort": "an IP address and port",
	"netip.Prefix": "a network such as 192.0.2.0/24", "big.Int": "an integer", "big.Float": "a number", "big.Rat": "a fraction",
	"regexp.Regexp": "a regular expression", "slog.Level": "a log level",
}

// encodeError says where a value of ours could not be encoded. Its text is
// for the programmer.
func encodeError(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok && strings.Contains(syntax.Err.Error(), "invalid UTF-8") {
		pointer := syntax.JSONPointer
		if semantic, ok := errors.AsType[*json.SemanticError](err); ok { // within a raw value, whose place is that of the value
			pointer = semantic.JSONPointer
		}
		return newError(string(pointer), ErrUTF8, "the text is not valid UTF-8")
	}
	if semantic, ok := err.(*json.SemanticError); ok { //nolint:errorlint // only the outermost error tells what happened
		if inner, ok := errors.AsType[*Error](semantic.Err); ok {
			return &Error{Pointer: string(semantic.JSONPointer) + inner.Pointer, Offset: -1, Reason: inner.Reason, Err: inner.Err}
		}
		what := "cannot be encoded"
		if semantic.GoType != nil {
			what = "Go " + semantic.GoType.String() + " cannot be encoded"
		}
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](semantic.Err); ok {
			what += ": " + encodeSyntax(syntax)
		}
		return newError(string(semantic.JSONPointer), err, "%s", what)
	}
	if syntax, ok := err.(*jsontext.SyntacticError); ok { //nolint:errorlint // only the outermost error tells what happened
		return newError(string(syntax.JSONPointer), err, "cannot be encoded: %s", encodeSyntax(syntax))
	}
	return newError("", err, "cannot be encoded")
}

func encodeSyntax(err *jsontext.SyntacticError) string {
	if err.Err == jsontext.ErrDuplicateName { //nolint:errorlint // only the outermost error tells what happened
		return "duplicate member name"
	}
	return "a raw value is not valid JSON"
}
