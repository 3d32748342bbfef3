package schemadiff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// ErrNoJSON says that a text is not JSON.
var ErrNoJSON = errors.New("it is not JSON")

// decode reads a JSON text, with numbers as they were written.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoJSON, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows the value", ErrNoJSON)
	}
	return v, nil
}

// Canonical returns the one text of a JSON value: members in the order of their names, no white
// space, and numbers in their shortest decimal form.
func Canonical(raw []byte) (string, error) {
	v, err := decode(raw)
	if err != nil {
		return "", err
	}
	return text(v), nil
}

// text is the canonical text of a decoded value.
func text(v any) string {
	var b strings.Builder
	writeText(&b, v)
	return b.String()
}

func writeText(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case json.Number:
		b.WriteString(number(v))
	case string:
		b.WriteString(quoted(v))
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, item)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quoted(name) + ":")
			writeText(b, v[name])
		}
		b.WriteByte('}')
	}
}

// quoted is a text as JSON.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxExponent bounds the numbers that are computed with.
const maxExponent = 300

// rational is the exact value of a number, or nil if it is not worth computing.
func rational(v any) *big.Rat {
	n, ok := v.(json.Number)
	if !ok || len(n) > maxExponent {
		return nil
	}
	if i := strings.IndexAny(n.String(), "eE"); i >= 0 {
		e, err := strconv.Atoi(n.String()[i+1:])
		if err != nil || e > maxExponent || e < -maxExponent {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return nil
	}
	return r
}

// number is the shortest decimal form of a number.
func number(n json.Number) string {
	r := rational(n)
	if r == nil {
		return strings.ToLower(n.String())
	}
	return decimal(r)
}

func decimal(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

// count is a number of items or characters.
func count(v any) (int, bool) {
	r := rational(v)
	if r == nil || !r.IsInt() || !r.Num().IsInt64() || r.Sign() < 0 {
		return 0, false
	}
	return int(r.Num().Int64()), true
}
