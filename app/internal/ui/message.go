package ui

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/host"
)

// send puts something into the conversation.
func (l *Line) send(ctx context.Context, in host.Input) {
	session := l.session
	if l.mine = in.Text; len(in.Attached) > 0 {
		l.mine = "" // what was attached is told
	}
	l.start(ctx, "sending", func(ctx context.Context) func() {
		err := session.Send(ctx, in)
		return func() {
			if err != nil {
				l.mine = ""
				l.say("It was not sent: %s.", host.EscapeLine(err.Error()))
				return
			}
			l.commands.Sent(in)
		}
	})
}

// Resources finds the resources that a message names: words @SERVER:URI, in double
// quotes behind the @ if there are blanks in them, as in @"notes:file:///My Notes.txt".
// What follows the name of a server has its blanks around cut off, and punctuation at
// its end if it is not quoted. unknown are names of servers before what looks like a URI
// that are not in the list.
func Resources(text string, servers []string) (found []host.ResourceInput, unknown []string) {
	for i := 0; i < len(text); i++ {
		if text[i] != '@' || i > 0 && !strings.ContainsRune(" \t(", rune(text[i-1])) {
			continue
		}
		word, used := wordAfter(text[i+1:])
		i += used
		server, uri, ok := cutServer(word, servers)
		switch {
		case ok && uri != "":
			found = append(found, host.ResourceInput{Server: server, URI: uri})
		case !ok && strings.Contains(word, "://"):
			if server, rest, _ := strings.Cut(word, ":"); strings.Contains(rest, ":") {
				unknown = append(unknown, server)
			}
		}
	}
	return found, unknown
}

// wordAfter returns the word at the beginning of a text, and how many bytes it takes.
func wordAfter(s string) (word string, used int) {
	if strings.HasPrefix(s, `"`) {
		if end := strings.IndexByte(s[1:], '"'); end >= 0 {
			return s[1 : end+1], end + 2
		}
	}
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		end = len(s)
	}
	return strings.TrimRight(s[:end], ".,;:!?)"), end
}

// cutServer cuts the longest name of a server, and a colon, off a word.
func cutServer(word string, servers []string) (server, rest string, ok bool) {
	for _, s := range servers {
		if after, found := strings.CutPrefix(word, s+":"); found && (!ok || len(s) > len(server)) {
			server, rest, ok = s, after, true
		}
	}
	return server, rest, ok
}

// Pairs reads "key=value" words. A value with blanks is in double quotes, in which a
// backslash stands before a quote or a backslash.
func Pairs(s string) (map[string]string, error) {
	pairs := make(map[string]string)
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		key, rest, ok := strings.Cut(s, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \t\"") {
			word, _, _ := strings.Cut(s, " ")
			return nil, fmt.Errorf(`%q has no value; write key=value, or key="a value with blanks"`, shorten(word, maxName))
		}
		if _, twice := pairs[key]; twice {
			return nil, fmt.Errorf("%q is given twice", key)
		}
		var value string
		if value, s, ok = valueOf(rest); !ok {
			return nil, fmt.Errorf("the value of %q has no closing quote", key)
		}
		pairs[key] = value
	}
	return pairs, nil
}

// valueOf reads a value, and returns what follows it.
func valueOf(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, " ")
		return value, rest, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(`"\`, s[i+1]) >= 0:
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
