package skills

import (
	"bytes"
	"mime"
	"path"
	"strings"
	"unicode/utf8"
)

const (
	mimeDirectory = "inode/directory"
	mimeMarkdown  = "text/markdown"
)

// mimeOf is the type of a file by its name, or by its content.
func mimeOf(p string, data []byte) string {
	ext := strings.ToLower(path.Ext(p))
	if ext == ".md" {
		return mimeMarkdown
	}
	if t, _, err := mime.ParseMediaType(mime.TypeByExtension(ext)); err == nil {
		return t
	}
	if isText(data) {
		return "text/plain"
	}
	return "application/octet-stream"
}

// isText reports whether bytes can be sent as a text and come back as they were.
func isText(data []byte) bool { return utf8.Valid(data) && !bytes.ContainsRune(data, 0) }
