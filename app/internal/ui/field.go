package ui

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// Parse reads what a person typed into the field and returns it as JSON. The empty
// text is the default, or nil for a field that may be left out. The error is a
// sentence without its end that says what fits.
func (f *Field) Parse(text string) (mcp.RawValue, error) {
	text = strings.TrimSpace(text)
	switch {
	case text != "":
	case f.Default != nil:
		return f.Default, nil
	case f.Required:
		return nil, errRequired
	default:
		return nil, nil
	}
	value, err := f.read(text)
	if err != nil {
		return nil, err
	}
	return encode(value)
}

// read reads a text that is not empty.
func (f *Field) read(text string) (any, error) {
	switch f.Kind {
	case KindBoolean:
		return yesOrNo(text)
	case KindInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errInteger
		}
		return n, f.within(float64(n))
	case KindNumber:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n-n != 0 { // infinite, or no number
			return nil, errNumber
		}
		return n, f.within(n)
	case KindChoice:
		return f.choose(text)
	case KindChoices:
		return f.chooseSome(text)
	case KindJSON:
		switch {
		case strictjson.Valid([]byte(text)) == nil:
			return mcp.RawValue(text), nil
		case strings.ContainsAny(text[:1]+text[len(text)-1:], `{}[]",:`): // a part of one, such as a line
			return nil, errJSON
		}
		return text, nil // without quotation marks
	case KindText, KindEmail, KindURI, KindDate, KindDateTime:
	}
	return text, f.text(text)
}

// What is wrong with a value.
var (
	errInteger = errors.New("please enter a whole number")
	errNumber  = errors.New("please enter a number")
	errYesNo   = errors.New("please answer yes or no")
	errChoice  = errors.New("please choose from the list")
	errText    = errors.New("please enter a text")
	errJSON    = errors.New(`please enter a JSON value on one line, such as {"a": 1} or "text"`)
)

func yesOrNo(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "y", "yes", "true":
		return true, nil
	case "n", "no", "false":
		return false, nil
	}
	return false, errYesNo
}

// Check says what is wrong with a value, given as JSON.
func (f *Field) Check(value mcp.RawValue) error {
	switch f.Kind {
	case KindBoolean:
		var b bool
		return decode(value, &b, errYesNo)
	case KindInteger:
		var n int64
		if err := decode(value, &n, errInteger); err != nil {
			return err
		}
		return f.within(float64(n))
	case KindNumber:
		var n float64
		if err := decode(value, &n, errNumber); err != nil {
			return err
		}
		return f.within(n)
	case KindChoices:
		var chosen []string
		if err := decode(value, &chosen, errChoice); err != nil {
			return err
		}
		for _, one := range chosen {
			if !f.offers(one) {
				return errChoice
			}
		}
		return f.enough(len(chosen))
	case KindJSON:
		if strictjson.Valid(value) != nil {
			return errJSON
		}
		return nil
	case KindChoice, KindText, KindEmail, KindURI, KindDate, KindDateTime:
	}
	var text string
	if err := decode(value, &text, errText); err != nil {
		return err
	}
	if f.Kind == KindChoice {
		if !f.offers(text) {
			return errChoice
		}
		return nil
	}
	return f.text(text)
}

// decode reads a value, or returns the error otherwise.
func decode(value mcp.RawValue, v any, otherwise error) error {
	if strictjson.Unmarshal(value, v) != nil {
		return otherwise
	}
	return nil
}

// within checks the bounds of a number.
func (f *Field) within(n float64) error {
	switch {
	case f.Min != nil && n < *f.Min:
		return fmt.Errorf("it must be at least %v", *f.Min)
	case f.Max != nil && n > *f.Max:
		return fmt.Errorf("it must be at most %v", *f.Max)
	}
	return nil
}

// offers reports whether a value is one of the options.
func (f *Field) offers(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}

// choose finds one option by its value, title or number, in this order.
func (f *Field) choose(text string) (string, error) {
	if f.offers(text) {
		return text, nil
	}
	for _, o := range f.Options {
		if strings.EqualFold(o.Title, text) || strings.EqualFold(o.Value, text) {
			return o.Value, nil
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.Options) {
		return f.Options[n-1].Value, nil
	}
	return "", errChoice
}

// chooseSome finds several options.
func (f *Field) chooseSome(text string) ([]string, error) {
	var chosen []string
	for part := range strings.SplitSeq(text, ",") {
		one, err := f.choose(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(chosen, one) {
			chosen = append(chosen, one)
		}
	}
	return chosen, f.enough(len(chosen))
}

// enough checks how many options are chosen.
func (f *Field) enough(n int) error {
	switch {
	case f.MinItems != nil && int64(n) < *f.MinItems:
		return fmt.Errorf("please choose at least %d", *f.MinItems)
	case f.MaxItems != nil && int64(n) > *f.MaxItems:
		return fmt.Errorf("please choose at most %d", *f.MaxItems)
	}
	return nil
}

// text checks the length and format of a text.
func (f *Field) text(s string) error {
	n := int64(utf8.RuneCountInString(s))
	switch {
	case f.MinLength != nil && n < *f.MinLength:
		return fmt.Errorf("it must have at least %d characters", *f.MinLength)
	case f.MaxLength != nil && n > *f.MaxLength:
		return fmt.Errorf("it must have at most %d characters", *f.MaxLength)
	}
	switch f.Kind {
	case KindEmail:
		if a, err := mail.ParseAddress(s); err != nil || a.Address != s {
			return errors.New("please enter a mail address, such as ada@example.com")
		}
	case KindURI:
		if u, err := url.Parse(s); err != nil || u.Scheme == "" {
			return errors.New("please enter a whole URI, such as https://example.com/")
		}
	case KindDate:
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return errors.New("please enter a date as year-month-day, such as 1815-12-10")
		}
	case KindDateTime:
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return errors.New("please enter date and time with a zone, such as 1815-12-10T09:00:00Z")
		}
	case KindText, KindNumber, KindInteger, KindBoolean, KindChoice, KindChoices, KindJSON:
	}
	return nil
}
