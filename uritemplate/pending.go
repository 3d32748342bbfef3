package uritemplate

import (
	"errors"
	"reflect"
)

type Template struct{}

var errPending = errors.New("pending")

func Parse(template string) (*Template, error)                { return nil, errPending }
func (t *Template) String() string                            { return "" }
func (t *Template) Variables() []string                       { return nil }
func (t *Template) Match(uri string) (Values, bool)           { return nil, false }
func (t *Template) Expand(values Values) (string, error)      { return "", errPending }
func (t *Template) Specificity() int                          { return 0 }

type Binder struct{}

func Bind(t reflect.Type, tmpl *Template) (*Binder, error) { return nil, errPending }
func (b *Binder) Decode(values Values, v any) error        { return errPending }
