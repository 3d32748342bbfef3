package strictjson

import (
	"iter"

	"github.com/parley-mcp/parley/internal/wire"
)

// An Object is a checked JSON object whose members are read one by one, without
// decoding the others. The zero Object has no members. An Object never changes and may
// be used by many goroutines.
type Object struct{ object wire.Object }

// ParseObject checks data and returns the object that it is. The object keeps
// data, which must not be changed afterwards. Options.RefuseUnknown does nothing
// here. The error is an [*Error], with [ErrNotObject] if data is another value.
func ParseObject(data []byte, o ...*Options) (Object, error) {
	object, err := wire.ParseObject(data, options(o).limits())
	if err != nil {
		return Object{}, public(err)
	}
	return Object{object}, nil
}

// Member returns the value of the member with that exact name, and whether there is one.
func (o Object) Member(name string) (RawValue, bool) { return o.object.Member(name) }

// Object returns the member with that exact name if it is an object.
func (o Object) Object(name string) (Object, bool) {
	inner, ok := o.object.Object(name)
	return Object{inner}, ok
}

// All yields names and values in the order of the text.
func (o Object) All() iter.Seq2[string, RawValue] { return o.object.All() }

// Len is the number of members.
func (o Object) Len() int { return o.object.Len() }

// Raw is the text of the object, which must not be changed; nil for the zero Object.
func (o Object) Raw() RawValue { return o.object.Raw() }
