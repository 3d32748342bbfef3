package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

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
	// schemas and for clients of carriers without headers. Default: they are
	// checked, and one that breaks the rules is an error with [ErrHeader].
	IgnoreHeaders bool
	// Unchecked takes any object with a "type" for a schema, of any dialect, and
	// then any JSON for a value that fits it: for gateways to who checks
	// himself. Default: the schema is compiled, and values are checked.
	Unchecked bool
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

// dialects are the values of $schema that are served.
var dialects = []string{
	"https://json-schema.org/draft/2020-12/schema",
	"https://json-schema.org/draft/2019-09/schema",
	"http://json-schema.org/draft-07/schema",
}

// foreign is a schema written by somebody else: clauses if it keeps to the
// common keywords, or else, and for the values that the clauses leave undecided,
// compiled by the JSON Schema library.
type foreign struct {
	clauses *clauses
	limit   int // evaluations
	library func() (*library, error)
}

// library is a schema compiled by the JSON Schema library.
type library struct {
	schema  *jsonschema.Schema
	limit   int  // evaluations
	spread  int  // evaluations per place, in the worst case; 0: must be counted for each value
	program int  // instructions of the regular expressions
	unique  bool // uniqueItems is used
	graph   *graph
}

// Compile compiles a schema that was written by somebody else. Dialects are
// 2020-12 (the default), 2019-09 and draft-07; nothing is ever loaded from
// files or the network; regular expressions are RE2. The error wraps
// [ErrDialect], [ErrExternal], [ErrTooComplex], [ErrHeader] or [ErrInvalid].
func Compile(raw wire.RawValue, o *Limits) (*Compiled, error) {
	if o == nil {
		o = &Limits{}
	}
	lim := *o
	lim.MaxSchemaNodes = cmp.Or(lim.MaxSchemaNodes, 10_000)
	lim.MaxSchemaDepth = cmp.Or(lim.MaxSchemaDepth, 64)
	lim.MaxEvaluations = cmp.Or(lim.MaxEvaluations, 500_000)
	if err := wire.Valid(raw, wire.Limits{Depth: lim.MaxSchemaDepth}); err != nil {
		if errors.Is(err, wire.ErrDepth) {
			return nil, fmt.Errorf("%w: nested deeper than %d", ErrTooComplex, lim.MaxSchemaDepth)
		}
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	size := measure(raw)
	if size.values > lim.MaxSchemaNodes {
		return nil, fmt.Errorf("%w: %d values, the limit is %d", ErrTooComplex, size.values, lim.MaxSchemaNodes)
	}
	if size.wild {
		return nil, fmt.Errorf("%w: a number of more than %d digits", ErrTooComplex, maxDigits)
	}
	c, err := readAnnotations(raw, &lim)
	if err != nil {
		return nil, err
	}
	c.json = raw
	if lim.Unchecked {
		c.foreign = &foreign{clauses: newClauses(wire.RawValue("{}"), false), limit: lim.MaxEvaluations}
		return c, nil
	}
	c.foreign, err = newForeign(raw, &lim)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// newForeign takes the library only if the clauses do not suffice: what becomes
// clauses is known to be valid, and compiling it once more is 20 times the work.
func newForeign(raw wire.RawValue, lim *Limits) (*foreign, error) {
	limit, formats := lim.MaxEvaluations, lim.AssertFormats
	f := &foreign{clauses: newClauses(raw, formats), limit: limit}
	f.library = sync.OnceValues(func() (*library, error) {
		l := &library{limit: limit}
		return l, l.compile(raw, formats)
	})
	if f.clauses == nil {
		if _, err := f.library(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *foreign) check(raw wire.RawValue) error {
	if f.clauses != nil {
		if err, decided := f.clauses.check(raw, f.limit); decided {
			return err
		}
	}
	l, err := f.library()
	if err != nil {
		return err
	}
	return l.check(raw)
}

// refuser is the loader: it loads nothing.
type refuser struct{}

func (refuser) Load(url string) (any, error) {
	return nil, fmt.Errorf("%w: %s is not loaded", ErrExternal, bounded(url))
}

func (f *library) compile(raw wire.RawValue, formats bool) (err error) {
	defer func() {
		// The library is not written for hostile schemas.
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %s", ErrInvalid, bounded(fmt.Sprint(r)))
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%w: %s", ErrInvalid, bounded(err.Error()))
	}
	engine := &engine{known: map[string]jsonschema.Regexp{}}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuser{})
	c.UseRegexpEngine(engine.compile)
	if formats {
		c.AssertFormat()
	}
	if err := c.AddResource(schemaURL, doc); err != nil {
		return fmt.Errorf("%w: %s", ErrInvalid, bounded(err.Error()))
	}
	f.schema, err = c.Compile(schemaURL)
	if engine.err != nil {
		return engine.err
	}
	if err != nil {
		var load *jsonschema.LoadURLError
		if errors.As(err, &load) {
			return fmt.Errorf("%w: %s; put what it refers to under $defs", ErrExternal, bounded(load.URL))
		}
		// Where the schema came from is our own affair; what follows the # is a
		// place in it.
		return fmt.Errorf("%w: %s", ErrInvalid, bounded(strings.ReplaceAll(err.Error(), schemaURL+"#", "#")))
	}
	f.program = engine.size
	f.graph = newGraph(f.schema)
	f.unique = f.graph.unique
	f.spread, err = f.graph.spread()
	return err
}

func errWild() error {
	return &Error{Problems: []Problem{{Reason: fmt.Sprintf("a number has more than %d digits", maxDigits)}}}
}

// bounded shortens a message that a stranger had a hand in.
func bounded(s string) string {
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return ' '
		}
		return r
	}, s)
}

func (f *library) check(raw wire.RawValue) (err error) {
	size := measure(raw)
	switch {
	case size.broken:
		return &Error{Problems: []Problem{{Reason: "not valid JSON"}}}
	case size.wild:
		return errWild()
	case f.unique && size.containers > maxUnique:
		return fmt.Errorf("%w: more than %d objects and arrays to compare with each other", ErrTooComplex, maxUnique)
	case f.program > 0 && size.longest > maxMatching/f.program:
		return fmt.Errorf("%w: a string of %d bytes is too long for the patterns", ErrTooComplex, size.longest)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: the check failed", ErrInvalid)
		}
	}()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return &Error{Problems: []Problem{{Reason: "not valid JSON"}}}
	}
	if f.spread == 0 || size.values > f.limit/f.spread {
		if !f.graph.affords(f.schema, v, f.limit) {
			return fmt.Errorf("%w: checking this value takes more than %d steps", ErrTooComplex, f.limit)
		}
	}
	err = f.schema.Validate(v)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return report(invalid)
	}
	return err
}
