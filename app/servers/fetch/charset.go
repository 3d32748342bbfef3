package fetch

import (
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// decode makes a text of a body. The encoding is that which its byte order mark, the
// site, or in HTML the page itself says; otherwise it is UTF-8, and for HTML that is
// not, Windows-1252, as in browsers. What does not fit the encoding becomes U+FFFD.
func decode(body []byte, contentType string, isHTML bool) string {
	encoding, name, marked := charset.DetermineEncoding(body[:min(len(body), 1024)], "")
	if !marked {
		_, params, _ := mime.ParseMediaType(contentType) // one that cannot be read says nothing
		if declared, label := charset.Lookup(params["charset"]); declared != nil {
			encoding, name = declared, label
		} else if !isHTML || utf8.Valid(body) {
			name = "utf-8"
		}
	}
	if name != "utf-8" && name != "replacement" {
		if text, err := encoding.NewDecoder().Bytes(body); err == nil {
			return string(text)
		}
	}
	text := strings.TrimPrefix(string(body), "\ufeff")
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text)) // one U+FFFD for each byte that is none
}
