package panel

import (
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/host"
)

// maxInput bounds what is typed into one line, in bytes.
const maxInput = 64 << 10

// An input is a line that the person types. The zero value is empty.
type input struct {
	text string
	at   int // the cursor, a byte index between characters
}

// set replaces the text; the cursor is at its end.
func (in *input) set(text string) { in.text, in.at = text, len(text) }

// insert adds what was typed or pasted on one line, and reports whether there was room.
func (in *input) insert(text string) bool {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
	if len(in.text)+len(text) > maxInput {
		return false
	}
	in.text = in.text[:in.at] + text + in.text[in.at:]
	in.at += len(text)
	return true
}

// before and after are the bytes of the characters beside the cursor, 0 at the ends.
func (in *input) before() int {
	_, size := utf8.DecodeLastRuneInString(in.text[:in.at])
	return size
}

func (in *input) after() int {
	_, size := utf8.DecodeRuneInString(in.text[in.at:])
	return size
}

// key takes a key for editing, and reports whether it is one.
func (in *input) key(msg tea.KeyPressMsg) bool {
	switch msg.String() {
	case "left":
		in.at -= in.before()
	case "right":
		in.at += in.after()
	case "home", "ctrl+a":
		in.at = 0
	case "end", "ctrl+e":
		in.at = len(in.text)
	case "backspace", "ctrl+h":
		n := in.before()
		in.text = in.text[:in.at-n] + in.text[in.at:]
		in.at -= n
	case "delete", "ctrl+d":
		in.text = in.text[:in.at] + in.text[in.at+in.after():]
	case "ctrl+u":
		in.text, in.at = in.text[in.at:], 0
	case "ctrl+k":
		in.text = in.text[:in.at]
	case "ctrl+w":
		end := strings.TrimRight(in.text[:in.at], " ")
		begin := strings.LastIndexByte(end, ' ') + 1
		in.text, in.at = in.text[:begin]+in.text[in.at:], begin
	default:
		return false
	}
	return true
}

// view shows the part of the text around the cursor, escaped, with a mark at the cursor.
func (in *input) view(columns int) string {
	before, after := host.EscapeLine(in.text[:in.at]), host.EscapeLine(in.text[in.at:])
	room := columns - 1 // for the cursor
	if room < 1 {
		return cursorMark
	}
	left := tail(before, max(room*2/3, room-width(after)))
	return left + cursorMark + head(after, room-width(left))
}

// cursorMark is where the next character goes.
const cursorMark = "▏"

// head is the beginning of a text that goes into so many columns.
func head(text string, columns int) string {
	at := 0
	for i := 0; i < len(text); {
		size, w := cluster(text[i:])
		if at += w; at > columns {
			return text[:i]
		}
		i += size
	}
	return text
}

// tail is the end of a text that goes into so many columns.
func tail(text string, columns int) string {
	all := width(text)
	for all > columns {
		size, w := cluster(text)
		text, all = text[size:], all-w
	}
	return text
}
