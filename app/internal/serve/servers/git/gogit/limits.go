package gogit

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// Limits bound what one call may do. Each zero field means the default that is told.
type Limits struct {
	// Output is the most bytes of a result; what is longer is cut, and the result says so. Default
	// 1 MiB.
	Output int
	// Files is the most files and folders that are looked at, in commits, the index and the working
	// tree together. Default 500,000.
	Files int
	// Commits is the most commits that are read. Default 500,000.
	Commits int
	// Object is the most bytes of a file whose contents are looked at. Default 64 MiB.
	Object int64
}

// Defaults are the limits with the defaults in place of zeros.
func (l Limits) Defaults() Limits {
	l.Output = cmp.Or(l.Output, 1<<20)
	l.Files = cmp.Or(l.Files, 500_000)
	l.Commits = cmp.Or(l.Commits, 500_000)
	l.Object = cmp.Or(l.Object, 64<<20)
	return l
}

// maxName is the most bytes of a revision, a branch or a path.
const maxName = 4096

// badName is the error of a revision that is none.
func badName(rev string) error {
	return mcp.Errorf("Ref '%s' did not resolve to an object", rev)
}

// unsupported returns the error for a repository or a path that only git can work on. It names the reference
// server, which runs git, and so the commands of the repository.
func unsupported(what string, args ...any) error {
	return mcp.Errorf(what+" is not supported; if you trust the repository, use mcp-server-git, which runs git", args...)
}

// tooLargeError is the error of contents that are larger than Limits.Object.
type tooLargeError struct{ Size, Limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("an object of %d bytes is larger than %d bytes; raise --max-object if that is what you want", e.Size, e.Limit)
}

// Unwrap has the text reach the caller.
func (e *tooLargeError) Unwrap() error { return mcp.Errorf("%s", e.Error()) }

// IsBinary reports whether a text is none: it has a NUL near its beginning.
func IsBinary(content []byte) bool {
	const looked = 8000
	return bytes.IndexByte(content[:min(len(content), looked)], 0) >= 0
}

// subject is the first paragraph of a message, on one line.
func subject(message string) string {
	var words []string
	for line := range strings.Lines(strings.TrimLeft(message, "\n")) {
		line = strings.TrimRight(line, " \t\r\n\v\f")
		if line == "" {
			break
		}
		words = append(words, line)
	}
	return strings.Join(words, " ")
}

// maxAttributes is the most lines of .gitattributes files: each file is matched with each of them.
const maxAttributes = 50_000
