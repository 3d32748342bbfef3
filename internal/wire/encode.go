package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	encodePlain     = json.JoinOptions(jsontext.PreserveRawStrings(true), json.Deterministic(true))
	encodeDurations = json.JoinOptions(encodePlain, json.WithMarshalers(
		json.MarshalToFunc(func(enc *jsontext.Encoder, d time.Duration) error {
			return enc.WriteToken(jsontext.String(d.String()))
		})))

	// buffers holds the headers only, never bytes.
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
)

// Append appends the JSON encoding of v to dst and returns the longer slice.
// Nothing is escaped for HTML. A RawValue is copied without white space between
// its tokens, so that the text has no line breaks. A nil slice becomes [], a
// nil map {}, a time.Duration the string of its String method; maps are written in
// the order of their keys. On error dst is
// returned as it was; the error is an *[Error].
func Append(dst []byte, v any) ([]byte, error) {
	if raw, ok := v.(RawValue); ok && ready(raw) {
		return append(dst, raw...), nil
	}
	out, err := encode(v, func(o json.Options) ([]byte, error) { return appendWith(dst, v, o) })
	if err != nil {
		return dst, err
	}
	return out, nil
}

// encode calls do with the options that v needs.
func encode(v any, do func(json.Options) ([]byte, error)) ([]byte, error) {
	options := encodePlain
	if hasDuration(reflect.TypeOf(v)) {
		options = encodeDurations
	}
	out, err := do(options)
	if err != nil && lacksDuration(err) {
		// A duration in an interface, which the type did not show.
		out, err = do(encodeDurations)
	}
	if err != nil {
		return nil, encodeError(err)
	}
	return out, nil
}

// ready reports whether a value can be copied as it is: it is valid, and has no white space between
// its tokens.
func ready(raw RawValue) bool {
	if _, end, err := scan(raw, Limits{Depth: maxEncodedDepth}, nil); err != nil || end != len(raw) {
		return false
	}
	for pos := 0; pos < len(raw); pos++ {
		switch raw[pos] {
		case '"':
			end, _ := SkipString(raw, pos)
			pos = end - 1
		case ' ', '\t', '\r', '\n':
			return false
		}
	}
	return true
}

// maxEncodedDepth is how deep the encoder nests.
const maxEncodedDepth = 10_000

func appendWith(dst []byte, v any, options json.Options) ([]byte, error) {
	buf := buffers.Get().(*bytes.Buffer)
	*buf = *bytes.NewBuffer(dst)
	err := json.MarshalWrite(buf, v, options)
	out := buf.Bytes()
	*buf = bytes.Buffer{}
	buffers.Put(buf)
	return out, err
}

// Marshal returns the JSON encoding of v, as [Append] does. It takes no more memory than that.
func Marshal(v any) ([]byte, error) {
	return encode(v, func(o json.Options) ([]byte, error) { return json.Marshal(v, o) })
}

// MarshalObject is [Marshal] of what must encode as an object, within lim.
func MarshalObject(v any, lim Limits) (Object, error) {
	raw, err := Marshal(v)
	if err != nil {
		return Object{}, err
	}
	o, err := ParseObject(raw, lim)
	if err != nil {
		return Object{}, fmt.Errorf("not a JSON object: %w", err)
	}
	return o, nil
}

var durationType = reflect.TypeFor[time.Duration]()

// lacksDuration says whether encoding stopped at a duration.
func lacksDuration(err error) bool {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	return ok && semantic.GoType == durationType
}

// durations remembers which types hold durations: map[reflect.Type]bool.
var durations sync.Map

// hasDuration says whether values of type t may hold a time.Duration, other
// than in an interface.
func hasDuration(t reflect.Type) bool {
	if t == nil {
		return false
	}
	if known, ok := durations.Load(t); ok {
		return known.(bool)
	}
	found := findDuration(t, map[reflect.Type]bool{})
	durations.Store(t, found)
	return found
}

func findDuration(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == durationType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return findDuration(t.Elem(), seen)
	case reflect.Map:
		return findDuration(t.Key(), seen) || findDuration(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if findDuration(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// An Encoder is what a type that encodes itself in place writes to.
type Encoder = jsontext.Encoder

// MarshalTo writes the JSON encoding of v to enc, with the options of enc. It is
// for the MarshalJSONTo of types that also have a MarshalJSON for encoding/json:
// [Append] takes the first of them, which neither copies nor checks the text again.
func MarshalTo(enc *Encoder, v any) error { return json.MarshalEncode(enc, v) }
