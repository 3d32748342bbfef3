package chat

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// Bounds of the programs that give an image of the clipboard.
const (
	clipboardTime = 10 * time.Second
	maxClipboard  = 20 << 20 // bytes of the image
)

// An imageProgram writes the image of the clipboard to its standard output, as decode reads
// it, and fails or writes nothing where there is none.
type imageProgram struct {
	words  []string
	decode func(out []byte) ([]byte, error)
}

// asIs is an image that is written as it is.
func asIs(out []byte) ([]byte, error) { return out, nil }

// imagePrograms are those of a platform, the best first.
func imagePrograms(platform string, getenv func(string) string) []imageProgram {
	const powershell = `Add-Type -AssemblyName System.Windows.Forms; $i = [Windows.Forms.Clipboard]::GetImage(); ` +
		`if ($i -eq $null) { exit 1 }; $m = New-Object IO.MemoryStream; $i.Save($m, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($m.ToArray())`
	switch platform {
	case "darwin":
		return []imageProgram{
			{[]string{"pngpaste", "-"}, asIs},
			{[]string{"osascript", "-e", "get the clipboard as «class PNGf»"}, appleData},
		}
	case "windows":
		return []imageProgram{{[]string{"powershell", "-NoProfile", "-NonInteractive", "-STA", "-Command", powershell}, base64Text}}
	}
	var list []imageProgram
	if getenv("WAYLAND_DISPLAY") != "" {
		list = append(list, imageProgram{[]string{"wl-paste", "--no-newline", "--type", "image/png"}, asIs})
	}
	if getenv("DISPLAY") != "" {
		list = append(list, imageProgram{[]string{"xclip", "-selection", "clipboard", "-t", "image/png", "-o"}, asIs})
	}
	return list
}

// appleData reads what AppleScript writes: «data PNGf89504E47…».
func appleData(out []byte) ([]byte, error) {
	text, begins := strings.CutPrefix(strings.TrimSpace(string(out)), "«data PNGf")
	text, ends := strings.CutSuffix(text, "»")
	if !begins || !ends {
		return nil, errors.New("unexpected output of osascript: not an image")
	}
	return hex.DecodeString(text)
}

// base64Text reads base64 with the end of a line.
func base64Text(out []byte) ([]byte, error) {
	return base64.StdEncoding.DecodeString(string(bytes.TrimSpace(out)))
}

// errNoImage says that the clipboard has no image.
var errNoImage = errors.New("the clipboard has no image")

// clipboardImage reads the image of the clipboard with a program of the platform.
func clipboardImage(ctx context.Context) (mcp.Content, error) {
	return imageOf(ctx, imagePrograms(runtime.GOOS, os.Getenv), clipboardTime)
}

// imageOf reads an image with the first installed program, which must end within limit.
func imageOf(ctx context.Context, programs []imageProgram, limit time.Duration) (mcp.Content, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var names []string
	for _, p := range programs {
		path, err := exec.LookPath(p.words[0])
		if err != nil {
			names = append(names, p.words[0])
			continue
		}
		out := new(boundedBuffer)
		cmd := exec.CommandContext(ctx, path, p.words[1:]...)
		cmd.Stdout, cmd.WaitDelay = out, limit/10 // for a child of the program that keeps its output
		if err := cmd.Run(); err != nil {
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, errors.New("cancelled")
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%s did not end within %v", p.words[0], limit)
			}
			return nil, errNoImage
		}
		return imageFrom(out, p.decode)
	}
	if len(names) == 0 {
		return nil, errors.New("cannot access a clipboard here, for example over ssh; use /attach PATH to attach a file")
	}
	return nil, fmt.Errorf("reading an image from the clipboard requires %s, which is not installed; use /attach PATH to attach a file", strings.Join(names, " or "))
}

// imageFrom is the image that a program has written.
func imageFrom(out *boundedBuffer, decode func([]byte) ([]byte, error)) (mcp.Content, error) {
	if out.over {
		return nil, fmt.Errorf("the image is larger than %d MiB", maxClipboard>>20)
	}
	data, err := decode(out.kept.Bytes())
	switch kind := http.DetectContentType(data); {
	case err != nil:
		return nil, err
	case len(data) == 0:
		return nil, errNoImage
	case len(data) > maxClipboard:
		return nil, fmt.Errorf("the image is larger than %d MiB", maxClipboard>>20)
	case !strings.HasPrefix(kind, "image/"):
		return nil, errNoImage
	default:
		return &mcp.ImageContent{Data: data, MIMEType: kind}, nil
	}
}

// A boundedBuffer keeps what a program writes, and notes when that is too much.
type boundedBuffer struct {
	kept bytes.Buffer
	over bool
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	const most = 3 * maxClipboard // as text it is longer
	if b.over = b.over || b.kept.Len()+len(p) > most; b.over {
		return len(p), nil
	}
	return b.kept.Write(p)
}
