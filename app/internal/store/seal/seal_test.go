package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/store/seal"
)

// A sealed value opens at its place with its key, and nowhere else, and not if a single byte of it
// changed.
func TestSeal(t *testing.T) {
	t.Parallel()
	key := seal.NewDataKey(7)
	for _, value := range []string{"", "x", strings.Repeat("secret ", 1000)} {
		sealed := key.Seal([]byte(value), "keys", "private", "row")
		if again := key.Seal([]byte(value), "keys", "private", "row"); again == sealed {
			t.Error("the same value sealed twice is the same")
		}
		if got, err := key.Open(sealed, "keys", "private", "row"); err != nil || string(got) != value {
			t.Errorf("%q, error %v", got, err)
		}
		if id, err := seal.KeyOf(sealed); err != nil || id != 7 || !seal.IsSealed(sealed) {
			t.Errorf("key %d, error %v of %s", id, err, sealed)
		}
		for _, place := range [][]string{{"keys", "private", "other"}, {"keys", "privaterow"}, {"keys", "private", "row", ""}, {}} {
			if _, err := key.Open(sealed, place...); !errors.Is(err, seal.ErrDamaged) {
				t.Errorf("at %q: error %v", place, err)
			}
		}
		if _, err := seal.NewDataKey(7).Open(sealed, "keys", "private", "row"); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("another key of the same number: error %v", err)
		}
		for i := range min(len(sealed), 200) {
			changed := []byte(sealed)
			changed[i] ^= 1
			if _, err := key.Open(string(changed), "keys", "private", "row"); !errors.Is(err, seal.ErrDamaged) {
				t.Errorf("changed at %d: error %v", i, err)
			}
			if _, err := key.Open(sealed[:i], "keys", "private", "row"); !errors.Is(err, seal.ErrDamaged) {
				t.Errorf("cut off at %d: error %v", i, err)
			}
		}
	}
}

// A data key is unwrapped by the key that wrapped it, under its number; another key is told apart
// from damage.
func TestWrap(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	key, text := seal.GenerateKey()
	other, _ := seal.GenerateKey()
	data := seal.NewDataKey(3)
	wrapped, err := data.Wrap(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	sealed := data.Seal([]byte("secret"), "place")
	again, err := seal.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := seal.Unwrap(ctx, again, 3, wrapped)
	if err != nil {
		t.Fatal(err)
	}
	if value, err := got.Open(sealed, "place"); err != nil || string(value) != "secret" {
		t.Errorf("%q, error %v", value, err)
	}
	if _, err := seal.Unwrap(ctx, other, 3, wrapped); !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("another key: error %v", err)
	}
	if _, err := seal.Unwrap(ctx, key, 4, wrapped); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("another number: error %v", err)
	}
	for _, bad := range []string{"", "x", wrapped[:len(wrapped)-1], wrapped[:20], "AA" + wrapped[2:]} {
		if _, err := seal.Unwrap(ctx, key, 3, bad); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("%q: error %v", bad, err)
		}
	}

	next := seal.NewDataKey(4)
	bridge := next.Bridge(data)
	crossed, err := seal.Cross(data, 4, bridge)
	if err != nil {
		t.Fatal(err)
	}
	if value, err := crossed.Open(next.Seal([]byte("new"), "place"), "place"); err != nil || string(value) != "new" {
		t.Errorf("%q, error %v", value, err)
	}
	if _, err := seal.Cross(data, 5, bridge); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("another number: error %v", err)
	}
	if _, err := seal.Cross(next, 4, bridge); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("another key before: error %v", err)
	}
}

// A key is 32 bytes, in one of the usual forms; the error of another does not show it.
func TestParseKey(t *testing.T) {
	t.Parallel()
	raw := []byte("0123456789abcdefghijklmnopqr\xff\xfe\xfb\xf0")
	want, err := seal.ParseKey(hex.EncodeToString(raw))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		strings.ToUpper(hex.EncodeToString(raw)), hex.EncodeToString(raw) + "\r\n",
		base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw) + "\n",
	} {
		if got, err := seal.ParseKey(text); err != nil || got.ID() != want.ID() {
			t.Errorf("%q: %v, error %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "secret", hex.EncodeToString(raw[:31]), hex.EncodeToString(raw) + "00", string(raw), strings.Repeat("0", 64),
		hex.EncodeToString(raw) + "\n" + hex.EncodeToString(raw),
	} {
		if _, err := seal.ParseKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "openssl rand -hex 32") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// Nothing but what a key sealed at a place is opened there, and nothing panics.
func FuzzOpen(f *testing.F) {
	key := seal.NewDataKey(1)
	sealed := key.Seal([]byte("value"), "place")
	outer, _ := seal.GenerateKey()
	wrapped, err := key.Wrap(f.Context(), outer)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{sealed, sealed[:30], sealed + "A", "sealed:1:1:", "sealed:2:1:AAAA", "sealed:1:-1:", "sealed:1:01:", "", wrapped, sealed + "\n", wrapped[:9] + "\r" + wrapped[9:]} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := key.Open(text, "place")
		if (err == nil) != (text == sealed) || err == nil && !bytes.Equal(value, []byte("value")) {
			t.Errorf("%q is opened: %q, error %v", text, value, err)
		}
		if _, err := seal.Unwrap(t.Context(), outer, 1, text); err == nil && text != wrapped {
			t.Errorf("%q is unwrapped", text)
		}
	})
}
