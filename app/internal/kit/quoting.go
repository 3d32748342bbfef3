package kit

import (
	"errors"
	"strings"
)

// Fields splits a command line as a shell does, without expansions: spaces
// separate words, text in single quotes is literal, text in double quotes is literal
// except for a backslash before ", \, $ and `, and a backslash quotes the next
// character. It does not run a shell.
func Fields(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	var quote rune
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote == '\'':
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\\':
			if i++; i == len(runes) {
				return nil, errors.New("the command line ends with a single backslash")
			}
			if quote == '"' && !strings.ContainsRune("\"\\$`", runes[i]) {
				word.WriteRune('\\')
			}
			word.WriteRune(runes[i])
			inWord = true
		case quote == '"':
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("the command line has an unclosed quote")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// ShellWord quotes a word for a shell if necessary.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, needsQuotes) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func needsQuotes(r rune) bool {
	return !isAlphanumeric(r) && !strings.ContainsRune("-_./:=@%+,", r)
}
