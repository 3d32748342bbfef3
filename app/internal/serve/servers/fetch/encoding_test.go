package fetch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"

	"github.com/parley-mcp/parley/app/internal/serve/servers/fetch"
	"github.com/parley-mcp/parley/host"
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
			if d := read(t, mime+test.header, encoded(t, test.encoding, body)); !strings.Contains(d.text, text[:60]) || d.encoding != test.encoding || !d.guessed {
				t.Errorf("%+v as %s: %+v", test, mime, d)
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
		"meta, far below":      {"text/html", "<html><head><style>" + strings.Repeat("a {} ", 2000) + "</style><meta charset=koi8-r><p>", "koi8-r"},
		"meta, with a type":    {"text/html", `<html><meta content="text/html; charset='koi8-r'" http-equiv=Content-Type><p>`, "koi8-r"},
		"meta after others":    {"text/html", "<html><meta name=x content='charset=big5'><meta charset=klingon><meta charset=koi8-r><p>", "koi8-r"},
		"meta against XML":     {"text/html", `<?xml version="1.0" encoding="utf-8"?><html><meta charset=windows-1251><p>`, "windows-1251"},
		"XML against meta":     {"application/xhtml+xml", `<?xml version="1.0" encoding="windows-1251"?><html><meta charset=koi8-r><p>`, "windows-1251"},
		"XML in HTML":          {"text/html", `<?xml version="1.0" encoding="windows-1251"?><html><p>`, "windows-1251"},
	} {
		text := texts["Russian"]
		if d := read(t, test.mime, encoded(t, test.encoding, test.before+text)); !strings.Contains(d.text, text) || d.guessed {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// The encoding of a short page in a Latin alphabet, in which a letter with an accent is a word, or begins
// one, is not taken for another alphabet's.
func TestShortLatinPages(t *testing.T) {
	for _, text := range []string{
		"Il va à Paris, à Lyon, à Nice.",
		"La pizza è un piatto. Il vino è rosso. L'acqua è fresca. Il cielo è blu. La città è bella.",
		"Ela é linda. Ele é feio. Isso é bom.",
		"É bom. É feio. É lindo. É meu.",
		"C'è il sole. C'è il mare. C'è la luna. È vero.",
		"¿Té ó café? ¿Uno ú otro? ¿Siete ú ocho? ¡Sí!",
		"Où ? À Nîmes. À Sète. À Agde. « À bientôt ! »",
		"Å er en å. Ø er en ø. Ei å, ei å til, og ei ø.",
	} {
		if d := read(t, "text/html", encoded(t, "windows-1252", "<html><p>"+text+"</p>")); !strings.Contains(d.text, text) || d.encoding != "windows-1252" || !d.guessed {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

// The word "charset" is not the declaration of an encoding but in a meta tag.
func TestNotDeclared(t *testing.T) {
	text := texts["Russian"]
	for _, before := range []string{
		"<script src=a.js charset=utf-8></script>", "<script>document.charset</script>", "<style>@charset 'utf-8';</style>", "<!-- <meta charset=koi8-r> -->",
		"<meta name=charset content=utf-8>", "<meta content='text/html; charset=koi8-r'>", "<meta charset=klingon>", "<link charset=koi8-r>",
		"<meta http-equiv=Content-Type content=charset>", "<title>charset</title>",
	} {
		for _, name := range []string{"utf-8", "windows-1251"} {
			d := read(t, "text/html", encoded(t, name, "<html><head>"+before+"</head><p>"+text))
			if !strings.Contains(d.text, text) || d.encoding != name || d.guessed != (name != "utf-8") {
				t.Errorf("%s in %s: %+v", before, name, d)
			}
		}
	}
}

// A page in UTF-8 with a few broken characters stays UTF-8. A page in another encoding does not become UTF-8
// because some of its bytes are UTF-8 by chance.
func TestBrokenUTF8(t *testing.T) {
	for name, test := range map[string]struct{ mime, body, encoding, want string }{
		"a character cut off":          {"text/html; charset=utf-8", "<p>It’s a bridge\xe2\x80</p>", "utf-8", "It’s a bridge"},
		"and nothing declared":         {"text/html", "<p>It’s a bridge\xe2\x80</p>", "utf-8", "It’s a bridge"},
		"several, cut off":             {"text/html; charset=utf-8", "<p>It’s a bridge\xe2\x80 of st\xc3 and wo\xc3.</p>", "utf-8", "It’s a bridge"},
		"many, and one that is whole":  {"text/html; charset=utf-8", "<p>1 €: " + strings.Repeat("caf\xe9 d\xe9j\xe0 ", 10), "windows-1252", "café déjà"},
		"one in a word":                {"text/html; charset=utf-8", "<p>Мосты \xd1тоят.", "utf-8", "Мосты \ufffdтоят"},
		"one in Chinese":               {"text/html; charset=utf-8", "<p>\x80" + texts["Chinese"], "utf-8", texts["Chinese"]},
		"kana, UTF-8 by chance":        {"text/html", "<p>" + encoded(t, "shift_jis", "このにわには、にわのにわとりがいるのに、にわにはなにもいない。"), "shift_jis", "にわとり"},
		"and declared":                 {"text/html; charset=utf-8", "<p>" + encoded(t, "shift_jis", "このにわには、にわのにわとりがいるのに、にわにはなにもいない。"), "shift_jis", "にわとり"},
		"one byte of Latin, declared":  {"text/html; charset=utf-8", "<p>caf\xe9!", "windows-1252", "café!"},
		"quotes of Windows, declared":  {"text/html; charset=utf-8", "<p>\x93Bridges\x94, it\x92s said", "windows-1252", "“Bridges”"},
		"a character cut off, at last": {"text/html", "<p>caf\xc3", "utf-8", "caf"},
	} {
		if d := read(t, test.mime, test.body); d.encoding != test.encoding || !strings.Contains(d.text, test.want) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// encoded returns a text in an encoding.
func encoded(t *testing.T, name, text string) string {
	t.Helper()
	if name == "utf-8" {
		return text
	}
	encoding, _ := charset.Lookup(name)
	text, err := encoding.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A reading is what the tool made of a page.
type reading struct {
	text, encoding string
	guessed        bool
}

// read fetches a page from a site that has this one alone.
func read(t *testing.T, mime, body string) reading {
	t.Helper()
	s := newSite(t, pages(map[string][2]string{"/p": {mime, body}}))
	res := result(t, s.join(t), map[string]any{"url": s.url + "/p"})
	var facts fetch.Facts
	if err := json.Unmarshal(res.Meta.Extra["dev.parley/fetch"], &facts); err != nil {
		t.Fatal(err)
	}
	text := host.ContentText(res.Content[0])
	if strings.Contains(text, "Note: the encoding of the page was guessed: "+facts.Encoding+"\n") != facts.EncodingGuessed {
		t.Errorf("the note and %+v are not the same: %s", facts, text)
	}
	return reading{text, facts.Encoding, facts.EncodingGuessed}
}
