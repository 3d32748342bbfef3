package schema

import (
	"net/mail"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// format is a format of strings that is checked, not only noted.
type format struct {
	name  string
	form  bool // allowed in forms
	valid func(s string) bool
}

// formats are those that the tag format knows.
var formats = []format{
	{"email", true, isEmail},
	{"uri", true, isURI},
	{"date", true, func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil }},
	{"date-time", true, isTime},
	{"uuid", false, isUUID},
	{"hostname", false, isHostname},
	{"ipv4", false, func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() }},
	{"ipv6", false, func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() && a.Zone() == "" }},
}

func formatNamed(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
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

// isBase64 says whether s is standard base64 with padding.
func isBase64(s []byte) bool {
	if len(s)%4 != 0 {
		return false
	}
	for range 2 {
		if len(s) > 0 && s[len(s)-1] == '=' {
			s = s[:len(s)-1]
		}
	}
	for _, c := range s {
		if !isAlphanumeric(c) && c != '+' && c != '/' {
			return false
		}
	}
	return true
}
