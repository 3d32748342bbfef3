package schema

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/internal/wire"
)

// library is a schema compiled by the JSON Schema library.
type library struct {
	schema  *jsonschema.Schema
	limit   int  // evaluations
	spread  int  // evaluations per place, in the worst case; 0: must be counted for each value
	program int  // instructions of the regular expressions
	unique  bool // uniqueItems is used
	graph   *graph
}

// emptyLoader is the loader: it loads nothing.
type emptyLoader struct{}

func (emptyLoader) Load(url string) (any, error) {
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
	c.UseLoader(emptyLoader{})
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
	f.spread, err = f.graph.evaluationsAt()
	return err
}

func (f *library) check(raw wire.RawValue) (err error) {
	size := wire.Measure(raw, maxDigits)
	switch {
	case size.Broken:
		return errNotJSON()
	case size.HasLong:
		return errLongNumber()
	case f.unique && size.Containers > maxUnique:
		return fmt.Errorf("%w: more than %d objects and arrays to compare with each other", ErrTooComplex, maxUnique)
	case f.program > 0 && size.Longest > maxMatching/f.program:
		return fmt.Errorf("%w: a string of %d bytes is too long for the patterns", ErrTooComplex, size.Longest)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: the check failed", ErrInvalid)
		}
	}()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return errNotJSON()
	}
	if f.spread == 0 || size.Values > f.limit/f.spread {
		if !f.graph.withinLimit(f.schema, v, f.limit) {
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

// engine compiles the regular expressions of one schema within bounds. RE2
// has no catastrophic patterns, but large ones.
type engine struct {
	known map[string]jsonschema.Regexp
	size  int   // instructions
	err   error // a bound that was exceeded
}

func (e *engine) compile(pattern string) (jsonschema.Regexp, error) {
	if re, ok := e.known[pattern]; ok {
		return re, nil
	}
	if e.err != nil {
		return nil, e.err
	}
	if len(pattern) > maxPattern {
		e.err = fmt.Errorf("%w: a pattern of more than %d bytes", ErrTooComplex, maxPattern)
		return nil, e.err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w; patterns are RE2, without lookaround and back-references", err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if e.size += len(program.Inst); e.size > maxProgram {
		e.err = fmt.Errorf("%w: its patterns need more than %d steps for each character", ErrTooComplex, maxProgram)
		return nil, e.err
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	e.known[pattern] = re
	return re, nil
}
