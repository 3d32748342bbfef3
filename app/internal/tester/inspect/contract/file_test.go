package contract_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
)

// zeros is a long text.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Files that are no whole lock of this version are refused, each with its reason.
func TestDecodeBadFiles(t *testing.T) {
	raw, err := contract.Encode(parse(t, base))
	if err != nil {
		t.Fatal(err)
	}
	good := string(raw)
	for _, test := range []struct {
		name, text string
		want       error
	}{
		{"empty", "", contract.ErrNoLock},
		{"text", "hello", contract.ErrNoLock},
		{"other JSON", `{"name":"x"}`, contract.ErrNoLock},
		{"list", `[]`, contract.ErrNoLock},
		{"number as format", `{"format":7}`, contract.ErrNoLock},
		{"cut off", good[:len(good)/2], contract.ErrEdited},
		{"edited", strings.Replace(good, "Orders things.", "Orders thongs.", 1), contract.ErrEdited},
		{"another digest", strings.Replace(good, "sha256:", "sha256:0", 1), contract.ErrEdited},
		{"a member more", strings.Replace(good, `"revision"`, `"x": 1, "revision"`, 1), contract.ErrEdited},
		{"a member twice", strings.Replace(good, `"revision"`, `"revision": "x", "revision"`, 1), contract.ErrEdited},
		{"another type", strings.Replace(good, `"version": 1`, `"version": 1, "tools": []`, 1), contract.ErrEdited},
		{"something behind it", good + "{}", contract.ErrEdited},
		{"newer", strings.Replace(good, `"version": 1`, `"version": 2`, 1), contract.ErrNewer},
		{"no version", strings.Replace(good, `"version": 1`, `"version": "x"`, 1), contract.ErrEdited},
	} {
		if _, err := contract.Decode(strings.NewReader(test.text)); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
	long := io.LimitReader(io.MultiReader(strings.NewReader(`{"format": "parley-lock", `), zeros{}), 1<<30)
	if _, err := contract.Decode(long); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("a long file: %v", err)
	}
}

// A lock of a stranger never makes it fail, and what is read can be compared and written.
func FuzzDecode(f *testing.F) {
	f.Add(`{"format":"parley-lock","version":1,"digest":"","revision":"","capabilities":{},"tools":{"a":null},"prompts":{},"resources":{},"resourceTemplates":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := contract.Decode(strings.NewReader(text))
		if err != nil {
			return
		}
		if list := contract.Compare(c, c); len(list) > 0 {
			t.Errorf("it differs from itself: %v", list)
		}
		if _, err := contract.Encode(c); err != nil {
			t.Error(err)
		}
	})
}

// Contracts of any content are compared without failing.
func FuzzCompare(f *testing.F) {
	f.Add(`{"a":{"inputSchema":{"type":"object"},"annotations":[],"execution":1}}`, `{"a":{"inputSchema":7},"b":{"name":1}}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		wrap := func(items string) string {
			return `{"revision":"x","capabilities":` + items + `,"tools":` + items + `,"prompts":` + items + `,"resources":` + items + `,"resourceTemplates":` + items + `}`
		}
		if !isItems(before) || !isItems(after) {
			return
		}
		contract.Compare(parse(t, wrap(before)), parse(t, wrap(after)))
	})
}

func isItems(text string) bool {
	var items contract.Items
	return json.Unmarshal([]byte(text), &items) == nil
}
