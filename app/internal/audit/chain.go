package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// A link is what each line has in front of its entry.
type link struct {
	Seq  uint64 `json:"seq"`
	Prev string `json:"prev"` // SHA-256 of the line before without its line feed, in hex; "" in the first
}

// An End is where a log ends.
type End struct {
	Line uint64 // the number of the last line; 0 of an empty log
	Hash string // SHA-256 of that line without its line feed, in hex; "" of an empty log
}

// add appends the line of an entry to lines, and makes it the end.
func (e *End) add(lines []byte, entry any, key []byte) ([]byte, error) {
	front, err := json.Marshal(link{Seq: e.Line + 1, Prev: e.Hash})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	line := append(append(front[:len(front)-1], ','), raw[1:]...)
	if len(key) > 0 {
		line = line[:len(line)-1]
		line = append(append(append(line, macBefore...), mac(key, line)...), macAfter...)
	}
	if len(line) > maxLine {
		return nil, fmt.Errorf("the entry has %d bytes; at most %d are allowed", len(line), maxLine)
	}
	*e = End{Line: e.Line + 1, Hash: hash(line)}
	return append(append(lines, line...), '\n'), nil
}

func hash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// What stands around the MAC at the end of a line. In a text of JSON its quotes would be escaped.
const (
	macBefore = `,"mac":"`
	macAfter  = `"}`
)

func mac(key, text []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// cutMAC returns what the MAC of a line is made of, and the MAC; "" of a line without one.
func cutMAC(line []byte) (text []byte, given string) {
	const digits = 2 * sha256.Size
	at := len(line) - len(macBefore) - digits - len(macAfter)
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(macBefore)) || !bytes.HasSuffix(line, []byte(macAfter)) {
		return line, ""
	}
	return line[:at], string(line[at+len(macBefore):][:digits])
}

// errNotChained is that of a file which is no log, or whose end was damaged.
var errNotChained = errors.New("its last line is not one of a chained audit; move the file away, or verify it")

// end finds the last line of the log, the size of the file up to it, and the bytes after it. Where there
// is no file, or one without a whole line, it is the last line of the file that was renamed last, if
// there is one.
func (l *Log) end() (end End, size, torn int64, err error) {
	end, size, torn, err = tail(l.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil || size > 0 {
		return end, size, torn, err
	}
	files, err := rotatedFiles(l.path)
	if err != nil || len(files) == 0 {
		return End{}, 0, torn, err
	}
	last := files[len(files)-1]
	end, _, rest, err := tail(last.path)
	if err == nil && (end.Line != last.last || rest > 0) {
		err = fmt.Errorf("it does not end with line %d, as its name says; verify the audit, and move all of its files away to start a new one", last.last)
	}
	if err != nil {
		return End{}, 0, 0, fmt.Errorf("%s: %w", last.path, err)
	}
	return end, 0, torn, nil
}

// tail finds the last whole line of a file, the size of the file up to its end, and the bytes after it.
func tail(path string) (end End, size, torn int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return End{}, 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return End{}, 0, 0, err
	}
	total := info.Size()
	for window := int64(4 << 10); ; window *= 2 {
		start := max(0, total-window)
		data := make([]byte, total-start)
		if _, err := f.ReadAt(data, start); err != nil {
			return End{}, 0, 0, err
		}
		stop := bytes.LastIndexByte(data, '\n') // -1: no line is whole
		before := -1
		if stop >= 0 {
			before = bytes.LastIndexByte(data[:stop], '\n')
		}
		switch {
		case stop < 0 && start == 0:
			return End{}, 0, total, nil
		case stop >= 0 && (before >= 0 || start == 0):
			var l link
			line := data[before+1 : stop]
			if err := json.Unmarshal(line, &l); err != nil || l.Seq == 0 {
				return End{}, 0, 0, errNotChained
			}
			size = start + int64(stop) + 1
			return End{Line: l.Seq, Hash: hash(line)}, size, total - size, nil
		case window > 4*maxLine:
			return End{}, 0, 0, fmt.Errorf("its last line is longer than %d bytes; move the file away", maxLine)
		}
	}
}
