package fetch

import (
	"bytes"
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// A decoded text is what a body says.
type decoded struct {
	text     string
	encoding string // by its name in HTML, such as windows-1251
	guessed  bool   // the page does not declare the encoding, or another one
}

// decode makes a text of a body. The encoding is that of the byte order mark, or that which the site, or the
// page itself, declares. If a page declares none, or one that its bytes are not in, it is UTF-8 if the bytes
// are, and is guessed otherwise. Bytes that do not fit the encoding become U+FFFD.
func decode(body []byte, contentType string, isHTML bool) decoded {
	head := body[:min(len(body), 1024)]
	if _, name, marked := charset.DetermineEncoding(head, ""); marked {
		text, _ := decodeAs(body, name)
		return decoded{text: text, encoding: name}
	}
	declared := declaredEncoding(head, contentType, isHTML)
	if declared == "" || !strings.HasPrefix(declared, "utf-16") {
		if name := wide(head); name != "" {
			text, _ := decodeAs(body, name)
			return decoded{text: text, encoding: name, guessed: true}
		}
	}
	valid := utf8.Valid(body)
	ascii := !bytes.ContainsFunc(body, func(r rune) bool { return r >= utf8.RuneSelf })
	switch {
	case declared == "replacement": // it is never decoded, as in browsers
		declared = "utf-8"
	case (declared == "" || declared == "utf-8") && nearlyUTF8(body):
		declared = "utf-8"
	case declared == "" || declared == "utf-8":
		guess := guessEncoding(body)
		text, _ := decodeAs(body, guess)
		return decoded{text: text, encoding: guess, guessed: true}
	}
	text, whole := decodeAs(body, declared)
	// Bytes of single-byte encodings are hardly ever UTF-8 by chance, those of others may be.
	if valid && !ascii && declared != "utf-8" && (!whole || oneByte(declared)) {
		return decoded{text: string(body), encoding: "utf-8", guessed: true}
	}
	return decoded{text: text, encoding: declared}
}

// decodeAs decodes a body, and reports whether all of its bytes fit the encoding.
func decodeAs(body []byte, name string) (text string, whole bool) {
	if encoding, _ := charset.Lookup(name); encoding != nil && name != "utf-8" {
		if text, err := encoding.NewDecoder().Bytes(body); err == nil {
			return string(text), !bytes.ContainsRune(text, utf8.RuneError)
		}
	}
	text = strings.TrimPrefix(string(body), "\ufeff")
	if utf8.ValidString(text) {
		return text, true
	}
	return string([]rune(text)), false // one U+FFFD for each byte that is none
}

// xmlEncoding matches the declaration of an XML document.
var xmlEncoding = regexp.MustCompile(`^\s*<\?xml[^>]*\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)

// declaredEncoding returns the name of the encoding that the site, or else the page itself, declares, or "".
func declaredEncoding(head []byte, contentType string, isHTML bool) string {
	_, params, _ := mime.ParseMediaType(contentType) // one that cannot be read says nothing
	if encoding, name := charset.Lookup(params["charset"]); encoding != nil {
		return name
	}
	if m := xmlEncoding.FindSubmatch(head); m != nil {
		if encoding, name := charset.Lookup(string(m[1])); encoding != nil && !strings.HasPrefix(name, "utf-16") {
			return name
		}
	}
	if isHTML && bytes.Contains(bytes.ToLower(head), []byte("charset")) {
		if _, name, _ := charset.DetermineEncoding(head, ""); name != "" {
			return name
		}
	}
	return ""
}

// wide returns the name of the encoding of UTF-16 without a byte order mark, in which every second byte of
// tags, digits and spaces is 0, or "".
func wide(head []byte) string {
	var zeros [2]int
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	switch quarter := max(2, len(head)/8); {
	case zeros[1] >= quarter && zeros[0] == 0:
		return "utf-16le"
	case zeros[0] >= quarter && zeros[1] == 0:
		return "utf-16be"
	}
	return ""
}

// nearlyUTF8 reports whether a body is UTF-8 with few faults: one that is cut in the middle of a character,
// or has more characters of several bytes than wrong bytes.
func nearlyUTF8(body []byte) bool {
	long, wrong := 0, 0
	for len(body) > 0 {
		r, size := utf8.DecodeRune(body)
		switch {
		case r == utf8.RuneError && size == 1:
			if !utf8.FullRune(body) {
				return long >= wrong
			}
			wrong++
		case size > 1:
			long++
		}
		body = body[size:]
	}
	return long > wrong || wrong == 0 // 0 of both are ASCII
}

func oneByte(name string) bool {
	return strings.HasPrefix(name, "windows-") || strings.HasPrefix(name, "iso-8859-") || strings.HasPrefix(name, "koi8-") ||
		slices.Contains([]string{"ibm866", "macintosh", "x-mac-cyrillic"}, name)
}
