package consent

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

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A field is one field of a form.
type field struct {
	name     string
	schema   *mcp.PrimitiveSchema
	required bool
}

func newField(s *mcp.ElicitSchema, i int) *field {
	p := &s.Properties[i]
	return &field{p.Name, &p.Schema, slices.Contains(s.Required, p.Name)}
}

// maxOptions is how many options of a field are listed.
const maxOptions = 100

// describe shows what stands above the field: untrusted text, escaped.
func (t *Terminal) describe(f *field) {
	t.printf("\n")
	if f.schema.Title != "" {
		t.said(mark, f.schema.Title)
	}
	if f.schema.Description != "" {
		t.said(mark, f.schema.Description)
	}
	options := f.schema.Options()
	for i, o := range options[:min(len(options), maxOptions)] {
		t.said(fmt.Sprintf("    %d. ", i+1), o.Title)
	}
	if more := len(options) - maxOptions; more > 0 {
		t.printf("    and %d more\n", more)
	}
	if host.SecretName(f.name) {
		t.printf("  WARNING: this looks like a secret; no server should ask for one here\n")
	}
}

// hint says in brackets what fits.
func (f *field) hint() string {
	s := f.schema
	var parts []string
	switch s.Kind() {
	case mcp.FieldBoolean:
		parts = append(parts, "yes or no")
	case mcp.FieldChoice:
		parts = append(parts, "a number or name from the list")
	case mcp.FieldChoices:
		parts = append(parts, "numbers or names, with commas between")
	case mcp.FieldNumber:
		parts = append(parts, "a number")
	case mcp.FieldInteger:
		parts = append(parts, "a whole number")
	default:
		if s.Format != "" {
			parts = append(parts, claim(s.Format))
		}
	}
	if s.Default != nil {
		parts = append(parts, "Enter for "+shorten(strings.ReplaceAll(host.Indent(s.Default), "\n", " "), maxClaim))
	} else if !f.required {
		parts = append(parts, "Enter to leave it out")
	}
	if len(parts) == 0 {
		return ""
	}
	return " [" + strings.Join(parts, "; ") + "]"
}

// parse checks an answer. Its error is a sentence for the person.
func (f *field) parse(line string) (any, error) {
	switch f.schema.Kind() {
	case mcp.FieldBoolean:
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			return true, nil
		case "n", "no", "false":
			return false, nil
		}
		return nil, errors.New("please answer yes or no")
	case mcp.FieldInteger:
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, errors.New("please enter a whole number")
		}
		return n, f.within(float64(n))
	case mcp.FieldNumber:
		n, err := strconv.ParseFloat(line, 64)
		if err != nil || n != n || n-n != 0 {
			return nil, errors.New("please enter a number")
		}
		return n, f.within(n)
	case mcp.FieldChoice:
		return f.choose(line)
	case mcp.FieldChoices:
		return f.chooseSome(line)
	default:
		return line, f.text(line)
	}
}

// within checks the bounds of a number.
func (f *field) within(n float64) error {
	if low := f.schema.Minimum; low != nil && n < *low {
		return fmt.Errorf("it must be at least %v", *low)
	}
	if high := f.schema.Maximum; high != nil && n > *high {
		return fmt.Errorf("it must be at most %v", *high)
	}
	return nil
}

// choose finds one option by its number, value or title.
func (f *field) choose(line string) (string, error) {
	options := f.schema.Options()
	for _, o := range options {
		if o.Const == line {
			return o.Const, nil
		}
	}
	for _, o := range options {
		if strings.EqualFold(o.Title, line) || strings.EqualFold(o.Const, line) {
			return o.Const, nil
		}
	}
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
		return options[n-1].Const, nil
	}
	return "", errors.New("please choose from the list")
}

// chooseSome finds several options.
func (f *field) chooseSome(line string) ([]string, error) {
	var chosen []string
	for part := range strings.SplitSeq(line, ",") {
		one, err := f.choose(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(chosen, one) {
			chosen = append(chosen, one)
		}
	}
	if low := f.schema.MinItems; low != nil && int64(len(chosen)) < *low {
		return nil, fmt.Errorf("please choose at least %d", *low)
	}
	if high := f.schema.MaxItems; high != nil && int64(len(chosen)) > *high {
		return nil, fmt.Errorf("please choose at most %d", *high)
	}
	return chosen, nil
}

// text checks the length and format of a text.
func (f *field) text(line string) error {
	n := int64(utf8.RuneCountInString(line))
	if low := f.schema.MinLength; low != nil && n < *low {
		return fmt.Errorf("it must have at least %d characters", *low)
	}
	if high := f.schema.MaxLength; high != nil && n > *high {
		return fmt.Errorf("it must have at most %d characters", *high)
	}
	switch f.schema.Format {
	case mcp.FormatEmail:
		if a, err := mail.ParseAddress(line); err != nil || a.Address != line {
			return errors.New("please enter a mail address, such as ada@example.com")
		}
	case mcp.FormatURI:
		if u, err := url.Parse(line); err != nil || u.Scheme == "" {
			return errors.New("please enter a whole URI, such as https://example.com/")
		}
	case mcp.FormatDate:
		if _, err := time.Parse(time.DateOnly, line); err != nil {
			return errors.New("please enter a date as year-month-day, such as 1815-12-10")
		}
	case mcp.FormatDateTime:
		if _, err := time.Parse(time.RFC3339, line); err != nil {
			return errors.New("please enter date and time with a zone, such as 1815-12-10T09:00:00Z")
		}
	}
	return nil
}
