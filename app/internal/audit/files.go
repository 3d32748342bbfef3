package audit

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/safefile"
)

// lockSuffix is that of the file that is locked.
const lockSuffix = ".lock"

// digits is how many digits the names of renamed files have at least, so that they sort, and are not
// taken for those of other programs.
const digits = 12

// A rotated is a renamed file of a log.
type rotated struct {
	path string
	last uint64 // the number of its last line
}

func rotatedName(path string, last uint64) string { return fmt.Sprintf("%s.%0*d", path, digits, last) }

// rotatedFiles are the renamed files of a log, oldest first.
func rotatedFiles(path string) ([]rotated, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var files []rotated
	for _, name := range names {
		number, ok := strings.CutPrefix(name, filepath.Base(path)+".")
		if !ok || len(number) < digits {
			continue
		}
		last, err := strconv.ParseUint(number, 10, 64)
		if err == nil && name == filepath.Base(rotatedName(path, last)) {
			files = append(files, rotated{filepath.Join(filepath.Dir(path), name), last})
		}
	}
	slices.SortFunc(files, func(a, b rotated) int { return cmp.Compare(a.last, b.last) })
	return files, nil
}

// Read calls visit with each line of the log at path, without its line feed, from the oldest file to
// the newest, until visit returns an error. The line is valid until visit returns. The files may be in
// use: what is appended after Read has begun is not read. A file whose last line is incomplete is an
// *IncompleteError, after all that can be read was visited.
func Read(ctx context.Context, path string, visit func(line []byte) error) error {
	newest, size, older, err := open(ctx, path)
	if err != nil {
		return err
	}
	var incomplete error
	begun := false
	for _, file := range older {
		f, err := os.Open(file.path)
		if errors.Is(err, os.ErrNotExist) && !begun {
			continue // it was among the oldest, and removed just now
		}
		if err == nil {
			begun = true
			err = errors.Join(scan(ctx, f, visit), f.Close())
		}
		if errors.As(err, new(*IncompleteError)) {
			incomplete, err = err, nil
		}
		if err != nil {
			return errors.Join(err, closeFile(newest))
		}
	}
	if newest != nil {
		err := errors.Join(scan(ctx, io.LimitReader(newest, size), visit), newest.Close())
		if err != nil {
			return err
		}
	}
	return incomplete
}

// readWait is how long a reader waits for the lock of a process that may have stopped.
const readWait = 2 * time.Second

// open opens the newest file, nil if there are only older ones, and finds the older ones. It waits for
// the lock, if it may have it, so that no line is read half.
func open(ctx context.Context, path string) (newest *os.File, size int64, older []rotated, err error) {
	if _, err := os.Lstat(path + lockSuffix); err == nil {
		wait, cancel := context.WithTimeout(ctx, readWait)
		defer cancel()
		if unlock, err := safefile.Lock(wait, path+lockSuffix); err == nil {
			defer unlock()
		}
	}
	// Without the lock the newest must be opened first: what is renamed after that is not missed.
	newest, err = os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		newest = nil
	} else if err != nil {
		return nil, 0, nil, err
	}
	missing := err
	older, err = rotatedFiles(path)
	switch {
	case err != nil:
		return nil, 0, nil, errors.Join(err, closeFile(newest))
	case newest == nil && len(older) == 0:
		return nil, 0, nil, missing
	case newest == nil:
		return nil, 0, older, nil
	}
	info, err := newest.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return nil, 0, nil, errors.Join(err, newest.Close())
	}
	if first := firstNumber(newest); first > 0 {
		older = slices.DeleteFunc(older, func(f rotated) bool { return f.last >= first })
	}
	return newest, info.Size(), older, nil
}

// firstNumber is the number of the first line of a file, 0 if it has none.
func firstNumber(f *os.File) uint64 {
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, maxLine+1), maxLine+1)
	line, err := in.ReadSlice('\n')
	var l link
	if err != nil || json.Unmarshal(line, &l) != nil {
		return 0 // who reads the lines finds what is wrong
	}
	return l.Seq
}

func closeFile(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// An IncompleteError says that a file does not end with a whole line.
type IncompleteError struct{}

func (*IncompleteError) Error() string {
	return "the last line is incomplete: a write was interrupted, or the end was cut off"
}

// scan calls visit with each line of r.
func scan(ctx context.Context, r io.Reader, visit func(line []byte) error) error {
	in := bufio.NewReaderSize(r, maxLine+1)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return &IncompleteError{}
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("a line is longer than %d bytes", maxLine)
		case err != nil:
			return err
		}
		if err := visit(line[:len(line)-1]); err != nil {
			return err
		}
	}
}
