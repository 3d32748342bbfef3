package host

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/mcp"
)

// Bounds of what Flags reads and tells.
const (
	maxFlags     = 32
	maxFlagText  = 64 << 10 // bytes of one text that are searched for words
	maxFlagShown = 80       // bytes of a stranger's text in a sentence
)

// A FlagKind says what a person is warned of.
type FlagKind string

// What a person can be warned of.
const (
	// FlagHidden is text that cannot be seen for what it is.
	FlagHidden FlagKind = "hidden"
	// FlagLookalike is a name that is easily taken for another.
	FlagLookalike FlagKind = "lookalike"
	// FlagSameName is a tool name that another server has too.
	FlagSameName FlagKind = "same name"
	// FlagOtherServer is a text that speaks of another server or its tools.
	FlagOtherServer FlagKind = "other server"
	// FlagInstruction is a text that seems to give orders to the model. It is a
	// hint: the words are a list, and honest texts may have them.
	FlagInstruction FlagKind = "instruction"
)

// A Flag is something that a person should know before agreeing to a
// definition.
type Flag struct {
	// Kind is what it is.
	Kind FlagKind
	// Path names the part in words: description, input schema.
	Path string
	// Text is a sentence. Names in it are quoted, with hidden characters escaped.
	Text string
}

// A ServerDefinition is a definition and the server it comes from.
type ServerDefinition struct {
	// Server is the name of the server in this host.
	Server string
	// Definition is what the server says of one tool, or of itself.
	Definition *Definition
}

// Flags returns what a person should be warned of in a definition, given the
// definitions of all servers; those of its own server are known to be its own.
// It finds at most 32 things. No flag is a proof, and a definition without one
// is not safe for that.
func Flags(d ServerDefinition, all []ServerDefinition) []Flag {
	f := flagger{server: d.Server}
	texts := textsOf(d.Definition)
	for _, t := range texts {
		f.hidden(t)
	}
	if d.Definition.Tool != nil {
		f.names(d.Definition.Tool.Name, all)
	}
	f.serverNames(all)
	others := otherNames(d, all)
	for _, t := range joinTexts(texts) {
		if len(t.text) > maxFlagText {
			f.add(FlagHidden, t.path, "The %s has %d bytes; only the first %d were searched for words.",
				t.path, len(t.text), maxFlagText)
			t.text = schematext.Cut(t.text, maxFlagText)
		}
		t.text = plainWords(t.text)
		f.instructions(t)
		f.others(t, others)
	}
	return f.list
}

// A Rename is a tool that seems to have got another name.
type Rename struct{ From, To string }

// Renames finds tools of one server that are gone while a new one has the same
// definition but for the name.
func Renames(old, new []*Definition) []Rename {
	gone := make(map[string][]string)
	has := func(list []*Definition, name string) bool {
		return slices.ContainsFunc(list, func(d *Definition) bool { return d.Tool != nil && d.Tool.Name == name })
	}
	for _, d := range old {
		if d.Tool != nil && !has(new, d.Tool.Name) {
			gone[d.nameless()] = append(gone[d.nameless()], d.Tool.Name)
		}
	}
	var list []Rename
	for _, d := range new {
		if d.Tool == nil || has(old, d.Tool.Name) {
			continue
		}
		if from := gone[d.nameless()]; len(from) > 0 {
			list = append(list, Rename{from[0], d.Tool.Name})
			gone[d.nameless()] = from[1:]
		}
	}
	return list
}

// A flagText is one text of a definition and the part it is of.
type flagText struct{ path, text string }

// textsOf returns the texts that a person or a model reads.
func textsOf(d *Definition) []flagText {
	list := []flagText{{"instructions", d.Instructions}}
	for _, name := range d.Tools {
		list = append(list, flagText{"tool name", name})
	}
	if t := d.Tool; t != nil {
		list = append(list, flagText{"name", t.Name}, flagText{"title", t.Title})
		list = append(list, flagText{"description", t.Description})
		if t.Annotations != nil {
			list = append(list, flagText{"annotation title", t.Annotations.Title})
		}
		list = appendTexts(list, "input schema", t.InputSchema)
		list = appendTexts(list, "output schema", t.OutputSchema)
	}
	return slices.DeleteFunc(list, func(t flagText) bool { return t.text == "" })
}

// joinTexts makes one text of all texts of a part. No word is the neighbour of a
// word of another text.
func joinTexts(texts []flagText) []flagText {
	var list []flagText
	var words []string
	for i, t := range texts {
		words = append(words, t.text)
		if i+1 == len(texts) || texts[i+1].path != t.path {
			list = append(list, flagText{t.path, strings.Join(words, textEnd)})
			words = words[:0]
		}
	}
	return list
}

// textEnd separates texts that were joined.
const textEnd = " \x00 "

// appendTexts appends the names and texts of a schema.
func appendTexts(list []flagText, path string, raw mcp.RawValue) []flagText {
	for len(raw) > 0 {
		start := slices.Index(raw, '"')
		if start < 0 {
			break
		}
		end := stringEnd(raw, start)
		if s, err := text(raw[start:end]); err == nil {
			list = append(list, flagText{path, s})
		}
		raw = raw[end:]
	}
	return list
}

// A flagger collects flags.
type flagger struct {
	server string
	list   []Flag
}

func (f *flagger) add(kind FlagKind, path, format string, args ...any) {
	flag := Flag{kind, path, fmt.Sprintf(format, args...)}
	if len(f.list) < maxFlags && !slices.Contains(f.list, flag) {
		f.list = append(f.list, flag)
	}
}

// quoteFlag quotes a stranger's text, shortened.
func quoteFlag(s string) string {
	if len(s) > maxFlagShown {
		s = schematext.Cut(s, maxFlagShown) + "…"
	}
	return strconv.QuoteToGraphic(strings.ToValidUTF8(s, "\uFFFD"))
}

// A hiddenClass is a kind of characters that cannot be seen, and what it does.
type hiddenClass struct {
	what string
	is   func(r rune) bool
}

// hiddenClasses are those kinds; a character belongs to the first that has it.
var hiddenClasses = []hiddenClass{
	{"tag characters, which spell text that only the model reads", func(r rune) bool {
		return 0xE0000 <= r && r <= 0xE007F
	}},
	{"characters that change the direction of text: it shows in another order than the model reads", isBidi},
	{"control characters, which can rewrite what a terminal shows", unicode.IsControl},
	{"characters without width", func(r rune) bool {
		return 0x200B <= r && r <= 0x200D || r == 0x2060 || r == 0xFEFF || r == 0xAD
	}},
	{"characters that cannot be seen", hidden},
}

func isBidi(r rune) bool {
	return r == 0x061C || r == 0x200E || r == 0x200F || 0x202A <= r && r <= 0x202E || 0x2066 <= r && r <= 0x2069
}

// hidden looks for characters that a person does not see.
func (f *flagger) hidden(t flagText) {
	if plain(t.text, t.path != "name") {
		return
	}
	counts := make([]int, len(hiddenClasses))
	var spelt strings.Builder
	before := rune(0)
	for i, r := range t.text {
		if hiddenAt(t, i, r, before) {
			class := slices.IndexFunc(hiddenClasses, func(c hiddenClass) bool { return c.is(r) })
			counts[class]++
			if 0xE0020 <= r && r <= 0xE007E && spelt.Len() < maxFlagShown {
				spelt.WriteByte(byte(r - 0xE0000))
			}
		}
		before = r
	}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		more := ""
		if i == 0 && spelt.Len() > 0 {
			more = ": " + quoteFlag(spelt.String())
		}
		f.add(FlagHidden, t.path, "The %s has %s (%d in all)%s.", t.path, hiddenClasses[i].what, n, more)
	}
}

// hiddenAt reports whether r, at byte i of a text after the character before,
// is hidden and has no ordinary use there. Ordinary are line breaks, and joiners
// within an emoji and within words of scripts that need them.
func hiddenAt(t flagText, i int, r, before rune) bool {
	switch r {
	case '\n', '\t':
		return t.path == "name" || t.path == "tool name"
	case '\r':
		return !strings.HasPrefix(t.text[i+1:], "\n")
	case 0x200C, 0x200D:
		after, _ := utf8.DecodeRuneInString(t.text[i+utf8.RuneLen(r):])
		joined := unicode.In(before, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Tamil,
			unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Gujarati, unicode.Gurmukhi)
		symbols := (before == 0xFE0F || unicode.In(before, unicode.So, unicode.Sk)) && unicode.In(after, unicode.So)
		emoji := r == 0x200D && symbols
		return !joined && !emoji
	}
	return hidden(r)
}

// names compares the name of a tool with those of other servers.
func (f *flagger) names(name string, all []ServerDefinition) {
	if mixesScripts(name) {
		f.add(FlagLookalike, "name", "The name %s mixes letters of different alphabets that look alike.",
			quoteFlag(name))
	}
	form := skeleton(name)
	for _, o := range all {
		if o.Server == f.server || o.Definition == nil || o.Definition.Tool == nil {
			continue
		}
		switch other := o.Definition.Tool.Name; {
		case other == name:
			f.add(FlagSameName, "name", "The server %s has a tool %s too.", quoteFlag(o.Server), quoteFlag(name))
		case skeleton(other) == form:
			f.add(FlagLookalike, "name", "The name %s looks like %s, a tool of the server %s.",
				quoteFlag(name), quoteFlag(other), quoteFlag(o.Server))
		}
	}
	for _, server := range serversOf(all) {
		if server != f.server && server != name && skeleton(server) == form {
			f.add(FlagLookalike, "name", "The name %s looks like that of the server %s.",
				quoteFlag(name), quoteFlag(server))
		}
	}
}

// serverNames compares the name of the server with those of the others.
func (f *flagger) serverNames(all []ServerDefinition) {
	for _, server := range serversOf(all) {
		if server != f.server && skeleton(server) == skeleton(f.server) {
			f.add(FlagLookalike, "server name", "The server's name %s looks like that of the server %s.",
				quoteFlag(f.server), quoteFlag(server))
		}
	}
}

// serversOf returns the names of the servers, in order.
func serversOf(all []ServerDefinition) []string {
	var names []string
	for _, d := range all {
		names = append(names, d.Server)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// An otherName is the name of another server or of one of its tools.
type otherName struct {
	name   string // in lower case
	server string
	tool   string // empty: the name is the server's
}

// otherNames returns the names that belong to other servers alone, longest
// first.
func otherNames(d ServerDefinition, all []ServerDefinition) []otherName {
	own := map[string]bool{strings.ToLower(d.Server): true}
	if d.Definition.Tool != nil {
		own[strings.ToLower(d.Definition.Tool.Name)] = true
	}
	for _, name := range d.Definition.Tools {
		own[strings.ToLower(name)] = true
	}
	for _, o := range all {
		if o.Server == d.Server && o.Definition != nil && o.Definition.Tool != nil {
			own[strings.ToLower(o.Definition.Tool.Name)] = true
		}
	}
	var list []otherName
	add := func(name, server, tool string) {
		if name = strings.ToLower(name); !own[name] && len(name) > 2 {
			own[name] = true // once is enough
			list = append(list, otherName{name, server, tool})
		}
	}
	for _, server := range serversOf(all) {
		add(server, server, "")
	}
	for _, o := range all {
		if o.Definition != nil && o.Definition.Tool != nil {
			add(o.Definition.Tool.Name, o.Server, o.Definition.Tool.Name)
		}
	}
	slices.SortStableFunc(list, func(a, b otherName) int { return cmp.Compare(len(b.name), len(a.name)) })
	return list
}
