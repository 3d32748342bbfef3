package gogit

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"crypto/rand"
	"crypto/sha1" // for its size: it is how git names objects
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/parley-mcp/parley/mcp"
)

// objects reads the objects of a repository. Those of go-git are not used for it: they take in whatever
// an object unpacks to, and follow a chain of deltas wherever it leads.
type objects struct {
	ctx   context.Context //nolint:containedctx // of the one call
	dir   *os.Root        // the repository
	limit int64           // the most bytes of an object, and of one that it is made of
	packs []*pack
	known bool // packs were looked for
	loose map[string][]string
}

const (
	maxPacks  = 1000
	maxDeltas = 4096 // as many as git makes at most
	packCache = 16 * cache.MiByte
)

var errDamaged = errors.New("it is damaged")

// looseFile is the file that an object has if it is in none of the packs.
func looseFile(h plumbing.Hash) string {
	text := h.String()
	return "objects/" + text[:2] + "/" + text[2:]
}

// read gives the type and the contents of an object.
func (o *objects) read(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	f, _, err := openRegular(o.dir, looseFile(h))
	if err == nil {
		t, content, err := o.readLoose(f)
		return t, content, errors.Join(err, f.Close())
	}
	p, at, err := o.find(h)
	if err == nil && p == nil {
		err = plumbing.ErrObjectNotFound
	}
	if err != nil {
		return plumbing.InvalidObject, nil, err
	}
	return p.object(o.ctx, at, o.limit)
}

// has reports whether an object is there.
func (o *objects) has(h plumbing.Hash) bool {
	if info, err := o.dir.Stat(looseFile(h)); err == nil && info.Mode().IsRegular() {
		return true
	}
	p, _, err := o.find(h)
	return err == nil && p != nil
}

// readLoose reads an object from a file of its own: "TYPE SIZE", NUL and the contents, compressed.
func (o *objects) readLoose(f io.Reader) (plumbing.ObjectType, []byte, error) {
	const longest = 32 // bytes of "TYPE SIZE" and NUL
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return plumbing.InvalidObject, nil, errDamaged
	}
	in := bufio.NewReaderSize(z, longest)
	head, err := in.ReadSlice(0)
	kind, digits, _ := strings.Cut(strings.TrimSuffix(string(head), "\x00"), " ")
	t, typeErr := plumbing.ParseObjectType(kind)
	size, sizeErr := strconv.ParseInt(digits, 10, 64)
	if cmp.Or(err, typeErr, sizeErr) != nil || t.IsDelta() || size < 0 {
		return plumbing.InvalidObject, nil, errDamaged
	}
	content, err := exactly(o.ctx, in, size, o.limit)
	return t, content, err
}

// hash is the name of an object with these contents. Once the call ends, it is the zero hash.
func (o *objects) hash(t plumbing.ObjectType, content []byte) plumbing.Hash {
	h := plumbing.NewHasher(t, int64(len(content)))
	if _, err := io.Copy(h, pollReader{o.ctx, bytes.NewReader(content)}); err != nil {
		return plumbing.ZeroHash
	}
	return h.Sum()
}

// write writes an object to a file of its own, unless it is there. The file gets its name when it is whole.
func (o *objects) write(t plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	h := o.hash(t, content)
	if err := context.Cause(o.ctx); err != nil || o.has(h) {
		return h, err
	}
	file := looseFile(h)
	dir := path.Dir(file)
	if err := o.dir.MkdirAll(dir, 0o777); err != nil {
		return h, err
	}
	name := dir + "/tmp_obj_" + rand.Text() // git gc removes what a killed process leaves
	f, err := o.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return h, err
	}
	z := zlib.NewWriter(f)
	_, err = fmt.Fprintf(z, "%s %d\x00", t, len(content))
	if err == nil {
		_, err = io.Copy(z, pollReader{o.ctx, bytes.NewReader(content)})
	}
	if err = errors.Join(err, z.Close(), f.Close()); err == nil {
		err = o.dir.Rename(name, file)
	}
	if err != nil {
		err = errors.Join(err, o.dir.Remove(name))
	}
	return h, err
}

// exactly reads contents that have to be so long, and not longer than a limit.
func exactly(ctx context.Context, in io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, &tooLargeError{Size: size, Limit: limit}
	}
	content, err := io.ReadAll(io.LimitReader(pollReader{ctx, in}, size+1))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil || int64(len(content)) != size {
		return nil, errDamaged
	}
	return content, nil
}

// list opens the packs.
func (o *objects) list() ([]*pack, error) {
	if o.known {
		return o.packs, nil
	}
	entries, err := fs.ReadDir(o.dir.FS(), "objects/pack")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".idx")
		if !ok || !strings.HasPrefix(name, "pack-") {
			continue
		}
		if len(o.packs) == maxPacks {
			return nil, mcp.Errorf("the repository has more than %d packs: git gc makes one of them", maxPacks)
		}
		p, err := openPack(o.dir, "objects/pack/"+name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // git looks for both files as well
		}
		if err != nil {
			return nil, mcp.Errorf("the pack %s cannot be read: %v", name, err)
		}
		o.packs = append(o.packs, p)
	}
	o.known = true
	return o.packs, nil
}

// find finds the pack that has an object, or nil.
func (o *objects) find(h plumbing.Hash) (*pack, int64, error) {
	packs, err := o.list()
	if err != nil {
		return nil, 0, err
	}
	for i, p := range packs {
		n, err := p.search(h[:])
		if err != nil {
			return nil, 0, err
		}
		if name, err := p.name(n); err != nil || name != h {
			continue
		}
		at, err := p.offset(n)
		if i > 0 { // the next object is likely to be in the same one
			packs[0], packs[i] = packs[i], packs[0]
		}
		return p, at, err
	}
	return nil, 0, nil
}

// count is how many objects are packed.
func (o *objects) count() int64 {
	packs, err := o.list()
	if err != nil {
		return 0
	}
	var n int64
	for _, p := range packs {
		n += p.count
	}
	return n
}

// withPrefix finds the objects whose names begin so, with at least two digits.
func (o *objects) withPrefix(prefix string) ([]plumbing.Hash, error) {
	const most = 1000 // a name that so many have is of no use
	low, err := hex.DecodeString(prefix + strings.Repeat("0", 2*sha1.Size-len(prefix)))
	if err != nil {
		return nil, err
	}
	packs, err := o.list()
	if err != nil {
		return nil, err
	}
	var found []plumbing.Hash
	for _, p := range packs {
		n, err := p.search(low)
		if err != nil {
			return nil, err
		}
		for ; n < p.count && len(found) < most; n++ {
			h, err := p.name(n)
			if err != nil {
				return nil, err
			}
			if !strings.HasPrefix(h.String(), prefix) {
				break
			}
			found = append(found, h)
		}
	}
	list, err := o.looseNames(prefix[:2])
	if err != nil {
		return nil, err
	}
	for _, name := range list {
		if strings.HasPrefix(name, prefix) && plumbing.IsHash(name) {
			found = append(found, plumbing.NewHash(name))
		}
	}
	plumbing.HashesSort(found)
	return slices.Compact(found), nil
}

// looseNames lists the names of objects in files of their own by their first two digits.
func (o *objects) looseNames(digits string) ([]string, error) {
	if list, known := o.loose[digits]; known {
		return list, nil
	}
	entries, err := fs.ReadDir(o.dir.FS(), "objects/"+digits)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	list := make([]string, 0, len(entries))
	for _, e := range entries {
		list = append(list, digits+e.Name())
	}
	if o.loose == nil {
		o.loose = make(map[string][]string)
	}
	o.loose[digits] = list
	return list, nil
}

func (o *objects) close() error {
	var errs []error
	for _, p := range o.packs {
		errs = append(errs, p.index.Close(), p.data.Close())
	}
	return errors.Join(errs...)
}

// A pack has many objects in one file, with an index in another: a header, a table of 256 numbers,
// and then for all objects their names, checksums and offsets.
type pack struct {
	index, data *os.File
	fan         [256]uint32 // how many names begin with this byte or a lower one
	count       int64
	large       int64 // how many offsets need 8 bytes
	size        int64 // of data, without the checksum at its end
	bases       *cache.BufferLRU
	types       map[int64]plumbing.ObjectType // of what bases has
	in          *bufio.Reader                 // of data
	unpacked    io.Reader                     // what in has, unpacked
}

const (
	indexHeader = 8
	indexNames  = indexHeader + 256*4
)

func openPack(dir *os.Root, name string) (_ *pack, err error) {
	p := &pack{in: bufio.NewReader(nil), bases: cache.NewBufferLRU(packCache), types: make(map[int64]plumbing.ObjectType)}
	index, indexInfo, err := openRegular(dir, name+".idx")
	if err != nil {
		return nil, err
	}
	data, dataInfo, err := openRegular(dir, name+".pack")
	if err != nil {
		return nil, errors.Join(err, index.Close())
	}
	p.index, p.data, p.size = index, data, dataInfo.Size()-sha1.Size
	defer func() {
		if err != nil {
			err = errors.Join(err, index.Close(), data.Close())
		}
	}()
	var head [indexNames]byte
	if _, err := index.ReadAt(head[:], 0); err != nil || string(head[:indexHeader]) != "\xfftOc\x00\x00\x00\x02" {
		return nil, errDamaged
	}
	for i := range p.fan {
		p.fan[i] = binary.BigEndian.Uint32(head[indexHeader+4*i:])
		if i > 0 && p.fan[i] < p.fan[i-1] {
			return nil, errDamaged
		}
	}
	p.count = int64(p.fan[255])
	rest := indexInfo.Size() - indexNames - p.count*(sha1.Size+4+4) - 2*sha1.Size
	if rest < 0 {
		return nil, errDamaged
	}
	p.large = rest / 8
	return p, nil
}

// name is the name of the nth object; of one past the last the zero hash.
func (p *pack) name(n int64) (h plumbing.Hash, err error) {
	if n >= p.count {
		return h, nil
	}
	_, err = p.index.ReadAt(h[:], indexNames+n*sha1.Size)
	return h, err
}

// search finds the first object whose name is not before low.
func (p *pack) search(low []byte) (int64, error) {
	from, to := int64(0), int64(p.fan[low[0]])
	if low[0] > 0 {
		from = int64(p.fan[low[0]-1])
	}
	for from < to {
		middle := (from + to) / 2
		h, err := p.name(middle)
		if err != nil {
			return 0, err
		}
		if bytes.Compare(h[:], low) < 0 {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from, nil
}

// offset is where the nth object is.
func (p *pack) offset(n int64) (int64, error) {
	var b [8]byte
	at := indexNames + p.count*(sha1.Size+4)
	if _, err := p.index.ReadAt(b[:4], at+4*n); err != nil {
		return 0, err
	}
	short := binary.BigEndian.Uint32(b[:4])
	if short>>31 == 0 {
		return int64(short), nil
	}
	long := int64(short & (1<<31 - 1))
	if long >= p.large {
		return 0, errDamaged
	}
	if _, err := p.index.ReadAt(b[:], at+4*p.count+8*long); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil // entry refuses what is negative then
}

// object reads the object at an offset, with all that it is made of.
func (p *pack) object(ctx context.Context, at, limit int64) (plumbing.ObjectType, []byte, error) {
	type delta struct {
		at      int64
		content []byte
	}
	var deltas []delta
	var content []byte
	var t plumbing.ObjectType
	total := int64(0)
	for {
		var ok bool
		if content, ok = p.bases.Get(at); ok {
			t = p.types[at]
			break
		}
		e, err := p.entry(ctx, at, limit)
		if err != nil {
			return t, nil, err
		}
		if !e.kind.IsDelta() {
			t, content = e.kind, e.content
			break
		}
		total += int64(len(e.content))
		if len(deltas) == maxDeltas || total > 2*limit {
			return t, nil, fmt.Errorf("it is made of more than %d others, or of larger ones than can be used", len(deltas))
		}
		deltas = append(deltas, delta{at, e.content})
		at = e.base
	}
	if len(deltas) > 0 {
		p.keep(at, t, content)
	}
	for i, d := range slices.Backward(deltas) {
		if ctx.Err() != nil {
			return t, nil, context.Cause(ctx)
		}
		if size := deltaTarget(d.content); size > limit {
			return t, nil, &tooLargeError{Size: size, Limit: limit}
		}
		var err error
		if content, err = packfile.PatchDelta(content, d.content); err != nil {
			return t, nil, errDamaged
		}
		if i > 0 {
			p.keep(d.at, t, content)
		}
	}
	return t, content, nil
}

func (p *pack) keep(at int64, t plumbing.ObjectType, content []byte) {
	p.bases.Put(at, content)
	p.types[at] = t
}

// deltaTarget is the size of what a delta makes, or a size that is too large if it does not say.
func deltaTarget(content []byte) int64 {
	const damaged = 1 << 62
	_, n := binary.Uvarint(content) // the size of what it is made of
	if n <= 0 {
		return damaged
	}
	size, n := binary.Uvarint(content[n:])
	if n <= 0 || size > damaged {
		return damaged
	}
	return int64(size) // it was just compared
}

// An entry is what a pack has at an offset. A delta has a base, at another offset.
type entry struct {
	kind    plumbing.ObjectType
	base    int64
	content []byte
}

func (p *pack) entry(ctx context.Context, at, limit int64) (*entry, error) {
	const packHeader = 12
	if at < packHeader || at >= p.size {
		return nil, errDamaged
	}
	in := p.in
	in.Reset(io.NewSectionReader(p.data, at, p.size-at))
	c, err := in.ReadByte()
	if err != nil {
		return nil, errDamaged
	}
	e := &entry{kind: plumbing.ObjectType(c >> 4 & 7)} // three bits
	size := int64(c & 15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil || shift > 56 {
			return nil, errDamaged
		}
		size |= int64(c&0x7f) << shift
	}
	switch e.kind {
	case plumbing.OFSDeltaObject:
		back, err := backwards(in)
		if err != nil || back <= 0 || back >= at {
			return nil, errDamaged
		}
		e.base = at - back
	case plumbing.REFDeltaObject:
		var h plumbing.Hash
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return nil, errDamaged
		}
		n, err := p.search(h[:])
		if err != nil {
			return nil, err
		}
		if name, err := p.name(n); err != nil || name != h {
			return nil, errDamaged
		}
		if e.base, err = p.offset(n); err != nil {
			return nil, err
		}
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	default:
		return nil, errDamaged
	}
	if p.unpacked == nil {
		p.unpacked, err = zlib.NewReader(in)
	} else {
		err = p.unpacked.(zlib.Resetter).Reset(in, nil) // package zlib says so
	}
	if err != nil {
		p.unpacked = nil
		return nil, errDamaged
	}
	e.content, err = exactly(ctx, p.unpacked, size, limit)
	return e, err
}

// backwards reads how far before a delta its base is.
func backwards(in io.ByteReader) (int64, error) {
	c, err := in.ReadByte()
	back := int64(c & 0x7f)
	for err == nil && c&0x80 != 0 {
		if back >= 1<<48 {
			return 0, errDamaged
		}
		if c, err = in.ReadByte(); err == nil {
			back = (back+1)<<7 | int64(c&0x7f)
		}
	}
	return back, err
}
