package git_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
)

// deflated compresses a text, or if it is "" so many zeros.
func deflated(t testing.TB, text string, zeros int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := io.WriteString(z, text)
	if err == nil {
		_, err = io.CopyN(z, zeroes{}, zeros)
	}
	if closeErr := z.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// name makes the name of an object of a pack, which need not be that of its contents.
func name(n int) [20]byte { return sha1.Sum(fmt.Append(nil, n)) }

func nameText(n int) string {
	h := name(n)
	return hex.EncodeToString(h[:])
}

// entry is an object of a pack: its kind and size, the base of a delta, and what it is, compressed.
func entry(kind byte, size uint64, base []byte, content []byte) []byte {
	c := kind<<4 | byte(size&15)
	var b []byte
	for size >>= 4; size > 0; size >>= 7 {
		b = append(b, c|0x80)
		c = byte(size & 0x7f)
	}
	b = append(b, c)
	return slices.Concat(b, base, content)
}

// putPack writes a pack and its index, in which the nth entry has the name n.
func putPack(t testing.TB, dir string, entries ...[]byte) {
	t.Helper()
	pack := slices.Concat([]byte("PACK\x00\x00\x00\x02"), binary.BigEndian.AppendUint32(nil, uint32(len(entries))))
	type object struct {
		name [20]byte
		at   uint32
		sum  uint32
	}
	var list []object
	for i, e := range entries {
		list = append(list, object{name(i), uint32(len(pack)), crc32.ChecksumIEEE(e)})
		pack = append(pack, e...)
	}
	sum := sha1.Sum(pack)
	pack = append(pack, sum[:]...)
	slices.SortFunc(list, func(a, b object) int { return bytes.Compare(a.name[:], b.name[:]) })
	index := []byte("\xfftOc\x00\x00\x00\x02")
	for i := range 256 {
		n := 0
		for _, o := range list {
			if int(o.name[0]) <= i {
				n++
			}
		}
		index = binary.BigEndian.AppendUint32(index, uint32(n))
	}
	for _, o := range list {
		index = append(index, o.name[:]...)
	}
	for _, o := range list {
		index = binary.BigEndian.AppendUint32(index, o.sum)
	}
	for _, o := range list {
		index = binary.BigEndian.AppendUint32(index, o.at)
	}
	index = append(index, sum[:]...)
	whole := sha1.Sum(index)
	index = append(index, whole[:]...)
	path := filepath.Join(dir, ".git", "objects", "pack", "pack-"+hex.EncodeToString(sum[:]))
	put(t, path+".pack", string(pack))
	put(t, path+".idx", string(index))
}

// allocated is how many bytes of memory f takes, also those that are given back.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Objects that unpack to more than they say, deltas that lead in a circle or through too many others,
// and packs whose index is wrong end in an error, and take no memory to speak of.
func TestBombs(t *testing.T) {
	racetest.SkipSerial(t)
	needGitProgram(t)
	const commit, blob, refDelta = 1, 3, 7
	good := simple(t)
	const zeros = 256 << 20 // more than any object that is read
	bomb := deflated(t, "", zeros)
	loose := func(dir, header string) string {
		hash := nameText(1)
		content := deflated(t, header, zeros)
		put(t, filepath.Join(dir, ".git", "objects", hash[:2], hash[2:]), string(content))
		return hash
	}
	delta := func(n int, base int, content string) []byte {
		h := name(base)
		return entry(refDelta, uint64(len(content)), h[:], deflated(t, content, 0))
	}
	for what, make := range map[string]func(dir string) string{
		"loose, says little":      func(dir string) string { return loose(dir, "commit 10\x00") },
		"loose, says a lot":       func(dir string) string { return loose(dir, fmt.Sprintf("commit %d\x00", zeros)) },
		"loose, says less than 0": func(dir string) string { return loose(dir, "commit -1\x00") },
		"loose, no header":        func(dir string) string { return loose(dir, "") },
		"packed, says little": func(dir string) string {
			putPack(t, dir, entry(commit, 10, nil, bomb))
			return nameText(0)
		},
		"packed, says a lot": func(dir string) string {
			putPack(t, dir, entry(commit, zeros, nil, bomb))
			return nameText(0)
		},
		"packed delta": func(dir string) string {
			h := name(1)
			putPack(t, dir, entry(refDelta, 10, h[:], bomb), entry(blob, 1, nil, deflated(t, "x", 0)))
			return nameText(0)
		},
		"packed, of a large base": func(dir string) string {
			putPack(t, dir, delta(0, 1, "\x01\x01\x90\x01"), entry(blob, 1, nil, bomb))
			return nameText(0)
		},
		"packed, makes a lot": func(dir string) string {
			putPack(t, dir, delta(0, 1, "\x04\xff\xff\xff\xff\x0f"+strings.Repeat("\x90\x04", 1000)), entry(blob, 4, nil, deflated(t, "xxxx", 0)))
			return nameText(0)
		},
		"circle": func(dir string) string {
			putPack(t, dir, delta(0, 1, "\x01\x01\x90\x01"), delta(1, 0, "\x01\x01\x90\x01"))
			return nameText(0)
		},
		"of itself": func(dir string) string {
			putPack(t, dir, delta(0, 0, "\x01\x01\x90\x01"))
			return nameText(0)
		},
		"long chain": func(dir string) string {
			var list [][]byte
			content := deflated(t, "\x01\x01\x90\x01", 0)
			for i := range 5000 {
				h := name(i + 1)
				list = append(list, entry(refDelta, 4, h[:], content))
			}
			putPack(t, dir, append(list, entry(blob, 1, nil, deflated(t, "x", 0)))...)
			return nameText(0)
		},
		"index with many names": func(dir string) string {
			putPack(t, dir, entry(commit, 10, nil, bomb))
			index, err := filepath.Glob(filepath.Join(dir, ".git", "objects", "pack", "*.idx"))
			if err != nil || len(index) != 1 {
				t.Fatal(index, err)
			}
			f, err := os.OpenFile(index[0], os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("\xff\xff\xff\xff"), 8+255*4); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			return nameText(0)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := copyOf(t, good)
			hash := make(dir)
			c := serve(t, nil)
			n := allocated(func() {
				for _, rev := range []string{hash, hash[:10]} {
					text, failed := call(t, c, "git_show", map[string]any{"repo_path": dir, "revision": rev})
					if !failed || strings.Contains(text, "internal error") {
						t.Errorf("git_show gives %q (failed: %t)", text, failed)
					}
				}
			})
			if n > 16<<20 {
				t.Errorf("%d MiB were allocated", n>>20)
			}
		})
	}
}
