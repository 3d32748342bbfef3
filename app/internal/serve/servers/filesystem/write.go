package filesystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type writeIn struct {
	Path    string `json:"path" desc:"The file, as an absolute path or one below the first allowed directory." maxlen:"32768"`
	Content string `json:"content" desc:"What it is to hold."`
}

type editIn struct {
	Path   string `json:"path" desc:"The file." maxlen:"32768"`
	Edits  []edit `json:"edits" desc:"The changes, one after the other." maxlen:"1000"`
	DryRun bool   `json:"dryRun" desc:"Only show what would change." default:"false"`
}

type makeIn struct {
	Path string `json:"path" desc:"The directory." maxlen:"32768"`
}

type moveIn struct {
	Source      string `json:"source" desc:"What is moved." maxlen:"32768"`
	Destination string `json:"destination" desc:"Its new path, where nothing is yet." maxlen:"32768"`
}

// writingTools are the tools that change something.
func (s *service) writingTools() []server.Feature {
	o := func(title string, destructive, idempotent bool) server.ToolOptions {
		return server.ToolOptions{
			Title: title, Annotations: servers.Hints(false, destructive, idempotent), Scopes: servers.Scopes(s.opts.WriteScope),
		}
	}
	return []server.Feature{
		tool(s, "write_file", "Writes a file: a new one, or over all that an existing one holds. "+
			"To change a part of a file use edit_file.", s.write).With(o("Write File", true, true)),
		tool(s, "edit_file", "Replaces parts of a text file. Each edit replaces the one place that is oldText; "+
			"if there is none, the one place whose lines differ from it only in space around them, whose indentation stays. All edits are made, or none. "+
			"The result is a diff; with dryRun nothing is written.", s.edit).With(o("Edit File", true, false)),
		tool(s, "create_directory", "Makes a directory, and those above it that are missing. One that exists is left as it is.",
			s.makeDirectory).With(o("Create Directory", false, true)),
		noted(s, "move_file", "Moves or renames a file or directory. Nothing is overwritten: the destination must not exist.",
			s.move).With(o("Move File", true, false)),
	}
}

// confirm asks the user whether something may be done, where that is wanted.
func (s *service) confirm(ctx context.Context, question string) error {
	if !s.opts.Confirm {
		return nil
	}
	return servers.Confirm(ctx, question)
}

// lock waits until no other call changes something, or ctx ends.
func (s *service) lock(ctx context.Context) error {
	select {
	case s.writes <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := servers.Ended(ctx); err != nil { // select takes either
		s.unlock()
		return err
	}
	return nil
}

func (s *service) unlock() { <-s.writes }

func (s *service) write(ctx context.Context, d *directories, in writeIn) (string, error) {
	p, exists, err := d.locateNew(ctx, in.Path)
	if err != nil {
		return "", err
	}
	if exists {
		if err := s.confirm(ctx, fmt.Sprintf("Overwrite %s?", p.abs)); err != nil {
			return "", err
		}
	}
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.unlock()
	if err := p.replace([]byte(in.Content), func() error { return servers.Ended(ctx) }); err != nil {
		return "", d.notWritten(ctx, p, err)
	}
	return "Successfully wrote to " + in.Path, nil
}

// replace writes a file next to the one that is there, if any, and puts it in its place, so
// that readers see the one or the other, and so does a machine that failed. Other names of
// the old file (hard links) keep what it held. The permissions stay,
// and the owner where the system allows it. An error of check, which is called last,
// leaves the old file there.
func (p place) replace(data []byte, check func() error) (err error) {
	old, err := p.dir.root.Lstat(p.rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return err
	case old.Mode()&fs.ModeSymlink == 0: // a link that has come since is replaced, not followed
		if err := regular(old); err != nil {
			return err
		}
	}
	root, beside := p.dir.root, p.beside().rel
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = 0o600 // nobody else reads it before it has the permissions of the old file
	}
	f, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil { // the directory takes no new file
		return &opError{"create a file in", place{abs: filepath.Dir(p.abs)}, err}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Remove(beside))
		}
	}()
	err = write(f, data)
	if old != nil && old.Mode().IsRegular() {
		_ = keepOwner(f, old) // before the permissions, which would be another's
		err = errors.Join(err, f.Chmod(old.Mode().Perm()))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = check()
	}
	if err != nil {
		return err
	}
	return root.Rename(beside, p.rel)
}

func (s *service) edit(ctx context.Context, d *directories, in editIn) (string, error) {
	p, err := d.existing(ctx, "open", in.Path)
	if err != nil {
		return "", err
	}
	if !in.DryRun {
		if err := s.confirm(ctx, fmt.Sprintf("Edit %s?", p.abs)); err != nil {
			return "", err
		}
	}
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.unlock()
	data, err := d.readFile(ctx, p.abs, s.opts.MaxRead)
	if err != nil {
		return "", err
	}
	changed, shown, err := applyEdits(ctx, data, in.Edits, valid(p.abs), s.opts.MaxRead)
	if err != nil || in.DryRun {
		return shown, err
	}
	err = p.replace(changed, func() error {
		now, err := d.readFile(ctx, p.abs, s.opts.MaxRead)
		if err == nil && !bytes.Equal(now, data) {
			err = mcp.Errorf("another program has changed %s meanwhile: read it again", valid(p.abs))
		}
		return err // d.readFile looks at ctx
	})
	if err != nil {
		return "", d.notWritten(ctx, p, err)
	}
	return shown, nil
}

func (s *service) makeDirectory(ctx context.Context, d *directories, in makeIn) (string, error) {
	p, exists, err := d.locateNew(ctx, in.Path)
	if err != nil {
		return "", err
	}
	if exists {
		info, err := p.dir.root.Lstat(p.rel)
		if err == nil && !info.IsDir() {
			err = fs.ErrExist
		}
		if err != nil {
			return "", d.explain(ctx, "mkdir", p.abs, err)
		}
	} else if err := p.dir.root.MkdirAll(p.rel, 0o777); err != nil {
		return "", d.explain(ctx, "mkdir", p.abs, err)
	}
	return "Successfully created directory " + in.Path, nil
}
