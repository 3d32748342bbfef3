package web

import (
	"mime"
	"strings"
)

// IsJSON reports whether the value of a Content-Type header says that a body is
// JSON in UTF-8: application/json with no charset, or with UTF-8 in one of the
// spellings that clients use, in any case, quoted or not.
func IsJSON(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}
