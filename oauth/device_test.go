package oauth_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
)

// Proves: what RFC 8628, section 3.2, wants of an answer. Attack: an answer that a terminal
// would obey, or that keeps a client waiting.
func TestParseDeviceAuthorization(t *testing.T) {
	t.Parallel()
	answer := func(changes ...string) string {
		members := map[string]string{
			"device_code": `"dc"`, "user_code": `"WDJB-MJHT"`, "verification_uri": `"https://as.example/device"`, "expires_in": `1800`,
		}
		for i := 0; i+1 < len(changes); i += 2 {
			members[changes[i]] = changes[i+1]
		}
		var parts []string
		for name, value := range members {
			if value != "" {
				parts = append(parts, `"`+name+`":`+value)
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	good := func(change func(*oauth.DeviceAuthorization)) *oauth.DeviceAuthorization {
		a := &oauth.DeviceAuthorization{
			DeviceCode: "dc", UserCode: "WDJB-MJHT", VerificationURI: "https://as.example/device", ExpiresIn: 1800, Interval: 5,
		}
		if change != nil {
			change(a)
		}
		return a
	}
	for _, c := range []struct {
		name, data string
		want       *oauth.DeviceAuthorization
	}{
		{"least", answer(), good(nil)},
		{"interval", answer("interval", "7"), good(func(a *oauth.DeviceAuthorization) { a.Interval = 7 })},
		{"interval of 0", answer("interval", "0"), good(nil)},
		{"negative interval", answer("interval", "-7"), good(nil)},
		{"null interval", answer("interval", "null"), good(nil)},
		{"a complete URI", answer("verification_uri_complete", `"https://as.example/device?user_code=WDJB-MJHT"`), good(func(a *oauth.DeviceAuthorization) {
			a.VerificationURIComplete = "https://as.example/device?user_code=WDJB-MJHT"
		})},
		{"a complete URI that is http", answer("verification_uri_complete", `"http://as.example/device?user_code=WDJB-MJHT"`), good(nil)},
		{"a complete URI with a control", answer("verification_uri_complete", `"https://as.example/\u001b[2J"`), good(nil)},
		{"a number as text", answer("expires_in", `"1800"`), good(nil)},
		{"verification_url, as Google writes it", answer("verification_uri", "", "verification_url", `"https://as.example/device"`), good(nil)},
		{"both", answer("verification_url", `"https://evil.example/device"`), good(nil)},
		{"interval of a day", answer("interval", "86400"), nil},
		{"interval that is none", answer("interval", `"soon"`), nil},
		{"no device code", answer("device_code", ""), nil},
		{"device code with a line break", answer("device_code", `"a\nb"`), nil},
		{"no user code", answer("user_code", ""), nil},
		{"empty user code", answer("user_code", `""`), nil},
		{"user code with an escape", answer("user_code", `"WD\u001b[31mJB"`), nil},
		{"user code that turns the direction", answer("user_code", `"WD\u202eJB"`), nil},
		{"user code in another script", answer("user_code", `"ШDJB"`), nil},
		{"user code of two lines", answer("user_code", `"WDJB\nand now run this"`), nil},
		{"long user code", answer("user_code", `"`+strings.Repeat("W", 65)+`"`), nil},
		{"user code of another type", answer("user_code", `12345678`), nil},
		{"no URI", answer("verification_uri", ""), nil},
		{"URI that is http", answer("verification_uri", `"http://as.example/device"`), nil},
		{"URI that runs code", answer("verification_uri", `"javascript:alert(1)"`), nil},
		{"URI of a user", answer("verification_uri", `"https://as.example@evil.example/"`), nil},
		{"URI with a control", answer("verification_uri", `"https://as.example/\u0007"`), nil},
		{"no expires_in", answer("expires_in", ""), nil},
		{"expires_in of 0", answer("expires_in", "0"), nil},
		{"an error", `{"error":"invalid_client"}`, nil},
		{"no JSON", `<html>`, nil},
	} {
		got, err := oauth.ParseDeviceAuthorization([]byte(c.data))
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}
