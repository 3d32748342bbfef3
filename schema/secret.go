package schema

import (
	"slices"
	"strings"
	"unicode"
)

// secretWords are words that make a member's name look like a secret, and
// secretPairs words that do so next to each other.
var (
	secretWords = []string{
		"password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "token", "credential", "credentials",
		"apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken", "cvv", "cvc", "otp", "iban", "ssn",
	}
	secretPairs = []string{
		"api key", "access key", "private key", "signing key", "encryption key", "ssh key",
		"card number", "account number", "security code", "pin code", "one time",
	}
	// harmless words before "token" say that it is a position, not a secret.
	harmless = []string{"page", "next", "previous", "continuation", "sync", "progress", "cursor"}
	// facts at the end of a name say that it is about a secret: secretType, passwordLength.
	facts = []string{"type", "kind", "name", "length", "format", "count"}
)

// looksSecret says whether a name seems to be that of a secret.
func looksSecret(name string) bool {
	list := words(name)
	if len(list) > 0 && slices.Contains(facts, list[len(list)-1]) {
		return false
	}
	for i, word := range list {
		if word == "token" && i > 0 && slices.Contains(harmless, list[i-1]) {
			continue
		}
		if slices.Contains(secretWords, word) || i > 0 && slices.Contains(secretPairs, list[i-1]+" "+word) {
			return true
		}
	}
	return false
}

// words splits a name such as apiKey, API_KEY or api-key into lower-case words.
func words(name string) (list []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			list = append(list, word.String())
			word.Reset()
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		upper := unicode.IsUpper(r)
		if upper && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			end()
		}
		word.WriteRune(unicode.ToLower(r))
	}
	end()
	return list
}

// noteSecret notes a member whose name looks like a secret; numbers and
// booleans about secrets (maxTokens, hasPassword) are none.
func (w *walk) noteSecret(name string, n *node) {
	if n.kind != kindBool && n.kind != kindFloat && looksSecret(name) && !slices.Contains(w.secrets, name) {
		w.secrets = append(w.secrets, name)
	}
}
