package schema

import (
	"bytes"
	"encoding/base64"
	"net/mail"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// format is a format of strings that is asserted, not only noted.
type format struct {
	name   string
	reason string // if a text does not have it
	valid  func(text []byte) bool
	// pattern describes a format without a name, to advertise.
	pattern string
}

// formats are those that the tag format knows; a form may have the first few.
var formats = []*format{
	newFormat("email", isEmail),
	newFormat("uri", isURI),
	newFormat("date", func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil }),
	newFormat("date-time", isTime),
	newFormat("uuid", isUUID),
	newFormat("hostname", isHostname),
	newFormat("ipv4", func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() }),
	newFormat("ipv6", func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() && a.Zone() == "" }),
}

// formFormats is the number of formats that a form may have.
const formFormats = 4

func newFormat(name string, valid func(s string) bool) *format {
	return &format{name: name, reason: "expected the format " + bounded(name), valid: func(text []byte) bool { return valid(string(text)) }}
}

// typeFormats are the formats of Go types.
var typeFormats = [...]*format{
	kindTime: {
		name: "date-time", reason: "expected a date-time such as 2006-01-02T15:04:05Z",
		valid: func(text []byte) bool { return isTime(string(text)) },
	},
	kindDuration: {
		reason: "expected a duration such as 1m30s",
		valid: func(text []byte) bool {
			_, err := time.ParseDuration(string(text))
			return err == nil
		},
		// What time.ParseDuration takes, but for overflow:
		pattern: `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`,
	},
	kindBytes: {reason: "expected base64 with padding", valid: isBase64},
	kindOwn:   nil,
}

// commonFormats are the formats of the library that are used most.
var commonFormats = sync.OnceValue(func() map[string]*format {
	m := map[string]*format{}
	for _, name := range []string{"date", "date-time", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"} {
		m[name] = compileFormat(name)
	}
	return m
})

// libraryFormat returns the format that the library knows by that name, or nil:
// then it is a mere annotation.
func libraryFormat(name string) *format {
	if f, ok := commonFormats()[name]; ok {
		return f
	}
	return compileFormat(name)
}

func compileFormat(name string) *format {
	c := jsonschema.NewCompiler()
	c.UseLoader(emptyLoader{})
	c.AssertFormat()
	if err := c.AddResource(schemaURL, map[string]any{"format": name}); err != nil {
		return nil
	}
	s, err := c.Compile(schemaURL)
	if err != nil || s.Format == nil {
		return nil
	}
	return newFormat(name, func(text string) bool { return s.Format.Validate(text) == nil })
}

// isTime says whether s is a date-time of RFC 3339. time.Parse alone also takes
// 1:02 for 01:02, a comma for the point, and any offset.
func isTime(s string) bool {
	if _, err := time.Parse(time.RFC3339, s); err != nil || s[len("2006-01-02T1")] == ':' || strings.Contains(s, ",") {
		return false
	}
	if s[len(s)-1] == 'Z' {
		return true
	}
	offset := s[len(s)-len("07:00"):]
	return offset[:2] <= "23" && offset[3:] <= "59"
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs()
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash && s[i] != '-' || !dash && !isHex(s[i]) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isAlphanumeric(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isHostname follows RFC 1123.
func isHostname(s string) bool {
	if s = strings.TrimSuffix(s, "."); len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, func(c rune) bool { return !isAlphanumeric(c) && c != '-' }) {
			return false
		}
	}
	return true
}

// isBase64 says whether s is standard base64 with padding, whose unused bits are
// zero.
func isBase64(s []byte) bool {
	if len(s)%4 != 0 {
		return false
	}
	for _, c := range bytes.TrimRight(s, "=") {
		if !isAlphanumeric(rune(c)) && c != '+' && c != '/' {
			return false
		}
	}
	var last [3]byte
	_, err := base64.StdEncoding.Strict().Decode(last[:], s[max(len(s)-4, 0):])
	return err == nil
}
