package filesystem

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// chunk is how much of a file is read at once where only a part is wanted.
const chunk = 64 << 10

// readPart is the most that is read of a file between two looks at the context.
const readPart = 1 << 20

// readBuffer is the size of the readBuffers, which hold files until they are texts.
const readBuffer = 16 << 10

var readBuffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

type readIn struct {
	Path string `json:"path" desc:"The file, as an absolute path or one below the first allowed directory." maxlen:"32768"`
	Head int    `json:"head,omitzero" desc:"Give only so many lines from the beginning." min:"1"`
	Tail int    `json:"tail,omitzero" desc:"Give only so many lines from the end." min:"1"`
}

type readManyIn struct {
	Paths []string `json:"paths" desc:"The files." minlen:"1" maxlen:"1000"`
}

// readingTools are the tools that read files.
func (s *service) readingTools() []server.Feature {
	return []server.Feature{
		tool(s, "read_text_file", "Reads a file as text: all of it, or the first lines (head) or the last (tail). "+
			"Use head or tail for long files. Bytes that are not UTF-8 are shown as U+FFFD.", s.readText).
			With(server.ToolOptions{Title: "Read Text File", Annotations: readOnly}),
		tool(s, "read_file", "Deprecated: use read_text_file, which does the same.", s.readText).
			With(server.ToolOptions{Title: "Read File (Deprecated)", Annotations: readOnly}),
		tool(s, "read_multiple_files", "Reads several files as text, each under its path. A file that cannot be read "+
			"has its error in the place of its text; the others are given all the same.", s.readMany).
			With(server.ToolOptions{Title: "Read Multiple Files", Annotations: readOnly}),
		server.Tool("read_media_file", "Reads a file as it is: a picture or a sound as such, anything else as an "+
			"embedded resource in base64.", s.readMedia).
			With(server.ToolOptions{Title: "Read Media File", Annotations: readOnly}),
	}
}

func (s *service) readText(ctx context.Context, d *directories, in readIn) (string, error) {
	if in.Head > 0 && in.Tail > 0 {
		return "", mcp.Errorf("Cannot specify both head and tail parameters simultaneously")
	}
	f, info, err := d.open(ctx, in.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	var data []byte
	switch {
	case in.Head > 0:
		data, err = s.head(ctx, f, in.Head)
	case in.Tail > 0:
		data, err = s.tail(ctx, f, info.Size(), in.Tail)
	default:
		buf := readBuffers.Get().(*[readBuffer]byte)
		defer readBuffers.Put(buf)
		data, err = readAll(ctx, f, info.Size(), s.opts.MaxRead, buf[:])
	}
	if err != nil {
		return "", d.explain(ctx, "read", in.Path, err)
	}
	return text(ctx, data)
}

// readAll reads a file of at most so many bytes, into buf if there is room.
func readAll(ctx context.Context, f *os.File, size, most int64, buf []byte) ([]byte, error) {
	if size > most {
		return nil, tooLarge(size, most)
	}
	if need := size + 1; need > int64(len(buf)) { // one more, to see the end
		buf = make([]byte, need)
	}
	read := 0
	for {
		if err := servers.Ended(ctx); err != nil {
			return nil, err
		}
		n, err := f.Read(buf[read:min(len(buf), read+readPart)])
		read += n
		switch {
		case errors.Is(err, io.EOF) || err == nil && read > 0 && int64(read) == size: // all that it had
			return buf[:read], nil
		case err != nil:
			return nil, err
		case int64(read) > most: // it grew meanwhile, or its size is not known
			return nil, tooLarge(int64(read), most)
		case read == len(buf):
			buf = append(buf, make([]byte, min(int64(read)+bytes.MinRead, most+1-int64(read)))...)
		}
	}
}

func tooLarge(size, most int64) error {
	return mcp.Errorf("the file has %s, and at most %s are read at once; read a part of it, with head or tail of read_text_file",
		formatSize(size), formatSize(most))
}

// head reads the first lines, without the end of the last one. The bytes between are those of the file.
func (s *service) head(ctx context.Context, f io.Reader, lines int) ([]byte, error) {
	var data []byte
	buf := make([]byte, chunk)
	for {
		if err := servers.Ended(ctx); err != nil {
			return nil, err
		}
		n, err := f.Read(buf)
		for part := buf[:n]; len(part) > 0; lines-- {
			i := bytes.IndexByte(part, '\n')
			if i < 0 {
				data = append(data, part...)
				break
			}
			data, part = append(data, part[:i+1]...), part[i+1:]
			if lines == 1 {
				return withoutEnd(data), nil
			}
		}
		switch {
		case int64(len(data)) > s.opts.MaxRead:
			return nil, tooLong(s.opts.MaxRead)
		case errors.Is(err, io.EOF):
			return withoutEnd(data), nil
		case err != nil:
			return nil, err
		}
	}
}

// tail reads the last lines, without the end of the last one. The bytes between are those of the file.
func (s *service) tail(ctx context.Context, f io.ReaderAt, size int64, lines int) ([]byte, error) {
	var parts [][]byte // from the last to the first
	total, left := int64(0), lines
	for at := size; at > 0 && left > 0; {
		if err := servers.Ended(ctx); err != nil {
			return nil, err
		}
		n := min(chunk, at)
		at -= n
		part := make([]byte, n)
		got, err := f.ReadAt(part, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if part = part[:got]; got == 0 { // the file became shorter
			continue
		}
		end := got
		if len(parts) == 0 && part[end-1] == '\n' {
			end-- // it ends the last line, and begins none
		}
		for end > 0 && left > 0 {
			if end = bytes.LastIndexByte(part[:end], '\n'); end < 0 {
				break
			}
			if left--; left == 0 {
				part = part[end+1:]
			}
		}
		if total += int64(len(part)); total > s.opts.MaxRead {
			return nil, tooLong(s.opts.MaxRead)
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return withoutEnd(bytes.Join(parts, nil)), nil
}

// withoutEnd returns lines without the end of the last one, "\n" or "\r\n".
func withoutEnd(lines []byte) []byte {
	if bare, ended := bytes.CutSuffix(lines, []byte("\n")); ended {
		return bytes.TrimSuffix(bare, []byte("\r"))
	}
	return lines
}

func tooLong(most int64) error {
	return mcp.Errorf("these lines have more than %s, and no more is read at once; ask for fewer lines", formatSize(most))
}

func (s *service) readMany(ctx context.Context, d *directories, in readManyIn) (string, error) {
	var all strings.Builder
	left, errorsLeft := s.opts.MaxRead, s.opts.MaxRead
	for i, path := range in.Paths {
		if err := servers.Ended(ctx); err != nil {
			return "", err
		}
		if i > 0 {
			all.WriteString("\n---\n")
		}
		data, err := d.readFile(ctx, path, left)
		if err != nil {
			said := path + ": Error - " + err.Error()
			if errorsLeft -= int64(len(said)); errorsLeft < 0 {
				return "", mcp.Errorf("the errors of these files alone have more than %s; ask for fewer files", formatSize(s.opts.MaxRead))
			}
			all.WriteString(said)
			continue
		}
		left -= int64(len(data))
		shown, err := text(ctx, data)
		if err != nil {
			return "", err
		}
		all.WriteString(path + ":\n" + shown + "\n")
	}
	return all.String(), nil
}

// readFile reads a file of at most so many bytes.
func (d *directories) readFile(ctx context.Context, path string, most int64) ([]byte, error) {
	f, info, err := d.open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := readAll(ctx, f, info.Size(), most, nil)
	return data, d.explain(ctx, "read", path, err)
}

// open opens a regular file for reading.
func (d *directories) open(ctx context.Context, path string) (*os.File, fs.FileInfo, error) {
	p, err := d.place(path)
	if err != nil {
		return nil, nil, err
	}
	// Links that stay in the directory are followed by the system, which is quicker.
	f, info, err := p.open()
	if err == nil {
		return f, info, nil
	}
	if p, err = d.existing(ctx, "open", path); err != nil {
		return nil, nil, err
	}
	f, info, err = p.open()
	if errors.Is(err, syscall.EISDIR) {
		return nil, nil, d.explain(ctx, "read", p.abs, err)
	}
	return f, info, d.explain(ctx, "open", p.abs, err)
}

// open opens a regular file for reading, and nothing else.
func (p place) open() (*os.File, fs.FileInfo, error) {
	info, err := p.dir.root.Stat(p.rel)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := p.dir.root.OpenFile(p.rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat() // it may be another one than before
	if err == nil {
		err = regular(info)
	}
	if err == nil && inKernel(f, info) {
		err = errNotRegular
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// regular refuses what is no regular file.
func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return syscall.EISDIR
	case !info.Mode().IsRegular():
		return errNotRegular
	}
	return nil
}

type mediaIn struct {
	Path string `json:"path" desc:"The file." maxlen:"32768"`
}

// mediaTypes are the files that are told apart, by extension.
var mediaTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".bmp": "image/bmp", ".svg": "image/svg+xml",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".flac": "audio/flac",
}

// readMedia returns the file once, as content. A structured result would hold it again, and clients show
// that to the model as text.
func (s *service) readMedia(ctx context.Context, in mediaIn) (mcp.Content, error) {
	d, err := s.directories(ctx)
	if err != nil {
		return nil, err
	}
	defer s.dirs.release(d)
	p, err := d.existing(ctx, "open", in.Path)
	if err != nil {
		return nil, err
	}
	data, err := d.readFile(ctx, p.abs, s.opts.MaxRead)
	if err != nil {
		return nil, err
	}
	mimeType := mediaTypes[strings.ToLower(filepath.Ext(p.abs))]
	switch kind, _, _ := strings.Cut(mimeType, "/"); kind {
	case "image":
		return mcp.Image(data, mimeType), nil
	case "audio":
		return mcp.Audio(data, mimeType), nil
	default:
		return mcp.Embed(mcp.ResourceContents{URI: fileURI(p.abs), MIMEType: "application/octet-stream", Blob: data}), nil
	}
}

// text is data as text. What is not UTF-8 becomes U+FFFD, once for each part of a
// character, as decoders of the Web do it.
func text(ctx context.Context, data []byte) (string, error) {
	if utf8.Valid(data) {
		return string(data), nil
	}
	var b strings.Builder
	for steps := servers.NewSteps(ctx); len(data) > 0; {
		if err := steps.Add(0); err != nil {
			return "", err
		}
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			n = brokenPrefix(data)
		}
		b.WriteRune(r)
		data = data[n:]
	}
	return b.String(), nil
}

// valid is text of a string.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	text, _ := text(context.Background(), []byte(s)) // which does not end
	return text
}

// brokenPrefix returns how many bytes at the beginning of data are the beginning of a character that does
// not continue (Unicode, section 3.9, maximal subparts).
func brokenPrefix(data []byte) int {
	low, high, most := byte(0x80), byte(0xbf), 3
	switch first := data[0]; {
	case first < 0xe0 || first > 0xf4: // of a character of two bytes only the first can be there
		return 1
	case first < 0xf0:
		most = 2
	}
	switch data[0] { // the second byte has narrower bounds, against long forms, surrogates and what is above U+10FFFF
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n := 1
	for n < min(most, len(data)) && low <= data[n] && data[n] <= high {
		n++
		low, high = 0x80, 0xbf
	}
	return n
}
