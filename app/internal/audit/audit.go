// Package audit writes and verifies a log of JSON lines. Each line contains the hash of the line before
// it, so that verification detects changed, removed, inserted and moved lines. A log is one file, or
// several after rotation: FILE is the newest, and the older ones are FILE.000000001234, named after
// their last line.
package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-mcp/parley/app/internal/safefile"
)

// maxLine is the length of the longest line in bytes.
const maxLine = 1 << 20

// Options adjust a Log. The zero value, and nil, are good for those who append now and then.
type Options struct {
	// MaxSize is the size in bytes that a file must not exceed: before it would, it is renamed, and a
	// new one begins. A line longer than that has a file of its own. Default 0: files are not renamed.
	MaxSize int64
	// Keep is how many renamed files are kept; older ones are removed, and a line "audit removed" says
	// so. Default 0: all are kept.
	Keep int
	// Key authenticates lines: each has a member "mac", an HMAC-SHA-256 of the rest of it, which nobody
	// can make without the key. Default: none.
	Key []byte
	// Now is the clock of the lines that the log adds. Default time.Now.
	Now func() time.Time
}

// A Log appends to the file at a path. It may be used by many goroutines at once, and any number of
// processes may append to the same file, with the same Key: they take turns by the lock of the file
// path + ".lock", which stays.
type Log struct {
	path string
	opts Options
	// step is told of each step of an append, for tests.
	step func(name string)
}

// New returns the log of a path. Options may be nil.
func New(path string, o *Options) *Log {
	l := &Log{path: path, step: func(string) {}}
	if o != nil {
		l.opts = *o
	}
	if l.opts.Now == nil {
		l.opts.Now = time.Now
	}
	return l
}

// Check makes the file if there is none, and says whether Append can write to it: its last line must
// be one of a log.
func (l *Log) Check() (err error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", l.path)
	}
	_, _, _, err = l.end()
	return err
}

// A note is a line that the log adds by itself.
type note struct {
	Time         time.Time `json:"time"`
	Event        string    `json:"event"`
	RemovedBytes int64     `json:"removedBytes,omitzero"`
	// RemovedLines is the number of the last of the lines that were removed with their files.
	RemovedLines uint64 `json:"removedLines,omitzero"`
}

// Events of lines that the log adds.
const (
	eventRepaired = "audit repaired"
	eventRemoved  = "audit removed"
)

// Append appends entries, JSON objects with members, each as one line, and makes the file if there is
// none. ctx limits the wait for the lock. An incomplete last line, which a process that was killed left
// behind, is removed, and a line "audit repaired" says so. Entries that cannot be written whole are
// taken back, all of them.
//
// What Append returned without an error is in the file, though not forced to the disk: it survives the
// end of the process, not that of the machine. A file is forced to the disk before it is renamed.
func (l *Log) Append(ctx context.Context, entries ...any) (err error) {
	unlock, err := safefile.Lock(ctx, l.path+lockSuffix)
	if err != nil {
		return fmt.Errorf("locking the file: %w", err)
	}
	defer unlock()
	end, size, torn, err := l.end()
	if err != nil {
		return err
	}
	if torn > 0 {
		entries = append([]any{&note{Time: l.opts.Now().UTC(), Event: eventRepaired, RemovedBytes: torn}}, entries...)
	}
	lines, err := l.lines(end, entries)
	if err != nil {
		return err
	}
	if torn > 0 {
		if err := os.Truncate(l.path, size); err != nil {
			return err
		}
		l.step("truncated")
	}
	if l.opts.MaxSize == 0 || size == 0 || size+int64(len(lines)) <= l.opts.MaxSize {
		return l.write(lines, size)
	}
	if err := l.rename(end); err != nil {
		return err
	}
	return l.begin(end, entries)
}

// lines are those of entries after an end.
func (l *Log) lines(end End, entries []any) ([]byte, error) {
	var lines []byte
	var err error
	for _, entry := range entries {
		if lines, err = end.add(lines, entry, l.opts.Key); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// write writes lines at the end of the file, which has a size, or nothing.
func (l *Log) write(lines []byte, size int64) (err error) {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	l.step("opened")
	if size == 0 {
		if err := l.likeLast(f); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(lines, size); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	l.step("written")
	return nil
}

// likeLast gives a new file the permissions of the one that was renamed last: its readers read on.
func (l *Log) likeLast(f *os.File) error {
	files, err := rotatedFiles(l.path)
	if err != nil || len(files) == 0 {
		return err
	}
	info, err := os.Stat(files[len(files)-1].path)
	if err != nil {
		return err
	}
	return f.Chmod(info.Mode().Perm())
}

// rename renames the file, whose last line is end. Where Append is interrupted after that there is no
// file, or an empty or incomplete one, and the next Append goes on after the file that was renamed.
func (l *Log) rename(end End) error {
	// A power cut must not take the end of this file and leave the beginning of the next.
	if err := l.sync(); err != nil {
		return err
	}
	l.step("synced")
	name := rotatedName(l.path, end.Line)
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s already exists; move it away", name)
	}
	if err := os.Rename(l.path, name); err != nil {
		return err
	}
	l.step("renamed")
	return nil
}

// begin writes the entries to a new file, and removes the oldest ones.
func (l *Log) begin(end End, entries []any) error {
	old, err := l.surplus()
	if err != nil {
		return err
	}
	if len(old) > 0 {
		entries = append([]any{&note{
			Time: l.opts.Now().UTC(), Event: eventRemoved, RemovedLines: old[len(old)-1].last,
		}}, entries...)
	}
	lines, err := l.lines(end, entries)
	if err != nil {
		return err
	}
	if err := l.write(lines, 0); err != nil {
		return err
	}
	_ = l.remove(old) // the entries are written, and the next rotation tries again
	return nil
}

// remove removes the oldest files.
func (l *Log) remove(old []rotated) error {
	if len(old) == 0 {
		return nil
	}
	// Nor may a power cut take the line that says what was removed, and leave it removed.
	if err := l.sync(); err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file.path); err != nil {
			return err
		}
		l.step("removed")
	}
	return nil
}

// sync forces the file, and its name, to the disk.
func (l *Log) sync() error {
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), safefile.SyncFolder(filepath.Dir(l.path)))
}

// surplus are the renamed files that are too many, oldest first.
func (l *Log) surplus() ([]rotated, error) {
	if l.opts.Keep == 0 {
		return nil, nil
	}
	files, err := rotatedFiles(l.path)
	if err != nil {
		return nil, err
	}
	return files[:max(0, len(files)-l.opts.Keep)], nil
}
