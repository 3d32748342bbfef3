package secrets

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/parley-mcp/parley/oauth/login"
)

// The largest entry is one that Windows and macOS take.
func TestEntriesAreSmall(t *testing.T) {
	t.Parallel()
	value := make([]byte, maxPart)
	name := strings.Repeat("$", maxName)
	part, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(&head{Value: value})
	if err != nil {
		t.Fatal(err)
	}
	entry := (&head{Set: "12345678"}).part(name, maxValue/maxPart)
	for _, text := range [][]byte{part, whole} {
		if len(text) > 2560 {
			t.Errorf("Windows takes 2,560 bytes, not %d", len(text))
		}
		command := "add-generic-password -U -s 'parley' -a '" + entry + "' -w 'go-keyring-base64:" + base64.StdEncoding.EncodeToString(text) + "'"
		if len(command) > 4096 {
			t.Errorf("macOS takes commands of 4,096 bytes, not %d", len(command))
		}
	}
}

// Nothing is left of a value that was replaced or deleted; and a value that is
// half there is an error, but not ErrNotFound, which would mean a new login
// without a word.
func TestKeyringParts(t *testing.T) {
	const service = "parley test parts"
	s, err := Open(&Options{Kind: Keyring, Folder: t.TempDir(), Service: service})
	if err != nil {
		t.Fatal(err)
	}
	r, ok := s.(*ring)
	if !ok {
		t.Fatalf("a %T", s)
	}
	set := func() *head {
		if err := s.Set(t.Context(), "n", make([]byte, 3*maxPart)); err != nil {
			t.Fatal(err)
		}
		h, err := r.head(t.Context(), "n")
		if err != nil || h.Parts != 3 {
			t.Fatalf("head %+v, error %v", h, err)
		}
		return h
	}
	gone := func(what string, h *head) {
		for i := range h.Parts {
			if _, err := keyring.Get(service, h.part("n", i)); !errors.Is(err, keyring.ErrNotFound) {
				t.Errorf("part %d after the value was %s: error %v", i, what, err)
			}
		}
	}
	first := set()
	second := set()
	gone("replaced", first)
	if err := s.Delete(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	gone("deleted", second)

	third := set()
	if err := keyring.Delete(service, third.part("n", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "n"); !errors.Is(err, errDamaged) || errors.Is(err, login.ErrNotFound) {
		t.Errorf("a value without one of its parts: error %v", err)
	}
	set()
	if _, err := s.Get(t.Context(), "n"); err != nil {
		t.Errorf("after it was set anew: %v", err)
	}
}
