package fetch

import (
	"bytes"
	"cmp"
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// A decoded text is what a body says.
type decoded struct {
	text     string
	encoding string // by its name in HTML, such as windows-1251
	guessed  bool   // the page does not declare the encoding, or another one
}

// decode makes a text of a body. The encoding is the one that the byte order mark, the site or the
// page itself declares. If a page declares none, or one that its bytes are not in, it is UTF-8 if the bytes
// are, and is guessed otherwise. Bytes that do not fit the encoding become U+FFFD.
func decode(body []byte, contentType string, isHTML bool) decoded {
	head := body[:min(len(body), 1024)]
	if _, name, marked := charset.DetermineEncoding(head, ""); marked {
		text, _ := decodeAs(body, name)
		return decoded{text: text, encoding: name}
	}
	declared := declaredEncoding(body, contentType, isHTML)
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
	case (declared == "" || declared == "utf-8") && nearlyUTF8(body, declared != ""):
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

// maxHead is how many bytes of a page are searched for a meta tag with its encoding. Browsers read the first
// 1,024, and start again if they find one further down.
const maxHead = 64 << 10

// declaredEncoding returns the name of the encoding that the site, or else the page itself, declares, or "".
// In HTML a meta tag takes precedence over an XML declaration. In XML, including XHTML, the declaration does.
func declaredEncoding(body []byte, contentType string, isHTML bool) string {
	media, params, _ := mime.ParseMediaType(contentType) // one that cannot be read says nothing
	if encoding, name := charset.Lookup(params["charset"]); encoding != nil {
		return name
	}
	inXML, inMeta := "", ""
	if m := xmlEncoding.FindSubmatch(body[:min(len(body), 1024)]); m != nil {
		inXML = inPage(string(m[1]))
	}
	if isHTML {
		inMeta = metaEncoding(body[:min(len(body), maxHead)])
	}
	if strings.HasSuffix(media, "xml") {
		return cmp.Or(inXML, inMeta)
	}
	return cmp.Or(inMeta, inXML)
}

// inPage returns the name of an encoding that a page declares, or "" if it is unknown, or is UTF-16, in which
// nobody could have read the declaration.
func inPage(label string) string {
	encoding, name := charset.Lookup(label)
	if encoding == nil || strings.HasPrefix(name, "utf-16") {
		return ""
	}
	return name
}

// charsetParam matches the encoding in the content of a meta tag for Content-Type.
var charsetParam = regexp.MustCompile(`(?i)charset\s*=\s*["']?([^\s"';]+)`)

// metaEncoding returns the name of the encoding that a meta tag in HTML declares, or "".
func metaEncoding(page []byte) string {
	z := html.NewTokenizer(bytes.NewReader(page))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		t := z.Token()
		if t.DataAtom != atom.Meta {
			continue
		}
		attributes := make(map[string]string)
		for _, a := range t.Attr {
			attributes[a.Key] = a.Val
		}
		label := attributes["charset"]
		if m := charsetParam.FindStringSubmatch(attributes["content"]); label == "" && m != nil && strings.EqualFold(attributes["http-equiv"], "content-type") {
			label = m[1]
		}
		if name := inPage(label); name != "" {
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

// maxFaults is how many faults there may be in a body for each good character, if UTF-8 is declared. Texts of
// other encodings, which have good characters by chance, have more than ten.
const maxFaults = 4

// nearlyUTF8 reports whether a body is UTF-8 with few faults: one that is cut in the middle of a
// character, or has no more faults than good characters of several bytes, or if UTF-8 is declared, no
// more than maxFaults for each. A wrong byte is one fault with the continuation bytes behind it, such as
// a character without its last byte. Characters of two bytes that follow a fault without ASCII in between
// are not good: texts in Shift-JIS are full of them.
func nearlyUTF8(body []byte, declared bool) bool {
	good, faults, clean := 0, 0, true
	for len(body) > 0 {
		r, size := utf8.DecodeRune(body)
		switch {
		case r == utf8.RuneError && size == 1 && !utf8.FullRune(body): // the end is cut
			size = len(body)
		case r == utf8.RuneError && size == 1:
			faults, clean = faults+1, false
			for size < len(body) && !utf8.RuneStart(body[size]) {
				size++
			}
		case size == 1:
			clean = true
		case size > 2 || clean:
			good++
		}
		body = body[size:]
	}
	if declared {
		return faults <= maxFaults*good
	}
	return faults <= good
}

func oneByte(name string) bool {
	return strings.HasPrefix(name, "windows-") || strings.HasPrefix(name, "iso-8859-") || strings.HasPrefix(name, "koi8-") ||
		slices.Contains([]string{"ibm866", "macintosh", "x-mac-cyrillic"}, name)
}
