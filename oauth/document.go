package oauth

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// Bounds of documents that strangers send.
const (
	maxDocument = 256 << 10 // bytes
	maxDepth    = 16
	maxText     = 2048 // bytes
	maxList     = 100
)

// A document reads a JSON text of a stranger into a struct. It is the one place that decides how
// much of an answer may be wrong: ruling 37.
type document struct {
	// maxText is the length of the longest text in bytes. Default 2,048.
	maxText int
	// needed are the members that must be of their type. Others of the wrong
	// type, and those that are null, are as if they were absent: servers
	// differ in what they write where it does not matter.
	needed []string
	// ignored is set for the answers of servers. It gets the names of the members that were left
	// out or read in part, among them those that exceed a bound. Without it, for what clients send
	// to our server, a bound that is exceeded is an error.
	ignored *[]string
}

// read fills the fields of v, a pointer to a struct, from the members that
// their tags name. Its errors name members and show no values.
func (d document) read(data []byte, v any) error {
	obj, err := wire.ParseObject(data, wire.Limits{Bytes: maxDocument, Depth: maxDepth})
	if err != nil {
		return err
	}
	if d.maxText == 0 {
		d.maxText = maxText
	}
	target := reflect.ValueOf(v).Elem()
	for _, field := range reflect.VisibleFields(target.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		raw, ok := obj.Member(name)
		if name == "" || name == "-" || !ok || string(raw) == "null" {
			continue
		}
		err := d.set(target.FieldByIndex(field.Index), raw)
		switch {
		case err == nil:
		case err != errPart && slices.Contains(d.needed, name), err != errPart && err != errType && d.ignored == nil: //nolint:errorlint // set never wraps them
			return fmt.Errorf("%s: %w", name, err)
		default:
			d.ignore(name)
		}
	}
	return nil
}

// ignore notes that a member was not read, or not whole.
func (d document) ignore(name string) {
	if d.ignored != nil {
		*d.ignored = append(*d.ignored, name)
	}
}

// errType says that a member is of the wrong type, and errPart that items of its list are. Any other
// error is about a bound.
var errType, errPart = errors.New("wrong type"), errors.New("items of the wrong type")

func (d document) set(field reflect.Value, raw wire.RawValue) error {
	switch p := field.Addr().Interface().(type) {
	case *string:
		return d.setText(p, raw)
	case *[]string:
		return d.setList(p, raw)
	case *bool:
		if s := string(raw); s != "true" && s != "false" {
			return errType
		}
		*p = raw[0] == 't'
		return nil
	case *int64:
		return setNumber(p, raw)
	case *wire.RawValue:
		*p = slices.Clone(raw)
		return nil
	}
	panic(fmt.Sprintf("documents have no %s", field.Type())) // the types are ours
}

func (d document) setText(p *string, raw wire.RawValue) error {
	if raw[0] != '"' {
		return errType
	}
	s := wire.Text(raw)
	if len(s) > d.maxText {
		return fmt.Errorf("text is longer than %d bytes", d.maxText)
	}
	*p = s
	return nil
}

func (d document) setList(p *[]string, raw wire.RawValue) error {
	if raw[0] != '[' {
		return errType
	}
	limit := maxList
	if d.ignored != nil {
		limit *= 10 // some servers list all scopes of a whole company
	}
	elements, err := wire.ParseArray(raw, wire.Limits{Depth: maxDepth}, limit)
	if err != nil {
		return fmt.Errorf("list is longer than %d", limit)
	}
	list := make([]string, 0, len(elements))
	for _, raw := range elements {
		var item string
		switch err := d.setText(&item, raw); {
		case err == nil:
			list = append(list, item)
		case d.ignored == nil:
			return err
		}
	}
	switch {
	case len(list) == len(elements):
	case len(list) == 0:
		return errType
	default:
		*p = list
		return errPart
	}
	*p = list
	return nil
}

// setNumber takes whole numbers, also where a server writes them as 3600.0 or
// as a text of digits.
func setNumber(p *int64, raw wire.RawValue) error {
	s := string(raw)
	if raw[0] == '"' {
		s = wire.Text(raw)
		if s == "" || strings.Trim(s, "0123456789") != "" {
			return errType
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case f > math.MaxInt32 || f < math.MinInt32: // also infinite, with an error
		*p = int64(math.Copysign(math.MaxInt32, f))
	case err != nil || f != math.Trunc(f):
		return errType
	default:
		*p = int64(f)
	}
	return nil
}
