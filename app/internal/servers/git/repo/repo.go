// Package repo has what calls on Git repositories share: where a repository lies and what belongs to it,
// its Settings, the limits of a call, its arguments, and how paths, times and errors are written. Package
// gogit does the work.
package repo

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

// DefaultContext is how many unchanged lines a diff has around a change.
const DefaultContext = 3

// MaxName is the most bytes of a revision, a branch or a path.
const MaxName = 4096

// BadName is the error of a revision that is none.
func BadName(rev string) error {
	return mcp.Errorf("Ref '%s' did not resolve to an object", rev)
}

// Unsupported returns the error for a repository or a path that only git can work on. It names the reference
// server, which runs git, and so the commands of the repository.
func Unsupported(what string, args ...any) error {
	return mcp.Errorf(what+" is not supported; if you trust the repository, use mcp-server-git, which runs git", args...)
}

// TooLargeError is the error of contents that are larger than Limits.Object.
type TooLargeError struct{ Size, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("an object of %d bytes is larger than %d bytes; raise --max-object if that is what you want", e.Size, e.Limit)
}

// Unwrap has the text reach the caller.
func (e *TooLargeError) Unwrap() error { return mcp.Errorf("%s", e.Error()) }

// IsBinary reports whether a text is none: it has a NUL near its beginning.
func IsBinary(content []byte) bool {
	const looked = 8000
	return bytes.IndexByte(content[:min(len(content), looked)], 0) >= 0
}

// Subject is the first paragraph of a message, on one line.
func Subject(message string) string {
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
