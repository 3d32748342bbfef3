package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// maxFile bounds a file that is attached, in bytes.
const maxFile = 20 << 20

// File reads a file of the person, which is attached to a message: an image, or a text, to
// which its name is put in front. A path that begins with ~/ is in the home directory.
func File(path string) (mcp.Content, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(home, rest)
	}
	info, err := os.Stat(path) // a pipe would be waited for
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch kind := http.DetectContentType(data); {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("%s has more than %d MiB", path, maxFile>>20)
	case len(data) == 0:
		return nil, fmt.Errorf("%s is empty", path)
	case strings.HasPrefix(kind, "image/"):
		return &mcp.ImageContent{Data: data, MIMEType: kind}, nil
	case !utf8.Valid(data):
		return nil, fmt.Errorf("%s is neither an image nor a text in UTF-8", path)
	}
	return mcp.Text("File " + filepath.Base(path) + ":\n" + string(data)), nil
}

// attachFile attaches a file to the next message, or with a minus sign takes what is attached
// away.
func (l *Commands) attachFile(ctx context.Context, path string) {
	switch path {
	case "-":
		l.attached = nil
		l.say("Nothing is attached.")
		return
	case "":
		l.say("%s attached to your next message. /attach PATH attaches a file, /attach - takes all away.", firstOf(count(int64(len(l.attached)), "file is", "files are"), "No file is"))
		return
	}
	l.AttachFile(ctx, strings.Trim(path, `"`))
}

// AttachFile attaches the file of a path to the next message.
func (l *Commands) AttachFile(ctx context.Context, path string) {
	l.Start(ctx, "reading a file", func(context.Context) func() {
		c, err := File(path)
		return func() {
			if err != nil {
				var of *os.PathError
				if errors.As(err, &of) {
					err = fmt.Errorf("%s: %w", of.Path, of.Err)
				}
				l.say("It was not attached: %s.", host.EscapeLine(err.Error()))
				return
			}
			l.attach(c)
		}
	})
}

// image attaches the image of the clipboard to the next message.
func (l *Commands) image(ctx context.Context, _ string) {
	if l.Image == nil {
		l.say("The clipboard cannot be read here. /attach PATH attaches a file.")
		return
	}
	l.Start(ctx, "reading the clipboard", func(ctx context.Context) func() {
		c, err := l.Image(ctx)
		return func() {
			if err != nil {
				l.say("Nothing was attached: %s.", claim(err.Error()))
				return
			}
			l.attach(c)
		}
	})
}

// attach attaches something to the next message.
func (l *Commands) attach(c mcp.Content) {
	l.attached = append(l.attached, c)
	what := "Your next message has it"
	if n := len(l.attached); n > 1 {
		what = fmt.Sprintf("Your next message has it and %s", count(int64(n-1), "other", "others"))
	}
	l.say("%s: %s. /attach - takes all away.", what, describe(c))
}

// describe says what is attached.
func describe(c mcp.Content) string {
	if text, ok := c.(*mcp.TextContent); ok {
		head, rest, _ := strings.Cut(text.Text, "\n")
		return fmt.Sprintf("%s %s", host.EscapeLine(strings.TrimSuffix(head, ":")), count(int64(len(rest)), "byte", "bytes"))
	}
	return host.EscapeLine(host.ContentText(c))
}
