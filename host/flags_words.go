package host

import (
	"regexp"
	"strings"
	"unicode"
)

// instructionShapes are words by which descriptions give orders to a model, in
// lower case and with single spaces.
var instructionShapes = []struct {
	what  string
	shape func() *regexp.Regexp
}{
	{"tells the model to set its instructions aside", lazy(
		`\b(ignore|disregard|forget|override) (all |any |the |your |every |of |my )*` +
			`(previous|prior|above|earlier|preceding|other|existing|system|safety) ([a-z]+ )?` +
			`(instructions?|rules?|prompts?|guidelines?|directions?|constraints?|messages?)`)},
	{"tells the model what to do before it uses other tools", lazy(
		`\b(before|prior to|when|whenever|after) (you )?(us|call|invok|execut|runn)(e|ing|s) ` +
			`(this|any|any other|other|another|every|all) (tools?|functions?)\b`)},
	{"tells the model to use this tool before or instead of others", lazy(
		`\b(always|must|only) (use|call|prefer|invoke|run) this (tool|function|one)? ?(first|instead|over)\b|` +
			`\b(replaces|overrides|supersedes) (all |any |the |every )?other tools?\b`)},
	{"tells the model to keep something from the person", lazy(
		`\b(do not|don't|dont|never|must not|without|avoid|no need to) (ever )?` +
			`(tell|mention|inform|notify|notifi|reveal|disclos|show|ask|alert|warn)(e|y|ing|ying)?` +
			`( this| it| that| about| anything| any of this| to| the above)* (to )?(the |your )?` +
			`(user|person|human|operator)\b`)},
	{"keeps something secret", lazy(
		`\b(keep|do) (this|it|that) (a )?(secret|hidden|confidential|silently|quietly)\b|` +
			`\bhide (this|it) from\b|\beven if the user\b`)},
	{"marks a part of the text as important for the model", lazy(
		`<\s?/?(important|system|instructions?|secret|critical|admin|hidden|assistant|override)\b[^>]{0,30}>|` +
			`<\|im_(start|end)\|>|\[/?inst\]`)},
	{"speaks of the system prompt or of the conversation", lazy(
		`\bsystem prompt\b|\b(send|include|pass|attach|append|provide|forward|copy|put) .{0,40}` +
			`\b(conversation|chat) (history|so far|transcript)\b|\byou are now (a|an|in|the)\b|\bnew instructions:`)},
	{"names files that hold keys and passwords", lazy(
		`(~|\$home|/root|/home/[a-z0-9_-]+|\bhome directory)/?\.?(ssh|aws|gnupg|kube|netrc|docker)\b|` +
			`\.ssh/|\bid_(rsa|ed25519|ecdsa|dsa)\b|\.aws/credentials|/etc/(passwd|shadow)\b|` +
			`\.cursor/mcp\.json|claude_desktop_config|\b(read|send|contents? of|include) (the |your |a )?\.env\b`)},
}

// instructions looks for words that give orders to the model.
func (f *flagger) instructions(t flagText) {
	for _, s := range instructionShapes {
		if found := s.shape().FindString(t.text); found != "" {
			f.add(FlagInstruction, t.path, "The %s says %s, which perhaps %s.", t.path, quoteFlag(found), s.what)
		}
	}
}

// others looks for the names of other servers and of their tools. A name that
// is an ordinary word counts only beside words that make it a name.
func (f *flagger) others(t flagText, names []otherName) {
	if t.path == "name" || t.path == "tool name" || len(names) == 0 {
		return
	}
	byName := make(map[string]otherName, len(names))
	for _, o := range names {
		byName[o.name] = o
		several := strings.ContainsFunc(o.name, func(r rune) bool { return !isNameRune(r) })
		if several && strings.Contains(t.text, o.name) {
			f.other(t, o)
		}
	}
	words := nameWords(t.text)
	for i, w := range words {
		if server, _, ok := strings.Cut(strings.TrimPrefix(w.text, "mcp__"), separator); ok {
			if o, ok := byName[server]; ok && o.tool == "" {
				f.other(t, o)
			}
		}
		o, ok := byName[w.text]
		if ok && (strings.ContainsAny(o.name, "_-.0123456789") || isNamed(words, i, o.tool != "")) {
			f.other(t, o)
		}
	}
}

func (f *flagger) other(t flagText, o otherName) {
	if o.tool == "" {
		f.add(FlagOtherServer, t.path, "The %s speaks of the server %s.", t.path, quoteFlag(o.server))
		return
	}
	f.add(FlagOtherServer, t.path, "The %s speaks of %s, a tool of the server %s.",
		t.path, quoteFlag(o.tool), quoteFlag(o.server))
}

// A nameWord is a word of a text and the character after it.
type nameWord struct {
	text string
	next byte
}

// nameWords splits a text into words that can be names.
func nameWords(s string) []nameWord {
	var list []nameWord
	for len(s) > 0 {
		start := strings.IndexFunc(s, isNameRune)
		if start < 0 {
			break
		}
		if strings.Contains(s[:start], "\x00") {
			list = append(list, nameWord{})
		}
		s = s[start:]
		end := strings.IndexFunc(s, func(r rune) bool { return !isNameRune(r) })
		if end < 0 {
			end = len(s)
		}
		w := nameWord{text: strings.Trim(s[:end], "._-")}
		if s = s[end:]; s != "" {
			w.next = s[0]
		}
		list = append(list, w)
	}
	return list
}

func isNameRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' || r == '.'
}

// isNamed reports whether an ordinary word stands as the name of a tool or
// server: the fetch tool, the tool fetch, fetch(…), the fetch server, fetch MCP.
func isNamed(words []nameWord, i int, tool bool) bool {
	at := func(i int) string {
		if i < 0 || i >= len(words) {
			return ""
		}
		return words[i].text
	}
	before, after := at(i-1), at(i+1)
	return tool && words[i].next == '(' || before == "tool" || before == "mcp" || before == "server" ||
		after == "mcp" || before == "the" && (after == "tool" || after == "server")
}

// plainWords makes a text comparable: lower case, single spaces, nothing
// hidden, look-alikes as the letters they look like.
func plainWords(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == 0 || unicode.IsSpace(r):
			return r
		case r < 0x80:
			return unicode.ToLower(r)
		case hidden(r):
			return -1
		}
		return latinOf(r)
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// confusables are letters of other alphabets and the Latin letters they look
// like, both in lower case.
var confusables = map[rune]rune{
	// Cyrillic
	'а': 'a', 'в': 'b', 'е': 'e', 'ё': 'e', 'з': '3', 'к': 'k', 'м': 'm', 'н': 'h', 'о': 'o', 'р': 'p',
	'с': 'c', 'т': 't', 'у': 'y',
	'х': 'x', 'ь': 'b', 'ѕ': 's', 'і': 'i', 'ї': 'i', 'ј': 'j', 'ԁ': 'd', 'ԛ': 'q', 'ԝ': 'w', 'һ': 'h',
	'ӏ': 'l', 'ү': 'y', 'ѵ': 'v', 'г': 'r', 'п': 'n',
	// Greek
	'α': 'a', 'β': 'b', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'σ': 'o',
	'τ': 't', 'υ': 'u', 'χ': 'x',
	'ω': 'w', 'γ': 'y', 'ϲ': 'c', 'ϳ': 'j', 'μ': 'u', 'ζ': 'z',
	// Latin letters and signs
	'ı': 'i', 'ɩ': 'i', 'ł': 'l', 'ɡ': 'g', 'ɑ': 'a', 'ø': 'o', 'ſ': 's', 'ʟ': 'l', 'ʀ': 'r', 'ѐ': 'e',
	'á': 'a', 'à': 'a', 'ä': 'a', 'â': 'a',
	'ã': 'a', 'å': 'a', 'é': 'e', 'è': 'e', 'ê': 'e', 'ë': 'e', 'í': 'i', 'ì': 'i', 'î': 'i', 'ï': 'i',
	'ó': 'o', 'ò': 'o', 'ô': 'o', 'ö': 'o',
	'õ': 'o', 'ú': 'u', 'ù': 'u', 'û': 'u', 'ü': 'u', 'ç': 'c', 'ñ': 'n', 'ý': 'y', '‐': '-', '‑': '-',
	'‒': '-', '–': '-', '—': '-', '−': '-', '∕': '/', '⁄': '/', '’': '\'',
}

// latinOf returns the character that r looks like, in lower case.
func latinOf(r rune) rune {
	switch {
	case 0xFF01 <= r && r <= 0xFF5E: // full width
		r -= 0xFEE0
	case 0x1D400 <= r && r <= 0x1D6A3: // letters of mathematics, alphabet by alphabet
		i := (r - 0x1D400) % 52
		if r = 'A' + i; i >= 26 {
			r = 'a' + i - 26
		}
	case 0x24B6 <= r && r <= 0x24CF: // in circles
		r = 'a' + r - 0x24B6
	case 0x24D0 <= r && r <= 0x24E9:
		r = 'a' + r - 0x24D0
	}
	r = unicode.ToLower(r)
	if latin, ok := confusables[r]; ok {
		return latin
	}
	return r
}

// skeleton, as Unicode calls it (UTS 39), is the same for names that are easily taken for each other: they
// differ by letter case, separators, or characters that look alike.
func skeleton(name string) string {
	s := strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		switch r = latinOf(r); r {
		case '-', '_', '.', ' ', '/':
			return -1
		case '0':
			return 'o'
		case '1', 'i', '|', '!':
			return 'l'
		}
		return r
	}, name)
	return looksLike.Replace(s)
}

// looksLike are pairs of letters that look like one.
var looksLike = strings.NewReplacer("rn", "m", "vv", "w")

// mixesScripts reports whether a name has Latin letters and letters of another
// alphabet that look like Latin ones.
func mixesScripts(name string) bool {
	latin, other := false, false
	for _, r := range name {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.IsLetter(r) && latinOf(r) < 0x80:
			other = true
		}
	}
	return latin && other
}
