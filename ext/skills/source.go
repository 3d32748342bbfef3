package skills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// A Source has the skills of a catalog.
type Source interface {
	// Skills calls add for each skill that there is now. It is called by [Enable] and
	// [Catalog.Reload], by one goroutine at a time. The files of a skill are read
	// before add returns, unless the skill is dynamic. An error, such as a folder that
	// cannot be opened, means that the catalog stays as it is. What is wrong with one
	// skill add keeps for the error of Enable and Reload.
	Skills(ctx context.Context, add func(Bundle)) error
}

// A SourceFunc is a [Source] of one function, for generated skills.
type SourceFunc func(ctx context.Context, add func(Bundle)) error

// Skills calls the function.
func (f SourceFunc) Skills(ctx context.Context, add func(Bundle)) error { return f(ctx, add) }

// A Bundle is a skill with its files.
type Bundle struct {
	// Path is where the skill is, with slashes. Its last part is the skill's name:
	// "acme/billing/refunds".
	Path string
	// Files are the files of the skill, SKILL.md at the top. Those whose name begins
	// with a dot are left out, and so are directories of such names.
	Files fs.FS
	// Dynamic says that the files are made anew by each read, so that they have no
	// digests. Which files there are, and the frontmatter, stay as they are until
	// [Catalog.Reload]. Files is then read by many goroutines, for as long as the catalog
	// has the skill. Default false.
	Dynamic bool
}

// Dir has the skills of a folder: every SKILL.md below it makes a skill of the folder
// that it is in, which has the name of the skill. Skills may be nested in others. The
// folder is opened each time the catalog is loaded, by [os.Root]: nothing outside of it
// can be reached. A symbolic link, a device or a pipe below it is an error; names that
// begin with a dot are left out.
func Dir(folder string) Source {
	return SourceFunc(func(ctx context.Context, add func(Bundle)) error {
		root, err := os.OpenRoot(folder)
		if err != nil {
			return fmt.Errorf("skills: opening the folder: %w", err)
		}
		defer func() { _ = root.Close() }() // it was only read
		return find(ctx, root.FS(), add)
	})
}

// FS has the skills of a file system, such as an [embed.FS], as [Dir] has those of a
// folder.
func FS(fsys fs.FS) Source {
	return SourceFunc(func(ctx context.Context, add func(Bundle)) error { return find(ctx, fsys, add) })
}

// Join has the skills of several sources.
func Join(sources ...Source) Source {
	return SourceFunc(func(ctx context.Context, add func(Bundle)) error {
		var all []error
		for i, s := range sources {
			if s == nil {
				all = append(all, fmt.Errorf("skills: source %d of Join is nil; use skills.Dir or skills.FS", i))
				continue
			}
			all = append(all, s.Skills(ctx, add))
		}
		return errors.Join(all...)
	})
}

// maxEntries is the most files and directories of a folder of skills, so that a wrong
// folder, such as a home directory, is an error at once.
const maxEntries = 100_000

// find calls add for each folder that has a SKILL.md.
func find(ctx context.Context, fsys fs.FS, add func(Bundle)) error {
	if fsys == nil {
		return errors.New("skills: the file system is nil")
	}
	entries := 0
	return walk(fsys, func(p string, d fs.DirEntry) error {
		if entries++; entries > maxEntries {
			return &LimitError{Name: "the folder of skills", What: "files", Max: maxEntries}
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("skills: %w", err)
		}
		dir, name := path.Split(p)
		if name != skillFile || !d.Type().IsRegular() {
			return nil
		}
		if dir == "" {
			return fmt.Errorf("skills: %s is at the top: put it in a folder that has the name of the skill", skillFile)
		}
		dir = strings.TrimSuffix(dir, "/")
		files, err := fs.Sub(fsys, dir)
		if err != nil {
			return fmt.Errorf("skills: %w", err)
		}
		add(Bundle{Path: dir, Files: files})
		return nil
	})
}

// walk calls fn for all files and directories below the top, in the order of their
// names. Names that begin with a dot are left out. What is neither a file nor a
// directory is an error.
func walk(fsys fs.FS, fn func(p string, d fs.DirEntry) error) error {
	return fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("skills: %w", err)
		case p == ".":
			return nil
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err := checkKind(p, d.Type()); err != nil {
			return err
		}
		return fn(p, d)
	})
}

// checkKind refuses what is neither a file nor a directory.
func checkKind(p string, mode fs.FileMode) error {
	switch {
	case mode&fs.ModeSymlink != 0:
		return &FileError{Path: p, Reason: "it is a symbolic link; put the file itself there"}
	case !mode.IsDir() && !mode.IsRegular():
		return &FileError{Path: p, Reason: "it is no ordinary file; remove it from the folder"}
	}
	return nil
}

// A FileError says why a file cannot be served.
type FileError struct {
	// Path is that of the file, below the folder or below its skill.
	Path string
	// Reason says what is wrong and what to do.
	Reason string
}

// Error names the file and what is wrong with it.
func (e *FileError) Error() string { return fmt.Sprintf("skills: %s: %s", shown(e.Path), e.Reason) }

// shown is a path for an error: in quotes if it holds what is not shown, or could move
// the cursor of a terminal.
func shown(path string) string {
	if checkFileName(path) == nil {
		return path
	}
	return strconv.Quote(path)
}
