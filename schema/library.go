package schema

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-mcp/parley/internal/wire"
)

// library is a schema compiled by the JSON Schema library.
type library struct {
	schema  *jsonschema.Schema
	limit   int  // evaluations
	lenient bool // Limits.Lenient
	// unmatched leaves all patterns out of the check.
	unmatched bool
	spread    int  // evaluations per place, in the worst case; 0: must be counted for each value
	program   int  // instructions of the regular expressions
	unique    bool // uniqueItems is used
	graph     *graph
	// plain is the same without patterns, for values with strings that are too long for them.
	plain func() (*library, error)
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
	engine := &engine{known: map[string]jsonschema.Regexp{}, lenient: f.lenient}
	if f.unmatched {
		engine.err = fmt.Errorf("%w: the strings are too long for the patterns", ErrTooComplex)
	}
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
	engine.compiled = true
	if engine.err != nil && !f.lenient {
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
	f.plain = sync.OnceValues(func() (*library, error) {
		l := &library{limit: f.limit, lenient: true, unmatched: true}
		return l, l.compile(raw, formats)
	})
	f.graph = newGraph(f.schema)
	if f.lenient {
		if f.graph, err = f.graph.relaxed(); err != nil {
			return err
		}
	}
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
		if f.lenient {
			l, err := f.plain()
			if err != nil {
				return err
			}
			return l.check(raw)
		}
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
	known    map[string]jsonschema.Regexp
	size     int   // instructions
	err      error // a bound that was exceeded: no more patterns are compiled
	lenient  bool  // what cannot be compiled is unjudged
	compiled bool  // the schema is; nothing of the engine changes any more
}

// compile is the library's way to compile a pattern. Once the schema is compiled, the
// library still asks whether values of the format "regex" are patterns, on any goroutine.
func (e *engine) compile(pattern string) (jsonschema.Regexp, error) {
	if e.compiled {
		_, err := parsePattern(pattern)
		if e.lenient {
			err = nil
		}
		return nil, err
	}
	if re, ok := e.known[pattern]; ok {
		return re, nil
	}
	re, err := e.compileOnce(pattern)
	if err != nil {
		if !e.lenient {
			return nil, err
		}
		re = unjudged(pattern)
	}
	e.known[pattern] = re
	return re, nil
}

func (e *engine) compileOnce(pattern string) (jsonschema.Regexp, error) {
	if e.err != nil {
		return nil, e.err
	}
	tree, err := parsePattern(pattern)
	if err != nil {
		if errors.Is(err, ErrTooComplex) && !e.lenient {
			e.err = err
		}
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if e.size+len(program.Inst) > maxProgram {
		e.err = fmt.Errorf("%w: its patterns need more than %d steps for each character", ErrTooComplex, maxProgram)
		return nil, e.err
	}
	e.size += len(program.Inst)
	return regexp.Compile(pattern)
}

// parsePattern parses a pattern that is not too long.
func parsePattern(pattern string) (*syntax.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("%w: a pattern of more than %d bytes", ErrTooComplex, maxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w; patterns are RE2, without lookaround and back-references", err)
	}
	return tree, nil
}
