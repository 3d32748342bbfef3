package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/strictjson"
)

// A Verb is something that an operator does.
type Verb struct {
	// Path are the words of the command, such as "user disable".
	Path string
	// Short says in a line what it does.
	Short string
	// Reads says that it changes nothing.
	Reads bool
	// Fields are its parameters.
	Fields []Field
	// Streams says that it answers with lines, before its result.
	Streams bool

	input  reflect.Type
	long   bool // it may take minutes
	do     func(ctx context.Context, a *Admin, input any, write func(line []byte) error) (Result, error)
	result func() Result
}

// A Kind is what a parameter holds.
type Kind int

// The kinds of parameters.
const (
	Text       Kind = iota // a text
	Secret                 // a text that is neither shown nor an argument of a command, which asks for it
	SecretFile             // a secret, in one line of a file that a command reads
	File                   // a text that a command reads from a file
	Flag                   // true or false
	Number                 // a whole number
	List                   // texts
)

// A Field is a parameter of a verb.
type Field struct {
	// Name is that of the member in JSON.
	Name string
	// Arg is what the command calls it if it is an argument, such as "NAME".
	Arg string
	// Help says what it is. A word in backquotes names the value.
	Help string
	Kind Kind
	// Required says that the verb cannot do without.
	Required bool

	index []int // of the field in the input
}

// A Result is what came of a verb. It marshals to a JSON object.
type Result interface {
	// Text is the result for people, in lines.
	Text() string
}

// Find returns the verb of a path, or nil.
func Find(path string) *Verb {
	i := slices.IndexFunc(verbs, func(v *Verb) bool { return v.Path == path })
	if i < 0 {
		return nil
	}
	return verbs[i]
}

// Verbs returns all verbs, those of one noun beside each other.
func Verbs() []*Verb { return slices.Clone(verbs) }

// verbs is the table of what an operator can do.
var verbs = slices.Concat(userVerbs, groupVerbs, clientVerbs, resourceVerbs, givenVerbs, keyVerbs, auditVerbs)

// verb makes a row of the table. In is a struct whose fields have tags: json, and "arg", the
// name of an argument; "help"; and "kind", which is "secret", "secret-file", "file" or "required". Fields of
// embedded structs are parameters too.
func verb[In, Out any, Pointer interface {
	*Out
	Result
}](path, short string, do func(ctx context.Context, a *Admin, in *In) (Pointer, error),
) *Verb {
	return streamed(path, short, false, func(ctx context.Context, a *Admin, in *In, _ func([]byte) error) (Pointer, error) {
		return do(ctx, a, in)
	})
}

// streamed makes a row of a verb that may answer with lines, which it gives to write. A line is valid
// until write returns.
func streamed[In, Out any, Pointer interface {
	*Out
	Result
}](path, short string, streams bool, do func(ctx context.Context, a *Admin, in *In, write func(line []byte) error) (Pointer, error),
) *Verb {
	v := &Verb{
		Path: path, Short: short, Streams: streams, input: reflect.TypeFor[In](),
		do: func(ctx context.Context, a *Admin, input any, write func(line []byte) error) (Result, error) {
			out, err := do(ctx, a, input.(*In), write)
			if err != nil {
				return nil, err
			}
			return out, nil
		},
		result: func() Result { return Pointer(new(Out)) },
	}
	v.Fields = fieldsOf(v.input)
	return v
}

func fieldsOf(input reflect.Type) []Field {
	var fields []Field
	for _, f := range reflect.VisibleFields(input) {
		if !f.Anonymous {
			fields = append(fields, fieldOf(f))
		}
	}
	return fields
}

// reading makes a row of a verb that changes nothing.
func reading(v *Verb) *Verb {
	v.Reads = true
	return v
}

// long makes a row of a verb that may take minutes.
func long(v *Verb) *Verb {
	v.long = true
	return v
}

func fieldOf(f reflect.StructField) Field {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	out := Field{Name: name, Arg: f.Tag.Get("arg"), Help: f.Tag.Get("help"), index: f.Index}
	kind := f.Tag.Get("kind")
	switch f.Type.Kind() {
	case reflect.String:
		out.Kind = Text
		switch kind {
		case "secret":
			out.Kind = Secret
		case "secret-file":
			out.Kind = SecretFile
		case "file":
			out.Kind = File
		}
	case reflect.Bool:
		out.Kind = Flag
	case reflect.Int:
		out.Kind = Number
	case reflect.Slice:
		out.Kind = List
	default:
		panic(fmt.Sprintf("field %s: no parameter is a %s", f.Name, f.Type)) // the table is of this package
	}
	out.Required = out.Arg != "" || out.Kind == Secret || kind == "required"
	return out
}

// decode reads the parameters of a verb, a JSON object.
func (v *Verb) decode(raw []byte) (any, error) {
	input := reflect.New(v.input)
	if err := strictjson.Unmarshal(raw, input.Interface(), &strictjson.Options{RefuseUnknown: true}); err != nil {
		return nil, errorf(Invalid, "cannot read the parameters of %s: %w", v.Path, err)
	}
	for _, f := range v.Fields {
		if f.Required && input.Elem().FieldByIndex(f.index).IsZero() {
			return nil, errorf(Invalid, "%s requires the parameter %q", v.Path, f.Name)
		}
	}
	return input.Interface(), nil
}

// visible are the parameters for the audit, which are neither secrets nor files.
func (v *Verb) visible(input any) map[string]any {
	shown := map[string]any{}
	value := reflect.ValueOf(input).Elem()
	for _, f := range v.Fields {
		if field := value.FieldByIndex(f.index); f.Kind != Secret && f.Kind != SecretFile && f.Kind != File && !field.IsZero() {
			shown[f.Name] = field.Interface()
		}
	}
	return shown
}

// readResult reads the result of a verb.
func (v *Verb) readResult(raw []byte) (Result, error) {
	r := v.result()
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("cannot read the result of %s: %w", v.Path, err)
	}
	return r, nil
}
