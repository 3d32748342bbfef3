package fetch

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A language is a guess: an encoding, with the characters that are the most frequent in its texts.
// Letters are lower case: in another encoding of the same letters the cases are swapped. The letters of
// an alphabet count only next to others of it: one between spaces may be an accented letter that is a
// word in Latin-1, such as "à", "è" and "é".
type language struct {
	encoding, frequent string
	alphabet           bool
}

var languages = []language{
	{"shift_jis", japanese, false},
	{"euc-jp", japanese, false},
	{"gb18030", "的一是不了在有人我他这中大来上个国和说们为子时道地出要以会可也你对生能而那得于着下自之年过发后作里用家行学日本网新文版页信息", false},
	{"big5", "的一是不了在有人我他這中大來上個國和說們為子時道地出要以會可也你對生能而那得於著下自之年過發後作裡用家行學日本網新文版頁資訊", false},
	{"euc-kr", "이다는가의을를에고하은지기로사한도리자어서그나인대아시해수있일정보제부들으우구만전유과여게원국안녕세요니", false},
	{"windows-1251", russian, true},
	{"koi8-r", russian, true},
	{"windows-1253", "αοιετσνηυρκπλμςάίόέή", true},
	{"windows-1255", "יוהלאתרבשמנ", true},
	{"windows-1256", "اليمنرتوبعدةفسه", true},
	{"windows-874", "านรอกเงมย่้ั", true},
}

const (
	japanese = "のにはをたがでてとしれさいるなもかあこすうくまけせつりらよんそきおやみどだ、。ーンスルトリアイラクシドタレコフマカサッ日本一人大年"
	russian  = "оеаинтсрвлкмдпуяыьгз"
)

// fallbackEncoding is the encoding that browsers use for pages that declare none.
const fallbackEncoding = "windows-1252"

const (
	maxSample = 16 << 10 // bytes of a page that are looked at for each encoding
	minScore  = 0.25     // the share of frequent characters among all that are not ASCII
	minGood   = 3        // and how many there must be
)

// guessEncoding guesses the encoding of a body that is not UTF-8, by how many of the characters that it would
// have are frequent in a language of the encoding.
func guessEncoding(body []byte) string {
	sample := interesting(body)
	best, most := fallbackEncoding, minScore
	for _, l := range languages {
		text, _ := decodeAs(sample, l.encoding)
		if score := frequency(text, l); score > most {
			best, most = l.encoding, score
		}
	}
	return best
}

// interesting returns lines of a body with bytes that are not ASCII, since a page can begin with long
// scripts.
func interesting(body []byte) []byte {
	var sample []byte
	for line := range bytes.Lines(body) {
		if at := bytes.IndexFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }); at >= 0 {
			line = line[max(0, at-1):] // the byte before it tells whether a word has both
			sample = append(sample, line[:min(len(line), maxSample-len(sample))]...)
		}
		if len(sample) >= maxSample {
			break
		}
	}
	return sample
}

// frequency returns the share of a language's frequent characters among those of a text that are not ASCII,
// or 0 if there are fewer than minGood. Characters that do not fit the encoding, or are next to an ASCII
// letter, as accented letters are, count against it.
func frequency(text string, l language) float64 {
	all, good := 0, 0
	runes := append([]rune(text), ' ')
	before := ' '
	for i, r := range runes[:len(runes)-1] {
		switch {
		case r < utf8.RuneSelf:
			if isASCIILetter(r) && isLetter(before) {
				good -= 2
			}
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Co, r):
			all++
			good -= 4
		default:
			all++
			if strings.ContainsRune(l.frequent, r) && (!l.alphabet || isLetter(before) || isLetter(runes[i+1])) {
				good++
			}
			if isASCIILetter(before) && isLetter(r) {
				good -= 2
			}
		}
		before = r
	}
	if good < minGood {
		return 0
	}
	return float64(good) / float64(all)
}

func isASCIILetter(r rune) bool { return r < utf8.RuneSelf && unicode.IsLetter(r) }

// isLetter reports whether a character is a letter that is not ASCII, of a script whose words stand
// apart from those of others.
func isLetter(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.L, unicode.M) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}
