package filesystem

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
)

// Where things are in an entry as getdents64(2) gives it.
const (
	direntLength = 16 // of the whole entry, two bytes
	direntType   = 18
	direntName   = 19 // up to a byte 0
)

// direntBuffers hold what one call of getdents64 gives.
var direntBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// readEntries reads at most so many entries of an open directory. Package os would make three objects of
// each entry, and a system call for each of a directory below an os.Root.
func readEntries(ctx context.Context, f *os.File, most int) (list []entry, err error) {
	buf := direntBuffers.Get().(*[32 << 10]byte)
	defer direntBuffers.Put(buf)
	fd := int(f.Fd())
	for len(list) < most {
		if err := servers.Ended(ctx); err != nil {
			return nil, err
		}
		n, err := unix.Getdents(fd, buf[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "readdir", Path: f.Name(), Err: err}
		case n == 0:
			return list, nil
		}
		list = appendEntries(list, fd, buf[:n], most)
	}
	return list, nil
}

// appendEntries appends the entries that getdents64 gave, until there are as many as wanted.
func appendEntries(list []entry, fd int, data []byte, most int) []entry {
	text := string(data) // names are parts of it
	list = slices.Grow(list, min(len(data)/32, most-len(list)))
	for at := 0; at+direntName < len(data) && len(list) < most; {
		end := at + int(binary.NativeEndian.Uint16(data[at+direntLength:]))
		if end <= at+direntName || end > len(data) {
			break // the kernel gives no such thing
		}
		name, _, _ := strings.Cut(text[at+direntName:end], "\x00")
		kind, known := kinds[data[at+direntType]]
		at = end
		if name == "." || name == ".." {
			continue
		}
		if !known { // some file systems do not tell
			var there bool
			if kind, there = kindOf(fd, name); !there {
				continue
			}
		}
		list = append(list, entry{name, kind})
	}
	return list
}

// kinds are the types of entries.
var kinds = map[byte]fs.FileMode{
	unix.DT_REG: 0, unix.DT_DIR: fs.ModeDir, unix.DT_LNK: fs.ModeSymlink, unix.DT_FIFO: fs.ModeNamedPipe,
	unix.DT_SOCK: fs.ModeSocket, unix.DT_BLK: fs.ModeDevice, unix.DT_CHR: fs.ModeDevice | fs.ModeCharDevice,
}

// kindOf looks at what a name in an open directory names.
func kindOf(fd int, name string) (kind fs.FileMode, there bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fs.ModeIrregular, !errors.Is(err, fs.ErrNotExist)
	}
	return kinds[byte(st.Mode&unix.S_IFMT>>12)], true // the types of entries are those of files
}
