package oauth

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// A DeviceAuthorization is the answer of a device authorization endpoint (RFC
// 8628, section 3.2).
type DeviceAuthorization struct {
	DeviceCode string `json:"device_code"`
	// UserCode is what the person enters at VerificationURI.
	UserCode        string `json:"user_code"`
	VerificationURI string `json:"verification_uri"`
	// VerificationURIComplete has the user code in it; it may be empty.
	VerificationURIComplete string `json:"verification_uri_complete,omitzero"`
	// ExpiresIn is the life of both codes in seconds, Interval how many seconds lie
	// between two token requests at least.
	ExpiresIn int64 `json:"expires_in"`
	Interval  int64 `json:"interval,omitzero"`
	// Ignored names the members that could not be read as they were.
	Ignored []string `json:"-"`
}

// defaultInterval is that of RFC 8628, section 3.2, in seconds: MUST.
const defaultInterval = 5

// maxUserCode is the length of the longest user code in bytes.
const maxUserCode = 64

// ParseDeviceAuthorization reads an answer, bounded like [ParseResourceMetadata].
// What a person is shown is refused unless it can be shown as it is: a user code
// has at most 64 characters, all of which print and none of which is beyond ASCII;
// the URIs are as [CheckAuthorizationURL] wants them, and are returned as it writes
// them. A verification_uri_complete that is not so is absent.
//
// An interval that is absent, 0 or less is 5 seconds (RFC 8628, section 3.2: MUST);
// one as long as the life of the code is refused. A verification_url, as Google writes it, is taken
// for a verification_uri that is absent. The errors show no values.
func ParseDeviceAuthorization(data []byte) (*DeviceAuthorization, error) {
	var said struct {
		DeviceAuthorization
		VerificationURL string `json:"verification_url"`
	}
	a := &said.DeviceAuthorization
	d := document{
		maxText: maxAuthorizationURL,
		needed:  []string{"device_code", "user_code", "verification_uri", "expires_in", "interval"},
		ignored: &a.Ignored,
	}
	if err := d.read(data, &said); err != nil {
		return nil, fmt.Errorf("device authorization response: %w", err)
	}
	a.VerificationURI = cmp.Or(a.VerificationURI, said.VerificationURL)
	uri, err := CheckAuthorizationURL(a.VerificationURI)
	if a.Interval <= 0 {
		a.Interval = defaultInterval
	}
	switch {
	case a.DeviceCode == "" || !isToken(a.DeviceCode):
		err = errors.New("no device_code, or one with characters that are not allowed")
	case !isUserCode(a.UserCode):
		err = errors.New("no user_code that can be shown")
	case err != nil:
		err = fmt.Errorf("verification_uri: %w", err)
	case a.ExpiresIn <= 0:
		err = errors.New("no expires_in")
	case a.Interval >= a.ExpiresIn:
		err = errors.New("interval is not shorter than expires_in")
	}
	if err != nil {
		return nil, fmt.Errorf("device authorization response: %w", err)
	}
	a.VerificationURI = uri.String()
	if complete, err := CheckAuthorizationURL(a.VerificationURIComplete); err == nil {
		a.VerificationURIComplete = complete.String()
	} else {
		a.VerificationURIComplete = ""
	}
	return a, nil
}

// isUserCode reports whether a user code can be shown as it is.
func isUserCode(code string) bool {
	return code != "" && len(code) <= maxUserCode && strings.TrimSpace(code) == code &&
		!strings.ContainsFunc(code, func(c rune) bool { return c > unicode.MaxASCII || !unicode.IsPrint(c) })
}
