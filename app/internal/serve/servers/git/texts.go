package git

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
)

// commitText is a commit as git_log and git_show write it. Further lines of the message are indented, so
// that none of them looks like another commit.
func commitText(c *gogit.Commit) string {
	message := lineEnds.Replace(strings.TrimRight(valid(c.Message), "\n"))
	return fmt.Sprintf("Commit: %s\nAuthor: %s <%s>\nDate: %s\nMessage: %s\n",
		c.Hash, lineEnds.Replace(valid(c.Author.Name)), lineEnds.Replace(valid(c.Author.Email)), c.Author.When.Format("2006-01-02 15:04:05-07:00"), message)
}

// lineEnds indents what follows the end of a line, and everything else that may be shown as one.
var lineEnds = strings.NewReplacer("\r\n", "\r\n    ", "\n", "\n    ", "\r", "\r    ", "\v", "\v    ", "\f", "\f    ",
	"\u0085", "\u0085    ", "\u2028", "\u2028    ", "\u2029", "\u2029    ")

// addedText says which files were staged, and in which paths nothing was.
func addedText(a *gogit.Added) string {
	const most = 100 // for a model, more names are of no use
	names := func(list []string, between string) string {
		if over := len(list) - most; over > 0 {
			list = append(list[:most:most], fmt.Sprintf("... and %d more", over))
		}
		return strings.Join(list, between)
	}
	text := "Nothing was staged."
	if len(a.Staged) > 0 {
		text = "Files staged successfully:\n" + names(a.Staged, "\n")
	}
	if len(a.Unchanged) > 0 {
		text += "\nNo changes in: " + names(a.Unchanged, ", ")
	}
	return text
}

// valid is a text as it can be sent: what is not UTF-8 is replaced.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
