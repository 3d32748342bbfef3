package server

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Proves: Ruling 44. With adds to earlier options, for every option there is: a value replaces an
// earlier one, and two values of an option that restricts are an error. A new option belongs in one
// of the two lists.
func TestWithAdds(t *testing.T) {
	checkMerge[ToolOptions](t, "Title Annotations Icons Meta Types", "Labels Scopes Rate Timeout InputSchema OutputSchema Variant")
	checkMerge[PromptOptions](t, "Title Icons Meta Complete CompleteRaw", "Labels Scopes")
	checkMerge[ResourceOptions](t, "Title Description MIMEType Size Annotations Icons Meta Cache Watch", "Labels Scopes")
	checkMerge[TemplateOptions](t, "Title Description MIMEType Annotations Icons Meta Cache Complete CompleteRaw List Watch", "Labels Scopes")
	checkMerge[MethodOptions](t, "Target NameHeader Asks Long Anyone Cache", "Revisions")
}

func checkMerge[T any](t *testing.T, replaced, restricting string) {
	t.Helper()
	what := reflect.TypeFor[T]()
	with := func(i, n int) T { // the options with one value of the field i alone
		var o T
		f := reflect.ValueOf(&o).Elem().Field(i)
		f.Set(sample(f.Type(), n))
		return o
	}
	for i := range what.NumField() {
		name := what.Field(i).Name
		restricts := slices.Contains(strings.Fields(restricting), name)
		if restricts == slices.Contains(strings.Fields(replaced), name) {
			t.Errorf("%v.%s is in none or both of the lists", what, name)
		}
		isFunc := what.Field(i).Type.Kind() == reflect.Func
		for _, test := range []struct {
			name         string
			first, added T
			want         int // the value that is set then; 0 is none
			fails        bool
		}{
			{"alone", *new(T), with(i, 1), 1, false},
			{"then others", with(i, 1), with((i+1)%what.NumField(), 1), 1, false},
			{"then nothing", with(i, 1), *new(T), 1, false},
			{"then the same", with(i, 1), with(i, 1), 1, restricts && isFunc},
			{"then another", with(i, 1), with(i, 2), 2, restricts},
		} {
			o := test.first
			err := mergeOptions(&o, test.added)
			if (err != nil) != test.fails || err != nil && !strings.HasPrefix(err.Error(), name+" is set twice") {
				t.Errorf("%v.%s %s: error %v, want one: %t", what, name, test.name, err, test.fails)
			}
			got, want := reflect.ValueOf(&o).Elem().Field(i), sample(what.Field(i).Type, test.want)
			if isFunc && got.IsNil() || !isFunc && !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Errorf("%v.%s %s: %v, want %v", what, name, test.name, got, want)
			}
		}
	}
}

// sample is the nth value of a type, and not its zero value. Of booleans there is one.
func sample(t reflect.Type, n int) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(strings.Repeat("x", n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint8:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(float64(n))
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(sample(t.Elem(), n))
	case reflect.Slice:
		v.Set(reflect.Append(v, sample(t.Elem(), n)))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(sample(t.Key(), n), reflect.New(t.Elem()).Elem())
	case reflect.Struct:
		v.Field(0).Set(sample(t.Field(0).Type, n))
	case reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Interface: // reflect.Type, the key of ToolOptions.Types
		v.Set(reflect.ValueOf([]reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[string]()}[n-1]))
	default:
		panic("no sample of " + t.String())
	}
	return v
}
