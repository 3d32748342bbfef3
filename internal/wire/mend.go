package wire

import (
	"encoding/base64"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what is wrong in one text: the losses that are kept, while the rest is counted, and the
// attempts to read a part that fail, since each takes time.
const (
	maxLosses   = 100
	maxFailures = 10_000
)

// errTooWrong says that more than maxFailures attempts failed.
var errTooWrong = errors.New("too much is wrong")

// final reports whether an error is that of the whole text, of which no part is spared then.
func final(err error) bool { return errors.Is(err, ErrTwin) || errors.Is(err, errTooWrong) }

// A Loss is a part of a text that did not fit its type, and was left out or replaced.
type Loss struct {
	// Pointer is its place, a JSON pointer (RFC 6901) in the text as it came.
	Pointer string
	// Part is the place of the whole that was left out or replaced because of it: Pointer, or above it.
	Part string
	// Why says what is wrong with it, and shows no values.
	Why error
}

// A Mender changes one text so that it fits a type. Its functions may be nil.
type Mender struct {
	// Needs reports whether a value of struct type t is of no use without a member.
	Needs func(t reflect.Type, member string) bool
	// Instead returns what stands in place of a member that cannot be read, or nil for nothing. It is
	// mended in its turn.
	Instead func(t reflect.Type, member string, value RawValue) RawValue
	// Surplus returns a member that cannot stand beside the others of a value of struct type t, or "".
	Surplus func(t reflect.Type, o Object) string
	// Concrete returns the type that a value of interface type t has, or nil.
	Concrete func(t reflect.Type, value RawValue) reflect.Type
	// Note returns what stands in place of a value of interface type t that cannot be read, or nil.
	Note func(t reflect.Type, value RawValue, why error) RawValue

	// Losses are the first hundred parts that were left out or replaced, and More is the number of
	// the others.
	Losses []Loss
	More   int

	failures int
}

// Mend returns data without the members, elements and map entries that do not fit type t, so that
// [DecodeParams] accepts it. It removes the smallest parts possible. It fails if an essential member does
// not fit, if a member differs from a known one in letter case only, or after 10,000 failed attempts to
// decode a part.
func (m *Mender) Mend(data []byte, t reflect.Type) (RawValue, error) {
	raw := trim(data)
	if _, _, err := scan(raw, Limits{Depth: maxDepth}, nil); err != nil {
		return nil, err
	}
	return m.value(raw, t, "")
}

func (m *Mender) lose(part string, why error) {
	pointer := part
	var inner *Error
	if errors.As(why, &inner) {
		pointer += inner.Pointer
		why = &Error{Offset: -1, Reason: inner.Reason, Err: inner.Err}
	}
	if len(m.Losses) == maxLosses {
		m.More++
		return
	}
	m.Losses = append(m.Losses, Loss{pointer, part, why})
}

// fail counts a failed attempt to read a part.
func (m *Mender) fail() error {
	if m.failures++; m.failures > maxFailures {
		return newError("", errTooWrong, "more than %d parts of it cannot be read", maxFailures)
	}
	return nil
}

// value mends one value, which is at pointer. The place of an error begins at the value.
func (m *Mender) value(raw RawValue, t reflect.Type, pointer string) (RawValue, error) {
	if t.Kind() == reflect.Interface {
		return m.ofInterface(raw, t, pointer)
	}
	err := DecodeParams(raw, reflect.New(t).Interface())
	if err == nil {
		return raw, nil
	}
	if final(err) {
		return nil, err
	}
	if err := m.fail(); err != nil {
		return nil, err
	}
	var mended RawValue
	switch inner := elem(t); {
	case inner == reflect.TypeFor[[]byte]() && raw[0] == '"':
		mended = m.base64(raw, pointer)
	case (inner.Kind() == reflect.Struct || inner.Kind() == reflect.Map) && IsEmptyArray(raw) && !m.needs(inner):
		m.lose(pointer, newError("", nil, "an empty array where an object belongs; it was read as an empty object"))
		mended = RawValue("{}") // PHP writes an empty array for it
	case inner.Kind() == reflect.Struct && raw[0] == '{':
		mended, err = m.object(raw, inner, pointer)
	case inner.Kind() == reflect.Map && raw[0] == '{':
		mended, err = m.entries(raw, inner, pointer)
	case inner.Kind() == reflect.Slice && raw[0] == '[':
		mended, err = m.elements(raw, inner, pointer)
	}
	if mended == nil {
		return nil, err
	}
	return mended, DecodeParams(mended, reflect.New(t).Interface())
}

// needs reports whether a value of type t is of no use without some member.
func (m *Mender) needs(t reflect.Type) bool {
	return m.Needs != nil && slices.ContainsFunc(fieldNames(t), func(name string) bool { return m.Needs(t, name) })
}

// spare mends a part of a value, and returns nil for one that cannot be mended: it is lost, and with it
// all that was lost in it.
func (m *Mender) spare(raw RawValue, t reflect.Type, pointer string) (mended RawValue, err error) {
	kept, more := len(m.Losses), m.More
	if mended, err = m.value(raw, t, pointer); err != nil {
		m.Losses, m.More = m.Losses[:kept], more
		return nil, err
	}
	return mended, nil
}

func (m *Mender) ofInterface(raw RawValue, t reflect.Type, pointer string) (RawValue, error) {
	if t.NumMethod() == 0 {
		return raw, nil // any value fits
	}
	err := error(newError("", nil, "of an unknown type"))
	if m.Concrete != nil {
		if concrete := m.Concrete(t, raw); concrete != nil {
			var mended RawValue
			if mended, err = m.spare(raw, concrete, pointer); err == nil || final(err) {
				return mended, err
			}
		}
	}
	if tooMuch := m.fail(); tooMuch != nil { // what stands in its place may be much longer
		return nil, tooMuch
	}
	if m.Note != nil {
		if note := m.Note(t, raw, err); note != nil {
			m.lose(pointer, err)
			return note, nil
		}
	}
	return nil, err
}

func (m *Mender) object(raw RawValue, t reflect.Type, pointer string) (RawValue, error) {
	known, o := namesOf(t), indexObject(raw)
	surplus := ""
	if m.Surplus != nil {
		surplus = m.Surplus(t, o)
	}
	out := RawValue{'{'}
	for name, value := range o.All() {
		if surplus == name && name != "" {
			m.lose(pointer+below(name), newError("", nil, "it cannot stand beside the other members"))
			continue
		}
		if f, ok := known.fields[name]; ok {
			var err error
			if value, err = m.member(value, t, f, name, pointer); err != nil {
				return nil, placed(below(name), err)
			}
		}
		out = AppendEntry(out, name, value)
	}
	return append(out, '}'), nil
}

// member mends a member of struct type t, of type f. Nil without an error means that it is left out.
func (m *Mender) member(value RawValue, t, f reflect.Type, name, pointer string) (RawValue, error) {
	pointer += below(name)
	mended, err := m.spare(value, f, pointer)
	if err == nil || final(err) {
		return mended, err
	}
	if m.Instead != nil {
		if other := m.Instead(t, name, value); other != nil {
			m.lose(pointer, err)
			return m.spare(other, f, pointer)
		}
	}
	if m.Needs != nil && m.Needs(t, name) {
		return nil, err
	}
	m.lose(pointer, err)
	return nil, nil
}

// IsEmptyArray reports whether a valid text without white space around it is an array without elements.
func IsEmptyArray(raw RawValue) bool {
	_, none := First(raw, 0, ']')
	return raw[0] == '[' && none
}

func (m *Mender) entries(raw RawValue, t reflect.Type, pointer string) (RawValue, error) {
	out := RawValue{'{'}
	for name, value := range indexObject(raw).All() {
		at := below(name)
		mended, err := m.spare(value, t.Elem(), pointer+at)
		if final(err) {
			return nil, placed(at, err)
		}
		if err != nil {
			m.lose(pointer+at, err)
		}
		out = AppendEntry(out, name, mended)
	}
	return append(out, '}'), nil
}

func (m *Mender) elements(raw RawValue, t reflect.Type, pointer string) (RawValue, error) {
	out := RawValue{'['}
	for i, value := range elements(raw) {
		at := below(strconv.Itoa(i))
		mended, err := m.spare(value, t.Elem(), pointer+at)
		if final(err) {
			return nil, placed(at, err)
		}
		if err != nil {
			m.lose(pointer+at, err)
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, mended...)
	}
	return append(out, ']'), nil
}

// AppendEntry adds a member to an object that is not closed; nil is none.
func AppendEntry(out RawValue, name string, value RawValue) RawValue {
	if value == nil {
		return out
	}
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(AppendString(out, name), ':'), value...)
}

// base64 reads bytes in the forms of base64 that are in use beside the one of RFC 4648, section 4: with
// white space, without padding, with the letters for URLs, as a data URL. It returns nil for others.
func (m *Mender) base64(raw RawValue, pointer string) RawValue {
	text := Text(raw)
	if strings.HasPrefix(text, "data:") {
		_, data, found := strings.Cut(text, ";base64,")
		if !found {
			return nil
		}
		text = data
	}
	text = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "-", "+", "_", "/").Replace(text)
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	m.lose(pointer, newError("", nil, "base64 in another form than that of RFC 4648, section 4; it was read"))
	return AppendString(nil, base64.StdEncoding.EncodeToString(data))
}

// below is the pointer from a value to its member or element called name.
func below(name string) string { return "/" + pointerEscapes.Replace(name) }

// placed moves the place of an error.
func placed(at string, err error) error {
	var inner *Error
	if !errors.As(err, &inner) {
		return newError(at, err, "%s", err.Error())
	}
	return &Error{Pointer: at + inner.Pointer, Offset: -1, Reason: inner.Reason, Err: inner.Err}
}
