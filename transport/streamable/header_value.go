package streamable

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

// The markers around a header value that is base64 of the value that is meant
// (spec 2026-07-28, basic/transports/streamable-http, Value Encoding).
const (
	sentinelStart = "=?base64?"
	sentinelEnd   = "?="
)

// What can be wrong with the value of a header.
var (
	errHeaderByte   = errors.New("it has characters that no header may have; encode it as =?base64?...?=")
	errHeaderBase64 = errors.New("what stands between =?base64? and ?= is not the padded base64 of UTF-8 text")
)

// encodeHeader gives a value the form in which a header carries it: as it is,
// or as base64 between the markers if a header cannot hold it unchanged, or if
// it looks as if it were encoded already.
func encodeHeader(s string) string {
	marked := strings.HasPrefix(s, sentinelStart) && strings.HasSuffix(s, sentinelEnd)
	if plain(s) && s == strings.Trim(s, " \t") && !marked {
		return s
	}
	return sentinelStart + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelEnd
}

// decodeHeader returns the value that a header stands for.
func decodeHeader(s string) (string, error) {
	if !plain(s) {
		return "", errHeaderByte
	}
	inner, ok := strings.CutPrefix(s, sentinelStart)
	if !ok {
		return s, nil
	}
	if inner, ok = strings.CutSuffix(inner, sentinelEnd); !ok {
		return s, nil
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil || !utf8.Valid(text) {
		return "", errHeaderBase64
	}
	return string(text), nil
}

// plain reports whether s has only what header values may have: visible ASCII,
// space and tab.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 || c > 0x7e) && c != '\t' {
			return false
		}
	}
	return true
}
