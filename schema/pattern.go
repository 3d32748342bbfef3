package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

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
