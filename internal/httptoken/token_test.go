package httptoken_test

import (
	"testing"

	"github.com/parley-mcp/parley/internal/httptoken"
)

// The rule holds for every byte.
func TestValid(t *testing.T) {
	const others = "!#$%&'*+-.^_`|~"
	valid := map[byte]bool{}
	for c := byte('0'); c <= '9'; c++ {
		valid[c] = true
	}
	for c := byte('a'); c <= 'z'; c++ {
		valid[c], valid[c-'a'+'A'] = true, true
	}
	for i := range len(others) {
		valid[others[i]] = true
	}
	for c := range 256 {
		if got := httptoken.Valid("a" + string([]byte{byte(c)})); got != valid[byte(c)] {
			t.Errorf("%q: %t", rune(c), got)
		}
	}
	if httptoken.Valid("") {
		t.Error("nothing is a token")
	}
}
