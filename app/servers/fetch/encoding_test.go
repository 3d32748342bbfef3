package fetch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"

	"github.com/parley-mcp/parley/app/servers/fetch"
)

// texts are sentences in languages whose pages have encodings of their own.
var texts = map[string]string{
	"Russian":     "Первые мосты строили из дерева, и они быстро разрушались. Каменный мост стоит уже много веков, а по новому мосту ходят поезда.",
	"Chinese":     "桥是一种用来跨越障碍的大型构造物。这座桥是我们国家最长的桥，人们可以在上面走路，也可以开车。",
	"traditional": "橋是一種用來跨越障礙的大型構造物。這座橋是我們國家最長的橋，人們可以在上面走路，也可以開車。",
	"Japanese":    "橋は川や道路の上にかけられた構造物です。この橋は百年前に作られ、今でも多くの人が渡っています。トラックも通ります。",
	"Korean":      "다리는 강이나 길을 건너기 위하여 만든 시설이다. 이 다리는 백 년 전에 지어졌고 지금도 많은 사람들이 건너고 있다.",
	"Greek":       "Η γέφυρα είναι μια κατασκευή που ενώνει δύο σημεία. Οι πρώτες γέφυρες ήταν από ξύλο και δεν άντεχαν για πολλά χρόνια.",
	"Hebrew":      "הגשר הוא מבנה שמאפשר לעבור מעל נהר או כביש. הגשרים הראשונים היו עשויים מעץ ולא החזיקו מעמד לאורך זמן.",
	"Arabic":      "الجسر هو منشأ يستخدم للعبور من مكان إلى آخر فوق النهر أو الطريق. كانت الجسور الأولى من الخشب ولم تبق طويلا.",
	"Thai":        "สะพานเป็นสิ่งก่อสร้างที่ใช้ข้ามแม่น้ำหรือถนน สะพานแรกสร้างด้วยไม้และอยู่ได้ไม่นาน",
	"French":      "Les premiers ponts étaient en bois : à l’époque, on les détruisait après la guerre. « Où est passé le pont ? » Là-bas, déjà très âgé.",
	"German":      "Über die Brücke führt ein Weg für Fußgänger; größere Wägen müssen außen herum. Schön ist die Aussicht, öfter auch müßig.",
	"English":     "The bridge — “the oldest of all”, they say — isn’t open. It’s closed since 1990 – or so.",
}

// Pages that declare no encoding, or another one than they have, are read, and the answer says that it was
// guessed. Report: modelcontextprotocol/servers#3880.
func TestEncodings(t *testing.T) {
	for _, test := range []struct{ language, encoding, html, header string }{
		{language: "Russian", encoding: "windows-1251"},
		{language: "Russian", encoding: "koi8-r"},
		{language: "Chinese", encoding: "gb18030"},
		{language: "traditional", encoding: "big5"},
		{language: "Japanese", encoding: "shift_jis"},
		{language: "Japanese", encoding: "euc-jp"},
		{language: "Korean", encoding: "euc-kr"},
		{language: "Greek", encoding: "windows-1253"},
		{language: "Hebrew", encoding: "windows-1255"},
		{language: "Arabic", encoding: "windows-1256"},
		{language: "Thai", encoding: "windows-874"},
		{language: "French", encoding: "windows-1252"},
		{language: "German", encoding: "windows-1252"},
		{language: "English", encoding: "windows-1252"},
		{language: "English", encoding: "utf-16le"},
		{language: "French", encoding: "utf-16be"},
		{language: "Russian", encoding: "windows-1251", header: "; charset=utf-8"},
		{language: "Russian", encoding: "windows-1251", html: "<meta charset=utf-8>"},
		{language: "Japanese", encoding: "shift_jis", header: "; charset=utf-8"},
		{language: "Korean", encoding: "euc-kr", html: `<meta http-equiv=Content-Type content="text/html; charset=UTF-8">`},
		{language: "English", encoding: "utf-16le", header: "; charset=utf-8"},
		{language: "French", encoding: "utf-8", header: "; charset=iso-8859-1"},
		{language: "Russian", encoding: "utf-8", html: "<meta charset=windows-1252>"},
		{language: "Russian", encoding: "utf-8", html: "<meta charset=windows-1251>"},
		{language: "Japanese", encoding: "utf-8", header: "; charset=shift_jis"},
	} {
		text := texts[test.language]
		page := "<html><head>" + test.html + "<title>x</title></head><body><script>" + strings.Repeat("var a = 1;\n", 500) + "</script><article><p>" + text + "</p></article></body></html>"
		for mime, body := range map[string]string{"text/html": page, "text/plain": text} {
			if mime == "text/plain" && test.html != "" {
				continue
			}
			if test.encoding != "utf-8" {
				encoding, _ := charset.Lookup(test.encoding)
				var err error
				if body, err = encoding.NewEncoder().String(body); err != nil {
					t.Fatalf("%+v: %v", test, err)
				}
			}
			s := newSite(t, pages(map[string][2]string{"/p": {mime + test.header, body}}))
			res := result(t, s.join(t), map[string]any{"url": s.url + "/p"})
			got := fmt.Sprint(res.Content[0])
			var facts fetch.Facts
			if err := json.Unmarshal(res.Meta.Extra["dev.parley/fetch"], &facts); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, text[:60]) || facts.Encoding != test.encoding || !facts.EncodingGuessed ||
				!strings.Contains(got, "Note: the encoding of the page was guessed: "+test.encoding+"\n") {
				t.Errorf("%+v as %s: %+v, %s", test, mime, facts, got)
			}
		}
	}
}

// An encoding that is declared truly is no guess, wherever it is declared.
func TestDeclaredEncodings(t *testing.T) {
	for name, test := range map[string]struct{ mime, before, encoding string }{
		"header":               {"text/plain; charset=windows-1251", "", "windows-1251"},
		"header, koi8-r":       {"text/html; charset=koi8-r", "<html><p>", "koi8-r"},
		"meta":                 {"text/html", "<html><meta charset=windows-1251><p>", "windows-1251"},
		"XML":                  {"application/xml", `<?xml version="1.0" encoding="windows-1251"?><p>`, "windows-1251"},
		"nothing, UTF-8":       {"text/html", "<html><p>", "utf-8"},
		"UTF-8 with one fault": {"text/html; charset=utf-8", "<html><p>caf\xe9 ", "utf-8"},
	} {
		text := texts["Russian"]
		body := test.before + text
		if encoding, _ := charset.Lookup(test.encoding); test.encoding != "utf-8" {
			var err error
			if body, err = encoding.NewEncoder().String(body); err != nil {
				t.Fatal(err)
			}
		}
		s := newSite(t, pages(map[string][2]string{"/p": {test.mime, body}}))
		if got := fetched(t, s.join(t), s.url+"/p"); !strings.Contains(got, text) || strings.Contains(got, "guessed") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
