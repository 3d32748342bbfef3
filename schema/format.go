package schema

import (
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
}

// formats are those that the tag format knows; a form may have the first few.
var formats = []format{
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

func newFormat(name string, valid func(s string) bool) format {
	return format{name, "expected the format " + bounded(name), func(text []byte) bool { return valid(string(text)) }}
}

// The formats of Go types.
var (
	timeFormat = &format{"date-time", "expected a date-time such as 2006-01-02T15:04:05Z", func(text []byte) bool { return isTime(string(text)) }}

	durationFormat = &format{"", "expected a duration such as 1m30s", func(text []byte) bool {
		_, err := time.ParseDuration(string(text))
		return err == nil
	}}

	base64Format = &format{"", "expected base64 with padding", isBase64}
)

func formatNamed(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
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
	f := newFormat(name, func(text string) bool { return s.Format.Validate(text) == nil })
	return &f
}

// durationPattern describes what time.ParseDuration takes, but for overflow.
const durationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

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
		c := s[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHex(c) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isAlphanumeric(c byte) bool {
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
		for i := range len(label) {
			c := label[i]
			if !isAlphanumeric(c) && c != '-' {
				return false
			}
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
	digits := s
	for range 2 {
		if len(digits) > 0 && digits[len(digits)-1] == '=' {
			digits = digits[:len(digits)-1]
		}
	}
	for _, c := range digits {
		if !isAlphanumeric(c) && c != '+' && c != '/' {
			return false
		}
	}
	if len(s) == 0 {
		return true
	}
	var last [3]byte
	_, err := base64.StdEncoding.Strict().Decode(last[:], s[len(s)-4:])
	return err == nil
}
