package wire

import (
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	refuse          = json.RejectUnknownMembers(true)
	decodePlain     = json.JoinOptions(json.RejectUnknownMembers(false))
	decodeDurations = json.JoinOptions(decodePlain, json.WithUnmarshalers(json.UnmarshalFromFunc(decodeDuration)))
	knownPlain      = json.JoinOptions(decodePlain, refuse)
	knownDurations  = json.JoinOptions(decodeDurations, refuse)
)

// Decode decodes data into v, a pointer to a type of the user's. Names match
// exactly, unknown members are ignored, a time.Duration is a string such as
// "1m30s", []byte is base64. The error is an *[Error] that says where the text
// differs from the type and what was expected, and shows no values.
func Decode(data []byte, v any) error {
	return decode(data, v, decodePlain, decodeDurations)
}

// DecodeKnown is [Decode] that refuses unknown members, with [ErrUnknown].
func DecodeKnown(data []byte, v any) error {
	return decode(data, v, knownPlain, knownDurations)
}

// DecodeParams decodes data into v, a pointer to a type of the protocol. As in
// Decode unknown members are ignored, but a member whose name differs from a
// name that its struct knows in letter case only is refused with [ErrTwin]: in
// every struct of the type, yet never inside a RawValue, a map, an any, or a
// type that decodes itself.
func DecodeParams(data []byte, v any) error {
	t := reflect.TypeOf(v)
	if t != nil && openStruct(t) {
		// Some struct takes any member, so that the decoder reports none.
		if err := checkTwins(data, t); err != nil {
			return err
		}
		return Decode(data, v)
	}
	err := decode(data, v, knownPlain, knownDurations)
	if err == nil || !isUnknown(err) {
		return err
	}
	if err := checkTwins(data, t); err != nil {
		return err
	}
	return Decode(data, v) // fills the same places again
}

func decode(data []byte, v any, plain, withDurations json.Options) error {
	options := plain
	if t := reflect.TypeOf(v); hasDuration(t) {
		options = withDurations
	}
	if err := json.Unmarshal(data, v, options); err != nil {
		return decodeError(data, err)
	}
	return nil
}

func decodeDuration(dec *jsontext.Decoder, d *time.Duration) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() == 'n' {
		*d = 0 // as for every other type
		return nil
	}
	if value.Kind() != '"' {
		return newError("", nil, "expected %s, got %s", durationForm, Kind(value[0]))
	}
	parsed, err := time.ParseDuration(Text(RawValue(value)))
	if err != nil {
		return newError("", nil, "expected %s", durationForm)
	}
	*d = parsed
	return nil
}

const durationForm = `a duration such as "1m30s"`
