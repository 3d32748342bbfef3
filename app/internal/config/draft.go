package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/tailscale/hujson"
)

// SchemaURL is the address of the schema of parley.jsonc, for editors.
const SchemaURL = "https://raw.githubusercontent.com/parley-mcp/parley/main/docs/guide/parley.schema.json"

// A Choice is what a person chooses when the program is set up. What is empty stays as it is
// in the file.
type Choice struct {
	// Model is the member model. With it BaseURL is the member baseUrl, which an empty one
	// removes.
	Model, BaseURL string
	// NoKey says that no key is sent to the provider of Model: a program of the person's own.
	NoKey bool
	// Import says for clients whether their files are read.
	Import map[Client]bool
	// Servers are entries to add, by name. Entries that are there stay.
	Servers map[string]Entry
}

// A Draft is a parley.jsonc with a choice in it, which is not written yet.
type Draft struct {
	// Path is where it is to be written.
	Path string
	// Before is the text of the file as it is, or nil if there is none; After is the text that
	// Write writes. Comments and the order of members are kept.
	Before, After []byte
}

// NewDraft reads a parley.jsonc, if there is one, and puts a choice into its text. It writes
// nothing.
func NewDraft(path string, c *Choice) (*Draft, error) {
	d := &Draft{Path: path}
	doing := "changing " + path
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("%s: %w", doing, err)
	default:
		if d.Before, _, err = current(target); err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
	}
	if d.After, err = changed(d.Before, c.apply); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return d, nil
}

// Changes reports whether Write would change anything.
func (d *Draft) Changes() bool { return !bytes.Equal(d.Before, d.After) }

// Write writes the text in one step. If the file is not the one that NewDraft read, it is left
// as it is and the error is ErrChanged.
func (d *Draft) Write() error {
	return replace(d.Path, "writing", func(before []byte) ([]byte, error) {
		if !bytes.Equal(before, d.Before) {
			return nil, ErrChanged
		}
		return d.After, nil
	})
}

// apply puts the choice into a file.
func (c *Choice) apply(root *hujson.Value) error {
	o, _ := root.Value.(*hujson.Object)
	if len(o.Members) == 0 {
		setText(o, "$schema", SchemaURL)
	}
	if c.Model != "" {
		setText(o, "model", c.Model)
		if i := find(o, "baseUrl"); i >= 0 && c.BaseURL == "" {
			removeAt(o, i)
		}
	}
	if c.BaseURL != "" {
		setText(o, "baseUrl", c.BaseURL)
	}
	if c.NoKey {
		if err := c.applyNoKey(root); err != nil {
			return err
		}
	}
	if err := c.applyImport(root); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		raw, err := entryText(name, c.Servers[name])
		if err == nil {
			err = addEntry(root, name, raw)
		}
		if err != nil {
			return fmt.Errorf("adding %q: %w", name, err)
		}
	}
	return nil
}

// applyNoKey writes into the entry of the model that no key is sent.
func (c *Choice) applyNoKey(root *hujson.Value) error {
	models, err := childObject(root, "models", 1)
	if err != nil {
		return err
	}
	entry, err := childObject(&hujson.Value{Value: models}, c.Model, 2)
	if err != nil {
		return err
	}
	value := hujson.Value{Value: hujson.Bool(true)}
	if i := find(entry, "noKey"); i >= 0 {
		entry.Members[i].Value.Value = value.Value
		return nil
	}
	insert(entry, "noKey", value, 3)
	return nil
}

// applyImport writes which clients are left out. That a client is read needs no member.
func (c *Choice) applyImport(root *hujson.Value) error {
	o, _ := root.Value.(*hujson.Object)
	for _, client := range slices.Sorted(maps.Keys(c.Import)) {
		on := c.Import[client]
		if on && find(o, "import") < 0 {
			continue
		}
		imports, err := childObject(root, "import", 1)
		if err != nil {
			return err
		}
		i := find(imports, string(client))
		switch {
		case i >= 0:
			imports.Members[i].Value.Value = hujson.Bool(on)
		case !on:
			insert(imports, string(client), hujson.Value{Value: hujson.Bool(false)}, 2)
		}
	}
	return nil
}

// setText sets a member to a text.
func setText(o *hujson.Object, name, text string) {
	if i := find(o, name); i >= 0 {
		o.Members[i].Value.Value = hujson.String(text)
		return
	}
	insert(o, name, hujson.Value{Value: hujson.String(text)}, 1)
}
