package schema

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/parley-mcp/parley/internal/wire"
)

// Limits bound a foreign schema. Nil is the same as the zero value.
type Limits struct {
	// MaxSchemaNodes is the number of JSON values in the schema. Default 10,000.
	MaxSchemaNodes int
	// MaxSchemaDepth is the depth of the schema's JSON. Default 64.
	MaxSchemaDepth int
	// MaxEvaluations is the number of times that a subschema may be applied
	// to a value in one check, in the worst case. Default 500,000.
	MaxEvaluations int
	// AssertFormats also checks the keyword "format" where the dialect
	// treats it as a mere annotation (2019-09 and 2020-12). Default: no.
	AssertFormats bool
	// IgnoreHeaders leaves x-mcp-header annotations unread: for output
	// schemas and for clients of transports without headers. Default: they are
	// checked, and one that breaks the rules is an error with [ErrHeader].
	IgnoreHeaders bool
	// Unchecked accepts any object as a schema, of any dialect and size, and any JSON as a
	// value that fits it: for gateways to servers that check values themselves. Only
	// x-mcp-header annotations are still read. Default: the schema is compiled, and values
	// are checked.
	Unchecked bool
	// Lenient is for schemas that a peer sent, which checks the values itself. Dialects are
	// also draft-06 and draft-04, and addresses with https for http or without "#". A
	// keyword with the value null counts as absent, and an empty array as an empty
	// object. Regular expressions that are not RE2 or exceed a bound are not checked, nor
	// is what depends on them, such as a "not" around one. Default: such a schema is an
	// error.
	Lenient bool
}

// Bounds that have no option: they are far above what schemas of people need.
const (
	maxPattern  = 1 << 10 // bytes of one regular expression
	maxProgram  = 50_000  // instructions of all regular expressions together
	maxMatching = 1 << 30 // instructions times characters in one check
	maxUnique   = 4_000   // objects and arrays in a value that must have unique items
	maxDigits   = 400     // characters of a number, and its exponent
	maxInPlace  = 5_000   // subschemas applied to one place by one schema
	maxTargets  = 100     // places that one dynamic reference may lead to
	maxMessage  = 300     // bytes of a library's message
	schemaURL   = "parley:///schema"
)

// dialects are the values of $schema that are served, without "#".
var dialects = []string{
	"https://json-schema.org/draft/2020-12/schema",
	"https://json-schema.org/draft/2019-09/schema",
	"http://json-schema.org/draft-07/schema",
}

// olderDialects are read in lenient schemas, too. The first one has no version and is the newest.
var olderDialects = []string{
	"http://json-schema.org/schema",
	"http://json-schema.org/draft-06/schema",
	"http://json-schema.org/draft-04/schema",
}

// foreign is a schema written by somebody else: constraints if it keeps to the
// common keywords, or else, and for the values that the constraints leave undecided,
// compiled by the JSON Schema library.
type foreign struct {
	constraints *constraints
	limit       int // evaluations
	library     func() (*library, error)
}

// Compile compiles a schema that was written by somebody else. Dialects are
// 2020-12 (the default), 2019-09 and draft-07; nothing is ever loaded from
// files or the network; regular expressions are RE2. Limits.Lenient accepts more
// of each. The error wraps [ErrDialect], [ErrExternal],
// [ErrTooComplex], [ErrHeader] or [ErrInvalid].
func Compile(raw wire.RawValue, o *Limits) (*Compiled, error) {
	if o == nil {
		o = &Limits{}
	}
	lim := *o
	lim.MaxSchemaNodes = cmp.Or(lim.MaxSchemaNodes, 10_000)
	lim.MaxSchemaDepth = cmp.Or(lim.MaxSchemaDepth, 64)
	lim.MaxEvaluations = cmp.Or(lim.MaxEvaluations, 500_000)
	if !lim.Unchecked {
		if err := measure(raw, &lim); err != nil {
			return nil, err
		}
	}
	c, err := readAnnotations(raw, &lim)
	if err != nil {
		return nil, err
	}
	c.json = raw
	if lim.Unchecked {
		c.foreign = &foreign{constraints: readSchema(wire.RawValue("{}"), false), limit: lim.MaxEvaluations}
		return c, nil
	}
	c.foreign, err = newForeign(raw, &lim)
	if err != nil && lim.Lenient {
		var t trimmer
		if trimmed := t.schema(raw); t.changed {
			c.foreign, err = newForeign(trimmed, &lim)
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// measure checks that a schema is JSON within bounds.
func measure(raw wire.RawValue, lim *Limits) error {
	if err := wire.Valid(raw, wire.Limits{Depth: lim.MaxSchemaDepth}); err != nil {
		if errors.Is(err, wire.ErrDepth) {
			return fmt.Errorf("%w: nested deeper than %d", ErrTooComplex, lim.MaxSchemaDepth)
		}
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	size := wire.Measure(raw, maxDigits)
	if size.Values > lim.MaxSchemaNodes {
		return fmt.Errorf("%w: %d values, the limit is %d", ErrTooComplex, size.Values, lim.MaxSchemaNodes)
	}
	if size.HasLong {
		return fmt.Errorf("%w: a number of more than %d digits", ErrTooComplex, maxDigits)
	}
	return nil
}

// newForeign takes the library only if the constraints do not suffice: what becomes
// constraints is known to be valid, and compiling it once more is 20 times the work.
func newForeign(raw wire.RawValue, lim *Limits) (*foreign, error) {
	limit, formats := lim.MaxEvaluations, lim.AssertFormats
	f := &foreign{constraints: readSchema(raw, formats), limit: limit}
	f.library = sync.OnceValues(func() (*library, error) {
		l := &library{limit: limit, lenient: lim.Lenient}
		return l, l.compile(raw, formats)
	})
	if f.constraints == nil {
		if _, err := f.library(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *foreign) check(raw wire.RawValue) error {
	if f.constraints != nil {
		if err, decided := f.constraints.validate(raw, f.limit); decided {
			return err
		}
	}
	l, err := f.library()
	if err != nil {
		return err
	}
	return l.check(raw)
}
