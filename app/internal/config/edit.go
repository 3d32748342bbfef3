package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/parley-mcp/parley/strictjson"
)

// Errors of edits, to be found with errors.Is.
var (
	// ErrChanged says that a file changed while it was edited.
	ErrChanged = errors.New("the file was changed by another program: try again")
	// ErrBusy says that another edit goes on, or was broken off.
	ErrBusy = errors.New("another program is editing the file")
	// ErrExists says that there is an entry of that name.
	ErrExists = errors.New("there is an entry of that name: remove it first, or choose another name")
	// ErrNotOwn says that a file is not Parley's own by its name.
	ErrNotOwn = errors.New("only parley.jsonc and .parley.jsonc are edited, and never a file of another program")
	// ErrNoEntry says that there is no entry of that name.
	ErrNoEntry = errors.New("there is no entry of that name in this file")
)

// Add writes an entry into a parley.jsonc, which is made if it is not there. Comments and
// the order of members are kept.
func Add(path, name string, e Entry) error {
	raw, err := entryText(name, e)
	if err != nil {
		return fmt.Errorf("adding %q: %w", name, err)
	}
	return edit(path, "adding "+name, func(root *hujson.Value) error { return addEntry(root, name, raw) })
}

// addEntry adds the text of an entry to the servers of a file.
func addEntry(root *hujson.Value, name string, raw []byte) error {
	servers, err := childObject(root, "servers", 1)
	if err != nil {
		return err
	}
	if find(servers, name) >= 0 {
		return ErrExists
	}
	value, err := hujson.Parse(raw)
	if err != nil {
		return err
	}
	layOut(&value, 2)
	insert(servers, name, value, 2)
	return nil
}

// entryText is the text of an entry that can be read again.
func entryText(name string, e Entry) ([]byte, error) {
	raw, err := strictjson.Marshal(e)
	if err != nil {
		return nil, err
	}
	return raw, checkEntry(name, e, raw)
}

// checkEntry refuses an entry that could not be read again.
func checkEntry(name string, e Entry, raw []byte) error {
	if name == "" {
		return errors.New("it has no name: give it one")
	}
	n, err := parseJSON(raw)
	if err != nil {
		return err
	}
	r := newEntry(ownDialect, &variables{}, Source{}, name)
	r.readMembers(n)
	r.settle()
	if r.s.Err != nil {
		return r.s.Err
	}
	s := *r.s
	s.Env = e.Env
	if strings.Contains(s.URL, "${") {
		s.URL = "https://localhost" // what it is comes out later
	}
	return s.check()
}

// Remove takes an entry out of a parley.jsonc, with the comments before it.
func Remove(path, name string) error {
	return editEntry(path, "removing "+name, func(root *hujson.Value) error {
		servers, i, err := entryOf(root, name)
		if err != nil {
			return err
		}
		removeAt(servers, i)
		return nil
	})
}

// removeAt takes a member out of an object, with the comments before it.
func removeAt(o *hujson.Object, i int) {
	removed := o.Members[i].Value
	o.Members = append(o.Members[:i], o.Members[i+1:]...)
	if i == len(o.Members) && i > 0 {
		// The member before it is the last now, and has a comma if this one had.
		setComma(o, &o.Members[i-1].Value, removed.AfterExtra != nil)
	}
}

// SetDisabled switches an entry of a parley.jsonc off or on.
func SetDisabled(path, name string, disabled bool) error {
	doing := "enabling "
	if disabled {
		doing = "disabling "
	}
	return editEntry(path, doing+name, func(root *hujson.Value) error {
		servers, i, err := entryOf(root, name)
		if err != nil {
			return err
		}
		entry, ok := servers.Members[i].Value.Value.(*hujson.Object)
		if !ok {
			return errors.New("the entry is no object: correct it first")
		}
		value := hujson.Value{Value: hujson.Bool(disabled)}
		if at := find(entry, "disabled"); at >= 0 {
			entry.Members[at].Value.Value = value.Value
		} else if disabled {
			insert(entry, "disabled", value, 3)
		}
		return nil
	})
}

// editEntry changes a file that is there.
func editEntry(path, doing string, change func(root *hujson.Value) error) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s in %s: %w", doing, path, ErrNoEntry)
	}
	return edit(path, doing, change)
}

// edit changes a file in one step: it writes a file beside it and renames that. Programs
// that edit with this function come one after another; a change by any other between
// reading and writing is an error. A link stays, and its target is changed.
func edit(path, doing string, change func(root *hujson.Value) error) error {
	return replace(path, doing, func(before []byte) ([]byte, error) { return changed(before, change) })
}

// replace puts another text into a file, as edit does. The text before is nil if there is no
// file.
func replace(path, doing string, change func(before []byte) ([]byte, error)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s in %s: %w", doing, path, err)
		}
	}()
	if name := filepath.Base(path); name != "parley.jsonc" && name != ".parley.jsonc" {
		return ErrNotOwn
	}
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target = path
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	draft := target + ".new"
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; if none is, remove %s", ErrBusy, draft)
	} else if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(draft))
		}
	}()
	before, mode, err := current(target)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	after, err := change(before)
	if err == nil {
		err = write(f, after, mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if now, _, err := current(target); err != nil || !bytes.Equal(now, before) {
		return errors.Join(ErrChanged, err)
	}
	return os.Rename(draft, target)
}

// current is the text of a file and its mode; nil if there is no file.
func current(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, err
	}
	data, err := readFile(path, "", maxFile)
	return data, info.Mode().Perm(), err
}

func write(f *os.File, data []byte, mode fs.FileMode) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Sync()
}

// changed applies a change to a text.
func changed(before []byte, change func(root *hujson.Value) error) ([]byte, error) {
	text := bytes.TrimPrefix(before, []byte("\ufeff"))
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n}\n")
	}
	if _, err := parseJSON(text); err != nil {
		if e, ok := errors.AsType[*lineError](err); ok {
			return nil, fmt.Errorf("line %d: %w: correct it first", e.line, err)
		}
		return nil, err
	}
	root, err := parseHuJSON(text)
	if err != nil {
		return nil, err
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, errors.New("the file is no object: correct it first")
	}
	if err := change(&root); err != nil {
		return nil, err
	}
	after := root.Pack()
	if _, err := parseJSON(after); err != nil {
		return nil, fmt.Errorf("the changed text is not valid: %w", err)
	}
	if len(after) > maxFile {
		return nil, ErrTooLarge
	}
	return after, nil
}

// find is the index of a member, or -1.
func find(o *hujson.Object, name string) int {
	for i := range o.Members {
		if l, ok := o.Members[i].Name.Value.(hujson.Literal); ok && l.String() == name {
			return i
		}
	}
	return -1
}

// childObject is a member of an object, made if it is not there.
func childObject(v *hujson.Value, name string, depth int) (*hujson.Object, error) {
	o, _ := v.Value.(*hujson.Object)
	i := find(o, name)
	if i < 0 {
		insert(o, name, hujson.Value{Value: &hujson.Object{AfterExtra: indent(depth)}}, depth)
		i = len(o.Members) - 1
	}
	child, ok := o.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object: correct it first", name)
	}
	return child, nil
}

// entryOf finds an entry in the servers of a file.
func entryOf(root *hujson.Value, name string) (*hujson.Object, int, error) {
	o, _ := root.Value.(*hujson.Object)
	i := find(o, "servers")
	if i < 0 {
		return nil, 0, ErrNoEntry
	}
	servers, ok := o.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil, 0, errors.New("servers is no object: correct it first")
	}
	if i = find(servers, name); i < 0 {
		return nil, 0, ErrNoEntry
	}
	return servers, i, nil
}

// insert adds a member at the end, on a line of its own. A comment after the last member
// stays with that. The new one has a comma if the last had.
func insert(o *hujson.Object, name string, value hujson.Value, depth int) {
	before, comma := indent(depth), false
	if n := len(o.Members); n > 0 {
		before = lineBefore(o.Members[0].Name.BeforeExtra, before)
		comma = o.Members[n-1].Value.AfterExtra != nil
	}
	closing := hujson.Extra("\n" + strings.Repeat("  ", depth-1))
	if i := bytes.LastIndexByte(o.AfterExtra, '\n'); i >= 0 {
		before = append(bytes.Clone(o.AfterExtra[:i]), before...)
		closing = o.AfterExtra[i:]
	} else if len(bytes.TrimSpace(o.AfterExtra)) > 0 {
		before = append(bytes.Clone(o.AfterExtra), before...)
	}
	value.BeforeExtra = hujson.Extra(" ")
	o.Members = append(o.Members, hujson.ObjectMember{
		Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: value,
	})
	o.AfterExtra = closing
	setComma(o, &o.Members[len(o.Members)-1].Value, comma)
}

// setComma sets whether there is a comma after the last member of an object: there is one
// where the extra after its value is not nil.
func setComma(o *hujson.Object, last *hujson.Value, comma bool) {
	switch {
	case comma && last.AfterExtra == nil:
		last.AfterExtra = hujson.Extra{}
	case !comma:
		o.AfterExtra = append(bytes.Clone(last.AfterExtra), o.AfterExtra...)
		last.AfterExtra = nil
	}
}

// lineBefore is the last line of an extra, which indents what follows.
func lineBefore(extra, otherwise hujson.Extra) hujson.Extra {
	i := bytes.LastIndexByte(extra, '\n')
	if i < 0 || len(bytes.TrimSpace(extra[i:])) > 0 {
		return otherwise
	}
	return bytes.Clone(extra[i:])
}

func indent(depth int) hujson.Extra { return hujson.Extra("\n" + strings.Repeat("  ", depth)) }

// layOut puts each member of an object on a line of its own; arrays stay on one line.
func layOut(v *hujson.Value, depth int) {
	switch t := v.Value.(type) {
	case *hujson.Object:
		for i := range t.Members {
			m := &t.Members[i]
			m.Name.BeforeExtra, m.Value.BeforeExtra = indent(depth+1), hujson.Extra(" ")
			layOut(&m.Value, depth+1)
		}
		if len(t.Members) > 0 {
			t.AfterExtra = indent(depth)
		}
	case *hujson.Array:
		for i := range t.Elements {
			if i > 0 {
				t.Elements[i].BeforeExtra = hujson.Extra(" ")
			}
		}
	}
}
