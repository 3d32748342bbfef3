package tester

import (
	"regexp"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/kit"
)

// wordFlags are flags that take several words, as in the MCP Inspector: --tool-arg a=1 b=2.
var wordFlags = []string{"--tool-arg", "--prompt-args", "--metadata", "--tool-metadata"}

// headerWord is what a header of a command line looks like, apart from a URL.
var headerWord = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+:($|[^/])")

// spreadWords gives each word behind such a flag a flag of its own. The first word that is no
// NAME=VALUE, and for --header no 'Name: value', is not the flag's: it may name the server.
func spreadWords(args []string) []string {
	spread := make([]string, 0, len(args))
	flag := "" // that further words belong to
	value := false
	for i, word := range args {
		switch {
		case word == "--":
			return append(spread, args[i:]...)
		case value: // the first word of a flag, whatever it is
			value = false
		case flag != "" && !strings.HasPrefix(word, "-") && belongs(flag, word):
			spread = append(spread, flag)
		case word == "--header" || slices.Contains(wordFlags, word):
			flag, value = word, true
		default:
			flag = ""
		}
		spread = append(spread, word)
	}
	return spread
}

// belongs reports whether a word is one of a flag.
func belongs(flag, word string) bool {
	if flag == "--header" {
		return headerWord.MatchString(word)
	}
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && !kit.IsURL(word)
}
