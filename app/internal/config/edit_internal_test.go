package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tailscale/hujson"
)

// A change by another program while a file is edited is not lost.
func TestEditChanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.jsonc")
	for name, other := range map[string]func() error{
		"written": func() error { return os.WriteFile(path, []byte(`{"model":"theirs"}`), 0o600) },
		"removed": func() error { return os.Remove(path) },
	} {
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := edit(path, "editing", func(root *hujson.Value) error {
			if err := other(); err != nil {
				return err
			}
			_, err := childObject(root, "servers", 1)
			return err
		})
		if !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
		if data, err := os.ReadFile(path); name == "written" && (err != nil || string(data) != `{"model":"theirs"}`) {
			t.Errorf("%s: %s %v", name, data, err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 1 {
			t.Errorf("%s: left behind %v %v", name, left, err)
		}
	}
}

// An edit that goes on elsewhere, or was broken off, is told of and not disturbed.
func TestEditBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.jsonc")
	if err := os.WriteFile(path+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Add(path, "s", Entry{Command: "x"}); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if data, err := os.ReadFile(path + ".new"); err != nil || string(data) != "half" {
		t.Errorf("%s %v", data, err)
	}
}
