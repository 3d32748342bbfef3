package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/host"
)

func (l *Commands) listServers(context.Context, string) {
	status, tokens := l.Host.Status(), ToolTokens(l.Host.Catalog())
	if len(status) == 0 {
		l.say("There are no servers.")
	}
	for i := range status {
		s := &status[i]
		text := fmt.Sprintf("Server %s%s: %s", name(s.Name), origin(s.Origin), s.State)
		if tools := count(int64(s.Tools), "tool", "tools"); tools != "" {
			text += ", " + tools + " of about " + Grouped(tokens[s.Name]) + " tokens"
		}
		if skills := count(int64(s.Skills), "skill", "skills"); skills != "" {
			text += ", " + skills
		}
		if s.Stale {
			text += ", not listed anew yet"
		}
		if s.Err != nil {
			text += "; " + claim(s.Err.Error())
		}
		if wrong := s.Wrong(); wrong != "" {
			text += "; " + claim(wrong)
		}
		l.say("%s.", text)
	}
}

// wrongParts says what is wrong in the answers of servers, for those who look at their lists.
func wrongParts(status []host.ServerStatus) []Entry {
	var lines []Entry
	for i := range status {
		if wrong := status[i].Wrong(); wrong != "" {
			lines = append(lines, said("Server %s: %s.", name(status[i].Name), claim(wrong)))
		}
	}
	return lines
}

func (l *Commands) retry(_ context.Context, server string) {
	if err := l.Host.Retry(server); err != nil {
		l.say("It was not started: %s.", claim(err.Error()))
		return
	}
	l.say("Server %s is being started.", name(server))
}

// ToolTokens estimates how many tokens the definitions of tools take in a request, by server.
// Tools that the model is not told of take none.
func ToolTokens(c *host.Catalog) map[string]int64 {
	sums := make(map[string]int64)
	for _, t := range c.Tools {
		if !t.Hidden {
			sums[t.Server] += int64(t.Tokens())
		}
	}
	return sums
}

// log shows the last lines that a server wrote.
func (l *Commands) log(_ context.Context, server string) {
	switch {
	case server == "":
		l.say("Please write which server, as in /log NAME; /servers lists them.")
		return
	case l.Logs == nil:
		l.say("The logs of servers are not kept here.")
		return
	}
	if !slices.Contains(l.Servers(), server) {
		l.say("No server is called %s; /servers lists them.", name(server))
		return
	}
	lines := l.Logs(server)
	if len(lines) == 0 {
		l.say("Server %s has logged nothing that is kept.", name(server))
		return
	}
	l.print([]Entry{{Kind: EntryBlock, Label: "Log of server " + name(server) + " (untrusted), the last " + count(int64(len(lines)), "line", "lines"), Text: LogText(lines)}}, limits{})
}

// LogText is lines of a log, each escaped.
func LogText(lines []string) string {
	escaped := make([]string, len(lines))
	for i, line := range lines {
		escaped[i] = host.EscapeLine(line)
	}
	return strings.Join(escaped, "\n")
}
